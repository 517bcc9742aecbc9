"""Turns a case of the op database into a graph of one node."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from dataclasses import replace

import numpy as np

import tests.ops.cases as families
from openqnn.ir import Graph, Value, dtype_of
from openqnn.ops import Builder
from tests.ops.database import Case, Given


def all_cases() -> list[Case]:
    """Every case of every family, with an id of its own."""
    found: list[Case] = []
    for module in sorted(m.name for m in pkgutil.iter_modules(families.__path__)):
        found += importlib.import_module(f"tests.ops.cases.{module}").CASES
    count: Counter[str] = Counter()
    for index, case in enumerate(found):
        count[case.id] += 1
        if count[case.id] > 1:
            found[index] = replace(case, label=f"{case.label or 'v'}{count[case.id]}")
    return found


def build(case: Case) -> tuple[Graph, dict[str, np.ndarray]]:
    """The graph of one node and the arrays for its inputs."""
    graph = Graph(case.op.lower())
    builder = Builder(graph, source=f"case {case.id}")
    arrays: dict[str, np.ndarray] = {}
    operands = [
        None if g is None else _operand(graph, g, f"in{i}", arrays) for i, g in enumerate(case.operands)
    ]
    for value in builder.many(case.op, *operands, name="out", **case.declare, **case.params):
        graph.add_output(value)
    return graph, arrays


def _operand(graph: Graph, given: Given, name: str, arrays: dict[str, np.ndarray]) -> Value:
    dtype = given.dtype or dtype_of(given.data.dtype)
    if given.static:
        return graph.constant(name, given.data, dtype, given.encoding)
    arrays[name] = given.data
    value = graph.add_input(name, dtype, given.data.shape)
    value.encoding = given.encoding
    return value


def close(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    """Integers and booleans must be equal; floats within a tolerance relative to the largest magnitude."""
    want = np.asarray(want)
    assert got.size == want.size, f"{got.shape} is not {want.shape}"
    got, want = got.ravel(), want.ravel()
    if want.dtype.kind in "biu" and got.dtype.kind in "biu":
        np.testing.assert_array_equal(got.astype(np.int64), want.astype(np.int64))
        return
    finite = want[np.isfinite(want)]
    scale = max(1.0, float(np.abs(finite).max(initial=0)))
    np.testing.assert_allclose(
        got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance * scale
    )
