/* The interface of op packages, version 1.4: what a library of own operations gives to a QNN backend.
 *
 * OpenQNN's own declarations, written from what a backend asks for and reads. Names are the interface's names.
 */
#ifndef OPENQNN_QNN_OP_PACKAGE_H
#define OPENQNN_QNN_OP_PACKAGE_H

#include "QnnInterface.h"
#include "QnnTypes.h"

#define QNN_OP_PACKAGE_NO_ERROR 0
#define QNN_OP_PACKAGE_ERROR_GENERAL 1100
#define QNN_OP_PACKAGE_ERROR_LIBRARY_ALREADY_INITIALIZED 3000
#define QNN_OP_PACKAGE_ERROR_LIBRARY_NOT_INITIALIZED 3001
#define QNN_OP_PACKAGE_ERROR_INVALID_INFO 3101
#define QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE 3110
#define QNN_OP_PACKAGE_ERROR_INVALID_ARGUMENT 3200

typedef struct _QnnOpPackage_GlobalInfrastructure_t* QnnOpPackage_GlobalInfrastructure_t;
typedef struct _QnnOpPackage_GraphInfrastructure_t* QnnOpPackage_GraphInfrastructure_t;
typedef struct _QnnOpPackage_Node_t* QnnOpPackage_Node_t;
typedef struct _QnnOpPackage_OpImpl_t* QnnOpPackage_OpImpl_t;

typedef struct {
  const char* packageName;
  const char** operationNames;
  const void* operationInfo;
  uint32_t numOperations;
  const void* optimizations;
  uint32_t numOptimizations;
  const char* sdkBuildId;
  const Qnn_ApiVersion_t* sdkApiVersion;
  const void* packageInfo;
  const Qnn_Version_t* opsetVersion;
  size_t reserved[12];
} QnnOpPackage_Info_t;

typedef struct {
  Qnn_ErrorHandle_t (*init)(QnnOpPackage_GlobalInfrastructure_t);
  Qnn_ErrorHandle_t (*terminate)(void);
  Qnn_ErrorHandle_t (*getInfo)(const QnnOpPackage_Info_t**);
  Qnn_ErrorHandle_t (*validateOpConfig)(Qnn_OpConfig_t);
  Qnn_ErrorHandle_t (*createOpImpl)(QnnOpPackage_GraphInfrastructure_t, QnnOpPackage_Node_t,
                                    QnnOpPackage_OpImpl_t*);
  Qnn_ErrorHandle_t (*freeOpImpl)(QnnOpPackage_OpImpl_t);
  Qnn_ErrorHandle_t (*logInitialize)(QnnLog_Callback_t, QnnLog_Level_t);
  Qnn_ErrorHandle_t (*logSetLevel)(QnnLog_Level_t);
  Qnn_ErrorHandle_t (*logTerminate)(void);
} QnnOpPackage_ImplementationV1_4_t;

typedef struct {
  Qnn_Version_t interfaceVersion;
  union {
    QnnOpPackage_ImplementationV1_4_t v1_4;
  };
} QnnOpPackage_Interface_t;

#endif
