/* A Saver program as a library, so that somebody can note down what it calls: OPENQNN_SOURCE is the program.
 *
 * Graphs are only noted down. There is nothing to create around them, to finalize or to run.
 */
#include <stdio.h>

#include "QnnInterface.h"

typedef uint64_t Qnn_ContextBinarySize_t;
typedef uint64_t QnnProfile_EventId_t;
typedef uint32_t QnnProfile_Level_t;

static QnnInterface_t openqnn_interface;
static const QnnInterface_t* openqnn_provider = &openqnn_interface;

static Qnn_ErrorHandle_t made(void** handle) { *handle = &openqnn_interface; return QNN_SUCCESS; }
static Qnn_ErrorHandle_t log_create(QnnLog_Callback_t call, QnnLog_Level_t level, Qnn_LogHandle_t* log) {
  return made(log);
}
static Qnn_ErrorHandle_t backend_create(Qnn_LogHandle_t log, const QnnBackend_Config_t** config,
                                        Qnn_BackendHandle_t* backend) {
  return made(backend);
}
static Qnn_ErrorHandle_t device_create(Qnn_LogHandle_t log, const QnnDevice_Config_t** config,
                                       Qnn_DeviceHandle_t* device) {
  return made(device);
}
static Qnn_ErrorHandle_t context_create(Qnn_BackendHandle_t backend, Qnn_DeviceHandle_t device,
                                        const QnnContext_Config_t** config, Qnn_ContextHandle_t* context) {
  return made(context);
}
static Qnn_ErrorHandle_t finalize(Qnn_GraphHandle_t graph, Qnn_ProfileHandle_t profile, Qnn_SignalHandle_t signal) {
  return QNN_SUCCESS;
}
static Qnn_ErrorHandle_t execute(Qnn_GraphHandle_t graph, const Qnn_Tensor_t* inputs, uint32_t numInputs,
                                 Qnn_Tensor_t* outputs, uint32_t numOutputs, Qnn_ProfileHandle_t profile,
                                 Qnn_SignalHandle_t signal) {
  return QNN_SUCCESS;
}
static Qnn_ErrorHandle_t free_context(Qnn_ContextHandle_t context, Qnn_ProfileHandle_t profile) { return QNN_SUCCESS; }
static Qnn_ErrorHandle_t free_handle(Qnn_Handle_t handle) { return QNN_SUCCESS; }

static Qnn_ErrorHandle_t passed() { return QNN_SUCCESS; }
static Qnn_ErrorHandle_t binary_size(Qnn_ContextHandle_t context, Qnn_ContextBinarySize_t* size) {
  *size = 0;
  return QNN_SUCCESS;
}

void openqnn_record(const QnnInterface_t* recorder) {
  openqnn_interface = *recorder;
  openqnn_interface.table.logCreate = log_create;
  openqnn_interface.table.backendCreate = backend_create;
  openqnn_interface.table.deviceCreate = device_create;
  openqnn_interface.table.contextCreate = context_create;
  openqnn_interface.table.graphFinalize = finalize;
  openqnn_interface.table.graphExecute = execute;
  openqnn_interface.table.contextFree = free_context;
  openqnn_interface.table.logFree = free_handle;
  openqnn_interface.table.backendFree = free_handle;
  openqnn_interface.table.deviceFree = free_handle;
  openqnn_interface.table.contextGetBinarySize = binary_size;
  openqnn_interface.table.contextGetBinary = passed;
  openqnn_interface.table.profileCreate = passed;
  openqnn_interface.table.profileSetConfig = passed;
  openqnn_interface.table.profileGetEvents = passed;
  openqnn_interface.table.profileFree = passed;
}

Qnn_ErrorHandle_t QnnInterface_getProviders(const QnnInterface_t*** providers, uint32_t* count) {
  *providers = &openqnn_provider;
  *count = 1;
  return QNN_SUCCESS;
}

/* The program does not look whether its weights are all there. */
static int openqnn_missing;
static size_t openqnn_read(void* to, size_t size, size_t count, FILE* file) {
  size_t found = fread(to, size, count, file);
  openqnn_missing |= found != count;
  return found;
}
int openqnn_misses_weights(void) { return openqnn_missing; }

#define fread openqnn_read
#define main openqnn_replay
#include OPENQNN_SOURCE
