/* HTP's own descriptor of shared memory: several tensors in one buffer of the device, each at its offset.
 *
 * OpenQNN's own declarations. Such memory needs a device: the library for x86-64 takes none.
 */
#ifndef OPENQNN_QNN_HTP_MEM_H
#define OPENQNN_QNN_HTP_MEM_H

#include "../QnnTypes.h"

typedef enum {
  QNN_HTP_MEM_QURT = 0,
  QNN_HTP_MEM_SHARED_BUFFER = 1,
  QNN_HTP_MEM_UNDEFINED = 0x7FFFFFFF
} QnnHtpMem_Type_t;

typedef struct {
  int32_t fd;
  uint64_t offset;
} QnnHtpMem_SharedBufferConfig_t;

typedef struct {
  QnnHtpMem_Type_t type;
  uint64_t size;
  union {
    void* qurtAddress;
    QnnHtpMem_SharedBufferConfig_t sharedBufferConfig;
  };
} QnnMemHtp_Descriptor_t;

OPENQNN_SIZE(QnnMemHtp_Descriptor_t, 32);

#endif
