"""Running a pass on a graph written as text, and both graphs on the same random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import numpy as np

from openqnn.ir import Graph
from openqnn.ir.graph_text import parse_graph
from openqnn.ir.verify import verify
from openqnn.ops import infer_outputs
from openqnn.passes import Explain
from openqnn.passes.step import Change
from openqnn.runtime.cpu.executable import run_graph

Arrays = Mapping[str, np.ndarray[Any, Any]]


def graph_of(lines: str, data: Arrays | None = None) -> Graph:
    """A graph from the lines of its body."""
    graph = parse_graph('graph "g" {\n' + dedent(lines) + "\n}\n", data)
    verify(graph, infer_outputs)
    return graph


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    draw = lambda v: rng.standard_normal(v.shape) * 3 if v.dtype.is_float else rng.integers(0, 5, v.shape)
    return {v.name: np.asarray(draw(v)).astype(v.dtype.numpy) for v in graph.inputs}


def run(graph: Graph) -> dict[str, np.ndarray[Any, Any]]:
    return run_graph(graph, random_inputs(graph))


def same_numbers(before: dict[str, Any], after: dict[str, Any], tolerance: float = 1e-5) -> None:
    assert list(before) == list(after)
    for name, want in before.items():
        np.testing.assert_allclose(after[name], want, rtol=tolerance, atol=tolerance, err_msg=name)


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def check(
    do: Change, before: str, after: str | None = None, data: Arrays | None = None, tolerance: float = 1e-5
) -> tuple[Graph, Explain]:
    """Runs a pass: the graph must then read as `after` (or be unchanged) and give the same numbers."""
    graph, log = graph_of(before, data), Explain()
    text, numbers = str(graph), run(graph)
    changes = do(graph, log)
    verify(graph, infer_outputs, after="the pass")
    same_numbers(numbers, run(graph), tolerance)
    if after is None:
        assert str(graph) == text
        assert not changes
    else:
        body = "\n".join(line.strip() for line in str(graph).strip().splitlines()[1:-1])
        want = "\n".join(line.strip() for line in dedent(after).strip().splitlines())
        assert body == want, f"this came out:\n{body}"
        assert changes
    return graph, log


def reasons(log: Explain) -> str:
    return "\n".join(e.reason for e in log.declined)
