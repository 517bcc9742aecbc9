"""Tables by byte as lines: ONNX Runtime gives the table itself, or there is no line."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from openqnn.ir import Array
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.lines import BYTES, by_line, by_sum, fitted


def run(b: Body, result: str) -> Array:
    given = helper.make_tensor_value_info("x", TensorProto.UINT8, [BYTES])
    constants = [numpy_helper.from_array(a, n) for n, a in b.constants.items()]
    graph = helper.make_graph(b.nodes, "g", [given], [onnx.ValueInfoProto(name=result)], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": np.arange(BYTES, dtype=np.uint8)})
    return np.asarray(found)


def line(slope: float, height: float) -> Array:
    return np.clip(np.floor(slope * np.arange(BYTES) + height), 0, BYTES - 1).astype(np.int64)


@pytest.mark.parametrize("slope", [0.231, 0.5, 0.871, 1.0, 1.37, 6.1])
@pytest.mark.parametrize("height", [-40.37, 0.6, 77.1])
def test_rounded_lines_are_found(slope: float, height: float) -> None:
    b, table = Body(), line(slope, height)
    found = by_line(b, "x", table)
    assert found is not None
    np.testing.assert_array_equal(run(b, found), table)


def test_one_behind_another_becomes_one_where_it_fits() -> None:
    b, first, second = Body(), line(1.0, -30.2), line(0.7, -11.43)
    made = by_line(b, "x", first)
    assert made is not None
    found = by_line(b, made, second)
    assert found is not None
    assert b.nodes[-1].input[0] == "x"
    np.testing.assert_array_equal(run(b, found), second[first])


def test_and_stays_apart_where_it_does_not() -> None:
    b, first, second = Body(), line(0.3, 3.44), line(2.9, -11.43)
    made = by_line(b, "x", first)
    assert made is not None
    found = by_line(b, made, second)
    assert found is not None
    assert b.nodes[-1].input[0] == made
    np.testing.assert_array_equal(run(b, found), second[first])


@pytest.mark.parametrize(
    "table", [np.arange(BYTES)[::-1], np.arange(BYTES) ** 2 // BYTES, np.zeros(BYTES, int)]
)
def test_others_are_not(table: Array) -> None:
    assert fitted(table) is None


@pytest.mark.parametrize(
    ("factors", "constant", "bits"),
    [((7773, 5510), -568576, 13), ((8115, 2183), 4096, 13), ((8192, 2128), 4096, 13)],
)
def test_sums_of_two_tensors_are_those_of_all_pairs(
    factors: tuple[int, int], constant: int, bits: int
) -> None:
    def rule(one: Array, other: Array) -> Array:
        return np.floor(np.ldexp(factors[0] * one + factors[1] * other + constant, -bits))

    b, ratios = Body(), [float(np.ldexp(f, -bits)) for f in factors]
    b.constants["y"] = np.arange(BYTES, dtype=np.uint8)[:, None]
    found = by_sum(b, ["x", "y"], ratios, float(np.ldexp(constant + 0.5, -bits) - 0.5), rule)
    assert found is not None
    every = np.arange(BYTES, dtype=np.float64)
    np.testing.assert_array_equal(run(b, found), np.clip(rule(every, every[:, None]), 0, BYTES - 1))


def test_differences_are_no_sums() -> None:
    assert by_sum(Body(), ["x", "y"], [0.5, -0.25], 0.1, np.subtract) is None
