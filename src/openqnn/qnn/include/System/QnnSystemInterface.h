/* libQnnSystem's table of functions: what is in a context binary, and graphs out of DLC files.
 *
 * OpenQNN's own declarations. systemDlcComposeGraphs takes a backend's interface by value, so that its length must be
 * the library's own: it is declared without types, and libQnnModelDlc.so calls it for every length.
 */
#ifndef OPENQNN_QNN_SYSTEM_INTERFACE_H
#define OPENQNN_QNN_SYSTEM_INTERFACE_H

#include "../QnnInterface.h"

typedef Qnn_Handle_t QnnSystemContext_Handle_t;
typedef Qnn_Handle_t QnnSystemDlc_Handle_t;

typedef enum {
  QNN_SYSTEM_CONTEXT_GRAPH_INFO_VERSION_1 = 1,
  QNN_SYSTEM_CONTEXT_GRAPH_INFO_VERSION_2 = 2,
  QNN_SYSTEM_CONTEXT_GRAPH_INFO_VERSION_3 = 3,
  QNN_SYSTEM_CONTEXT_GRAPH_INFO_UNDEFINED = 0x7FFFFFFF
} QnnSystemContext_GraphInfoVersion_t;

/* Later versions only append. */
typedef struct {
  const char* graphName;
  uint32_t numGraphInputs;
  Qnn_Tensor_t* graphInputs;
  uint32_t numGraphOutputs;
  Qnn_Tensor_t* graphOutputs;
} QnnSystemContext_GraphInfoV1_t;

typedef struct {
  QnnSystemContext_GraphInfoVersion_t version;
  union {
    QnnSystemContext_GraphInfoV1_t graphInfoV1;
    uint64_t openqnnRoom[10];
  };
} QnnSystemContext_GraphInfo_t;

typedef enum {
  QNN_SYSTEM_CONTEXT_BINARY_INFO_VERSION_1 = 1,
  QNN_SYSTEM_CONTEXT_BINARY_INFO_VERSION_2 = 2,
  QNN_SYSTEM_CONTEXT_BINARY_INFO_VERSION_3 = 3,
  QNN_SYSTEM_CONTEXT_BINARY_INFO_UNDEFINED = 0x7FFFFFFF
} QnnSystemContext_BinaryInfoVersion_t;

/* Version 2 begins as version 1 does. */
typedef struct {
  uint32_t backendId;
  const char* buildId;
  Qnn_Version_t coreApiVersion;
  Qnn_Version_t backendApiVersion;
  const char* socVersion;
  Qnn_Version_t hwInfoBlobVersion;
  Qnn_Version_t contextBlobVersion;
  uint32_t hwInfoBlobSize;
  void* hwInfoBlob;
  uint64_t contextBlobSize;
  uint32_t numContextTensors;
  Qnn_Tensor_t* contextTensors;
  uint32_t numGraphs;
  QnnSystemContext_GraphInfo_t* graphs;
} QnnSystemContext_BinaryInfoV1_t;

typedef struct {
  uint32_t backendId;
  const char* buildId;
  Qnn_Version_t coreApiVersion;
  Qnn_Version_t backendApiVersion;
  const char* socVersion;
  Qnn_Version_t contextBlobVersion;
  uint64_t contextBlobSize;
  uint32_t numContextTensors;
  Qnn_Tensor_t* contextTensors;
  uint32_t numGraphs;
  QnnSystemContext_GraphInfo_t* graphs;
  void* platformInfo;
  uint32_t contextMetadataSize;
  void* contextMetadata;
  uint32_t socModel;
} QnnSystemContext_BinaryInfoV3_t;

typedef struct {
  QnnSystemContext_BinaryInfoVersion_t version;
  union {
    QnnSystemContext_BinaryInfoV1_t contextBinaryInfoV1;
    QnnSystemContext_BinaryInfoV3_t contextBinaryInfoV3;
    uint64_t openqnnRoom[17];
  };
} QnnSystemContext_BinaryInfo_t;

OPENQNN_SIZE(QnnSystemContext_GraphInfo_t, 88);
OPENQNN_SIZE(QnnSystemContext_BinaryInfo_t, 144);

/* clang-format off: one line per entry, in the table's order */
typedef struct {
  Qnn_ErrorHandle_t (*systemContextCreate)(QnnSystemContext_Handle_t*);
  Qnn_ErrorHandle_t (*systemContextGetBinaryInfo)(QnnSystemContext_Handle_t, void* binary, uint64_t size,
                                                  const QnnSystemContext_BinaryInfo_t**, Qnn_ContextBinarySize_t*);
  Qnn_ErrorHandle_t (*systemContextGetMetaData)(QnnSystemContext_Handle_t, const void* binary, uint64_t size,
                                                const QnnSystemContext_BinaryInfo_t**);
  Qnn_ErrorHandle_t (*systemContextFree)(QnnSystemContext_Handle_t);
  Qnn_ErrorHandle_t (*systemTensorGetMemoryFootprint)(Qnn_Tensor_t, uint64_t*);
  Qnn_ErrorHandle_t (*systemLogCreate)(QnnLog_Callback_t, QnnLog_Level_t, Qnn_LogHandle_t*);
  Qnn_ErrorHandle_t (*systemLogSetLogLevel)(Qnn_LogHandle_t, QnnLog_Level_t);
  Qnn_ErrorHandle_t (*systemLogFree)(Qnn_LogHandle_t);
  Qnn_ErrorHandle_t (*systemDlcCreateFromFile)(Qnn_LogHandle_t, const char* path, QnnSystemDlc_Handle_t*);
  Qnn_ErrorHandle_t (*systemDlcCreateFromBinary)(Qnn_LogHandle_t, const uint8_t*, Qnn_ContextBinarySize_t,
                                                 QnnSystemDlc_Handle_t*);
  OpenQnn_Entry_t systemDlcComposeGraphs;
  OpenQnn_Entry_t systemDlcGetOpMappings;
  Qnn_ErrorHandle_t (*systemDlcFree)(QnnSystemDlc_Handle_t);
  OpenQnn_Entry_t systemProfileCreateSerializationTarget;
  OpenQnn_Entry_t systemProfileSerializeEventData;
  OpenQnn_Entry_t systemProfileFreeSerializationTarget;
} OpenQnn_SystemTable_t;
/* clang-format on */

#define QNN_SYSTEM_INTERFACE_VER_TYPE OpenQnn_SystemTable_t
#define QNN_SYSTEM_INTERFACE_VER_NAME table

typedef struct {
  uint32_t backendId;
  const char* providerName;
  Qnn_Version_t systemApiVersion;
  union {
    OpenQnn_SystemTable_t table;
  };
} QnnSystemInterface_t;

OPENQNN_PLACE(QnnSystemInterface_t, table, 32);

#ifdef __cplusplus
extern "C" {
#endif
QNN_API Qnn_ErrorHandle_t QnnSystemInterface_getProviders(const QnnSystemInterface_t*** providers, uint32_t* count);
#ifdef __cplusplus
}
#endif

#endif
