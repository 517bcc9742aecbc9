/* The layout that the libraries expect, on every 64-bit target, checked while compiling. */
#ifndef OPENQNN_QNN_LAYOUT_H
#define OPENQNN_QNN_LAYOUT_H

#ifdef __cplusplus
#define OPENQNN_CHECK(condition) static_assert(condition, #condition)
#else
#define OPENQNN_CHECK(condition) _Static_assert(condition, #condition)
#endif
#define OPENQNN_SIZE(type, bytes) OPENQNN_CHECK(sizeof(type) == (bytes))
#define OPENQNN_PLACE(type, member, bytes) OPENQNN_CHECK(offsetof(type, member) == (bytes))

OPENQNN_SIZE(void*, 8);
OPENQNN_SIZE(Qnn_DataType_t, 4);
OPENQNN_SIZE(Qnn_ParamType_t, 4);

OPENQNN_SIZE(Qnn_QuantizeParams_t, 40);
OPENQNN_PLACE(Qnn_QuantizeParams_t, scaleOffsetEncoding, 8);
OPENQNN_SIZE(Qnn_BwAxisScaleOffset_t, 32);
OPENQNN_PLACE(Qnn_BwAxisScaleOffset_t, scales, 16);

OPENQNN_SIZE(Qnn_TensorV1_t, 112);
OPENQNN_PLACE(Qnn_TensorV1_t, quantizeParams, 32);
OPENQNN_PLACE(Qnn_TensorV1_t, dimensions, 80);
OPENQNN_PLACE(Qnn_TensorV1_t, clientBuf, 96);

OPENQNN_SIZE(Qnn_TensorV2_t, 136);
OPENQNN_PLACE(Qnn_TensorV2_t, name, 8);
OPENQNN_PLACE(Qnn_TensorV2_t, type, 16);
OPENQNN_PLACE(Qnn_TensorV2_t, dataType, 24);
OPENQNN_PLACE(Qnn_TensorV2_t, quantizeParams, 32);
OPENQNN_PLACE(Qnn_TensorV2_t, rank, 72);
OPENQNN_PLACE(Qnn_TensorV2_t, dimensions, 80);
OPENQNN_PLACE(Qnn_TensorV2_t, memType, 88);
OPENQNN_PLACE(Qnn_TensorV2_t, clientBuf, 96);
OPENQNN_PLACE(Qnn_TensorV2_t, isDynamicDimensions, 112);
OPENQNN_PLACE(Qnn_TensorV2_t, sparseParams, 120);
OPENQNN_PLACE(Qnn_TensorV2_t, isProduced, 132);

OPENQNN_SIZE(Qnn_Tensor_t, 144);
OPENQNN_PLACE(Qnn_Tensor_t, v2, 8);

OPENQNN_SIZE(Qnn_Scalar_t, 16);
OPENQNN_SIZE(Qnn_Param_t, 160);
OPENQNN_PLACE(Qnn_Param_t, tensorParam, 16);

OPENQNN_SIZE(Qnn_OpConfigV1_t, 72);
OPENQNN_SIZE(Qnn_OpConfig_t, 80);
OPENQNN_SIZE(QnnGraph_Config_t, 16);

#endif
