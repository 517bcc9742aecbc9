"""The face of ONNX Runtime's QNN execution provider: its calls, options and files.

from openqnn.ort_qnn import InferenceSession
session = InferenceSession("model.onnx", providers=["QNNExecutionProvider"],
                           provider_options=[{"backend_path": "libQnnHtp.so"}])
outputs = session.run(None, {"x": array})
"""

from openqnn.ort_qnn.inference_session import InferenceSession, NodeArg
from openqnn.ort_qnn.qdq_config import (
    CalibrationDataReader,
    QdqConfig,
    QuantType,
    get_qnn_qdq_config,
    qnn_preprocess_model,
    quantize,
)
from openqnn.ort_qnn.session_options import SessionOptions

__all__ = [
    "CalibrationDataReader",
    "InferenceSession",
    "NodeArg",
    "QdqConfig",
    "QuantType",
    "SessionOptions",
    "get_qnn_qdq_config",
    "qnn_preprocess_model",
    "quantize",
]
