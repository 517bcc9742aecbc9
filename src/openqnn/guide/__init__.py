"""Classes of a widely read tutorial on QNN, with bodies: each is a thin layer over the Python API.

from openqnn.guide import QNNInference
engine = QNNInference("model.dlc", backend="htp")
result = engine.inference(array)
"""

from openqnn.guide.backend_selector import BackendSelector
from openqnn.guide.backend_support import check_backend_support
from openqnn.guide.dynamic_quantization import DynamicQuantization
from openqnn.guide.qnn_debugger import QNNDebugger
from openqnn.guide.qnn_inference import QNNInference
from openqnn.guide.qnn_profiler import QNNProfiler
from openqnn.guide.quantization_range import validate_quantization_range

__all__ = [
    "BackendSelector",
    "DynamicQuantization",
    "QNNDebugger",
    "QNNInference",
    "QNNProfiler",
    "check_backend_support",
    "validate_quantization_range",
]
