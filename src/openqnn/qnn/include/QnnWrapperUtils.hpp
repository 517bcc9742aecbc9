// What a model library and the application that loads it exchange, and the memory rules of it: everything that
// composeGraphs hands out is allocated here and released by freeGraphsInfo, in the same library.
#ifndef OPENQNN_QNN_WRAPPER_UTILS_HPP
#define OPENQNN_QNN_WRAPPER_UTILS_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "QnnInterface.h"

namespace qnn_wrapper_api {

typedef enum ModelError {
  MODEL_NO_ERROR = 0,
  MODEL_TENSOR_ERROR = 1,
  MODEL_PARAMS_ERROR = 2,
  MODEL_NODES_ERROR = 3,
  MODEL_GRAPH_ERROR = 4,
  MODEL_CONTEXT_ERROR = 5,
  MODEL_GENERATION_ERROR = 6,
  MODEL_SETUP_ERROR = 7,
  MODEL_INVALID_ARGUMENT_ERROR = 8,
  MODEL_FILE_ERROR = 9,
  MODEL_MEMORY_ALLOCATE_ERROR = 10,
  MODEL_UNKNOWN_ERROR = 0x7FFFFFFF
} ModelError_t;

typedef struct GraphInfo {
  Qnn_GraphHandle_t graph;
  char* graphName;
  Qnn_Tensor_t* inputTensors;
  uint32_t numInputTensors;
  Qnn_Tensor_t* outputTensors;
  uint32_t numOutputTensors;
} GraphInfo_t;
typedef GraphInfo_t* GraphInfoPtr_t;

typedef struct GraphConfigInfo {
  char* graphName;
  const QnnGraph_Config_t** graphConfigs;
} GraphConfigInfo_t;

static_assert(sizeof(GraphInfo_t) == 48, "applications read this");
static_assert(sizeof(GraphConfigInfo_t) == 16, "applications write this");

// Both tensor versions begin alike (see QnnLayout.h), so one view serves for all that they share.
inline Qnn_TensorV1_t& tensorBody(Qnn_Tensor_t& tensor) { return tensor.v1; }
inline const Qnn_TensorV1_t& tensorBody(const Qnn_Tensor_t& tensor) { return tensor.v1; }

template <typename T>
inline T* duplicate(const T* items, size_t count) {
  if (items == nullptr || count == 0) return nullptr;
  T* copy = static_cast<T*>(std::malloc(count * sizeof(T)));
  if (copy != nullptr) std::memcpy(copy, items, count * sizeof(T));
  return copy;
}

inline char* duplicateText(const char* text) { return text ? duplicate(text, std::strlen(text) + 1) : nullptr; }

// A copy that owns its name, dimensions and encodings. Data stays where it is: weights are part of the library.
inline Qnn_Tensor_t copyTensor(const Qnn_Tensor_t& source) {
  Qnn_Tensor_t copy = source;
  Qnn_TensorV1_t& body = tensorBody(copy);
  body.name = duplicateText(body.name);
  body.dimensions = duplicate(body.dimensions, body.rank);
  Qnn_QuantizeParams_t& quant = body.quantizeParams;
  if (quant.quantizationEncoding == QNN_QUANTIZATION_ENCODING_AXIS_SCALE_OFFSET) {
    Qnn_AxisScaleOffset_t& axis = quant.axisScaleOffsetEncoding;
    axis.scaleOffset = duplicate(axis.scaleOffset, axis.numScaleOffsets);
  } else if (quant.quantizationEncoding == QNN_QUANTIZATION_ENCODING_BW_AXIS_SCALE_OFFSET) {
    Qnn_BwAxisScaleOffset_t& axis = quant.bwAxisScaleOffsetEncoding;
    axis.scales = duplicate(axis.scales, axis.numElements);
    axis.offsets = duplicate(axis.offsets, axis.numElements);
  }
  if (copy.version == QNN_TENSOR_VERSION_2) {
    copy.v2.isDynamicDimensions = duplicate(copy.v2.isDynamicDimensions, body.rank);
  }
  return copy;
}

// Releases what copyTensor allocated.
inline void releaseTensor(Qnn_Tensor_t& tensor) {
  Qnn_TensorV1_t& body = tensorBody(tensor);
  std::free(const_cast<char*>(body.name));
  std::free(body.dimensions);
  Qnn_QuantizeParams_t& quant = body.quantizeParams;
  if (quant.quantizationEncoding == QNN_QUANTIZATION_ENCODING_AXIS_SCALE_OFFSET) {
    std::free(quant.axisScaleOffsetEncoding.scaleOffset);
  } else if (quant.quantizationEncoding == QNN_QUANTIZATION_ENCODING_BW_AXIS_SCALE_OFFSET) {
    std::free(quant.bwAxisScaleOffsetEncoding.scales);
    std::free(quant.bwAxisScaleOffsetEncoding.offsets);
  }
  if (tensor.version == QNN_TENSOR_VERSION_2) std::free(tensor.v2.isDynamicDimensions);
}

inline void releaseTensors(Qnn_Tensor_t* tensors, uint32_t count) {
  for (uint32_t i = 0; tensors != nullptr && i < count; ++i) releaseTensor(tensors[i]);
  std::free(tensors);
}

// The pointers lie in one block and the records in another, which is how applications walk and free them.
inline ModelError_t freeGraphsInfo(GraphInfoPtr_t** graphsInfo, uint32_t numGraphsInfo) {
  if (graphsInfo == nullptr || *graphsInfo == nullptr) return MODEL_INVALID_ARGUMENT_ERROR;
  GraphInfo_t* records = numGraphsInfo > 0 ? **graphsInfo : nullptr;
  for (uint32_t i = 0; records != nullptr && i < numGraphsInfo; ++i) {
    std::free(records[i].graphName);
    releaseTensors(records[i].inputTensors, records[i].numInputTensors);
    releaseTensors(records[i].outputTensors, records[i].numOutputTensors);
  }
  std::free(records);
  std::free(*graphsInfo);
  *graphsInfo = nullptr;
  return MODEL_NO_ERROR;
}

}  // namespace qnn_wrapper_api

#endif
