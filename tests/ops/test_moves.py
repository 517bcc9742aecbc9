"""Ops that may run on permuted data give the same numbers there."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Graph, Value, dtype_of
from openqnn.ops import OPS, Builder, Moves
from openqnn.ops.layout import Perm, inverse, move
from openqnn.runtime.cpu.executable import run_graph
from openqnn.runtime.cpu.to_onnx import to_onnx
from tests.ops.database import Case, Given
from tests.ops.harness import all_cases, build, close


def movable(case: Case) -> bool:
    first = case.operands[0] if case.operands else None
    runs = OPS[case.op].lower is not None and OPS[case.op].moves is not Moves.FIXED
    return runs and first is not None and not first.static and first.data.ndim > 1


def build_moved(case: Case, perm: Perm) -> tuple[Graph, dict[str, np.ndarray]]:
    """The case behind transpositions: what the graph is given is the data of the case stored as `perm`."""
    graph, arrays = Graph("moved"), dict[str, np.ndarray]()
    builder = Builder(graph)
    operands = [
        None if g is None else _operand(builder, g, f"in{i}", perm, arrays)
        for i, g in enumerate(case.operands)
    ]
    for value in builder.many(case.op, *operands, name="out", **case.declare, **case.params):
        graph.add_output(value)
    return graph, arrays


def _operand(builder: Builder, given: Given, name: str, perm: Perm, arrays: dict[str, np.ndarray]) -> Value:
    dtype = given.dtype or dtype_of(given.data.dtype)
    if given.static:
        return builder.graph.constant(name, given.data, dtype, given.encoding)
    travels = given.data.ndim == len(perm)
    arrays[name] = np.ascontiguousarray(given.data.transpose(perm)) if travels else given.data
    value = builder.graph.add_input(name, dtype, arrays[name].shape)
    value.encoding = given.encoding
    return builder("Transpose", value, perm=inverse(perm), encoding=given.encoding) if travels else value


@pytest.mark.parametrize("case", [c for c in all_cases() if movable(c)], ids=lambda c: c.id)
def test_moved_data_gives_the_same_numbers(case: Case) -> None:
    first = case.operands[0]
    assert first is not None
    rank = first.data.ndim
    plain, arrays = build(case)
    want = run_graph(plain, arrays)
    for perm in {(0, rank - 1, *range(1, rank - 1)), (*range(1, rank), 0), tuple(reversed(range(rank)))}:
        moved, stored = build_moved(case, perm)
        got = run_graph(moved, stored)
        for mine, theirs in zip(moved.outputs, plain.outputs, strict=True):
            assert got[mine.name].shape == theirs.shape
            close(got[mine.name], want[theirs.name], max(case.tolerance, 1e-5))


def test_a_convolutional_block_runs_without_transpositions() -> None:
    """All of it stays channel-first, as ONNX has it, but for the way in and the way out."""
    graph = Graph("block")
    b = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (1, 16, 16, 3))
    ones = lambda *shape: b.const(np.ones(shape, np.float32))
    pool = {"filter_size": (2, 2), "stride": (2, 2), "pad_amount": ((0, 0), (0, 0))}
    y = b("Conv2d", x, ones(3, 3, 3, 8), ones(8), stride=(1, 1), pad_amount=((1, 1), (1, 1)))
    y = b("Relu", b("Batchnorm", y, ones(8), ones(8)))
    left, right = b.many("Split", y, axis=3, split_index=(4,))
    y = b("Concat", b("PoolMax2d", left, **pool), b("PoolAvg2d", right, **pool), axis=3)
    y = b(
        "Pad", b("ElementWiseAdd", y, ones(8)), scheme="CONSTANT", pad_amount=((0, 0), (1, 1), (1, 1), (0, 0))
    )
    y = b("StridedSlice", y, ranges=((0, 1, 1), (0, 8, 1), (0, 8, 1), (0, 8, 2)))
    y = b("Softmax", b("ReduceMean", y, axes=(1, 2), keep_dims=True), axis=3)
    graph.add_output(b("FullyConnected", y, ones(5, 4)))
    kinds = [n.op_type for n in to_onnx(graph).body.nodes]
    assert kinds.count("Transpose") <= 2, kinds


def test_most_ops_need_no_transposition() -> None:
    """Reductions, softmax, concat, slices and the like follow an image that is stored channel-first."""
    stuck = {
        c.op
        for c in all_cases()
        if movable(c) and c.operands[0] is not None and c.operands[0].data.ndim == 4
        if move(build(c)[0].nodes[0], (0, 3, 1, 2)) is None
    }
    assert stuck <= {"LayerNorm", "Squeeze"}  # with gamma over several axes; with no axes named
