"""Bytes that only float32 is made of: the very numbers without them, and bytes where somebody reads them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from openqnn.ir import Array
from openqnn.runtime.cpu.drop_byte_casts import stay_real

# halves, numbers next to them, what is beyond all steps, and huge numbers
HALVES = np.arange(-300, 300, 0.5).astype(np.float32)
BESIDE = np.nextafter(HALVES, np.float32(0))
NUMBERS = np.concatenate([HALVES, BESIDE, np.asarray([-1e9, 1e9], np.float32)])
CONSTANTS = {
    "one": np.asarray(1, np.float32),
    "step": np.asarray(0.5, np.float32),
    "zero": np.asarray(0, np.uint8),
    "middle": np.asarray(131, np.uint8),
    "signed": np.asarray(-7, np.int8),
}


def run(nodes: list[onnx.NodeProto], constants: dict[str, Array], outputs: list[str]) -> list[Array]:
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [NUMBERS.size])
    initializers = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "g", [given], results, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(found) for found in session.run(outputs, {"x": NUMBERS})]


def quantized(zero: str, reader: onnx.NodeProto, scale: str = "one") -> list[onnx.NodeProto]:
    return [helper.make_node("QuantizeLinear", ["x", scale, zero], ["bytes"]), reader]


def dequantize(zero: str, scale: str = "one") -> onnx.NodeProto:
    return helper.make_node("DequantizeLinear", ["bytes", scale, zero], ["y"])


CAST = helper.make_node("Cast", ["bytes"], ["y"], to=TensorProto.FLOAT)


@pytest.mark.parametrize(
    ("zero", "reader"),
    [("zero", CAST), ("middle", CAST), ("middle", dequantize("middle")), ("middle", dequantize("zero")),
     ("signed", dequantize("signed"))],
)  # fmt: skip
def test_numbers_are_the_same_without_bytes(zero: str, reader: onnx.NodeProto) -> None:
    nodes = quantized(zero, reader)
    (want,) = run(nodes, CONSTANTS, ["y"])
    found, more = stay_real(nodes, CONSTANTS, ["y"])
    assert not {n.op_type for n in found} & {"QuantizeLinear", "DequantizeLinear", "Cast"}
    np.testing.assert_array_equal(run(found, CONSTANTS | more, ["y"])[0], want)


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        (quantized("middle", dequantize("middle")), ["y", "bytes"]),
        (quantized("middle", dequantize("middle", "step")), ["y"]),
        (quantized("middle", dequantize("middle"), "step"), ["y"]),
        ([helper.make_node("Cast", ["x"], ["bytes"], to=TensorProto.UINT8), CAST], ["y"]),
        (
            quantized("zero", helper.make_node("Cast", ["bytes"], ["y"], saturate=1, to=TensorProto.INT32)),
            ["y"],
        ),
    ],
    ids=["read", "steps of results", "steps of bytes", "cuts", "as indices"],
)
def test_bytes_stay_where_they_count(nodes: list[onnx.NodeProto], outputs: list[str]) -> None:
    found, more = stay_real(nodes, CONSTANTS, outputs)
    assert [n.op_type for n in found] == [n.op_type for n in nodes]
    assert not more
