// Runs a model library on a backend, on raw files: runner BACKEND.so MODEL.so INPUTS OUTPUTS SOC MODE
//
// INPUTS/<tensor>.raw are read in the tensors' own types, OUTPUTS/<tensor>.raw are written. SOC is the number of
// the chip that HTP compiles for, 0 for any other backend. MODE is run, or compose: then the graphs are only
// composed and finalized, for libraries that compute nothing.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "QnnModel.hpp"

using namespace qnn_wrapper_api;

typedef Qnn_ErrorHandle_t (*GetProviders)(const QnnInterface_t*** list, uint32_t* count);
typedef ModelError_t (*Compose)(Qnn_BackendHandle_t, QNN_INTERFACE_VER_TYPE, Qnn_ContextHandle_t,
                                const GraphConfigInfo_t**, const uint32_t, GraphInfoPtr_t**, uint32_t*, bool,
                                QnnLog_Callback_t, QnnLog_Level_t);

struct HtpOption { uint32_t option, padding, value, rest[5]; };
struct CustomConfig { uint32_t option; void* custom; };

static int fail(const std::string& what) {
  std::fprintf(stderr, "runner: %s\n", what.c_str());
  return 1;
}

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    const uint64_t code = (call);                                                                       \
    if (code != 0) return fail(std::string(#call).substr(0, 40) + " answered " + std::to_string(code)); \
  } while (0)

static size_t widthOf(Qnn_DataType_t type) {
  switch (type & 0xFF) {
    case 0x64: return 8;
    case 0x32: return 4;
    case 0x16: case 0x26: return 2;
    default: return 1;
  }
}

static size_t sizeOf(const Qnn_TensorV1_t& body) {
  size_t count = widthOf(body.dataType);
  for (uint32_t i = 0; i < body.rank; ++i) count *= body.dimensions[i];
  return count;
}

static int execute(const QNN_INTERFACE_VER_TYPE& api, GraphInfo_t& info, const std::string& inputs,
                   const std::string& outputs) {
  std::vector<std::vector<char>> memory;
  memory.reserve(info.numInputTensors + info.numOutputTensors);
  for (uint32_t i = 0; i < info.numInputTensors; ++i) {
    Qnn_TensorV1_t& body = tensorBody(info.inputTensors[i]);
    const std::string name = inputs + "/" + body.name + ".raw";
    std::ifstream file(name, std::ios::binary);
    if (!file) return fail("there is no file " + name);
    memory.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (memory.back().size() != sizeOf(body))
      return fail(name + " has " + std::to_string(memory.back().size()) + " bytes, not " + std::to_string(sizeOf(body)));
    body.clientBuf = {memory.back().data(), (uint32_t)memory.back().size()};
  }
  for (uint32_t i = 0; i < info.numOutputTensors; ++i) {
    Qnn_TensorV1_t& body = tensorBody(info.outputTensors[i]);
    memory.emplace_back(sizeOf(body));
    body.clientBuf = {memory.back().data(), (uint32_t)memory.back().size()};
  }
  CHECK(api.graphExecute(info.graph, info.inputTensors, info.numInputTensors, info.outputTensors,
                         info.numOutputTensors, nullptr, nullptr));
  for (uint32_t i = 0; i < info.numOutputTensors; ++i) {
    const Qnn_TensorV1_t& body = tensorBody(info.outputTensors[i]);
    const std::string name = outputs + "/" + body.name + ".raw";
    std::ofstream file(name, std::ios::binary);
    file.write((const char*)body.clientBuf.data, body.clientBuf.dataSize);
    file.close();
    if (!file) return fail("cannot write " + name);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 7) return fail("usage: runner BACKEND.so MODEL.so INPUTS OUTPUTS SOC run|compose"), 2;
  void* backendLibrary = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!backendLibrary) return fail(dlerror());
  void* modelLibrary = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!modelLibrary) return fail(dlerror());
  const GetProviders getProviders = (GetProviders)dlsym(backendLibrary, "QnnInterface_getProviders");
  const Compose compose = (Compose)dlsym(modelLibrary, "QnnModel_composeGraphs");
  if (!getProviders) return fail(std::string(argv[1]) + " is no QNN backend");
  if (!compose) return fail(std::string(argv[2]) + " is no QNN model library");

  const QnnInterface_t** providers = nullptr;
  uint32_t count = 0;
  CHECK(getProviders(&providers, &count));
  const QNN_INTERFACE_VER_TYPE api = providers[0]->QNN_INTERFACE_VER_NAME;
  Qnn_BackendHandle_t backend = nullptr;
  Qnn_DeviceHandle_t device = nullptr;
  Qnn_ContextHandle_t context = nullptr;
  CHECK(api.backendCreate(nullptr, nullptr, &backend));
  const uint32_t soc = (uint32_t)std::stoul(argv[5]);
  if (soc) {
    HtpOption option = {0, 0, soc, {0}};
    CustomConfig config = {0, &option};
    const QnnDevice_Config_t* configs[] = {(const QnnDevice_Config_t*)&config, nullptr};
    CHECK(api.deviceCreate(nullptr, configs, &device));
  }
  CHECK(api.contextCreate(backend, device, nullptr, &context));
  GraphInfoPtr_t* graphs = nullptr;
  uint32_t number = 0;
  CHECK(compose(backend, api, context, nullptr, 0, &graphs, &number, false, nullptr, QNN_LOG_LEVEL_ERROR));
  for (uint32_t i = 0; i < number; ++i) {
    CHECK(api.graphFinalize(graphs[i]->graph, nullptr, nullptr));
    if (!std::strcmp(argv[6], "run") && execute(api, *graphs[i], argv[3], argv[4])) return 1;
    std::printf("%s %s\n", !std::strcmp(argv[6], "run") ? "ran" : "composed", graphs[i]->graphName);
  }
  CHECK(api.contextFree(context, nullptr));
  if (device) CHECK(api.deviceFree(device));
  CHECK(api.backendFree(backend));
  return 0;
}
