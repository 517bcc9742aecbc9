"""Composite patterns: as exporters write them, as QNN has them, and the reasons when they are not."""

from __future__ import annotations

import sys
from math import pi, sqrt
from textwrap import dedent

import numpy as np
import pytest

from openqnn.ir import Graph, Value
from openqnn.ir.dtype import DType
from openqnn.ir.verify import verify
from openqnn.ops import Builder, infer_outputs
from openqnn.passes import Explain, run_passes
from openqnn.passes.order import PASSES
from tests.passes.harness import check, ops, reasons, run, same_numbers

Shape = tuple[int, ...]


class Expression:
    """A value that is written as a formula, so that a spelling fits on a line."""

    __array_ufunc__ = None  # an array on the left leaves the operation to us

    def __init__(self, b: Builder, value: Value) -> None:
        self.b, self.value = b, value

    def op(self, kind: str, *others: Expression | float, **params: object) -> Expression:
        return Expression(self.b, self.b(kind, self.value, *(self.of(o) for o in others), **params))

    def of(self, other: object) -> Value:
        if isinstance(other, Expression):
            return other.value
        return self.b.const(np.asarray(other, np.float32))

    def _binary(self, kind: str, other: object, swap: bool = False) -> Expression:
        pair = (self.value, self.of(other))
        return Expression(self.b, self.b(f"ElementWise{kind}", *(pair[::-1] if swap else pair)))

    def __add__(self, other: object) -> Expression:
        return self._binary("Add", other)

    def __radd__(self, other: object) -> Expression:
        return self._binary("Add", other, swap=True)

    def __sub__(self, other: object) -> Expression:
        return self._binary("Subtract", other)

    def __mul__(self, other: object) -> Expression:
        return self._binary("Multiply", other)

    def __rmul__(self, other: object) -> Expression:
        return self._binary("Multiply", other, swap=True)

    def __truediv__(self, other: object) -> Expression:
        return self._binary("Divide", other)

    def __rtruediv__(self, other: object) -> Expression:
        return self._binary("Divide", other, swap=True)

    def __pow__(self, other: object) -> Expression:
        return self._binary("Power", other)

    def __neg__(self) -> Expression:
        return self.op("ElementWiseNeg")

    def max(self, other: object) -> Expression:
        return self._binary("Maximum", other)

    def min(self, other: object) -> Expression:
        return self._binary("Minimum", other)

    def mean(self, *axes: int) -> Expression:
        return self.op("ReduceMean", axes=axes, keep_dims=True)

    def sqrt(self) -> Expression:
        return self.op("ElementWiseSquareRoot")

    def abs(self) -> Expression:
        return self.op("ElementWiseAbs")

    def reshape(self, *shape: int) -> Expression:
        return self.op("Reshape", shape=shape)

    def turn(self, *perm: int) -> Expression:
        return self.op("Transpose", perm=perm)

    def erf(self) -> Expression:
        """As the ONNX frontend composes it."""
        z = self * sqrt(2)
        size = z.abs().max(1e-3)
        return (size.op("Gelu") / size * 2.0 - 1.0) * (z / size)


def graph_with(shape: Shape, formula: object) -> Graph:
    graph = Graph("pattern")
    b = Builder(graph, source="source")
    x = Expression(b, graph.add_input("x", DType.FLOAT_32, shape))
    result = formula(x)  # type: ignore[operator]
    graph.add_output(result.value)
    return graph


def after(shape: Shape, formula: object, tolerance: float = 1e-4) -> tuple[list[str], Explain, Graph]:
    """What all passes together leave of a formula; numbers, name and source must stay."""
    graph = graph_with(shape, formula)
    before, name = run(graph), graph.outputs[0].name
    log = run_passes(graph, verify=True)
    same_numbers(before, run(graph), tolerance)
    assert graph.outputs[0].name == name
    assert {n.source for n in graph.nodes} == {"source"}
    return ops(graph), log, graph


GAMMA = np.array([1.0, 2.0, 0.5, -1.0], np.float32)


def centred(x: Expression, *axes: int) -> Expression:
    return x - x.mean(*axes)


SPELLINGS: list[tuple[str, Shape, object, list[str]]] = [
    ("gelu half last", (2, 4), lambda x: x * ((x / sqrt(2)).erf() + 1.0) * 0.5, ["Gelu"]),
    ("gelu half first", (2, 4), lambda x: (x * 0.5) * (1.0 + (x / sqrt(2)).erf()), ["Gelu"]),
    ("gelu half inside", (2, 4), lambda x: x * (0.5 * ((x * sqrt(0.5)).erf() + 1.0)), ["Gelu"]),
    ("gelu halved by division", (2, 4), lambda x: (x * ((x * sqrt(0.5)).erf() + 1.0)) / 2.0, ["Gelu"]),
    ("relu", (2, 4), lambda x: x.max(0.0), ["Relu"]),
    ("relu6", (2, 4), lambda x: x.max(0.0).min(6.0), ["Relu6"]),
    ("relu6 from relu", (2, 4), lambda x: x.op("Relu").min(6.0), ["Relu6"]),
    ("clip", (2, 4), lambda x: x.min(2.0).max(-1.0), ["ReluMinMax"]),
    ("hard swish", (2, 4), lambda x: x * ((x + 3.0).op("Relu6") / 6.0), ["HardSwish"]),
    ("hard swish by clip", (2, 4), lambda x: x * (x + 3.0).max(0.0).min(6.0) / 6.0, ["HardSwish"]),
    ("hard swish by product", (2, 4), lambda x: (x * (x + 3.0).op("Relu6")) * (1 / 6), ["HardSwish"]),
    ("hard swish by hard sigmoid", (2, 4), lambda x: x * hard_sigmoid(x, 1 / 6), ["HardSwish"]),
    ("hard sigmoid", (2, 4), lambda x: (x + 3.0).op("Relu6") / 6.0, ["ElementWiseNeuron"]),
    ("prelu by difference", (2, 4), lambda x: x.op("Relu") - GAMMA * (-x).op("Relu"), ["Prelu"]),
    ("prelu by sum", (2, 4), lambda x: x.op("Relu") + (-x).op("Relu") * -GAMMA, ["Prelu"]),
    ("prelu by absolute", (2, 4), lambda x: x.op("Relu") + (x - x.abs()) * GAMMA * 0.5, ["Prelu"]),
    ("prelu by minimum", (2, 4), lambda x: x.op("Relu") + x.min(0.0) * GAMMA, ["Prelu"]),
    ("leaky relu", (2, 4), lambda x: x.max(x * 0.1), ["Prelu"]),
    ("swish stays two ops", (2, 4), lambda x: x * x.op("Sigmoid"), ["Sigmoid", "ElementWiseMultiply"]),
    ("layer norm of torch", (2, 3, 4), lambda x: layer_norm(x) * GAMMA + GAMMA, ["LayerNorm"]),
    ("layer norm by product", (2, 3, 4),
     lambda x: centred(x, 2) / ((centred(x, 2) * centred(x, 2)).mean(2) + 1e-5).sqrt() * GAMMA,
     ["LayerNorm"]),
    ("layer norm by rsqrt", (2, 3, 4),
     lambda x: centred(x, 2) * ((centred(x, 2) ** 2.0).mean(2) + 1e-5).op("ElementWiseRsqrt"), ["LayerNorm"]),
    ("layer norm over channels", (2, 4, 3, 3),
     lambda x: centred(x, 1) / ((centred(x, 1) ** 2.0).mean(1) + 1e-5).sqrt() * GAMMA.reshape(4, 1, 1),
     ["LayerNorm"]),
    ("rms norm", (2, 3, 4), lambda x: x * (1.0 / ((x ** 2.0).mean(2) + 1e-5).sqrt()) * GAMMA, ["RmsNorm"]),
    ("rms norm by division", (2, 3, 4), lambda x: x / ((x * x).mean(2) + 1e-5).sqrt(), ["RmsNorm"]),
    ("l2 norm", (2, 4),
     lambda x: x / (x * x).op("ReduceSum", axes=[1], keep_dims=True).sqrt().max(1e-12), ["L2Norm"]),
    ("l2 norm expanded", (2, 4),
     lambda x: x / squares(x).sqrt().max(1e-12).op("Tile", multiples=(1, 4)),
     ["L2Norm"]),
    ("instance norm", (2, 3, 5, 4),
     lambda x: centred(x, 2, 3) / ((centred(x, 2, 3) ** 2.0).mean(2, 3) + 1e-3).sqrt(),
     ["Transpose", "InstanceNorm", "Transpose"]),
    ("group norm", (2, 6, 4, 4), lambda x: group_norm(x), ["Transpose", "GroupNorm", "Transpose"]),
    ("group norm with weights", (2, 6, 4, 4),
     lambda x: group_norm(x) * np.arange(6, dtype="f").reshape(6, 1, 1) + np.ones((1, 6, 1, 1), "f"),
     ["Transpose", "GroupNorm", "Transpose"]),
    ("channel shuffle", (1, 6, 2, 2),
     lambda x: x.reshape(1, 2, 3, 2, 2).turn(0, 2, 1, 3, 4).reshape(1, 6, 2, 2), ["ChannelShuffle"]),
    ("pixel shuffle", (1, 8, 3, 2),
     lambda x: x.reshape(1, 2, 2, 2, 3, 2).turn(0, 1, 4, 2, 5, 3).reshape(1, 2, 6, 4),
     ["Transpose", "DepthToSpace", "Transpose"]),
    ("depth to space", (1, 8, 3, 2),
     lambda x: x.reshape(1, 2, 2, 2, 3, 2).turn(0, 3, 4, 1, 5, 2).reshape(1, 2, 6, 4),
     ["Transpose", "DepthToSpace", "Transpose"]),
    ("space to depth", (1, 2, 6, 4),
     lambda x: x.reshape(1, 2, 3, 2, 2, 2).turn(0, 3, 5, 1, 2, 4).reshape(1, 8, 3, 2),
     ["Transpose", "SpaceToDepth", "Transpose"]),
    ("pixel unshuffle", (1, 2, 6, 4),
     lambda x: x.reshape(1, 2, 3, 2, 2, 2).turn(0, 1, 3, 5, 2, 4).reshape(1, 8, 3, 2),
     ["Transpose", "SpaceToDepth", "Transpose"]),
    ("depth to space, channel last", (1, 3, 2, 8),
     lambda x: x.reshape(1, 3, 2, 2, 2, 2).turn(0, 1, 3, 2, 4, 5).reshape(1, 6, 4, 2), ["DepthToSpace"]),
    ("space to depth, channel last", (1, 6, 4, 2),
     lambda x: x.reshape(1, 3, 2, 2, 2, 2).turn(0, 1, 3, 2, 4, 5).reshape(1, 3, 2, 8), ["SpaceToDepth"]),
    ("fully connected", (2, 4), lambda x: x.op("MatMul", np.eye(4, 3)) + GAMMA[:3], ["FullyConnected"]),
    ("matmul with bias", (1, 2, 4), lambda x: x.op("MatMul", np.eye(4, 3)) + GAMMA[:3], ["MatMul"]),
    ("matmul takes a transpose in", (1, 2, 4), lambda x: x.op("MatMul", x.turn(0, 2, 1)), ["MatMul"]),
    ("reshapes merge", (2, 3, 4), lambda x: x.reshape(6, 4).reshape(24).reshape(4, 6), ["Reshape"]),
]  # fmt: skip


def squares(x: Expression) -> Expression:
    return x.op("ReduceSumSquare", axes=[1], keep_dims=True)


def hard_sigmoid(x: Expression, alpha: float) -> Expression:
    return x.op("ElementWiseNeuron", operation="HARD_SIGMOID", alpha=alpha, beta=0.5)


def layer_norm(x: Expression) -> Expression:
    c = centred(x, 2)
    return c / ((c**2.0).mean(2) + 1e-5).sqrt()


def group_norm(x: Expression) -> Expression:
    """As the ONNX frontend gives Reshape, InstanceNormalization, Reshape."""
    groups = x.reshape(2, 3, 32).reshape(2, 3, 1, 32).turn(0, 2, 3, 1)
    gamma, beta = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.0, 1.0])
    normed = groups.op("InstanceNorm", gamma, beta, epsilon=1e-3)
    return normed.turn(0, 3, 1, 2).reshape(2, 3, 32).reshape(2, 6, 4, 4)


@pytest.mark.parametrize(
    ("shape", "formula", "want"), [s[1:] for s in SPELLINGS], ids=[s[0] for s in SPELLINGS]
)
def test_a_spelling_is_recognised(shape: Shape, formula: object, want: list[str]) -> None:
    found, log, _ = after(shape, formula)
    assert found == want, str(log)


def tanh_gelu(x: Expression) -> Expression:
    inner = (x + x * x * x * 0.044715) * sqrt(2 / pi)
    return x * 0.5 * (inner.op("Tanh") + 1.0)


DECLINED: list[tuple[str, Shape, object, str]] = [
    ("gelu by tanh", (2, 4), tanh_gelu, "differs from QNN's erf form by up to 5e-4"),
    ("gelu by sigmoid", (2, 4), lambda x: x * (x * 1.702).op("Sigmoid"), "x * sigmoid(1.702 x) differs"),
    ("other slope", (2, 4), lambda x: x * hard_sigmoid(x, 0.2), "HardSwish has slope 1/6"),
    ("range upside down", (2, 4), lambda x: x.max(3.0).min(1.0), "3.0 to 1.0 is no range"),
    ("weights of rank 3", (1, 2, 4), lambda x: x.op("MatMul", np.ones((1, 4, 3))), "are not one matrix"),
    ("product of rank 3", (1, 2, 4), lambda x: x.op("MatMul", np.ones((4, 3))), "stays a MatMul"),
    ("means over different axes", (2, 3, 4),
     lambda x: centred(x, 1) / ((centred(x, 1) ** 2.0).mean(2) + 1e-5).sqrt(), "over different axes"),
    ("no blocks", (2, 6, 4), lambda x: x.reshape(2, 2, 3, 4).turn(0, 2, 3, 1).reshape(2, 12, 2),
     "neither blocks"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "formula", "why"), [d[1:] for d in DECLINED], ids=[d[0] for d in DECLINED])
def test_a_decline_has_its_reason(shape: Shape, formula: object, why: str) -> None:
    _, log, _ = after(shape, formula)
    assert why in reasons(log)


def test_inner_values_that_others_read_keep_the_pattern() -> None:
    def formula(x: Expression) -> Expression:
        c = centred(x, 2)
        root = ((c * c).mean(2) + 1e-5).sqrt()
        return c / root + root

    found, log, _ = after((2, 3, 4), formula)
    assert "LayerNorm" not in found
    assert "is also used by" in reasons(log)


def test_inner_values_that_are_outputs_keep_the_pattern() -> None:
    norms = next(s.run for s in PASSES if s.name == "norms")
    _, log = check(
        norms,
        dedent("""
        input %x: float32[2,4]
        const %e: float32[] = [0.001]
        %m: float32[2,1] = ReduceMean(%x) axes=[1] keep_dims=true
        %c: float32[2,4] = ElementWiseSubtract(%x, %m)
        %s: float32[2,4] = ElementWiseMultiply(%c, %c)
        %v: float32[2,1] = ReduceMean(%s) axes=[1] keep_dims=true
        %a: float32[2,1] = ElementWiseAdd(%v, %e)
        %r: float32[2,1] = ElementWiseSquareRoot(%a)
        %y: float32[2,4] = ElementWiseDivide(%c, %r)
        output %y
        output %v
        """),
    )
    assert "'v' is a graph output" in reasons(log)


def test_text_before_and_after() -> None:
    activations = next(s.run for s in PASSES if s.name == "activations")
    check(
        activations,
        """
        input %x: float32[2,4]
        const %three: float32[] = [3.0]
        const %six: float32[] = [6.0]
        %a: float32[2,4] = ElementWiseAdd(%x, %three) @ "onnx node add"
        %b: float32[2,4] = Relu6(%a) @ "onnx node clip"
        %c: float32[2,4] = ElementWiseMultiply(%x, %b) @ "onnx node mul"
        %y: float32[2,4] = ElementWiseDivide(%c, %six) name "last" @ "onnx node div"
        output %y
        """,
        """
        input %x: float32[2,4]
        %y: float32[2,4] = HardSwish(%x) name "last" @ "onnx node div"
        output %y
        """,
    )


def test_quantized_values_are_left_alone() -> None:
    activations = next(s.run for s in PASSES if s.name == "activations")
    scale = "<scale=[0.5] offset=[0] bits=8 symmetric=false>"
    _, log = check(
        activations,
        f"""
        input %x: float32[2,4]
        const %low: float32[] = [0.0]
        const %high: float32[] = [6.0]
        %a: float32[2,4] {scale} = ElementWiseMaximum(%x, %low)
        %y: float32[2,4] {scale} = ElementWiseMinimum(%a, %high)
        output %y
        """,
    )
    assert "quantized" in reasons(log)


def test_the_pass_that_breaks_a_graph_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from openqnn.errors import VerifyError
    from openqnn.passes import order

    def breaks(graph: Graph, log: Explain) -> int:
        graph.outputs[0].shape = (9,)
        return 1

    monkeypatch.setattr(order, "PASSES", (order.Step("breaks", breaks, "a test"),))
    graph = graph_with((2, 4), lambda x: x.op("Relu"))
    with pytest.raises(VerifyError, match="after pass breaks"):
        run_passes(graph, verify=True)


def test_every_pass_has_a_reason_for_its_place() -> None:
    assert all(step.why for step in PASSES)


def _deep(kind: str, depth: int) -> Graph:
    def formula(x: Expression) -> Expression:
        for i in range(depth):
            x = (x * float(i % 7 + 2)).op("Tanh") + 0.5
            if kind == "images":
                x = x.turn(0, 3, 1, 2).op("Relu").turn(0, 2, 3, 1)
        return x

    return graph_with((1, 2, 2, 4), formula)


def _cost(graph: Graph) -> int:
    """How many Python calls all passes make: unlike seconds, the same on every machine."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        run_passes(graph)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("kind", ["chain", "images"])
def test_the_work_grows_with_the_graph_and_no_faster(kind: str) -> None:
    small, large = (_cost(_deep(kind, depth)) for depth in (250, 1000))
    assert large < 4.4 * small


@pytest.mark.parametrize("kind", ["chain", "images"])
def test_deep_graphs_come_through(kind: str) -> None:
    graph = _deep(kind, 1000)
    assert len(graph.nodes) >= 3000
    run_passes(graph)
    verify(graph, infer_outputs)
