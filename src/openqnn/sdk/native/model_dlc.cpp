// libQnnModelDlc.so: composes the graphs of a DLC file on the caller's backend.
//
// libQnnSystem reads the file and calls the backend's functions for all that is in it. This library finds it beside the
// backend, hands it the caller's table, and gives the graphs out as model libraries do.
#include "QnnModelDlc.h"

#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "System/QnnSystemInterface.h"

using namespace qnn_wrapper_api;

namespace {

// An interface as libQnnSystem takes it by value: its length depends on the version of QNN.
template <size_t Entries>
struct Passed {
  uint32_t backendId;
  const char* providerName;
  Qnn_ApiVersion_t apiVersion;
  void* table[Entries];
};

// A configuration as libQnnSystem takes it; applications give a name and a list with a null behind the last.
struct DlcGraphConfig {
  uint32_t version;
  const char* graphName;
  const QnnGraph_Config_t** graphConfigs;
  uint32_t numConfigs;
};

struct Opened {
  const OpenQnn_SystemTable_t* system;
  QnnSystemDlc_Handle_t dlc;
};

std::mutex& guard() {
  static std::mutex mutex;
  return mutex;
}

std::map<GraphInfoPtr_t*, Opened>& openFiles() {
  static std::map<GraphInfoPtr_t*, Opened> files;
  return files;
}

ModelError_t failed(ModelError_t error, const std::string& what, uint64_t code = 0) {
  std::fprintf(stderr, "libQnnModelDlc: %s", what.c_str());
  if (code != 0) std::fprintf(stderr, " (%llu)", static_cast<unsigned long long>(code));
  std::fputc('\n', stderr);
  return error;
}

// The backend's library, told by where its functions are.
const QnnInterface_t* providerOf(const QNN_INTERFACE_VER_TYPE& interface, std::string& folder) {
  Dl_info place;
  if (!dladdr(reinterpret_cast<void*>(interface.backendCreate), &place) || !place.dli_fname) return nullptr;
  const std::string path = place.dli_fname;
  folder = path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  typedef Qnn_ErrorHandle_t (*GetProviders)(const QnnInterface_t***, uint32_t*);
  const GetProviders get = reinterpret_cast<GetProviders>(dlsym(library, "QnnInterface_getProviders"));
  const QnnInterface_t** providers = nullptr;
  uint32_t count = 0;
  if (get == nullptr || get(&providers, &count) != QNN_SUCCESS || count == 0) return nullptr;
  return providers[0];
}

const OpenQnn_SystemTable_t* openSystem(const std::string& folder) {
  void* library = dlopen((folder + "libQnnSystem.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libQnnSystem.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  typedef Qnn_ErrorHandle_t (*GetProviders)(const QnnSystemInterface_t***, uint32_t*);
  const GetProviders get = reinterpret_cast<GetProviders>(dlsym(library, "QnnSystemInterface_getProviders"));
  const QnnSystemInterface_t** providers = nullptr;
  uint32_t count = 0;
  if (get == nullptr || get(&providers, &count) != QNN_SUCCESS || count == 0) return nullptr;
  return &providers[0]->QNN_SYSTEM_INTERFACE_VER_NAME;
}

// For `debug`: every intermediate result becomes an output. libQnnSystem takes functions without a place for data,
// so what they need is the thread's.
struct Tapped {
  Qnn_ErrorHandle_t (*create)(Qnn_GraphHandle_t, Qnn_Tensor_t*);
  std::map<Qnn_GraphHandle_t, std::vector<Qnn_Tensor_t>> tensors;
};
thread_local Tapped* tapped = nullptr;

Qnn_ErrorHandle_t createTapped(Qnn_GraphHandle_t graph, Qnn_Tensor_t* tensor) {
  Qnn_TensorV1_t& body = tensorBody(*tensor);
  if (body.type == QNN_TENSOR_TYPE_NATIVE) body.type = QNN_TENSOR_TYPE_APP_READ;
  const Qnn_ErrorHandle_t code = tapped->create(graph, tensor);
  if (code == QNN_SUCCESS && body.type == QNN_TENSOR_TYPE_APP_READ) tapped->tensors[graph].push_back(copyTensor(*tensor));
  return code;
}

struct Composed {
  QnnSystemContext_GraphInfo_t* graphs;
  uint32_t count;
};

template <size_t Entries>
Qnn_ErrorHandle_t composeWith(const QnnInterface_t& provider, const QNN_INTERFACE_VER_TYPE& interface,
                              const Opened& file, DlcGraphConfig** configs, uint32_t numConfigs,
                              Qnn_BackendHandle_t backend, Qnn_ContextHandle_t context, Composed& found) {
  typedef Qnn_ErrorHandle_t (*Compose)(QnnSystemDlc_Handle_t, DlcGraphConfig**, uint32_t, Qnn_BackendHandle_t,
                                       Qnn_ContextHandle_t, Passed<Entries>, uint32_t,
                                       QnnSystemContext_GraphInfo_t**, uint32_t*);
  Passed<Entries> passed;
  std::memcpy(&passed, &provider, sizeof(passed));  // the library's own, of just this length
  const size_t given = sizeof(interface) < sizeof(passed.table) ? sizeof(interface) : sizeof(passed.table);
  std::memcpy(passed.table, &interface, given);
  const Compose compose = reinterpret_cast<Compose>(file.system->systemDlcComposeGraphs);
  return compose(file.dlc, configs, numConfigs, backend, context, passed, QNN_SYSTEM_CONTEXT_GRAPH_INFO_VERSION_1,
                 &found.graphs, &found.count);
}

Qnn_ErrorHandle_t composeAll(const QnnInterface_t& provider, const QNN_INTERFACE_VER_TYPE& interface,
                             const Opened& file, const GraphConfigInfo_t** given, uint32_t numGiven,
                             Qnn_BackendHandle_t backend, Qnn_ContextHandle_t context, Composed& found) {
  std::vector<DlcGraphConfig> configs;
  for (uint32_t i = 0; i < numGiven; ++i) {
    uint32_t count = 0;
    while (given[i]->graphConfigs != nullptr && given[i]->graphConfigs[count] != nullptr) ++count;
    const DlcGraphConfig config = {1, given[i]->graphName, given[i]->graphConfigs, count};
    configs.push_back(config);
  }
  std::vector<DlcGraphConfig*> list;
  for (DlcGraphConfig& config : configs) list.push_back(&config);
  DlcGraphConfig** const lists = list.empty() ? nullptr : list.data();
  const uint32_t minor = provider.apiVersion.coreApiVersion.minor;
  if (minor >= 40) return composeWith<75>(provider, interface, file, lists, numGiven, backend, context, found);
  if (minor >= 36) return composeWith<72>(provider, interface, file, lists, numGiven, backend, context, found);
  return composeWith<71>(provider, interface, file, lists, numGiven, backend, context, found);
}

Qnn_Tensor_t* copies(const Qnn_Tensor_t* tensors, uint32_t count) {
  std::vector<Qnn_Tensor_t> made;
  for (uint32_t i = 0; i < count; ++i) {
    made.push_back(copyTensor(tensors[i]));
    Qnn_TensorV1_t& body = tensorBody(made.back());
    body.memType = QNN_TENSORMEMTYPE_RAW;
    body.clientBuf.data = nullptr;
    body.clientBuf.dataSize = 0;
  }
  return duplicate(made.data(), made.size());
}

ModelError_t fill(const QNN_INTERFACE_VER_TYPE& interface, Qnn_ContextHandle_t context,
                  const QnnSystemContext_GraphInfoV1_t& graph, const Tapped* taps, GraphInfo_t& info) {
  const Qnn_ErrorHandle_t code = interface.graphRetrieve(context, graph.graphName, &info.graph);
  if (code != QNN_SUCCESS) return failed(MODEL_GRAPH_ERROR, std::string("no graph ") + graph.graphName, code);
  info.graphName = duplicateText(graph.graphName);
  info.inputTensors = copies(graph.graphInputs, graph.numGraphInputs);
  info.numInputTensors = graph.numGraphInputs;
  const Qnn_Tensor_t* outputs = graph.graphOutputs;
  info.numOutputTensors = graph.numGraphOutputs;
  if (taps != nullptr && taps->tensors.count(info.graph)) {
    const std::vector<Qnn_Tensor_t>& all = taps->tensors.at(info.graph);
    outputs = all.data();
    info.numOutputTensors = static_cast<uint32_t>(all.size());
  }
  info.outputTensors = copies(outputs, info.numOutputTensors);
  return MODEL_NO_ERROR;
}

ModelError_t handOut(const QNN_INTERFACE_VER_TYPE& interface, Qnn_ContextHandle_t context, const Composed& found,
                     const Tapped* taps, GraphInfoPtr_t** graphsInfo, uint32_t* numGraphsInfo) {
  *graphsInfo = static_cast<GraphInfoPtr_t*>(std::calloc(found.count, sizeof(GraphInfoPtr_t)));
  GraphInfo_t* records = static_cast<GraphInfo_t*>(std::calloc(found.count, sizeof(GraphInfo_t)));
  if (*graphsInfo == nullptr || records == nullptr) {
    std::free(records);
    std::free(*graphsInfo);
    return MODEL_MEMORY_ALLOCATE_ERROR;
  }
  for (uint32_t i = 0; i < found.count; ++i) (*graphsInfo)[i] = &records[i];
  for (uint32_t i = 0; i < found.count; ++i) {
    const ModelError_t error = fill(interface, context, found.graphs[i].graphInfoV1, taps, records[i]);
    if (error != MODEL_NO_ERROR) {
      freeGraphsInfo(graphsInfo, found.count);
      return error;
    }
  }
  *numGraphsInfo = found.count;
  return MODEL_NO_ERROR;
}

}  // namespace

ModelError_t QnnModel_composeGraphsFromDlc(Qnn_BackendHandle_t backend, QNN_INTERFACE_VER_TYPE interface,
                                           Qnn_ContextHandle_t context, const GraphConfigInfo_t** graphsConfigInfo,
                                           const char* dlcPath, const uint32_t numGraphsConfigInfo,
                                           GraphInfoPtr_t** graphsInfo, uint32_t* numGraphsInfo, bool debug,
                                           QnnLog_Callback_t logCallback, QnnLog_Level_t maxLogLevel) {
  if (dlcPath == nullptr || graphsInfo == nullptr || numGraphsInfo == nullptr || context == nullptr ||
      (numGraphsConfigInfo > 0 && graphsConfigInfo == nullptr)) {
    return failed(MODEL_INVALID_ARGUMENT_ERROR, "a path, a context and places for the graphs are needed");
  }
  std::string folder;
  const QnnInterface_t* provider = providerOf(interface, folder);
  if (provider == nullptr) return failed(MODEL_SETUP_ERROR, "cannot tell which library the interface is of");
  Opened file = {openSystem(folder), nullptr};
  if (file.system == nullptr) return failed(MODEL_SETUP_ERROR, "no libQnnSystem.so beside the backend or on the path");
  Qnn_LogHandle_t log = nullptr;
  if (logCallback != nullptr) file.system->systemLogCreate(logCallback, maxLogLevel, &log);
  Qnn_ErrorHandle_t code = file.system->systemDlcCreateFromFile(log, dlcPath, &file.dlc);
  if (code != QNN_SUCCESS) return failed(MODEL_FILE_ERROR, std::string(dlcPath) + " is no DLC that can be read", code);
  Tapped taps = {interface.tensorCreateGraphTensor, {}};
  QNN_INTERFACE_VER_TYPE table = interface;
  if (debug) {
    tapped = &taps;
    table.tensorCreateGraphTensor = createTapped;
  }
  Composed found = {nullptr, 0};
  code = composeAll(*provider, table, file, graphsConfigInfo, numGraphsConfigInfo, backend, context, found);
  tapped = nullptr;
  ModelError_t error = MODEL_GRAPH_ERROR;
  if (code != QNN_SUCCESS || found.count == 0) {
    failed(error, std::string("the backend composes no graph of ") + dlcPath, code);
  } else {
    error = handOut(interface, context, found, debug ? &taps : nullptr, graphsInfo, numGraphsInfo);
  }
  for (auto& graph : taps.tensors) {
    for (Qnn_Tensor_t& tensor : graph.second) releaseTensor(tensor);
  }
  if (error != MODEL_NO_ERROR) {
    file.system->systemDlcFree(file.dlc);
    return error;
  }
  const std::lock_guard<std::mutex> lock(guard());
  openFiles()[*graphsInfo] = file;
  return MODEL_NO_ERROR;
}

ModelError_t QnnModel_freeGraphsInfo(GraphInfoPtr_t** graphsInfo, uint32_t numGraphsInfo) {
  if (graphsInfo != nullptr) {
    const std::lock_guard<std::mutex> lock(guard());
    const auto file = openFiles().find(*graphsInfo);
    if (file != openFiles().end()) {
      file->second.system->systemDlcFree(file->second.dlc);
      openFiles().erase(file);
    }
  }
  return freeGraphsInfo(graphsInfo, numGraphsInfo);
}
