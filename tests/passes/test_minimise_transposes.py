"""Transposes: as few as possible, and never other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from openqnn.ir import Graph, Value
from openqnn.ir.dtype import DType
from openqnn.ir.verify import verify
from openqnn.ops import Builder, infer_outputs
from openqnn.passes import Explain
from openqnn.passes.minimise_transposes import minimise_transposes, transposes
from tests.passes.harness import check, ops, run, same_numbers

SLICE = "begin_mask=0 end_mask=0 shrink_axes=0 new_axes_mask=0"
CONV = "stride=[1, 1] pad_amount=[[1, 1], [1, 1]] group=1 dilation=[1, 1] reuse_sparse_indices=false"
WEIGHT = {"w": np.random.default_rng(1).standard_normal((3, 3, 3, 3)).astype(np.float32)}


def test_a_channel_first_network_has_one_transpose_at_each_end() -> None:
    check(
        minimise_transposes,
        f"""
        input %x: float32[1,3,8,8]
        const %w: float32[3,3,3,3] = data
        const %s: float32[3,1,1] = [1.0, 2.0, 3.0]
        %a: float32[1,8,8,3] = Transpose(%x) perm=[0, 2, 3, 1] @ "one"
        %b: float32[1,8,8,3] = Conv2d(%a, %w) {CONV} @ "one"
        %c: float32[1,3,8,8] = Transpose(%b) perm=[0, 3, 1, 2] @ "one"
        %d: float32[1,3,8,8] = ElementWiseMultiply(%c, %s)
        %e: float32[1,3,8,8] = ElementWiseAdd(%d, %x)
        %f: float32[1,6,8,8] = Concat(%d, %e) axis=1
        %g: float32[1,3,8,8] = StridedSlice(%f) ranges=[[0, 1, 1], [0, 6, 2], [0, 8, 1], [0, 8, 1]] {SLICE}
        %h: float32[1,8,8,3] = Transpose(%g) perm=[0, 2, 3, 1] @ "two"
        %i: float32[1,8,8,3] = Conv2d(%h, %w) {CONV} @ "two"
        %y: float32[1,3,8,8] = Transpose(%i) perm=[0, 3, 1, 2] @ "two"
        output %y
        """,
        f"""
        input %x: float32[1,3,8,8]
        %x_2: float32[1,8,8,3] = Transpose(%x) perm=[0, 2, 3, 1] @ "one"
        const %w: float32[3,3,3,3] = data
        %c: float32[1,8,8,3] = Conv2d(%x_2, %w) {CONV} @ "one"
        const %s: float32[1,1,1,3] = [1.0, 2.0, 3.0]
        %d: float32[1,8,8,3] = ElementWiseMultiply(%c, %s)
        %e: float32[1,8,8,3] = ElementWiseAdd(%d, %x_2)
        %f: float32[1,8,8,6] = Concat(%d, %e) axis=3
        %g: float32[1,8,8,3] = StridedSlice(%f) ranges=[[0, 1, 1], [0, 8, 1], [0, 8, 1], [0, 6, 2]] {SLICE}
        %i: float32[1,8,8,3] = Conv2d(%g, %w) {CONV} @ "two"
        %y: float32[1,3,8,8] = Transpose(%i) perm=[0, 3, 1, 2] @ "two"
        output %y
        """,
        WEIGHT,
    )  # fmt: skip


def test_a_classifier_ends_without_a_transpose() -> None:
    graph, _ = check(
        minimise_transposes,
        f"""
        input %x: float32[1,3,8,8]
        const %w: float32[3,3,3,3] = data
        %a: float32[1,8,8,3] = Transpose(%x) perm=[0, 2, 3, 1]
        %b: float32[1,8,8,3] = Conv2d(%a, %w) {CONV}
        %c: float32[1,3,8,8] = Transpose(%b) perm=[0, 3, 1, 2]
        %d: float32[1,3,1,1] = ReduceMean(%c) axes=[2, 3] keep_dims=true
        %y: float32[1,3] = Reshape(%d)
        output %y
        """,
        f"""
        input %x: float32[1,3,8,8]
        %x_2: float32[1,8,8,3] = Transpose(%x) perm=[0, 2, 3, 1]
        const %w: float32[3,3,3,3] = data
        %c: float32[1,8,8,3] = Conv2d(%x_2, %w) {CONV}
        %d: float32[1,1,1,3] = ReduceMean(%c) axes=[1, 2] keep_dims=true
        %y: float32[1,3] = Reshape(%d)
        output %y
        """.replace("%b: float32", "%c: float32")
        .replace("(%b)", "(%c)")
        .replace('name "b"', "")
        .replace(" \n", "\n"),
        WEIGHT,
    )
    assert ops(graph).count("Transpose") == 1


def test_patches_of_a_vision_transformer_need_no_transpose() -> None:
    """The reshape of the spatial axes moves, because channels and positions stay whole."""
    graph, _ = check(
        minimise_transposes,
        f"""
        input %x: float32[1,8,8,3]
        const %w: float32[3,3,3,3] = data
        %b: float32[1,8,8,3] = Conv2d(%x, %w) {CONV}
        %c: float32[1,3,8,8] = Transpose(%b) perm=[0, 3, 1, 2]
        %d: float32[1,3,64] = Reshape(%c)
        %e: float32[1,64,3] = Transpose(%d) perm=[0, 2, 1]
        %y: float32[1,64,3] = Relu(%e)
        output %y
        """,
        f"""
        input %x: float32[1,8,8,3]
        const %w: float32[3,3,3,3] = data
        %c: float32[1,8,8,3] = Conv2d(%x, %w) {CONV}
        %e: float32[1,64,3] = Reshape(%c)
        %y: float32[1,64,3] = Relu(%e)
        output %y
        """,
        WEIGHT,
    )
    assert "Transpose" not in ops(graph)


def test_one_transpose_serves_two_readers() -> None:
    """Both want the same order behind a node that could run in either."""
    graph, _ = check(
        minimise_transposes,
        """
        input %x: float32[2,3,4]
        %a: float32[2,4,3] = Transpose(%x) perm=[0, 2, 1]
        %b: float32[2,3,4] = Transpose(%a) perm=[0, 2, 1]
        %t: float32[2,4,3] = Transpose(%b) perm=[0, 2, 1]
        %p: float32[2,4,3] = Relu(%t)
        %q: float32[2,4,3] = Tanh(%t)
        %y: float32[2,4,3] = ElementWiseAdd(%p, %q)
        %z: float32[2,4,3] = ElementWiseMultiply(%p, %q)
        output %p
        output %q
        output %y
        output %z
        """,
        """
        input %x: float32[2,3,4]
        %x_2: float32[2,4,3] = Transpose(%x) perm=[0, 2, 1]
        %p: float32[2,4,3] = Relu(%x_2)
        %q: float32[2,4,3] = Tanh(%x_2)
        %y: float32[2,4,3] = ElementWiseAdd(%p, %q)
        %z: float32[2,4,3] = ElementWiseMultiply(%p, %q)
        output %p
        output %q
        output %y
        output %z
        """,
    )
    assert ops(graph).count("Transpose") == 1


def test_normalisation_stays_on_the_last_axis() -> None:
    graph, log = check(
        minimise_transposes,
        """
        input %x: float32[1,3,8]
        %a: float32[1,8,3] = Transpose(%x) perm=[0, 2, 1]
        %b: float32[1,8,3] = Softmax(%a) axis=2 beta=1.0
        %y: float32[1,3,8] = Transpose(%b) perm=[0, 2, 1]
        output %y
        """,
    )
    assert ops(graph).count("Transpose") == 2
    assert "cannot become fewer" in log.declined[0].reason


def test_an_output_that_equals_an_input_keeps_a_node() -> None:
    check(
        minimise_transposes,
        """
        input %x: float32[2,3]
        %a: float32[3,2] = Transpose(%x) perm=[1, 0]
        %y: float32[2,3] = Transpose(%a) perm=[1, 0]
        output %y
        """,
        """
        input %x: float32[2,3]
        %y: float32[2,3] = Transpose(%x) perm=[0, 1]
        output %y
        """,
    )


# -- random graphs ----------------------------------------------------------------------------------


def _axes(draw: Any, rank: int) -> list[int]:
    return sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=2)))


KINDS = ["turn", "turn", "turn", "turn", "one", "two", "broadcast", "small", "join", "reduce", "soft", "view"]
KINDS += ["cut", "pad", "norm", "matmul", "split"]


def _grow(draw: Any, b: Builder, values: list[Value]) -> Value:
    """One more node on some value."""
    x = draw(st.sampled_from(values))
    rank = x.rank
    kind = draw(st.sampled_from(KINDS))
    pick = lambda of: draw(st.sampled_from(of))
    if kind == "turn":
        return b("Transpose", x, perm=draw(st.permutations(range(rank))))
    if kind == "two":
        return b("ElementWiseAdd", x, pick([v for v in values if v.shape == x.shape]))
    if kind == "broadcast":
        shape = tuple(pick((1, d)) for d in x.shape[draw(st.integers(0, rank - 1)) :])
        return b("ElementWiseMultiply", x, b.const(np.random.default_rng(0).random(shape, np.float32)))
    if kind == "small":
        mean = b("ReduceMean", x, axes=[0], keep_dims=False) if rank > 1 else x
        return b("ElementWiseSubtract", x, mean)
    if kind == "join":
        return b(
            "Concat", x, pick([v for v in values if v.shape == x.shape]), axis=draw(st.integers(0, rank - 1))
        )
    if kind == "reduce":
        return b("ReduceMax", x, axes=_axes(draw, rank), keep_dims=draw(st.booleans()))
    if kind == "soft":
        return b("Softmax", x, axis=draw(st.integers(0, rank - 1)))
    if kind == "norm":
        return b("Batchnorm", x, b.const(np.arange(x.shape[-1], dtype=np.float32)))
    if kind == "view":
        cut = draw(st.integers(0, rank))
        merged = (
            (*x.shape[: cut - 1], x.shape[cut - 1] * x.shape[cut], *x.shape[cut + 1 :])
            if 0 < cut < rank
            else ()
        )
        return b("Reshape", x, shape=merged or (*x.shape[:cut], 1, *x.shape[cut:]))
    if kind == "cut":
        rows = [(draw(st.integers(0, d - 1)), d, 1) for d in x.shape]
        return b("StridedSlice", x, ranges=rows)
    if kind == "pad":
        return b("Pad", x, scheme="CONSTANT", pad_amount=[(draw(st.integers(0, 1)), 0) for _ in x.shape])
    if kind == "matmul" and rank > 1:
        return b("MatMul", x, x, transpose_in1=True)
    if kind == "split" and x.shape[-1] > 1:
        return b.many("Split", x, axis=rank - 1, split_index=[1])[1]
    return b("Relu", x)


@st.composite
def graphs(draw: Any) -> Graph:
    graph = Graph("random")
    b = Builder(graph)
    values = [
        graph.add_input("x", DType.FLOAT_32, (2, 3, 4)),
        graph.add_input("y", DType.FLOAT_32, (3, 1, 2, 2)),
    ]
    for _ in range(draw(st.integers(1, 12))):
        value = _grow(draw, b, values)
        if value.size <= 2000 and value.rank <= 5:
            values.append(value)
    made = [v for v in values if v.producer is not None]
    outputs = (
        [v for v in made if not v.users] + draw(st.lists(st.sampled_from(made), max_size=2)) if made else []
    )
    for value in dict.fromkeys(outputs or [b("Relu", values[0])]):
        graph.add_output(value)
    return graph


@settings(max_examples=150)
@given(graphs())
def test_random_graphs_keep_their_numbers(graph: Graph) -> None:
    before, count = run(graph), transposes(list(graph.nodes))
    names = [v.name for v in graph.outputs]
    minimise_transposes(graph, Explain())
    verify(graph, infer_outputs, after="the pass")
    assert transposes(list(graph.nodes)) <= count
    assert [v.name for v in graph.outputs] == names
    same_numbers(before, run(graph))
    count = transposes(list(graph.nodes))
    minimise_transposes(graph, Explain())
    assert transposes(list(graph.nodes)) <= count
