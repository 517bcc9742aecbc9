/* What kernels of a CPU op package work with: nodes as libQnnCpu hands them over, and tensors as plain numbers.
 *
 * OpenQNN's own, written from what the library hands to a package. Kernels see real numbers: fixed point is
 * taken apart before them and rounded behind them.
 */
#ifndef OPENQNN_CPU_OP_PACKAGE_HPP
#define OPENQNN_CPU_OP_PACKAGE_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "QnnOpPackage.h"

namespace oppackage {

/* As the library lays them out. `data` is set from the first execution on. */

struct CpuTensor {
  uint32_t format;
  uint32_t dataType;
  uint32_t rank;
  uint32_t* maxDimensions;
  uint32_t* dimensions;
  void* data;
  Qnn_QuantizeParams_t quantizeParams;
};

struct CpuParam {
  uint32_t isTensor;
  const char* name;
  union {
    double scalar;
    CpuTensor* tensor;
  };
};

struct CpuNode {
  const char* name;
  const char* packageName;
  const char* typeName;
  uint32_t numParams;
  CpuParam** params;
  uint32_t numInputs;
  CpuTensor** inputs;
  uint32_t numOutputs;
  CpuTensor** outputs;
};

struct CpuOpImpl {
  Qnn_ErrorHandle_t (*run)(void* user);
  void* user;
};

/* A tensor as numbers of type T. Elements are in row-major order, as QNN's are. */

template <typename T>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(CpuTensor* tensor) : tensor_(tensor) { load(); }
  Tensor(CpuTensor* tensor, const std::vector<T>& otherwise) : tensor_(tensor) {
    if (tensor_ != nullptr) {
      load();
      return;
    }
    copy_ = otherwise;
    pointer_ = copy_.data();
    size_ = copy_.size();
  }

  bool given() const { return tensor_ != nullptr; }
  uint32_t rank() const { return tensor_ ? tensor_->rank : size_ ? 1 : 0; }
  uint32_t dim(uint32_t axis) const {
    return tensor_ ? tensor_->dimensions[axis] : static_cast<uint32_t>(size_);
  }
  size_t size() const { return size_; }
  const T& operator[](size_t i) const { return pointer_[i]; }
  T& operator[](size_t i) { return pointer_[i]; }
  const T* data() const { return pointer_; }
  T* data() { return pointer_; }

  /* The element for element `i` of a larger tensor, by the rules of broadcasting. */
  template <typename U>
  const T& at(size_t i, const Tensor<U>& whole) const {
    if (size_ == 1) return pointer_[0];
    if (size_ == whole.size()) return pointer_[i];
    size_t index = 0, step = 1;
    for (uint32_t k = 0; k < whole.rank(); ++k) {
      const size_t extent = whole.dim(whole.rank() - 1 - k), place = i % extent;
      i /= extent;
      if (k >= rank()) continue;
      const size_t own = dim(rank() - 1 - k);
      index += (own == 1 ? 0 : place) * step;
      step *= own;
    }
    return pointer_[index];
  }

  /* Numbers of a result go back to the library, rounded to its encoding where it has one. */
  void store() {
    if (tensor_ == nullptr || copy_.empty()) return;
    double scale = 1, offset = 0;
    const bool fixed = encoding(scale, offset);
    switch (tensor_->dataType & 0xffff) {
      case 0x0008: case 0x0308: put<int8_t>(fixed, scale, offset, -128, 127); break;
      case 0x0108: case 0x0408: put<uint8_t>(fixed, scale, offset, 0, 255); break;
      case 0x0508: put<uint8_t>(fixed, scale, offset, 0, 1); break;
      case 0x0016: case 0x0316: put<int16_t>(fixed, scale, offset, -32768, 32767); break;
      case 0x0116: case 0x0416: put<uint16_t>(fixed, scale, offset, 0, 65535); break;
      case 0x0032: case 0x0332: put<int32_t>(fixed, scale, offset, -2147483648.0, 2147483647.0); break;
      case 0x0132: case 0x0432: put<uint32_t>(fixed, scale, offset, 0, 4294967295.0); break;
      case 0x0232: put<float>(false, 1, 0, -INFINITY, INFINITY); break;
      default: break;
    }
  }

 private:
  void load() {
    if (tensor_ == nullptr) return;
    size_ = 1;
    for (uint32_t i = 0; i < tensor_->rank; ++i) size_ *= tensor_->dimensions[i];
    double scale = 1, offset = 0;
    const bool fixed = encoding(scale, offset);
    if (!fixed && tensor_->dataType == code()) {
      pointer_ = static_cast<T*>(tensor_->data);
      return;
    }
    copy_.resize(size_);
    switch (tensor_->dataType & 0xffff) {
      case 0x0008: case 0x0308: take<int8_t>(scale, offset); break;
      case 0x0108: case 0x0408: case 0x0508: take<uint8_t>(scale, offset); break;
      case 0x0016: case 0x0316: take<int16_t>(scale, offset); break;
      case 0x0116: case 0x0416: take<uint16_t>(scale, offset); break;
      case 0x0032: case 0x0332: take<int32_t>(scale, offset); break;
      case 0x0132: case 0x0432: take<uint32_t>(scale, offset); break;
      case 0x0232: take<float>(1, 0); break;
      default: break;
    }
    pointer_ = copy_.data();
  }

  static constexpr uint32_t code() {
    return sizeof(T) == 4 ? (T(0.5) == T(0) ? (T(-1) < T(0) ? 0x0032u : 0x0132u) : 0x0232u) : 0u;
  }

  bool encoding(double& scale, double& offset) const {
    const Qnn_QuantizeParams_t& q = tensor_->quantizeParams;
    if (q.encodingDefinition != QNN_DEFINITION_DEFINED ||
        q.quantizationEncoding != QNN_QUANTIZATION_ENCODING_SCALE_OFFSET) {
      return false;
    }
    scale = q.scaleOffsetEncoding.scale;
    offset = q.scaleOffsetEncoding.offset;
    return true;
  }

  template <typename S>
  void take(double scale, double offset) {
    const S* stored = static_cast<const S*>(tensor_->data);
    if (stored == nullptr) return;
    for (size_t i = 0; i < size_; ++i) copy_[i] = static_cast<T>(scale * (stored[i] + offset));
  }

  template <typename S>
  void put(bool fixed, double scale, double offset, double low, double high) {
    S* stored = static_cast<S*>(tensor_->data);
    for (size_t i = 0; i < size_; ++i) {
      double number = static_cast<double>(copy_[i]);
      if (fixed) number = std::nearbyint(number / scale) - offset;
      stored[i] = static_cast<S>(number < low ? low : number > high ? high : number);
    }
  }

  CpuTensor* tensor_ = nullptr;
  T* pointer_ = nullptr;
  size_t size_ = 0;
  std::vector<T> copy_;
};

/* Parameters by name. A scalar that was left out has its default. */

struct Op {
  std::vector<CpuTensor*> inputs, outputs;
  std::vector<CpuParam> params;

  double scalar(const char* name, double otherwise) const {
    for (const CpuParam& p : params) {
      if (!p.isTensor && std::strcmp(p.name, name) == 0) return p.scalar;
    }
    return otherwise;
  }
  CpuTensor* tensor(const char* name) const {
    for (const CpuParam& p : params) {
      if (p.isTensor && std::strcmp(p.name, name) == 0) return p.tensor;
    }
    return nullptr;
  }
  CpuTensor* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  CpuTensor* output(size_t i) const { return i < outputs.size() ? outputs[i] : nullptr; }
};

/* An operation of a package: what it takes, and its kernel. Data types that may be any are none here. */

struct Entry {
  const char* name;
  uint32_t leastInputs, mostInputs, leastOutputs, mostOutputs;
  std::vector<std::vector<uint32_t>> inputTypes, outputTypes;
  std::vector<const char*> params, needed;
  Qnn_ErrorHandle_t (*run)(void* user);
};

}  // namespace oppackage

#endif
