"""What the graph says of ranges: ends beyond which a sigmoid cannot tell, and bounds of bounded sums."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.analysis.quant_report import CUT_ON_PURPOSE, quant_report
from openqnn.api.quantize import quantize
from openqnn.ir import DType, Graph, Value
from openqnn.ops import Builder
from openqnn.quant.plan import CALIBRATION, CUT
from openqnn.quant.range_analysis import EVERYTHING, Bounds


def gate() -> tuple[Graph, Builder, Value, Value]:
    graph = Graph("gate")
    x = graph.add_input("x", DType.FLOAT_32, (1, 4))
    y = graph.add_input("y", DType.FLOAT_32, (1, 4))
    return graph, Builder(graph, "test"), x, y


def test_a_sigmoid_cannot_tell_large_inputs_apart() -> None:
    graph, b, x, y = gate()
    total = b("ElementWiseAdd", b("Reshape", x, shape=(1, 4)), y)
    out = b("Sigmoid", total)
    graph.add_output(out)
    bounds = Bounds(graph, 8, lambda value: (-0.5, 0.25))
    end = float(np.log(512))
    assert bounds.useful(total) == (-end, end)
    assert bounds.useful(x) == (-end - 0.25, end + 0.5)
    assert bounds.useful(out) == EVERYTHING
    step = 1 / 256
    assert 1 / (1 + np.exp(-end)) > 1 - step / 2


def test_another_reader_sees_it_all() -> None:
    graph, b, x, y = gate()
    total = b("ElementWiseAdd", x, y)
    graph.add_output(b("ElementWiseMultiply", b("Tanh", total), total))
    assert Bounds(graph, 8, lambda value: (-1.0, 1.0)).useful(total) == EVERYTHING


def test_sums_and_products_of_bounded_values_are_bounded() -> None:
    graph, b, x, y = gate()
    left, right = b("Tanh", x), b("Sigmoid", y)
    difference = b("ElementWiseSubtract", left, right)
    graph.add_output(b("ElementWiseMultiply", difference, b.const(np.array([3.0], np.float32))))
    bounds = Bounds(graph, 8, lambda value: EVERYTHING)
    assert bounds.reach(difference) == (-2.0, 1.0)
    assert bounds.reach(graph.outputs[0]) == (-6.0, 3.0)
    assert bounds.reach(x) == EVERYTHING


def test_ranges_end_there() -> None:
    graph, b, x, y = gate()
    total = b("ElementWiseAdd", x, y)
    graph.add_output(b("Sigmoid", total))
    data = [{"x": np.array([[-90, -1, 1, 80]], np.float32), "y": np.array([[0.5, -1, 1, 0]], np.float32)}]
    made = quantize(graph, data, backend="cpu")
    encoding = next(n for n in made.nodes if n.op == "ElementWiseAdd").out.encoding
    assert encoding is not None and 12 < encoding.scale[0] * 255 < 13
    assert made.provenance[graph.nodes[0].out.name] == CUT
    assert made.provenance["y"] == CALIBRATION


@pytest.mark.parametrize(("beside", "width"), [(4, 8), (4096, 16)])
def test_nobody_is_told_to_mend_what_no_reader_sees(beside: int, width: int) -> None:
    """Beside a large tensor the gate is a small node, which has 16 bits and says so."""
    graph, b, x, y = gate()
    total = b("ElementWiseAdd", x, y)
    graph.add_output(b("Sigmoid", total))
    graph.add_output(b("Relu", graph.add_input("z", DType.FLOAT_32, (1, beside))))
    numbers = {
        "x": np.array([[-90, -1, 1, 80]], np.float32),
        "y": np.array([[0.5, -1, 1, 0]], np.float32),
        "z": np.linspace(-1, 1, beside, dtype=np.float32)[None],
    }
    report = quant_report(graph, quantize(graph, [numbers], backend="cpu"), [numbers])
    (found,) = [t for t in report.tensors if t.name == total.name]
    assert found.bits == width and found.clipped == 0.5 and found.own_sqnr < 25
    assert found.advice == CUT_ON_PURPOSE


def test_softmax_tells_apart_what_is_near_the_largest_of_its_row() -> None:
    graph, b, x, y = gate()
    scores = b("ElementWiseMultiply", x, b.const(np.array([0.5], np.float32)))
    total = b("ElementWiseAdd", scores, y)
    graph.add_output(b("Softmax", total, axis=1))
    told = lambda node: (-10.0, np.inf) if node.op == "Softmax" else None
    bounds = Bounds(graph, 8, lambda value: (-2.0, 3.0), told)
    assert bounds.useful(total) == (-10.0, np.inf)
    assert bounds.useful(y) == (-13.0, np.inf)
    assert bounds.useful(x) == (-26.0, np.inf)
    data = [{"x": np.array([[0, 2, 2, 6]], np.float32), "y": np.array([[-1e9, 0, 1, 0]], np.float32)}]
    made = quantize(graph, data, backend="cpu", act_bw=8)
    (found,) = [n for n in made.nodes if n.op == "Softmax"]
    coded = found.x(0).encoding
    assert coded is not None
    low = coded.scale[0] * coded.offset[0]
    assert -20 < low < 3 - np.log(2 * 256)  # the largest of the row is 3
    assert made.provenance[found.x(0).name] == CUT


def test_a_constant_that_is_joined_to_bounded_values_counts() -> None:
    graph, b, x, _ = gate()
    joined = b("Concat", b("Sigmoid", x), b.const(np.array([[5.0]], np.float32)), axis=1)
    graph.add_output(b("ElementWiseNeg", joined))
    assert Bounds(graph, 8, lambda value: EVERYTHING).reach(joined) == (0.0, 5.0)
