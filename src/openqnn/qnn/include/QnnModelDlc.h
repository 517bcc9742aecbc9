/* libQnnModelDlc.so: graphs composed from a DLC file, as a model library composes them from code.
 *
 * OpenQNN builds the library from its own source (`openqnn sdk-tree`). The arguments are those of
 * QnnModel_composeGraphs with the path of the file behind the configurations. The file stays open until
 * QnnModel_freeGraphsInfo, which also releases what was handed out.
 */
#ifndef OPENQNN_QNN_MODEL_DLC_H
#define OPENQNN_QNN_MODEL_DLC_H

#include "QnnWrapperUtils.hpp"

extern "C" {
QNN_API qnn_wrapper_api::ModelError_t QnnModel_composeGraphsFromDlc(
    Qnn_BackendHandle_t backend, QNN_INTERFACE_VER_TYPE interface, Qnn_ContextHandle_t context,
    const qnn_wrapper_api::GraphConfigInfo_t** graphsConfigInfo, const char* dlcPath, const uint32_t numGraphsConfigInfo,
    qnn_wrapper_api::GraphInfoPtr_t** graphsInfo, uint32_t* numGraphsInfo, bool debug, QnnLog_Callback_t logCallback,
    QnnLog_Level_t maxLogLevel);

QNN_API qnn_wrapper_api::ModelError_t QnnModel_freeGraphsInfo(qnn_wrapper_api::GraphInfoPtr_t** graphsInfo,
                                                             uint32_t numGraphsInfo);
}

#endif
