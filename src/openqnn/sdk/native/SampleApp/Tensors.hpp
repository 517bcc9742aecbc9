// Tensors of a graph, with memory of their own: filled from raw files and written to raw files.
#ifndef SAMPLE_APP_TENSORS_HPP
#define SAMPLE_APP_TENSORS_HPP

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "QnnWrapperUtils.hpp"

namespace sample {

using qnn_wrapper_api::tensorBody;

inline size_t widthOf(Qnn_DataType_t type) {
  switch (type & 0xFF) {
    case 0x64: return 8;
    case 0x32: return 4;
    case 0x16: case 0x26: return 2;
    default: return 1;
  }
}

inline bool isSigned(Qnn_DataType_t type) { return (type & 0xFF00) == 0x0000 || (type & 0xFF00) == 0x0300; }
inline bool isFloat(Qnn_DataType_t type) { return (type & 0xFF00) == 0x0200; }

inline size_t countOf(const Qnn_TensorV1_t& body) {
  size_t count = 1;
  for (uint32_t i = 0; i < body.rank; ++i) count *= body.dimensions[i];
  return count;
}

inline std::vector<char> readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return std::vector<char>((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

inline void writeFile(const std::string& path, const void* data, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

/* Half precision, to the nearest even, as IEEE 754 has it. */

inline uint16_t halfOf(float number) {
  uint32_t bits;
  std::memcpy(&bits, &number, 4);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const float size = std::fabs(number);
  if (std::isnan(number)) return static_cast<uint16_t>(sign | 0x7E00);
  if (size >= 65520.0f) return static_cast<uint16_t>(sign | 0x7C00);
  if (size < 6.103515625e-05f) return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(size * 16777216.0f)));
  int exponent;
  const float fraction = std::frexp(size, &exponent);  // 0.5 <= fraction < 1
  const uint32_t steps = static_cast<uint32_t>(std::nearbyint(fraction * 2048.0f));
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(exponent + 13) * 1024 + steps));
}

inline float floatOf(uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024.0f + static_cast<float>(fraction), exponent - 25)
                          : std::ldexp(static_cast<float>(fraction), -24));
}

/* Real numbers as a tensor stores them and back: real = scale * (stored + offset). */

inline bool encodingOf(const Qnn_TensorV1_t& body, double& scale, double& offset) {
  const Qnn_QuantizeParams_t& quant = body.quantizeParams;
  if (quant.encodingDefinition != QNN_DEFINITION_DEFINED) return false;
  if (quant.quantizationEncoding == QNN_QUANTIZATION_ENCODING_SCALE_OFFSET) {
    scale = quant.scaleOffsetEncoding.scale;
    offset = quant.scaleOffsetEncoding.offset;
    return true;
  }
  if (quant.quantizationEncoding == QNN_QUANTIZATION_ENCODING_BW_SCALE_OFFSET) {
    scale = quant.bwScaleOffsetEncoding.scale;
    offset = quant.bwScaleOffsetEncoding.offset;
    return true;
  }
  return false;
}

inline void storeInteger(char* to, size_t width, long long value) { std::memcpy(to, &value, width); }

inline long long loadInteger(const char* from, size_t width, bool negative) {
  unsigned long long bits = 0;
  std::memcpy(&bits, from, width);
  const int unused = static_cast<int>(64 - 8 * width);
  if (!negative || unused == 0) return static_cast<long long>(bits);
  return static_cast<long long>(bits << unused) >> unused;
}

inline std::vector<char> stored(const Qnn_TensorV1_t& body, const std::vector<float>& numbers) {
  const size_t width = widthOf(body.dataType);
  std::vector<char> bytes(numbers.size() * width);
  double scale = 1, offset = 0;
  const bool fixed = encodingOf(body, scale, offset);
  const bool negative = isSigned(body.dataType);
  const double steps = std::ldexp(1.0, static_cast<int>(8 * width));
  const double low = negative ? -steps / 2 : 0, high = (negative ? steps / 2 : steps) - 1;
  for (size_t i = 0; i < numbers.size(); ++i) {
    char* place = bytes.data() + i * width;
    if (body.dataType == QNN_DATATYPE_FLOAT_32) {
      std::memcpy(place, &numbers[i], 4);
    } else if (body.dataType == QNN_DATATYPE_FLOAT_16) {
      const uint16_t half = halfOf(numbers[i]);
      std::memcpy(place, &half, 2);
    } else if (fixed) {  // half a step goes away from zero
      const double found = std::round(static_cast<double>(numbers[i]) / scale - offset);
      storeInteger(place, width, static_cast<long long>(found < low ? low : found > high ? high : found));
    } else {
      storeInteger(place, width, static_cast<long long>(numbers[i]));
    }
  }
  return bytes;
}

inline std::vector<float> real(const Qnn_TensorV1_t& body, const std::vector<char>& bytes) {
  const size_t width = widthOf(body.dataType);
  std::vector<float> numbers(bytes.size() / width);
  double scale = 1, offset = 0;
  encodingOf(body, scale, offset);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const char* place = bytes.data() + i * width;
    if (body.dataType == QNN_DATATYPE_FLOAT_32) {
      std::memcpy(&numbers[i], place, 4);
    } else if (body.dataType == QNN_DATATYPE_FLOAT_16) {
      uint16_t half;
      std::memcpy(&half, place, 2);
      numbers[i] = floatOf(half);
    } else {
      const double whole = static_cast<double>(loadInteger(place, width, isSigned(body.dataType)));
      numbers[i] = static_cast<float>((whole + offset) * scale);
    }
  }
  return numbers;
}

/* The inputs or outputs of a graph. */

class Tensors {
 public:
  Tensors(Qnn_Tensor_t* tensors, uint32_t count) : tensors_(tensors), count_(count), memory_(count) {
    for (uint32_t i = 0; i < count; ++i) {
      Qnn_TensorV1_t& body = tensorBody(tensors[i]);
      memory_[i].resize(countOf(body) * widthOf(body.dataType));
      body.memType = QNN_TENSORMEMTYPE_RAW;
      body.clientBuf.data = memory_[i].data();
      body.clientBuf.dataSize = static_cast<uint32_t>(memory_[i].size());
    }
  }

  uint32_t count() const { return count_; }
  Qnn_Tensor_t* data() { return tensors_; }
  std::string name(uint32_t i) const { return tensorBody(tensors_[i]).name; }

  void fill(uint32_t i, const std::string& path, bool native) {
    const Qnn_TensorV1_t& body = tensorBody(tensors_[i]);
    std::vector<char> bytes = readFile(path);
    const size_t wanted = native ? memory_[i].size() : countOf(body) * 4;
    if (bytes.size() != wanted) {
      throw std::runtime_error(path + " has " + std::to_string(bytes.size()) + " bytes, and input " + body.name +
                               " needs " + std::to_string(wanted));
    }
    if (!native) {
      std::vector<float> numbers(countOf(body));
      std::memcpy(numbers.data(), bytes.data(), bytes.size());
      bytes = stored(body, numbers);
    }
    std::memcpy(memory_[i].data(), bytes.data(), bytes.size());
  }

  void save(uint32_t i, const std::string& folder, bool asFloat, bool asNative) const {
    const Qnn_TensorV1_t& body = tensorBody(tensors_[i]);
    const std::string stem = folder + "/" + body.name;
    const bool plain = body.dataType == QNN_DATATYPE_FLOAT_32;
    if (asFloat || plain) {
      const std::vector<float> numbers = real(body, memory_[i]);
      writeFile(stem + ".raw", numbers.data(), numbers.size() * 4);
    }
    if (asNative && !plain) writeFile(stem + "_native.raw", memory_[i].data(), memory_[i].size());
  }

 private:
  Qnn_Tensor_t* tensors_;
  uint32_t count_;
  std::vector<std::vector<char>> memory_;
};

}  // namespace sample

#endif
