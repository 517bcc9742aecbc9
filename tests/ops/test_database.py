"""Every case of the op database through every consumer: inference, the built-in backend, the vendor's
library, text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from openqnn.emit import lower
from openqnn.errors import LibraryError
from openqnn.ir.graph_text import parse_graph, print_graph
from openqnn.ir.verify import verify
from openqnn.ops import OPS, infer_outputs
from openqnn.qnn.library import find_library
from openqnn.runtime.cpu.executable import run_graph
from openqnn.vendor.library_worker import LibraryWorker
from tests.ops.database import Case
from tests.ops.harness import all_cases, build, close
from tests.ops.page import PAGE, page

CASES = all_cases()
by_id = pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
runs = pytest.mark.parametrize(
    "case", [c for c in CASES if OPS[c.op].lower or OPS[c.op].compute], ids=lambda c: c.id
)


@pytest.fixture(scope="module")
def vendor() -> Iterator[LibraryWorker]:
    try:
        find_library("cpu")
    except LibraryError as e:
        pytest.skip(f"libQnnCpu is not here: {e.message}")
    with LibraryWorker() as worker:
        yield worker


def defined(case: Case, outputs: list[np.ndarray]) -> list[np.ndarray]:
    return case.valid(outputs) if case.valid else outputs


@by_id
def test_text_round_trip(case: Case) -> None:
    graph, _ = build(case)
    verify(graph, infer_outputs)
    text = print_graph(graph)
    data = {v.name: v.data for v in graph.constants() if v.data is not None}
    again = parse_graph(text, data)
    verify(again, infer_outputs)
    assert print_graph(again) == text


@runs
def test_against_vendor(case: Case, vendor: LibraryWorker, request: pytest.FixtureRequest) -> None:
    if case.xfail:
        request.applymarker(pytest.mark.xfail(reason=case.xfail, strict=True))
    graph, arrays = build(case)
    net = lower(graph)
    theirs = vendor.run(net, dict(zip(net.inputs, arrays.values(), strict=True)), "cpu", timeout=60)
    ours = run_graph(graph, arrays)
    want = defined(case, [theirs[n] for n in net.outputs])
    got = defined(case, [ours[v.name] for v in graph.outputs])
    for g, w in zip(got, want, strict=True):
        close(g, w, case.tolerance)


@pytest.mark.parametrize("case", [c for c in CASES if c.expect], ids=lambda c: c.id)
def test_against_reference(case: Case) -> None:
    graph, arrays = build(case)
    ours = run_graph(graph, arrays)
    want = case.expect(*(None if g is None else g.data for g in case.operands))  # type: ignore[misc]
    want = list(want) if isinstance(want, tuple | list) else [want]
    got = defined(case, [ours[v.name] for v in graph.outputs])
    for g, w in zip(got, defined(case, [np.asarray(v) for v in want]), strict=True):
        close(g, w, case.tolerance)


def test_every_case_has_a_judge() -> None:
    """A case whose vendor comparison is expected to fail needs a reference of its own."""
    assert [c.id for c in CASES if c.xfail and not c.expect and (OPS[c.op].lower or OPS[c.op].compute)] == []


def test_every_executable_op_has_cases() -> None:
    tried = {c.op for c in CASES}
    assert sorted(name for name, s in OPS.items() if (s.lower or s.compute) and name not in tried) == []


def test_every_op_is_documented_and_runs_or_says_why() -> None:
    assert len(OPS) >= 162
    assert [n for n, s in OPS.items() if not s.doc or "\n" in s.doc] == []
    assert [n for n, s in OPS.items() if not (s.lower or s.compute) and not s.why_not] == []
    assert sum(bool(s.lower or s.compute) for s in OPS.values()) >= 140


def test_the_page_of_ops_is_up_to_date() -> None:
    text = page()
    assert [name for name in OPS if text.count(f"\n| {name} |") != 1] == []
    assert PAGE.read_text(encoding="utf-8") == text, "run: python -m tests.ops.page"
