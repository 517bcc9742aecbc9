"""Ops that may run on permuted data give the same numbers there."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import Graph, Value, dtype_of
from openqnn.ops import OPS, Builder, Moves
from openqnn.ops.layout import Perm, inverse, move
from openqnn.runtime.cpu import run_graph
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


def test_most_ops_need_no_transposition() -> None:
    """Reductions, softmax, concat, slices and the like follow an image that is stored channel-first."""
    stuck = {
        c.op
        for c in all_cases()
        if movable(c) and c.operands[0] is not None and c.operands[0].data.ndim == 4
        if move(build(c)[0].nodes[0], (0, 3, 1, 2)) is None
    }
    assert stuck <= {"LayerNorm", "Squeeze"}  # with gamma over several axes; with no axes named
