/* HTP's own record of a device configuration: which chip the backend prepares graphs for.
 *
 * OpenQNN's own declarations, as the libraries of QNN 2.47 and 2.51 read them: the value stands at byte 8.
 */
#ifndef OPENQNN_QNN_HTP_DEVICE_H
#define OPENQNN_QNN_HTP_DEVICE_H

#include "../QnnTypes.h"

typedef enum {
  QNN_HTP_DEVICE_CONFIG_OPTION_SOC = 0,
  QNN_HTP_DEVICE_CONFIG_OPTION_ARCH = 1,
  QNN_HTP_DEVICE_CONFIG_OPTION_SIGNEDPD = 2,
  QNN_HTP_DEVICE_CONFIG_OPTION_UNKNOWN = 0x7FFFFFFF
} QnnHtpDevice_ConfigOption_t;

typedef struct {
  QnnHtpDevice_ConfigOption_t option;
  uint32_t openqnnPadding;
  union {
    uint32_t socModel;
    uint32_t openqnnRoom[6];
  };
} QnnHtpDevice_CustomConfig_t;

OPENQNN_PLACE(QnnHtpDevice_CustomConfig_t, socModel, 8);

#endif
