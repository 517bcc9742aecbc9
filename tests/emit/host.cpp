// The smallest application that runs a model library: host <backend.so> <model.so> <prefix> <folder> <debug 0|1>.
// Reads <folder>/<graph>/<input>.raw, writes <folder>/<graph>/<output>.out, and prints one line per tensor.
#include <dlfcn.h>

#include <cinttypes>
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
typedef ModelError_t (*Free)(GraphInfoPtr_t**, uint32_t);

#define CHECK(call)                                                                     \
  do {                                                                                  \
    const uint64_t code = (call);                                                       \
    if (code != 0) {                                                                    \
      std::fprintf(stderr, "host: %s answered %llu\n", #call, (unsigned long long)code); \
      return 1;                                                                         \
    }                                                                                   \
  } while (0)

static size_t widthOf(Qnn_DataType_t type) {
  switch (type & 0xFF) {
    case 0x64: return 8;
    case 0x32: return 4;
    case 0x16: case 0x26: return 2;
    default: return 1;
  }
}

static std::vector<char> buffer(const Qnn_TensorV1_t& body) {
  size_t count = 1;
  for (uint32_t i = 0; i < body.rank; ++i) count *= body.dimensions[i];
  return std::vector<char>(count * widthOf(body.dataType));
}

static void show(const char* role, const Qnn_TensorV1_t& body) {
  std::printf("%s %s type=%d dtype=%d dims=", role, body.name, body.type, body.dataType);
  for (uint32_t i = 0; i < body.rank; ++i) std::printf("%s%u", i ? "," : "", body.dimensions[i]);
  std::printf(" encoding=%d\n", body.quantizeParams.quantizationEncoding);
}

static int run(const QNN_INTERFACE_VER_TYPE& api, GraphInfo_t& info, const std::string& folder) {
  std::vector<std::vector<char>> memory;
  memory.reserve(info.numInputTensors + info.numOutputTensors);
  std::printf("graph %s\n", info.graphName);
  for (uint32_t i = 0; i < info.numInputTensors; ++i) {
    Qnn_TensorV1_t& body = tensorBody(info.inputTensors[i]);
    show("input", body);
    std::ifstream file(folder + "/" + body.name + ".raw", std::ios::binary);
    memory.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (memory.back().size() != buffer(body).size()) return std::fprintf(stderr, "host: bad %s\n", body.name), 1;
    body.clientBuf = {memory.back().data(), (uint32_t)memory.back().size()};
  }
  for (uint32_t i = 0; i < info.numOutputTensors; ++i) {
    Qnn_TensorV1_t& body = tensorBody(info.outputTensors[i]);
    show("output", body);
    memory.push_back(buffer(body));
    body.clientBuf = {memory.back().data(), (uint32_t)memory.back().size()};
  }
  CHECK(api.graphFinalize(info.graph, nullptr, nullptr));
  CHECK(api.graphExecute(info.graph, info.inputTensors, info.numInputTensors, info.outputTensors,
                         info.numOutputTensors, nullptr, nullptr));
  for (uint32_t i = 0; i < info.numOutputTensors; ++i) {
    const Qnn_TensorV1_t& body = tensorBody(info.outputTensors[i]);
    std::ofstream file(folder + "/" + body.name + ".out", std::ios::binary);
    file.write((const char*)body.clientBuf.data, body.clientBuf.dataSize);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  void* backendLibrary = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* modelLibrary = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!backendLibrary || !modelLibrary) return std::fprintf(stderr, "host: %s\n", dlerror()), 1;
  const std::string prefix = argv[3];
  const GetProviders getProviders = (GetProviders)dlsym(backendLibrary, "QnnInterface_getProviders");
  const Compose compose = (Compose)dlsym(modelLibrary, (prefix + "_composeGraphs").c_str());
  const Free release = (Free)dlsym(modelLibrary, (prefix + "_freeGraphsInfo").c_str());
  const char** version = (const char**)dlsym(modelLibrary, "QNN_SDK_VERSION");
  if (!getProviders || !compose || !release || !version) return std::fprintf(stderr, "host: no symbol\n"), 1;
  std::printf("version %s\n", *version);

  const QnnInterface_t** providers = nullptr;
  uint32_t count = 0;
  CHECK(getProviders(&providers, &count));
  const QNN_INTERFACE_VER_TYPE api = providers[0]->QNN_INTERFACE_VER_NAME;
  Qnn_BackendHandle_t backend = nullptr;
  Qnn_ContextHandle_t context = nullptr;
  CHECK(api.backendCreate(nullptr, nullptr, &backend));
  CHECK(api.contextCreate(backend, nullptr, nullptr, &context));

  GraphInfoPtr_t* graphs = nullptr;
  uint32_t number = 0;
  const bool debug = argv[5][0] == '1';
  CHECK(compose(backend, api, context, nullptr, 0, &graphs, &number, debug, nullptr, QNN_LOG_LEVEL_ERROR));
  for (uint32_t i = 0; i < number; ++i) {
    if (run(api, *graphs[i], std::string(argv[4]) + "/" + graphs[i]->graphName)) return 1;
  }
  CHECK(release(&graphs, number));
  CHECK(graphs != nullptr);
  CHECK(api.contextFree(context, nullptr));
  CHECK(api.backendFree(backend));
  return 0;
}
