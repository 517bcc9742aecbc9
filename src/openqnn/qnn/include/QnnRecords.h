/* Records that an application hands to a backend or gets from it: configurations, profiling events, shared memory.
 *
 * OpenQNN's own declarations, written from the layout that the libraries read and write. Options whose value is a
 * backend's own record have it behind customConfig.
 */
#ifndef OPENQNN_QNN_RECORDS_H
#define OPENQNN_QNN_RECORDS_H

#include "QnnTypes.h"

typedef uint32_t QnnProperty_Key_t;
typedef uint64_t Qnn_ContextBinarySize_t;

/* Configurations are lists of pointers with a null behind the last. */

typedef enum {
  QNN_BACKEND_CONFIG_OPTION_CUSTOM = 0,
  QNN_BACKEND_CONFIG_OPTION_ERROR_REPORTING = 1,
  QNN_BACKEND_CONFIG_OPTION_PLATFORM = 2,
  QNN_BACKEND_CONFIG_OPTION_UNDEFINED = 0x7FFFFFFF
} QnnBackend_ConfigOption_t;

typedef struct {
  QnnBackend_ConfigOption_t option;
  union {
    void* customConfig;
    const char* platformOption;
  };
} QnnBackend_Config_t;

typedef struct {
  const char* packageName;
  const char* name;
  const char* target;
} QnnBackend_OperationName_t;

typedef enum {
  QNN_DEVICE_CONFIG_OPTION_CUSTOM = 0,
  QNN_DEVICE_CONFIG_OPTION_PLATFORM_INFO = 1,
  QNN_DEVICE_CONFIG_OPTION_UNDEFINED = 0x7FFFFFFF
} QnnDevice_ConfigOption_t;

typedef struct {
  QnnDevice_ConfigOption_t option;
  union {
    void* customConfig;
    void* hardwareInfo;
  };
} QnnDevice_Config_t;

typedef enum {
  QNN_CONTEXT_CONFIG_OPTION_CUSTOM = 0,
  QNN_CONTEXT_CONFIG_OPTION_PRIORITY = 1,
  QNN_CONTEXT_CONFIG_OPTION_ERROR_REPORTING = 2,
  QNN_CONTEXT_CONFIG_OPTION_OEM_STRING = 3,
  QNN_CONTEXT_CONFIG_ASYNC_EXECUTION_QUEUE_DEPTH = 4,
  QNN_CONTEXT_CONFIG_ENABLE_GRAPHS = 5,
  QNN_CONTEXT_CONFIG_MEMORY_LIMIT_HINT = 6,
  QNN_CONTEXT_CONFIG_PERSISTENT_BINARY = 7,
  QNN_CONTEXT_CONFIG_UNDEFINED = 0x7FFFFFFF
} QnnContext_ConfigOption_t;

typedef struct {
  QnnContext_ConfigOption_t option;
  union {
    void* customConfig;
    uint32_t priority;
    const char* oemString;
    const char* const* enableGraphs;
    uint64_t memoryLimitHint;
    uint8_t isPersistentBinary;
  };
} QnnContext_Config_t;

/* Profiling. Numbers of events from 1000 on are a backend's own. */

typedef uint32_t QnnProfile_Level_t;
#define QNN_PROFILE_LEVEL_BASIC 1
#define QNN_PROFILE_LEVEL_DETAILED 2

typedef uint32_t QnnProfile_EventType_t;
#define QNN_PROFILE_EVENTTYPE_INIT 100
#define QNN_PROFILE_EVENTTYPE_FINALIZE 300
#define QNN_PROFILE_EVENTTYPE_EXECUTE 400
#define QNN_PROFILE_EVENTTYPE_NODE 404
#define QNN_PROFILE_EVENTTYPE_DEINIT 500

typedef uint32_t QnnProfile_EventUnit_t;
#define QNN_PROFILE_EVENTUNIT_MICROSEC 1
#define QNN_PROFILE_EVENTUNIT_BYTES 2
#define QNN_PROFILE_EVENTUNIT_CYCLES 3
#define QNN_PROFILE_EVENTUNIT_COUNT 4

typedef uint64_t QnnProfile_EventId_t;

typedef struct {
  QnnProfile_EventType_t type;
  QnnProfile_EventUnit_t unit;
  uint64_t value;
  const char* identifier;
} QnnProfile_EventData_t;

/* What libQnnCpu has in place of the record above. An object's name and a scalar share their place. */
typedef struct {
  uint32_t version;
  uint32_t openqnnPadding;
  QnnProfile_EventType_t type;
  QnnProfile_EventUnit_t unit;
  Qnn_Scalar_t value;
  const char* objectName;
  uint64_t timestamp;
  const char* identifier;
} QnnProfile_ExtendedEventData_t;

/* Memory that the application shares with a backend: a file descriptor, or what the backend defines itself. */

typedef enum {
  QNN_MEM_TYPE_ION = 1,
  QNN_MEM_TYPE_CUSTOM = 2,
  QNN_MEM_TYPE_DMA_BUF = 3,
  QNN_MEM_TYPE_UNDEFINED = 0x7FFFFFFF
} Qnn_MemType_t;

typedef struct {
  uint32_t numDim;
  uint32_t* dimSize;
  const char* shapeConfig;
} Qnn_MemShape_t;

typedef struct {
  int32_t fd;
} Qnn_MemIonInfo_t;

typedef struct {
  int32_t fd;
  void* data;
} Qnn_MemDmaBufInfo_t;

typedef struct {
  Qnn_MemShape_t memShape;
  Qnn_DataType_t dataType;
  Qnn_MemType_t memType;
  union {
    Qnn_MemIonInfo_t ionInfo;
    void* customInfo;
    Qnn_MemDmaBufInfo_t dmaBufInfo;
  };
} Qnn_MemDescriptor_t;

OPENQNN_SIZE(QnnBackend_Config_t, 16);
OPENQNN_SIZE(QnnDevice_Config_t, 16);
OPENQNN_SIZE(QnnContext_Config_t, 16);
OPENQNN_SIZE(QnnProfile_EventData_t, 24);
OPENQNN_SIZE(QnnProfile_ExtendedEventData_t, 56);
OPENQNN_SIZE(Qnn_MemDescriptor_t, 48);

#endif
