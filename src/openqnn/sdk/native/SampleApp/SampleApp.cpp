#include "SampleApp.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <sstream>

#include "HTP/QnnHtpDevice.h"
#include "QnnModelDlc.h"
#include "Tensors.hpp"

using namespace qnn_wrapper_api;

namespace sample {

namespace {

typedef Qnn_ErrorHandle_t (*GetProviders)(const QnnInterface_t***, uint32_t*);
typedef Qnn_ErrorHandle_t (*GetSystemProviders)(const QnnSystemInterface_t***, uint32_t*);
typedef ModelError_t (*ComposeGraphs)(Qnn_BackendHandle_t, QNN_INTERFACE_VER_TYPE, Qnn_ContextHandle_t,
                                      const GraphConfigInfo_t**, const uint32_t, GraphInfoPtr_t**, uint32_t*, bool,
                                      QnnLog_Callback_t, QnnLog_Level_t);

void logLine(const char* format, QnnLog_Level_t level, uint64_t, va_list arguments) {
  if (level > QNN_LOG_LEVEL_ERROR) return;
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
}

void* openLibrary(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

template <typename Function>
Function symbol(void* library, const char* name, const std::string& path) {
  const Function found = reinterpret_cast<Function>(dlsym(library, name));
  if (found == nullptr) throw std::runtime_error(path + " has no " + name);
  return found;
}

void makeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) throw std::runtime_error("cannot make " + path);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// One inference a line: files in the order of the inputs, or NAME:=FILE.
std::vector<std::vector<std::string>> readInputList(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string> files;
    for (std::string word; words >> word;) files.push_back(word);
    if (!files.empty() && files[0][0] != '#' && files[0][0] != '%') lines.push_back(files);
  }
  return lines;
}

void fillInputs(Tensors& inputs, const std::vector<std::string>& files, bool native) {
  for (size_t position = 0; position < files.size(); ++position) {
    const size_t mark = files[position].find(":=");
    if (mark == std::string::npos) {
      if (position >= inputs.count()) throw std::runtime_error("a line has more files than the graph has inputs");
      inputs.fill(static_cast<uint32_t>(position), files[position], native);
      continue;
    }
    bool known = false;
    for (uint32_t i = 0; i < inputs.count(); ++i) {
      if (inputs.name(i) != files[position].substr(0, mark)) continue;
      inputs.fill(i, files[position].substr(mark + 2), native);
      known = true;
    }
    if (!known) throw std::runtime_error("no input is called " + files[position].substr(0, mark));
  }
}

Qnn_Tensor_t* copies(const Qnn_Tensor_t* tensors, uint32_t count) {
  std::vector<Qnn_Tensor_t> made;
  for (uint32_t i = 0; i < count; ++i) made.push_back(copyTensor(tensors[i]));
  return duplicate(made.data(), made.size());
}

}  // namespace

void SampleApp::check(Qnn_ErrorHandle_t code, const std::string& what) const {
  if (code == QNN_SUCCESS) return;
  const char* reason = nullptr;
  if (api_.errorGetMessage != nullptr) api_.errorGetMessage(code, &reason);
  throw std::runtime_error(what + ": " + (reason ? reason : "error") + " (" + std::to_string(code) + ")");
}

void SampleApp::openBackend() {
  const GetProviders getProviders =
      symbol<GetProviders>(openLibrary(request_.backend), "QnnInterface_getProviders", request_.backend);
  const QnnInterface_t** providers = nullptr;
  uint32_t count = 0;
  if (getProviders(&providers, &count) != QNN_SUCCESS || count == 0) throw std::runtime_error("no provider");
  api_ = providers[0]->QNN_INTERFACE_VER_NAME;
  std::printf("backend %s\n", providers[0]->providerName);
  if (api_.logCreate(logLine, QNN_LOG_LEVEL_ERROR, &log_) != QNN_SUCCESS) log_ = nullptr;
  check(api_.backendCreate(log_, nullptr, &backend_), "backendCreate");
  registerPackages();
  createDevice();
  if (request_.profilingLevel != 0) {
    check(api_.profileCreate(backend_, request_.profilingLevel, &profile_), "profileCreate");
  }
}

void SampleApp::registerPackages() {
  for (const std::string& package : split(request_.opPackages, ',')) {
    const std::vector<std::string> parts = split(package, ':');
    if (parts.size() < 2) throw std::runtime_error("an op package is PATH:PROVIDER[:TARGET], not " + package);
    const char* target = parts.size() > 2 ? parts[2].c_str() : nullptr;
    check(api_.backendRegisterOpPackage(backend_, parts[0].c_str(), parts[1].c_str(), target), package);
  }
}

void SampleApp::createDevice() {
  if (request_.socModel == 0) return;  // libraries have a device of their own then
  QnnHtpDevice_CustomConfig_t chip = QnnHtpDevice_CustomConfig_t();
  chip.option = QNN_HTP_DEVICE_CONFIG_OPTION_SOC;
  chip.socModel = request_.socModel;
  QnnDevice_Config_t config = QnnDevice_Config_t();
  config.option = QNN_DEVICE_CONFIG_OPTION_CUSTOM;
  config.customConfig = &chip;
  const QnnDevice_Config_t* configs[] = {&config, nullptr};
  check(api_.deviceCreate(log_, configs, &device_), "deviceCreate");
}

void SampleApp::composeFromModel() {
  check(api_.contextCreate(backend_, device_, nullptr, &context_), "contextCreate");
  void* library = openLibrary(request_.model);
  typedef ModelError_t (*FreeGraphs)(GraphInfoPtr_t**, uint32_t);
  freeGraphs_ = symbol<FreeGraphs>(library, "QnnModel_freeGraphsInfo", request_.model);
  ModelError_t error = MODEL_NO_ERROR;
  if (request_.dlc.empty()) {
    const ComposeGraphs compose = symbol<ComposeGraphs>(library, "QnnModel_composeGraphs", request_.model);
    error = compose(backend_, api_, context_, nullptr, 0, &graphs_, &numGraphs_, request_.debug, logLine,
                    QNN_LOG_LEVEL_ERROR);
  } else {
    typedef decltype(&QnnModel_composeGraphsFromDlc) ComposeGraphsFromDlc;
    const ComposeGraphsFromDlc compose =
        symbol<ComposeGraphsFromDlc>(library, "QnnModel_composeGraphsFromDlc", request_.model);
    error = compose(backend_, api_, context_, nullptr, request_.dlc.c_str(), 0, &graphs_, &numGraphs_, request_.debug,
                    logLine, QNN_LOG_LEVEL_ERROR);
  }
  if (error != MODEL_NO_ERROR) {
    throw std::runtime_error(request_.model + ": composing failed with " + std::to_string(error));
  }
}

void SampleApp::loadContext() {
  std::vector<char> binary = readFile(request_.retrieveContext);
  void* library = openLibrary(request_.systemLibrary);
  const GetSystemProviders getProviders =
      symbol<GetSystemProviders>(library, "QnnSystemInterface_getProviders", request_.systemLibrary);
  const QnnSystemInterface_t** providers = nullptr;
  uint32_t count = 0;
  check(getProviders(&providers, &count), "QnnSystemInterface_getProviders");
  const QNN_SYSTEM_INTERFACE_VER_TYPE& system = providers[0]->QNN_SYSTEM_INTERFACE_VER_NAME;
  QnnSystemContext_Handle_t handle = nullptr;
  const QnnSystemContext_BinaryInfo_t* info = nullptr;
  check(system.systemContextCreate(&handle), "systemContextCreate");
  check(system.systemContextGetMetaData(handle, binary.data(), binary.size(), &info), request_.retrieveContext);
  const bool newer = info->version >= QNN_SYSTEM_CONTEXT_BINARY_INFO_VERSION_3;
  const QnnSystemContext_GraphInfo_t* found =
      newer ? info->contextBinaryInfoV3.graphs : info->contextBinaryInfoV1.graphs;
  numGraphs_ = newer ? info->contextBinaryInfoV3.numGraphs : info->contextBinaryInfoV1.numGraphs;
  check(api_.contextCreateFromBinary(backend_, device_, nullptr, binary.data(), binary.size(), &context_, profile_),
        "contextCreateFromBinary");
  graphs_ = static_cast<GraphInfoPtr_t*>(std::calloc(numGraphs_, sizeof(GraphInfoPtr_t)));
  GraphInfo_t* records = static_cast<GraphInfo_t*>(std::calloc(numGraphs_, sizeof(GraphInfo_t)));
  freeGraphs_ = freeGraphsInfo;
  for (uint32_t i = 0; i < numGraphs_; ++i) {
    const QnnSystemContext_GraphInfoV1_t& graph = found[i].graphInfoV1;  // later versions only append
    graphs_[i] = &records[i];
    records[i].graphName = duplicateText(graph.graphName);
    records[i].inputTensors = copies(graph.graphInputs, graph.numGraphInputs);
    records[i].numInputTensors = graph.numGraphInputs;
    records[i].outputTensors = copies(graph.graphOutputs, graph.numGraphOutputs);
    records[i].numOutputTensors = graph.numGraphOutputs;
    check(api_.graphRetrieve(context_, graph.graphName, &records[i].graph), graph.graphName);
  }
  check(system.systemContextFree(handle), "systemContextFree");
}

void SampleApp::finalizeGraphs() {
  for (uint32_t i = 0; i < numGraphs_; ++i) {
    check(api_.graphFinalize(graphs_[i]->graph, profile_, nullptr), std::string("finalize ") + graphs_[i]->graphName);
    report(std::string("finalize ") + graphs_[i]->graphName);
  }
}

void SampleApp::saveContext() {
  Qnn_ContextBinarySize_t size = 0, written = 0;
  check(api_.contextGetBinarySize(context_, &size), "contextGetBinarySize");
  std::vector<char> binary(size);
  check(api_.contextGetBinary(context_, binary.data(), size, &written), "contextGetBinary");
  makeFolder(request_.outputDir);
  const std::string path = request_.outputDir + "/" + request_.saveContext + ".bin";
  writeFile(path, binary.data(), written);
  std::printf("wrote %s (%" PRIu64 " bytes)\n", path.c_str(), written);
}

void SampleApp::executeAll() {
  makeFolder(request_.outputDir);
  for (uint32_t i = 0; i < numGraphs_; ++i) {
    // One graph writes into the folder itself, several each into one of its name.
    std::string folder = request_.outputDir;
    if (numGraphs_ > 1) makeFolder(folder += std::string("/") + graphs_[i]->graphName);
    runGraph(*graphs_[i], folder);
  }
}

void SampleApp::runGraph(GraphInfo_t& graph, const std::string& folder) {
  Tensors inputs(graph.inputTensors, graph.numInputTensors), outputs(graph.outputTensors, graph.numOutputTensors);
  const std::vector<std::vector<std::string>> lines = readInputList(request_.inputList);
  uint32_t number = 0;
  for (uint32_t turn = 0; turn < request_.repeats; ++turn) {
    for (const std::vector<std::string>& files : lines) {
      fillInputs(inputs, files, request_.nativeInputs);
      check(api_.graphExecute(graph.graph, inputs.data(), inputs.count(), outputs.data(), outputs.count(), profile_,
                              nullptr),
            std::string("execute ") + graph.graphName);
      report(std::string("execute ") + graph.graphName);
      const std::string place = folder + "/Result_" + std::to_string(number++);
      makeFolder(place);
      for (uint32_t i = 0; i < outputs.count(); ++i) {
        outputs.save(i, place, request_.floatOutputs, request_.nativeOutputs);
      }
    }
  }
  std::printf("%s: %u inference(s)\n", graph.graphName, number);
}

void SampleApp::report(const std::string& what) {
  if (profile_ == nullptr) return;
  const QnnProfile_EventId_t* events = nullptr;
  uint32_t count = 0;
  check(api_.profileGetEvents(profile_, &events, &count), "profileGetEvents");
  std::printf("%s\n", what.c_str());
  for (uint32_t i = 0; i < count; ++i) print(events[i], 1);
}

void SampleApp::print(QnnProfile_EventId_t event, int depth) const {
  QnnProfile_EventData_t data = QnnProfile_EventData_t();
  if (api_.profileGetEventData(event, &data) != QNN_SUCCESS || data.identifier == nullptr) {
    QnnProfile_ExtendedEventData_t extended = QnnProfile_ExtendedEventData_t();  // all that libQnnCpu has
    extended.version = 1;
    if (api_.profileGetExtendedEventData(event, &extended) == QNN_SUCCESS) {
      data = {extended.type, extended.unit, extended.value.uint64Value, extended.identifier};
    }
  }
  if (data.identifier != nullptr) {
    const char* unit = data.unit == QNN_PROFILE_EVENTUNIT_MICROSEC ? "us"
                       : data.unit == QNN_PROFILE_EVENTUNIT_CYCLES ? "cycles"
                                                                   : "";
    std::printf("%*s%s: %" PRIu64 " %s\n", 2 * depth, "", data.identifier, data.value, unit);
  }
  const QnnProfile_EventId_t* parts = nullptr;
  uint32_t count = 0;
  if (api_.profileGetSubEvents(event, &parts, &count) != QNN_SUCCESS) return;
  for (uint32_t i = 0; i < count; ++i) print(parts[i], depth + 1);
}

SampleApp::~SampleApp() {
  if (profile_ != nullptr) api_.profileFree(profile_);
  if (context_ != nullptr) api_.contextFree(context_, nullptr);
  if (graphs_ != nullptr) freeGraphs_(&graphs_, numGraphs_);
  if (device_ != nullptr) api_.deviceFree(device_);
  if (backend_ != nullptr) api_.backendFree(backend_);
  if (log_ != nullptr) api_.logFree(log_);
}

}  // namespace sample
