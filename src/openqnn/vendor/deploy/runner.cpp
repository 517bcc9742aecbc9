// Runs a model on a backend, on raw files: runner BACKEND.so MODEL INPUTS OUTPUTS SOC MODE [COUNT]
//
// MODEL is a model library, or a context binary (.bin) beside which MODEL.txt has a line for each graph ("graph
// NAME") and, behind it, for each of its tensors ("in" or "out", then ID TYPE RANK DIMENSIONS... NAME).
// INPUTS/<tensor>.raw are read in the tensors' own types, OUTPUTS/<tensor>.raw are written. Where INPUTS has a
// folder 0, it has a folder for each set of inputs: COUNT inferences go over them again and again, and
// OUTPUTS/<n> has the results of each. Where INPUTS has folders with the names of graphs, each holds a graph's.
// SOC is the number of the chip that HTP compiles for, 0 for any other backend. MODE is run, or compose: then
// the graphs are only composed and finalized, for libraries that compute nothing.
#include <dlfcn.h>
#include <sys/stat.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "QnnModel.hpp"

using namespace qnn_wrapper_api;

typedef Qnn_ErrorHandle_t (*GetProviders)(const QnnInterface_t*** list, uint32_t* count);
typedef ModelError_t (*Compose)(Qnn_BackendHandle_t, QNN_INTERFACE_VER_TYPE, Qnn_ContextHandle_t,
                                const GraphConfigInfo_t**, const uint32_t, GraphInfoPtr_t**, uint32_t*, bool,
                                QnnLog_Callback_t, QnnLog_Level_t);

typedef Qnn_ErrorHandle_t (*LoadContext)(Qnn_BackendHandle_t, Qnn_DeviceHandle_t, const QnnContext_Config_t**,
                                         const void* binary, uint64_t size, Qnn_ContextHandle_t*,
                                         Qnn_ProfileHandle_t);
typedef Qnn_ErrorHandle_t (*FindGraph)(Qnn_ContextHandle_t, const char* name, Qnn_GraphHandle_t*);

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

static bool isFolder(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

// A name as a file name may be.
static std::string stemOf(std::string name) {
  for (char& c : name) {
    const unsigned char u = (unsigned char)c;
    if (u < 128 && !std::isalnum(u) && !std::strchr("_.@+-", c)) c = '_';
  }
  return name;
}

static std::string fileOf(const std::string& name) { return stemOf(name) + ".raw"; }

// A graph with memory for its tensors: what goes in comes from files, and what comes out goes into files.
struct Bound {
  Qnn_GraphHandle_t graph = nullptr;
  std::string name;
  std::vector<Qnn_Tensor_t> inputs, outputs;
  std::vector<std::vector<char>> memory;

  void allocate() {
    memory.clear();
    memory.reserve(inputs.size() + outputs.size());
    for (std::vector<Qnn_Tensor_t>* tensors : {&inputs, &outputs}) {
      for (Qnn_Tensor_t& tensor : *tensors) {
        Qnn_TensorV1_t& body = tensorBody(tensor);
        memory.emplace_back(sizeOf(body));
        body.clientBuf = {memory.back().data(), (uint32_t)memory.back().size()};
      }
    }
  }

  int read(const std::string& folder) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = folder + "/" + fileOf(tensorBody(inputs[i]).name);
      std::ifstream file(name, std::ios::binary | std::ios::ate);
      if (!file) return fail("there is no file " + name);
      const size_t size = (size_t)file.tellg();
      if (size != memory[i].size())
        return fail(name + " has " + std::to_string(size) + " bytes, not " + std::to_string(memory[i].size()));
      file.seekg(0);
      file.read(memory[i].data(), (std::streamsize)size);
      if (!file) return fail("cannot read " + name);
    }
    return 0;
  }

  int write(const std::string& folder) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<char>& bytes = memory[inputs.size() + i];
      const std::string name = folder + "/" + fileOf(tensorBody(outputs[i]).name);
      std::ofstream file(name, std::ios::binary);
      file.write(bytes.data(), (std::streamsize)bytes.size());
      file.close();
      if (!file) return fail("cannot write " + name);
    }
    return 0;
  }
};

static int execute(const QNN_INTERFACE_VER_TYPE& api, Bound& bound, const std::string& inputs,
                   const std::string& outputs, unsigned long count) {
  unsigned long sets = 0;
  while (isFolder(inputs + "/" + std::to_string(sets))) ++sets;
  if (!count || !sets) count = sets ? sets : 1;
  bound.allocate();
  double microseconds = 0;
  for (unsigned long i = 0; i < count; ++i) {
    const std::string out = sets ? outputs + "/" + std::to_string(i) : outputs;
    if (sets) mkdir(out.c_str(), 0777);
    if (bound.read(sets ? inputs + "/" + std::to_string(i % sets) : inputs)) return 1;
    const auto start = std::chrono::steady_clock::now();
    CHECK(api.graphExecute(bound.graph, bound.inputs.data(), (uint32_t)bound.inputs.size(), bound.outputs.data(),
                           (uint32_t)bound.outputs.size(), nullptr, nullptr));
    microseconds += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    if (bound.write(out)) return 1;
  }
  std::printf("ran %s %lu %.0f\n", bound.name.c_str(), count, microseconds);
  return 0;
}

static int compose(const QNN_INTERFACE_VER_TYPE& api, Qnn_BackendHandle_t backend, Qnn_DeviceHandle_t device,
                   const char* path, Qnn_ContextHandle_t& context, std::vector<std::unique_ptr<Bound>>& found) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail(dlerror());
  const Compose composeGraphs = (Compose)dlsym(library, "QnnModel_composeGraphs");
  if (!composeGraphs) return fail(std::string(path) + " is no QNN model library");
  CHECK(api.contextCreate(backend, device, nullptr, &context));
  GraphInfoPtr_t* graphs = nullptr;
  uint32_t number = 0;
  CHECK(composeGraphs(backend, api, context, nullptr, 0, &graphs, &number, false, nullptr, QNN_LOG_LEVEL_ERROR));
  for (uint32_t i = 0; i < number; ++i) {
    CHECK(api.graphFinalize(graphs[i]->graph, nullptr, nullptr));
    std::unique_ptr<Bound> bound(new Bound());
    bound->graph = graphs[i]->graph;
    bound->name = graphs[i]->graphName;
    bound->inputs.assign(graphs[i]->inputTensors, graphs[i]->inputTensors + graphs[i]->numInputTensors);
    bound->outputs.assign(graphs[i]->outputTensors, graphs[i]->outputTensors + graphs[i]->numOutputTensors);
    found.push_back(std::move(bound));
  }
  return 0;
}

// Names and dimensions of tensors of a context binary live as long as the program.
static Qnn_Tensor_t described(std::istringstream& words, bool input) {
  Qnn_Tensor_t tensor = Qnn_Tensor_t();
  tensor.version = QNN_TENSOR_VERSION_1;
  Qnn_TensorV1_t& body = tensorBody(tensor);
  uint32_t type = 0;
  words >> body.id >> type >> body.rank;
  body.type = input ? QNN_TENSOR_TYPE_APP_WRITE : QNN_TENSOR_TYPE_APP_READ;
  body.dataType = (Qnn_DataType_t)type;
  body.dimensions = new uint32_t[body.rank + 1];
  for (uint32_t i = 0; i < body.rank; ++i) words >> body.dimensions[i];
  std::string name;
  std::getline(words >> std::ws, name);
  body.name = strdup(name.c_str());
  body.quantizeParams.encodingDefinition = QNN_DEFINITION_UNDEFINED;
  body.quantizeParams.quantizationEncoding = QNN_QUANTIZATION_ENCODING_UNDEFINED;
  body.memType = QNN_TENSORMEMTYPE_RAW;
  return tensor;
}

static int load(const QNN_INTERFACE_VER_TYPE& api, Qnn_BackendHandle_t backend, Qnn_DeviceHandle_t device,
                const std::string& path, Qnn_ContextHandle_t& context, std::vector<std::unique_ptr<Bound>>& found) {
  std::ifstream file(path, std::ios::binary), description(path + ".txt");
  if (!file || !description) return fail("there is no file " + path + (file ? ".txt" : ""));
  // The library may read weights out of it as long as the context lives.
  static std::vector<char> binary;
  binary.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  CHECK(((LoadContext)api.contextCreateFromBinary)(backend, device, nullptr, binary.data(), binary.size(), &context,
                                                   nullptr));
  std::string line, kind;
  while (std::getline(description, line)) {
    std::istringstream words(line);
    words >> kind;
    if (kind == "graph") {
      std::unique_ptr<Bound> bound(new Bound());
      std::getline(words >> std::ws, bound->name);
      CHECK(((FindGraph)api.graphRetrieve)(context, bound->name.c_str(), &bound->graph));
      found.push_back(std::move(bound));
    } else if (!found.empty()) {
      (kind == "in" ? found.back()->inputs : found.back()->outputs).push_back(described(words, kind == "in"));
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 7 || argc > 8) return fail("usage: runner BACKEND.so MODEL INPUTS OUTPUTS SOC run|compose [COUNT]"), 2;
  void* backendLibrary = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!backendLibrary) return fail(dlerror());
  const GetProviders getProviders = (GetProviders)dlsym(backendLibrary, "QnnInterface_getProviders");
  if (!getProviders) return fail(std::string(argv[1]) + " is no QNN backend");

  const QnnInterface_t** providers = nullptr;
  uint32_t count = 0;
  CHECK(getProviders(&providers, &count));
  const QNN_INTERFACE_VER_TYPE api = providers[0]->QNN_INTERFACE_VER_NAME;
  const char* build = nullptr;
  if (api.backendGetBuildId && api.backendGetBuildId(&build) == QNN_SUCCESS && build) std::printf("build %s\n", build);
  const Qnn_ApiVersion_t& version = providers[0]->apiVersion;
  std::printf("api %u.%u.%u\n", version.coreApiVersion.major, version.coreApiVersion.minor,
              version.coreApiVersion.patch);
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
  const std::string model = argv[2];
  const bool isBinary = model.size() > 4 && model.compare(model.size() - 4, 4, ".bin") == 0;
  std::vector<std::unique_ptr<Bound>> graphs;
  if (isBinary ? load(api, backend, device, model, context, graphs)
               : compose(api, backend, device, argv[2], context, graphs))
    return 1;
  const std::string in = argv[3], out = argv[4];
  for (const std::unique_ptr<Bound>& graph : graphs) {
    const std::string own = "/" + stemOf(graph->name);
    const bool several = isFolder(in + own);
    if (std::strcmp(argv[6], "run")) {
      std::printf("composed %s\n", graph->name.c_str());
      continue;
    }
    if (!several && graphs.size() > 1) continue;  // nobody asked for it
    if (several) mkdir((out + own).c_str(), 0777);
    if (execute(api, *graph, several ? in + own : in, several ? out + own : out, argc > 7 ? std::stoul(argv[7]) : 0))
      return 1;
  }
  CHECK(api.contextFree(context, nullptr));
  if (device) CHECK(api.deviceFree(device));
  CHECK(api.backendFree(backend));
  return 0;
}
