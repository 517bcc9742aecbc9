// An application that runs graphs on a QNN backend: what it can be asked for, and the steps of a run.
#ifndef SAMPLE_APP_HPP
#define SAMPLE_APP_HPP

#include <string>
#include <vector>

#include "QnnWrapperUtils.hpp"
#include "System/QnnSystemInterface.h"

namespace sample {

struct Request {
  std::string backend;                // libQnnCpu.so, libQnnHtp.so, ...
  std::string model;                  // a model library, or libQnnModelDlc.so with `dlc`
  std::string dlc;
  std::string retrieveContext;        // a context binary, in place of a model
  std::string saveContext;            // the name of the binary that is written, without .bin
  std::string systemLibrary = "libQnnSystem.so";
  std::string inputList;
  std::string outputDir = "output";
  std::string opPackages;             // path:provider[:target], separated by commas
  bool nativeInputs = false;
  bool floatOutputs = true;
  bool nativeOutputs = false;
  bool debug = false;
  uint32_t profilingLevel = 0;        // 0, QNN_PROFILE_LEVEL_BASIC or QNN_PROFILE_LEVEL_DETAILED
  uint32_t socModel = 0;              // HTP: the chip that graphs are compiled for
  uint32_t repeats = 1;
};

class SampleApp {
 public:
  explicit SampleApp(const Request& request) : request_(request) {}
  SampleApp(const SampleApp&) = delete;
  SampleApp& operator=(const SampleApp&) = delete;
  ~SampleApp();

  void openBackend();
  void composeFromModel();
  void loadContext();
  void finalizeGraphs();
  void saveContext();
  void executeAll();

 private:
  void check(Qnn_ErrorHandle_t code, const std::string& what) const;
  void registerPackages();
  void createDevice();
  void runGraph(qnn_wrapper_api::GraphInfo_t& graph, const std::string& folder);
  void report(const std::string& what);
  void print(QnnProfile_EventId_t event, int depth) const;

  Request request_;
  QNN_INTERFACE_VER_TYPE api_ = QNN_INTERFACE_VER_TYPE();
  Qnn_LogHandle_t log_ = nullptr;
  Qnn_BackendHandle_t backend_ = nullptr;
  Qnn_DeviceHandle_t device_ = nullptr;
  Qnn_ContextHandle_t context_ = nullptr;
  Qnn_ProfileHandle_t profile_ = nullptr;
  qnn_wrapper_api::GraphInfoPtr_t* graphs_ = nullptr;
  uint32_t numGraphs_ = 0;
  // The function of the library that gave the graphs; it also takes them back.
  qnn_wrapper_api::ModelError_t (*freeGraphs_)(qnn_wrapper_api::GraphInfoPtr_t**, uint32_t) = nullptr;
};

}  // namespace sample

#endif
