"""What the rules of architectures say is slow, held against libQnnHtp's own cost model, and their changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openqnn import quantize
from openqnn.analysis.architecture_changes import change_architecture
from openqnn.analysis.architecture_kernels import KERNEL_RULES
from openqnn.analysis.architecture_rules import RULES, inspect_architecture
from openqnn.analysis.estimate import estimate_graph
from openqnn.api.session import Session
from openqnn.emit import lower
from openqnn.emit.graph_from_net import graph_of
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.runtime.boundary import random_inputs
from tests.qnn.nets import needs_htp

IMAGE = (1, 56, 56, 64)
ONE = [1, 1]
RANDOM = np.random.default_rng(0)


def made(op: str, shape: tuple[int, ...] = IMAGE, *operands: object, **params: Any) -> Graph:
    """A graph of one op; operands are the shape of random weights, or an array."""
    graph = Graph("net")
    x = graph.add_input("x", DType.FLOAT_32, shape)
    given = [x]
    for number, operand in enumerate(operands):
        data = operand if isinstance(operand, np.ndarray) else RANDOM.standard_normal(operand)  # type: ignore[call-overload]
        integer = data.dtype.kind == "i"
        stored = data.astype(np.int32 if integer else np.float32)
        dtype = DType.INT_32 if integer else DType.FLOAT_32
        given.append(graph.constant(f"c{number}", stored, dtype))
    graph.add_output(Builder(graph)(op, *given, **params))
    return graph


def image(kernel: int, inputs: int, outputs: int, op: str = "Conv2d", **params: Any) -> Graph:
    edge = kernel // 2
    shape = (kernel, kernel, 1 if op != "Conv2d" else inputs, outputs)
    params = {"stride": ONE, "pad_amount": [[edge, edge]] * 2, **params}
    return made(op, (1, 56, 56, inputs), shape, **params)


def product(transposed: bool) -> Graph:
    graph = Graph("net")
    a, b = (graph.add_input(name, DType.FLOAT_32, (1, 1, 256, 256)) for name in "ab")
    graph.add_output(Builder(graph)("MatMul", a, b, transpose_in1=transposed))
    return graph


def behind(curve: str) -> Graph:
    graph = image(3, 64, 64)
    (output,) = graph.outputs
    graph.outputs.clear()
    graph.add_output(Builder(graph)(curve, output))
    return graph


def residual(size: int) -> Graph:
    graph = Graph("net")
    build = Builder(graph)
    x = y = graph.add_input("x", DType.FLOAT_32, (1, size, size, 64))
    for number in range(2):
        data = RANDOM.standard_normal((3, 3, 64, 64)).astype(np.float32)
        weights = graph.constant(f"w{number}", data, DType.FLOAT_32)
        y = build("Conv2d", y, weights, stride=ONE, pad_amount=[ONE, ONE])
    graph.add_output(build("ElementWiseAdd", y, x))
    return graph


def cut(height: int, width: int, channels: int) -> Graph:
    sizes = zip(IMAGE, (1, height, width, channels), strict=True)
    return made("StridedSlice", ranges=[[0, size, stride] for size, stride in sizes])


def gathered(axis: int) -> Graph:
    return made("Gather", IMAGE, np.arange(0, IMAGE[axis], 2), axis=axis)


def resized(size: int) -> Graph:
    graph = Graph("net")
    x = graph.add_input("x", DType.FLOAT_32, IMAGE)
    params: dict[str, Any] = {"align_corners": False, "half_pixel_centers": True}
    graph.add_output(Builder(graph)("ResizeBilinear", x, shape=(1, size, size, 64), **params))
    return graph


def pooled(op: str) -> Graph:
    return made(op, filter_size=[3, 3], stride=[2, 2], pad_amount=[[0, 0]] * 2)


Make = Callable[[], Graph]
FILTERS = np.full((1, 1, 64, 1), 1 / 64)
EFFECTS: dict[str, tuple[Make, Make, float]] = {
    "depth_multiplier": (lambda: image(3, 64, 128, "DepthWiseConv2d"), lambda: image(3, 64, 128), 100),
    "large_kernel": (lambda: image(9, 64, 64), lambda: image(7, 64, 64), 8),
    "dilation": (
        lambda: image(3, 64, 64, dilation=[2, 2], pad_amount=[[2, 2]] * 2),
        lambda: image(3, 64, 64),
        2,
    ),
    "softmax_axis": (lambda: made("Softmax", axis=1), lambda: made("Softmax", axis=3), 5),
    "strided_slice": (lambda: cut(2, 1, 1), lambda: cut(2, 2, 1), 10),
    "gather_channels": (lambda: gathered(3), lambda: gathered(1), 5),
    "channel_mean": (
        lambda: made("ReduceMean", axes=[3], keep_dims=True),
        lambda: made("Conv2d", IMAGE, FILTERS, stride=ONE, pad_amount=[[0, 0]] * 2),
        3,
    ),
    "thin": (lambda: made("Sigmoid", (1, 896, 224, 1)), lambda: made("Sigmoid", (1, 112, 224, 8)), 3),
    "joined_gelu": (lambda: behind("Gelu"), lambda: behind("HardSwish"), 1.2),
    "transposed_operand": (lambda: product(True), lambda: product(False), 1.4),
    "max_pool": (lambda: pooled("PoolMax2d"), lambda: pooled("PoolAvg2d"), 2),
    "resize_factor": (lambda: resized(100), lambda: resized(112), 3),
    "odd_rows": (
        lambda: made("MatMul", (1, 197, 384), (384, 384)),
        lambda: made("MatMul", (1, 200, 384), (384, 384)),
        3,
    ),
}


def cycles(graph: Graph, width: int = 8) -> int:
    return estimate_graph(quantize(graph, [random_inputs(graph)], algorithms=(), act_bw=width)).cycles


def rules(graph: Graph) -> set[str]:
    return {finding.rule for finding in inspect_architecture(lower(graph))}


def test_the_page_tells_what_the_rules_say() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lint.md").read_text(encoding="utf-8").splitlines()
    cells = [(f"`{r.id}`", r.issue, r.advice, r.modification or "-") for r in RULES]
    assert [line for line in page if line.startswith("| `")] == [f"| {' | '.join(row)} |" for row in cells]


def test_every_rule_of_kernels_is_measured() -> None:
    measured = {f"openqnn.{name}" for name in (*EFFECTS, "channels_wide", "spill")}
    assert measured == {rule.id for rule in KERNEL_RULES}


@needs_htp
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EFFECTS)
def test_what_a_rule_finds_takes_longer(name: str) -> None:
    slow, fast, times = EFFECTS[name]
    assert f"openqnn.{name}" in rules(slow()) - rules(fast())
    assert cycles(slow()) > times * cycles(fast())


@needs_htp
@pytest.mark.filterwarnings("ignore")
def test_48_channels_take_longer_than_64_at_16_bits() -> None:
    found = [
        quantize(g, [random_inputs(g)], algorithms=(), act_bw=16)
        for g in (image(3, 48, 48), image(3, 64, 64))
    ]
    assert "openqnn.channels_wide" in rules(found[0]) - rules(found[1])
    assert estimate_graph(found[0]).cycles > 1.3 * estimate_graph(found[1]).cycles
    assert "openqnn.channels_wide" not in rules(image(3, 48, 48))


def between(curve_in_float: bool, output_in_float: bool) -> Graph:
    """Two convolutions in fixed point with a curve between them."""
    graph = behind("Sigmoid")
    build = Builder(graph)
    (y,) = graph.outputs
    graph.outputs.clear()
    weights = graph.constant(
        "last", RANDOM.standard_normal((1, 1, 64, 64)).astype(np.float32), DType.FLOAT_32
    )
    graph.add_output(build("Conv2d", y, weights, stride=ONE, pad_amount=[[0, 0]] * 2))
    fixed = quantize(graph, [random_inputs(graph)], algorithms=(), act_bw=8)
    build = Builder(fixed)
    _, curve, last = fixed.nodes
    if curve_in_float:
        y = build("Sigmoid", build("Dequantize", curve.inputs[0], dtype=DType.FLOAT_32))
        back = build("Quantize", y, dtype=DType.UFIXED_8)
        back.encoding = curve.out.encoding
        fixed.set_input(last, 0, back)
        fixed.remove(curve)
        fixed.sort()
    if output_in_float:
        (y,) = fixed.outputs
        fixed.outputs.clear()
        fixed.add_output(build("Dequantize", y, dtype=DType.FLOAT_32))
    return fixed


@needs_htp
@pytest.mark.filterwarnings("ignore")
def test_conversions_in_the_middle_and_at_the_end_take_time() -> None:
    plain, island, end = (between(*floats) for floats in ((False, False), (True, False), (False, True)))
    assert "openqnn.float_island" in rules(island) - rules(plain) - rules(end)
    assert "openqnn.boundary_cast" in rules(end) - rules(plain) - rules(island)
    assert estimate_graph(island).cycles > 3 * estimate_graph(plain).cycles
    assert estimate_graph(end).cycles > 1.5 * estimate_graph(plain).cycles


def test_large_activations_are_found() -> None:
    assert "openqnn.spill" in rules(residual(512)) - rules(residual(128))


@needs_htp
@pytest.mark.slow
def test_large_activations_take_longer_than_their_tiles() -> None:
    assert cycles(residual(512)) > 2 * 16 * cycles(residual(128))


def changed(graph: Graph, rule: str) -> tuple[Graph, list[str]]:
    """The graph after a rule's change, and what was said; both compute the same."""
    net, done = change_architecture(lower(graph), {rule})
    after = graph_of(net)
    samples = random_inputs(graph)
    with Session(graph) as first, Session(after) as second:
        (wanted,) = first.run(samples).values()
        (found,) = second.run(samples).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    return after, list(done.values())


def several(*shape: int) -> Graph:
    params = {"stride": [2, 1], "pad_amount": [[1, 0], [1, 1]]}
    return made("DepthWiseConv2d", (1, 9, 8, shape[2]), (3, 3, 1, shape[3]), (shape[3],), **params)


@pytest.mark.parametrize(
    ("rule", "graph"),
    [
        ("depth_multiplier", several(3, 3, 5, 15)),
        ("strided_slice", cut(1, 1, 3)),
        ("gather_channels", made("Gather", (2, 3, 5, 8), np.asarray([7, 0, 0, 3]), axis=3)),
        ("channel_mean", made("ReduceMean", (2, 3, 5, 8), axes=[3], keep_dims=True)),
    ],
)
def test_changes_to_convolutions_give_the_same_numbers(rule: str, graph: Graph) -> None:
    after, (said,) = changed(graph, f"openqnn.{rule}")
    assert [node.op for node in after.nodes] == ["Conv2d"] and said.startswith("Conv2d")
    assert f"openqnn.{rule}" not in rules(after)


@needs_htp
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("rule", "graph"),
    [
        ("depth_multiplier", several(3, 3, 32, 64)),
        ("strided_slice", cut(1, 1, 2)),
        ("gather_channels", gathered(3)),
        ("channel_mean", made("ReduceMean", axes=[3], keep_dims=True)),
    ],
)
def test_changes_take_half_the_time_at_most(rule: str, graph: Graph) -> None:
    after, _ = changed(graph, f"openqnn.{rule}")
    assert 2 * cycles(after) < cycles(graph)


@pytest.mark.parametrize(
    ("rule", "graph", "why"),
    [
        ("strided_slice", cut(1, 2, 2), "cuts other axes"),
        ("gather_channels", made("Gather", (4, 8), np.asarray([1, 2]), axis=1), "four dimensions"),
        ("channel_mean", made("ReduceMean", axes=[3], keep_dims=False), "does not keep"),
    ],
)
def test_changes_that_are_not_made_say_why(rule: str, graph: Graph, why: str) -> None:
    after, (said,) = changed(graph, f"openqnn.{rule}")
    assert said.startswith("not changed: ") and why in said
    assert [node.op for node in after.nodes] == [node.op for node in graph.nodes]


def transposes(*perms: list[int]) -> Graph:
    graph = Graph("net")
    build = Builder(graph)
    y = graph.add_input("x", DType.FLOAT_32, (2, 3, 4, 5))
    for perm in perms:
        y = build("Transpose", y, perm=perm)
    graph.add_output(build("Relu", y))
    return graph


@pytest.mark.parametrize(
    ("perms", "left"),
    [
        ([[0, 3, 1, 2], [0, 2, 3, 1]], ["Reshape", "Relu"]),
        ([[0, 3, 1, 2], [1, 0, 2, 3]], ["Transpose", "Relu"]),
        ([[0, 3, 1, 2], [1, 0, 2, 3], [3, 2, 0, 1]], ["Transpose", "Relu"]),
    ],
)
def test_transposes_that_follow_each_other_become_one(perms: list[list[int]], left: list[str]) -> None:
    after, _ = changed(transposes(*perms), "openqnn.transpose_pair")
    assert [node.op for node in after.nodes] == left
    assert "openqnn.transpose_pair" not in rules(after)
