/* A backend's table of functions.
 *
 * Entries that composing and running a graph call are typed; the others only keep their place. The table is passed
 * by value to QnnModel_composeGraphs, so its length is part of that function's calling convention on x86-64:
 * OPENQNN_CORE_API_MINOR must be the core API that the calling application was built for (SDK 2.47 has 2.36).
 */
#ifndef OPENQNN_QNN_INTERFACE_H
#define OPENQNN_QNN_INTERFACE_H

#include <stdarg.h>

#include "QnnTypes.h"

#ifndef OPENQNN_CORE_API_MINOR
#define OPENQNN_CORE_API_MINOR 36
#endif

typedef enum {
  QNN_LOG_LEVEL_ERROR = 1,
  QNN_LOG_LEVEL_WARN = 2,
  QNN_LOG_LEVEL_INFO = 3,
  QNN_LOG_LEVEL_VERBOSE = 4,
  QNN_LOG_LEVEL_DEBUG = 5,
  QNN_LOG_LEVEL_MAX = 0x7FFFFFFF
} QnnLog_Level_t;

typedef void (*QnnLog_Callback_t)(const char* format, QnnLog_Level_t level, uint64_t timestamp, va_list arguments);

#ifdef __cplusplus
typedef void (*OpenQnn_Entry_t)(void);
#else /* C leaves the arguments open, so that Saver programs can call entries that are not typed here */
typedef Qnn_ErrorHandle_t (*OpenQnn_Entry_t)();
#endif

#include "QnnRecords.h"

/* clang-format off: one line per entry, in the table's order */
typedef struct {
  Qnn_ErrorHandle_t (*propertyHasCapability)(QnnProperty_Key_t);
  Qnn_ErrorHandle_t (*backendCreate)(Qnn_LogHandle_t, const QnnBackend_Config_t**, Qnn_BackendHandle_t*);
  OpenQnn_Entry_t backendSetConfig;
  Qnn_ErrorHandle_t (*backendGetApiVersion)(Qnn_ApiVersion_t*);
  Qnn_ErrorHandle_t (*backendGetBuildId)(const char**);
  Qnn_ErrorHandle_t (*backendRegisterOpPackage)(Qnn_BackendHandle_t, const char* path, const char* provider, const char* target);
  Qnn_ErrorHandle_t (*backendGetSupportedOperations)(Qnn_BackendHandle_t, uint32_t*, const QnnBackend_OperationName_t**);
  Qnn_ErrorHandle_t (*backendValidateOpConfig)(Qnn_BackendHandle_t, Qnn_OpConfig_t);
  Qnn_ErrorHandle_t (*backendFree)(Qnn_BackendHandle_t);
  Qnn_ErrorHandle_t (*contextCreate)(Qnn_BackendHandle_t, Qnn_DeviceHandle_t, const QnnContext_Config_t**,
                                     Qnn_ContextHandle_t*);
  Qnn_ErrorHandle_t (*contextSetConfig)(Qnn_ContextHandle_t, const QnnContext_Config_t**);
  Qnn_ErrorHandle_t (*contextGetBinarySize)(Qnn_ContextHandle_t, Qnn_ContextBinarySize_t*);
  Qnn_ErrorHandle_t (*contextGetBinary)(Qnn_ContextHandle_t, void* buffer, Qnn_ContextBinarySize_t,
                                        Qnn_ContextBinarySize_t* written);
  Qnn_ErrorHandle_t (*contextCreateFromBinary)(Qnn_BackendHandle_t, Qnn_DeviceHandle_t, const QnnContext_Config_t**,
                                               const void* binary, Qnn_ContextBinarySize_t, Qnn_ContextHandle_t*,
                                               Qnn_ProfileHandle_t);
  Qnn_ErrorHandle_t (*contextFree)(Qnn_ContextHandle_t, Qnn_ProfileHandle_t);
  Qnn_ErrorHandle_t (*graphCreate)(Qnn_ContextHandle_t, const char* name, const QnnGraph_Config_t**, Qnn_GraphHandle_t*);
  OpenQnn_Entry_t graphCreateSubgraph;
  Qnn_ErrorHandle_t (*graphSetConfig)(Qnn_GraphHandle_t, const QnnGraph_Config_t**);
  Qnn_ErrorHandle_t (*graphAddNode)(Qnn_GraphHandle_t, Qnn_OpConfig_t);
  Qnn_ErrorHandle_t (*graphFinalize)(Qnn_GraphHandle_t, Qnn_ProfileHandle_t, Qnn_SignalHandle_t);
  Qnn_ErrorHandle_t (*graphRetrieve)(Qnn_ContextHandle_t, const char* name, Qnn_GraphHandle_t*);
  Qnn_ErrorHandle_t (*graphExecute)(Qnn_GraphHandle_t, const Qnn_Tensor_t* inputs, uint32_t numInputs, Qnn_Tensor_t* outputs,
                                    uint32_t numOutputs, Qnn_ProfileHandle_t, Qnn_SignalHandle_t);
  OpenQnn_Entry_t graphExecuteAsync;
  OpenQnn_Entry_t tensorCreateContextTensor;
  Qnn_ErrorHandle_t (*tensorCreateGraphTensor)(Qnn_GraphHandle_t, Qnn_Tensor_t*);
  Qnn_ErrorHandle_t (*logCreate)(QnnLog_Callback_t, QnnLog_Level_t, Qnn_LogHandle_t*);
  Qnn_ErrorHandle_t (*logSetLogLevel)(Qnn_LogHandle_t, QnnLog_Level_t);
  Qnn_ErrorHandle_t (*logFree)(Qnn_LogHandle_t);
  Qnn_ErrorHandle_t (*profileCreate)(Qnn_BackendHandle_t, QnnProfile_Level_t, Qnn_ProfileHandle_t*);
  OpenQnn_Entry_t profileSetConfig;
  Qnn_ErrorHandle_t (*profileGetEvents)(Qnn_ProfileHandle_t, const QnnProfile_EventId_t**, uint32_t*);
  Qnn_ErrorHandle_t (*profileGetSubEvents)(QnnProfile_EventId_t, const QnnProfile_EventId_t**, uint32_t*);
  Qnn_ErrorHandle_t (*profileGetEventData)(QnnProfile_EventId_t, QnnProfile_EventData_t*);
  Qnn_ErrorHandle_t (*profileGetExtendedEventData)(QnnProfile_EventId_t, QnnProfile_ExtendedEventData_t*);
  Qnn_ErrorHandle_t (*profileFree)(Qnn_ProfileHandle_t);
  Qnn_ErrorHandle_t (*memRegister)(Qnn_ContextHandle_t, const Qnn_MemDescriptor_t*, uint32_t, Qnn_MemHandle_t*);
  Qnn_ErrorHandle_t (*memDeRegister)(const Qnn_MemHandle_t*, uint32_t);
  OpenQnn_Entry_t deviceGetPlatformInfo;
  OpenQnn_Entry_t deviceFreePlatformInfo;
  OpenQnn_Entry_t deviceGetInfrastructure;
  Qnn_ErrorHandle_t (*deviceCreate)(Qnn_LogHandle_t, const QnnDevice_Config_t**, Qnn_DeviceHandle_t*);
  OpenQnn_Entry_t deviceSetConfig;
  OpenQnn_Entry_t deviceGetInfo;
  Qnn_ErrorHandle_t (*deviceFree)(Qnn_DeviceHandle_t);
  OpenQnn_Entry_t signalCreate;
  OpenQnn_Entry_t signalSetConfig;
  OpenQnn_Entry_t signalTrigger;
  OpenQnn_Entry_t signalFree;
  Qnn_ErrorHandle_t (*errorGetMessage)(Qnn_ErrorHandle_t, const char**);
  OpenQnn_Entry_t errorGetVerboseMessage;
  OpenQnn_Entry_t errorFreeVerboseMessage;
  OpenQnn_Entry_t graphPrepareExecutionEnvironment;
  OpenQnn_Entry_t graphReleaseExecutionEnvironment;
  OpenQnn_Entry_t graphGetProperty;
  OpenQnn_Entry_t contextValidateBinary;
  OpenQnn_Entry_t contextCreateFromBinaryWithSignal;
  OpenQnn_Entry_t contextCreateFromBinaryListAsync;
  OpenQnn_Entry_t tensorUpdateGraphTensors;
  OpenQnn_Entry_t tensorUpdateContextTensors;
  OpenQnn_Entry_t contextGetBinarySectionSize;
  OpenQnn_Entry_t contextGetBinarySection;
  OpenQnn_Entry_t contextApplyBinarySection;
  OpenQnn_Entry_t backendGetProperty;
  OpenQnn_Entry_t contextGetProperty;
  OpenQnn_Entry_t contextGetIncrementalBinary;
  OpenQnn_Entry_t contextReleaseIncrementalBinary;
  OpenQnn_Entry_t contextFinalize;
  OpenQnn_Entry_t globalConfigSet;
  OpenQnn_Entry_t contextCreateFromBinaryWithCallback;
  OpenQnn_Entry_t contextGetBinarySectionUpdate;
  OpenQnn_Entry_t contextFreeBinarySectionUpdate;
  /* Later versions only append. */
#if OPENQNN_CORE_API_MINOR >= 40
  OpenQnn_Entry_t appended[4];
#elif OPENQNN_CORE_API_MINOR >= 36
  OpenQnn_Entry_t appended[1];
#endif
} OpenQnn_Table_t;
/* clang-format on */

#define QNN_INTERFACE_VER_TYPE OpenQnn_Table_t
#define QNN_INTERFACE_VER_NAME table

typedef struct {
  uint32_t backendId;
  const char* providerName;
  Qnn_ApiVersion_t apiVersion;
  union {
    OpenQnn_Table_t table;
  };
} QnnInterface_t;

OPENQNN_PLACE(OpenQnn_Table_t, graphCreate, 15 * 8);
OPENQNN_PLACE(OpenQnn_Table_t, tensorCreateGraphTensor, 24 * 8);
OPENQNN_PLACE(OpenQnn_Table_t, errorGetMessage, 48 * 8);
OPENQNN_PLACE(OpenQnn_Table_t, contextFreeBinarySectionUpdate, 70 * 8);
OPENQNN_PLACE(QnnInterface_t, table, 40);

#ifdef __cplusplus
extern "C" {
#endif
QNN_API Qnn_ErrorHandle_t QnnInterface_getProviders(const QnnInterface_t*** providers, uint32_t* count);
#ifdef __cplusplus
}
#endif

#endif
