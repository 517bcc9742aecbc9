"""What libraries say about nodes, in words that help."""

from __future__ import annotations

import pytest

from openqnn.analysis.validation import advice, plain_reason, validate_graph
from openqnn.api.convert import convert
from openqnn.ir.graph_text import parse_graph
from tests.models.fetch import model_path, static_shapes
from tests.qnn.nets import needs_cpu, needs_htp

HALF = """
graph "half" {
  input %x: float16[1,4]
  %y: float16[1,4] = Relu(%x) @ "onnx node /act"
  output %y
}
"""
FLOAT = HALF.replace("float16", "float32")


@needs_htp
@pytest.mark.parametrize("model", ["ppocr_cls", "silero_openvino", "mtcnn_onet"])
def test_real_networks_are_taken_by_htp(model: str) -> None:
    found = validate_graph(convert(model_path(model), input_shapes=static_shapes(model)), "htp")
    assert (found.refused, found.nodes) == ((), sum(found.counts.values()))


@needs_cpu
def test_half_precision_is_named_where_the_library_says_nothing() -> None:
    (refused,) = validate_graph(parse_graph(HALF), "cpu").refused
    assert refused.source == "onnx node /act"
    assert refused.reason.endswith("; tensor 'x' is float16")
    assert "--float_bitwidth 32" in refused.hint


@needs_htp
def test_a_chip_without_half_precision() -> None:
    (refused,) = validate_graph(parse_graph(FLOAT), "htp", "SM7325").refused
    assert refused.reason == "The SocModel doesn't support FP16."
    assert refused.hint.startswith("quantize the model, or choose a chip")


@pytest.mark.parametrize(
    ("said", "reason", "hint"),
    [
        (
            "Relu 'a': libQnnHtp.so: backendValidateOpConfig failed with X (3110): Failed\n"
            "  log: Tensor 7 and 8 have mismatching dimension at index 1. 4 != 5.\n"
            "  log: Tensor 7 and 8 have mismatching dimension at index 1. 4 != 5.\n"
            "  log: Op specific validation failed.\n  log: <E> QnnBackend_validateOpConfig failed 3110",
            "Tensor 7 and 8 have mismatching dimension at index 1. 4 != 5.",
            "the shapes around this node do not fit",
        ),
        (
            "IsInf 'a': libQnnHtp.so: backendValidateOpConfig failed with X (3110): Failed\n"
            "  log: Output[0] has incorrect Datatype 0x232.",
            "Output[0] has incorrect data type float32.",
            "change the type of this tensor",
        ),
        (
            "Buffer 'b': libQnnHtp.so: backendValidateOpConfig failed with X (3110): Failed\n"
            "  log: <E> Requested I/O datatype set:\n\n   in[0]:QNN_DATATYPE_FLOAT_32\n"
            "  log: <E> Please refer to the 'Supplement'",
            "Requested I/O datatype set: in[0]:FLOAT_32.",
            "change the type of this tensor",
        ),
        (
            "libQnnCpu.so crashed (SIGSEGV); last step: validate ReduceSum 'first'\n  log: last words",
            "libQnnCpu.so crashed (SIGSEGV); last step: validate ReduceSum 'first'",
            "the library does not survive this node",
        ),
    ],
)
def test_messages(said: str, reason: str, hint: str) -> None:
    assert plain_reason(said) == reason
    assert advice(said).startswith(hint)
