// qnn-sample-app: runs a model library, a DLC or a context binary on a QNN backend, on raw files.
#include <exception>
#include <initializer_list>
#include <stdexcept>

#include "SampleApp.hpp"

namespace {

const char* const USAGE =
    "usage: qnn-sample-app --backend LIB (--model LIB [--dlc_path FILE] | --retrieve_context FILE)\n"
    "  --backend LIB             the backend: libQnnCpu.so, libQnnHtp.so\n"
    "  --model LIB               a model library; libQnnModelDlc.so for the graphs of --dlc_path\n"
    "  --dlc_path FILE           a DLC file\n"
    "  --retrieve_context FILE   a context binary\n"
    "  --system_library LIB      reads context binaries; libQnnSystem.so by default\n"
    "  --save_context NAME       write the compiled graphs to OUTPUT_DIR/NAME.bin\n"
    "  --input_list FILE         one inference a line; without it nothing is executed\n"
    "  --output_dir DIR          results; output by default\n"
    "  --input_data_type TYPE    float (default) or native\n"
    "  --output_data_type TYPE   float_only (default), native_only or float_and_native\n"
    "  --op_packages LIST        PATH:PROVIDER[:TARGET], separated by commas\n"
    "  --profiling_level LEVEL   basic or detailed, printed after each step\n"
    "  --soc_model NUMBER        HTP: the chip to compile for, such as 57 for SM8650\n"
    "  --num_inferences N        go over the list N times\n"
    "  --debug                   every intermediate tensor becomes an output\n";

std::string oneOf(const std::string& option, const std::string& value, std::initializer_list<const char*> known) {
  for (const char* each : known) {
    if (value == each) return value;
  }
  throw std::invalid_argument(option + ": unknown value " + value);
}

void set(sample::Request& request, const std::string& option, const std::string& value) {
  if (option == "--backend") request.backend = value;
  else if (option == "--model") request.model = value;
  else if (option == "--dlc_path") request.dlc = value;
  else if (option == "--retrieve_context") request.retrieveContext = value;
  else if (option == "--system_library") request.systemLibrary = value;
  else if (option == "--save_context") request.saveContext = value;
  else if (option == "--input_list") request.inputList = value;
  else if (option == "--output_dir") request.outputDir = value;
  else if (option == "--op_packages") request.opPackages = value;
  else if (option == "--soc_model") request.socModel = static_cast<uint32_t>(std::stoul(value));
  else if (option == "--num_inferences") request.repeats = static_cast<uint32_t>(std::stoul(value));
  else if (option == "--input_data_type") request.nativeInputs = oneOf(option, value, {"float", "native"}) == "native";
  else if (option == "--profiling_level") {
    request.profilingLevel = oneOf(option, value, {"basic", "detailed"}) == "basic" ? 1 : 2;
  } else if (option == "--output_data_type") {
    oneOf(option, value, {"float_only", "native_only", "float_and_native"});
    request.floatOutputs = value != "native_only";
    request.nativeOutputs = value != "float_only";
  } else {
    throw std::invalid_argument("unknown option " + option);
  }
}

sample::Request parse(int argc, char** argv) {
  sample::Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--debug") {
      request.debug = true;
      continue;
    }
    if (i + 1 >= argc) throw std::invalid_argument(option + " needs a value, or is unknown");
    set(request, option, argv[++i]);
  }
  if (request.backend.empty()) throw std::invalid_argument("--backend is missing");
  if (request.model.empty() == request.retrieveContext.empty()) {
    throw std::invalid_argument("give either --model or --retrieve_context");
  }
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const sample::Request request = parse(argc, argv);
    sample::SampleApp app(request);
    app.openBackend();
    if (request.retrieveContext.empty()) {
      app.composeFromModel();
      app.finalizeGraphs();
    } else {
      app.loadContext();
    }
    if (!request.saveContext.empty()) app.saveContext();
    if (!request.inputList.empty()) app.executeAll();
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n%s", error.what(), USAGE);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
