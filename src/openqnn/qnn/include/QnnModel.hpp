// Composes a graph on a backend, call by call: what generated sources (model.cpp) are written against.
// All of it is in this header, so that a model library is one source file and its weights.
#ifndef OPENQNN_QNN_MODEL_HPP
#define OPENQNN_QNN_MODEL_HPP

#include <string>
#include <unordered_map>
#include <vector>

#include "QnnWrapperUtils.hpp"

// Weights: the bytes between two symbols that are linked in beside the source, one pair for each tensor.
#define BINVARSTART(NAME)                                         \
  ({                                                              \
    extern const uint8_t _binary_obj_binary_##NAME##_raw_start[]; \
    (void*)_binary_obj_binary_##NAME##_raw_start;                 \
  })
#define BINVAREND(NAME)                                         \
  ({                                                            \
    extern const uint8_t _binary_obj_binary_##NAME##_raw_end[]; \
    (void*)_binary_obj_binary_##NAME##_raw_end;                 \
  })
#define BINLEN(NAME) ((uint32_t)((const uint8_t*)BINVAREND(NAME) - (const uint8_t*)BINVARSTART(NAME)))

// Leaves the calling function with the error when there is one. The function's name tells which tensor or node it
// was; the text of the call would not be worth its size, since it holds a whole tensor.
#define VALIDATE(value, retStatus)                                                                \
  do {                                                                                            \
    retStatus = (value);                                                                          \
    if (retStatus != qnn_wrapper_api::MODEL_NO_ERROR) {                                           \
      return qnn_wrapper_api::reportFailure(retStatus, __func__, __LINE__);                       \
    }                                                                                             \
  } while (0)

namespace qnn_wrapper_api {

inline ModelError_t reportFailure(ModelError_t error, const char* function, int line) {
  std::fprintf(stderr, "error %d in %s, line %d of the model's source\n", static_cast<int>(error), function, line);
  return error;
}

class QnnModel {
 public:
  QnnModel() = default;
  QnnModel(const QnnModel&) = delete;
  QnnModel& operator=(const QnnModel&) = delete;
  ~QnnModel() {
    for (Qnn_Tensor_t& tensor : tensors_) releaseTensor(tensor);
  }

  // With debug, every intermediate result becomes an output of the graph.
  ModelError_t initialize(const Qnn_BackendHandle_t& backend, const QNN_INTERFACE_VER_TYPE& interface,
                          const Qnn_ContextHandle_t& context, const char* graphName, bool debug,
                          uint8_t doNodeValidations = 1, const QnnGraph_Config_t** graphConfigs = nullptr) {
    if (context == nullptr) return failed(MODEL_CONTEXT_ERROR, "no context", graphName);
    if (graphName == nullptr || *graphName == '\0') return failed(MODEL_GRAPH_ERROR, "a graph needs a name", "");
    if (graph_ != nullptr) return failed(MODEL_GRAPH_ERROR, "already initialized as", name_.c_str());
    backend_ = backend;
    interface_ = interface;
    name_ = graphName;
    debug_ = debug;
    validate_ = doNodeValidations != 0;
    const Qnn_ErrorHandle_t code = interface_.graphCreate(context, graphName, graphConfigs, &graph_);
    if (code == QNN_SUCCESS && graph_ != nullptr) return MODEL_NO_ERROR;
    return refused(MODEL_GRAPH_ERROR, "cannot create graph", graphName, code);
  }

  // With saveTensor, nodes find the tensor by its name; a parameter is only seen by its own node.
  ModelError_t addTensor(const char* tensorName, Qnn_Tensor_t* tensor, bool saveTensor = true) {
    if (graph_ == nullptr || tensor == nullptr || tensorName == nullptr || *tensorName == '\0') {
      return failed(MODEL_TENSOR_ERROR, "tensor without graph or name", tensorName);
    }
    if (saveTensor && places_.count(tensorName) != 0) {
      return failed(MODEL_TENSOR_ERROR, "tensor exists already", tensorName);
    }
    Qnn_TensorV1_t& body = tensorBody(*tensor);
    if (debug_ && body.type == QNN_TENSOR_TYPE_NATIVE) body.type = QNN_TENSOR_TYPE_APP_READ;
    const Qnn_ErrorHandle_t code = interface_.tensorCreateGraphTensor(graph_, tensor);
    if (code != QNN_SUCCESS) return refused(MODEL_TENSOR_ERROR, "cannot create tensor", tensorName, code);
    if (saveTensor) save(tensorName, *tensor);
    return MODEL_NO_ERROR;
  }

  ModelError_t addTensor(const char* tensorName, Qnn_Tensor_t tensor, bool saveTensor = true) {
    return addTensor(tensorName, &tensor, saveTensor);
  }

  // The tensor that was added under a name. Pointers in it are valid as long as this model.
  ModelError_t getQnnTensor(const char*& nodeName, const char*& tensorName, Qnn_Tensor_t& tensor) {
    const auto found = places_.find(tensorName);
    if (found == places_.end()) {
      std::fprintf(stderr, "graph %s, node %s: ", name_.c_str(), nodeName);
      return failed(MODEL_TENSOR_ERROR, "no such tensor", tensorName);
    }
    tensor = tensors_[found->second];
    return MODEL_NO_ERROR;
  }

  ModelError_t addNode(Qnn_OpConfigVersion_t version, const char* name, const char* packageName, const char* type,
                       Qnn_Param_t* params, uint32_t numOfParams, const char** inputNames, uint32_t numOfInputs,
                       Qnn_Tensor_t* outputTensors, uint32_t numOfOutputs) {
    if (version != QNN_OPCONFIG_VERSION_1) return failed(MODEL_NODES_ERROR, "unknown version of node", name);
    for (uint32_t i = 0; i < numOfParams; ++i) {
      if (params[i].paramType != QNN_PARAMTYPE_TENSOR) continue;
      Qnn_Tensor_t& tensor = params[i].tensorParam;
      if (addTensor(tensorBody(tensor).name, &tensor, false) != MODEL_NO_ERROR) {
        return failed(MODEL_PARAMS_ERROR, "bad parameter of node", name);
      }
    }
    std::vector<Qnn_Tensor_t> inputs(numOfInputs);
    for (uint32_t i = 0; i < numOfInputs; ++i) {
      const ModelError_t error = getQnnTensor(name, inputNames[i], inputs[i]);
      if (error != MODEL_NO_ERROR) return error;
    }
    std::vector<Qnn_Tensor_t> outputs(outputTensors, outputTensors + numOfOutputs);
    for (Qnn_Tensor_t& output : outputs) {
      const ModelError_t error = addTensor(tensorBody(output).name, &output, true);
      if (error != MODEL_NO_ERROR) return error;
    }
    Qnn_OpConfig_t op = Qnn_OpConfig_t();
    op.version = version;
    op.v1.name = name;
    op.v1.packageName = packageName;
    op.v1.typeName = type;
    op.v1.numOfParams = numOfParams;
    op.v1.params = params;
    op.v1.numOfInputs = numOfInputs;
    op.v1.inputTensors = inputs.data();
    op.v1.numOfOutputs = numOfOutputs;
    op.v1.outputTensors = outputs.data();
    return addToGraph(op);
  }

  ModelError_t finalize(Qnn_ProfileHandle_t profile = nullptr, Qnn_SignalHandle_t signal = nullptr) {
    const Qnn_ErrorHandle_t code = interface_.graphFinalize(graph_, profile, signal);
    if (code == QNN_SUCCESS) return MODEL_NO_ERROR;
    return refused(MODEL_GRAPH_ERROR, "cannot finalize graph", name_.c_str(), code);
  }

  Qnn_GraphHandle_t getQnnGraph() const { return graph_; }
  std::string getQnnGraphName() const { return name_; }

  // Copies of all tensors of one type, in the order in which they were added.
  std::vector<Qnn_Tensor_t> copiesOf(Qnn_TensorType_t type) const {
    std::vector<Qnn_Tensor_t> found;
    for (const Qnn_Tensor_t& tensor : tensors_) {
      if (tensorBody(tensor).type == type) found.push_back(copyTensor(tensor));
    }
    return found;
  }

 private:
  ModelError_t addToGraph(const Qnn_OpConfig_t& op) {
    if (validate_) {
      const Qnn_ErrorHandle_t code = interface_.backendValidateOpConfig(backend_, op);
      if (code != QNN_SUCCESS) return refused(MODEL_NODES_ERROR, "the backend does not accept node", op.v1.name, code);
    }
    const Qnn_ErrorHandle_t code = interface_.graphAddNode(graph_, op);
    if (code == QNN_SUCCESS) return MODEL_NO_ERROR;
    return refused(MODEL_NODES_ERROR, "cannot add node", op.v1.name, code);
  }

  void save(const char* tensorName, const Qnn_Tensor_t& tensor) {
    places_[tensorName] = tensors_.size();
    tensors_.push_back(copyTensor(tensor));
  }

  static ModelError_t failed(ModelError_t error, const char* what, const char* which) {
    std::fprintf(stderr, "%s '%s'\n", what, which ? which : "");
    return error;
  }

  ModelError_t refused(ModelError_t error, const char* what, const char* which, Qnn_ErrorHandle_t code) const {
    const char* reason = nullptr;
    if (interface_.errorGetMessage == nullptr || interface_.errorGetMessage(code, &reason) != QNN_SUCCESS) {
      reason = nullptr;
    }
    std::fprintf(stderr, "%s '%s': %s (%llu)\n", what, which, reason ? reason : "error",
                 static_cast<unsigned long long>(code));
    return error;
  }

  Qnn_BackendHandle_t backend_ = nullptr;
  QNN_INTERFACE_VER_TYPE interface_ = QNN_INTERFACE_VER_TYPE();
  Qnn_GraphHandle_t graph_ = nullptr;
  std::string name_;
  bool debug_ = false;
  bool validate_ = true;
  std::vector<Qnn_Tensor_t> tensors_;
  std::unordered_map<std::string, size_t> places_;
};

inline bool fillGraphInfo(const QnnModel& model, GraphInfo_t& info) {
  const std::vector<Qnn_Tensor_t> inputs = model.copiesOf(QNN_TENSOR_TYPE_APP_WRITE);
  const std::vector<Qnn_Tensor_t> outputs = model.copiesOf(QNN_TENSOR_TYPE_APP_READ);
  info.graph = model.getQnnGraph();
  info.graphName = duplicateText(model.getQnnGraphName().c_str());
  info.inputTensors = duplicate(inputs.data(), inputs.size());
  info.numInputTensors = static_cast<uint32_t>(inputs.size());
  info.outputTensors = duplicate(outputs.data(), outputs.size());
  info.numOutputTensors = static_cast<uint32_t>(outputs.size());
  return info.graphName != nullptr && (inputs.empty() || info.inputTensors != nullptr) &&
         (outputs.empty() || info.outputTensors != nullptr);
}

// The models lie one after the other in memory.
inline ModelError_t getGraphInfoFromModels(QnnModel* models, uint32_t numModels, GraphInfoPtr_t** graphsInfo) {
  if (models == nullptr || graphsInfo == nullptr || numModels == 0) return MODEL_GRAPH_ERROR;
  *graphsInfo = static_cast<GraphInfoPtr_t*>(std::calloc(numModels, sizeof(GraphInfoPtr_t)));
  GraphInfo_t* records = static_cast<GraphInfo_t*>(std::calloc(numModels, sizeof(GraphInfo_t)));
  if (*graphsInfo == nullptr || records == nullptr) {
    std::free(records);
    std::free(*graphsInfo);
    *graphsInfo = nullptr;
    return MODEL_MEMORY_ALLOCATE_ERROR;
  }
  bool complete = true;
  for (uint32_t i = 0; i < numModels; ++i) {
    (*graphsInfo)[i] = &records[i];
    complete = fillGraphInfo(models[i], records[i]) && complete;
  }
  if (complete) return MODEL_NO_ERROR;
  freeGraphsInfo(graphsInfo, numModels);
  return MODEL_MEMORY_ALLOCATE_ERROR;
}

// The configuration that the application gives for one graph, or none.
inline ModelError_t getQnnGraphConfigFromInfo(const char* graphName, const GraphConfigInfo_t** graphsConfigInfo,
                                              const uint32_t numGraphsConfigInfo,
                                              const QnnGraph_Config_t**& graphConfigs) {
  graphConfigs = nullptr;
  if (graphsConfigInfo == nullptr) return numGraphsConfigInfo == 0 ? MODEL_NO_ERROR : MODEL_INVALID_ARGUMENT_ERROR;
  for (uint32_t i = 0; i < numGraphsConfigInfo; ++i) {
    const GraphConfigInfo_t* info = graphsConfigInfo[i];
    if (info == nullptr || info->graphName == nullptr) return MODEL_INVALID_ARGUMENT_ERROR;
    if (std::strcmp(info->graphName, graphName) == 0) graphConfigs = info->graphConfigs;
  }
  return MODEL_NO_ERROR;
}

}  // namespace qnn_wrapper_api

#endif
