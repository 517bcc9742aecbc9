"""Dead code, identities, repeated nodes, constants."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.passes import Explain
from openqnn.passes.fold_constants import fold_constants, merge_constants
from openqnn.passes.merge_repeated import merge_repeated, remove_dead_code
from openqnn.passes.remove_identities import remove_identities
from openqnn.runtime.cpu import executable as cpu
from tests.passes.harness import check, graph_of, ops, reasons


def test_dead_code_goes_with_what_only_it_reads() -> None:
    check(
        remove_dead_code,
        """
        input %x: float32[2,3]
        %a: float32[2,3] = Relu(%x)
        %b: float32[2,3] = Tanh(%a)
        %c: float32[2,3] = Sigmoid(%b)
        output %a
        """,
        """
        input %x: float32[2,3]
        %a: float32[2,3] = Relu(%x)
        output %a
        """,
    )


NOTHING = [
    "%y: float32[2,3] = Reshape(%a)",
    "%y: float32[2,3] = Transpose(%a) perm=[0, 1]",
    "%y: float32[2,3] = Cast(%a)",
    "%y: float32[2,3] = StridedSlice(%a) ranges=[[0, 2, 1], [0, 3, 1]] begin_mask=0 end_mask=0 shrink_axes=0"
    " new_axes_mask=0",
    "%y: float32[2,3] = Pad(%a) scheme=CONSTANT pad_amount=[[0, 0], [0, 0]] pad_constant_value=0.0",
    "%y: float32[2,3] = Tile(%a) multiples=[1, 1]",
    "%y: float32[2,3] = Concat(%a) axis=1",
    "const %one: float32[1] = [1.0]\n%y: float32[2,3] = ElementWiseMultiply(%one, %a)",
    "const %one: float32[3] = [1.0, 1.0, 1.0]\n%y: float32[2,3] = ElementWiseDivide(%a, %one)",
    "const %zero: float32[2,1] = [0.0, 0.0]\n%y: float32[2,3] = ElementWiseAdd(%a, %zero)",
    "const %zero: float32[] = [0.0]\n%y: float32[2,3] = ElementWiseSubtract(%a, %zero)",
    "%y: float32[2,3] = Relu(%a)",
    "%n: float32[2,3] = ElementWiseNeg(%a)\n%y: float32[2,3] = ElementWiseNeg(%n)",
]


@pytest.mark.parametrize("line", NOTHING, ids=lambda line: line.split(" = ")[-1].split("(")[0])
def test_what_does_nothing_goes(line: str) -> None:
    graph, _ = check(
        remove_identities,
        f"input %x: float32[2,3]\n%a: float32[2,3] = Relu(%x)\n{line}\noutput %y",
        'input %x: float32[2,3]\n%y: float32[2,3] = Relu(%x) name "a"\noutput %y',
    )
    assert graph.outputs[0].name == "y"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("%y: float32[2,3] = Reshape(%x)", "'x' is a graph input"),
        ("%y: float32[2,3] <scale=[0.5] offset=[0] bits=8 symmetric=false> = Reshape(%x)", "encoding than"),
    ],
)
def test_an_identity_stays_with_its_reason(line: str, why: str) -> None:
    _, log = check(remove_identities, f"input %x: float32[2,3]\n{line}\noutput %y")
    assert why in reasons(log)


def test_a_constant_that_broadcasts_is_no_identity() -> None:
    check(
        remove_identities,
        """
        input %x: float32[1,3]
        const %one: float32[2,1] = [1.0, 1.0]
        %y: float32[2,3] = ElementWiseMultiply(%x, %one)
        output %y
        """,
    )


def test_repeated_nodes_become_one() -> None:
    check(
        merge_repeated,
        """
        input %x: float32[2,3]
        %a: float32[2] = ReduceMean(%x) axes=[1] keep_dims=false
        %b: float32[2] = ReduceMean(%x) axes=[1] keep_dims=false
        %c: float32[2,1] = ReduceMean(%x) axes=[1] keep_dims=true
        %d: float32[2] = ElementWiseAdd(%a, %b)
        output %d
        output %c
        """,
        """
        input %x: float32[2,3]
        %a: float32[2] = ReduceMean(%x) axes=[1] keep_dims=false
        %c: float32[2,1] = ReduceMean(%x) axes=[1] keep_dims=true
        %d: float32[2] = ElementWiseAdd(%a, %a)
        output %d
        output %c
        """,
    )


def test_two_outputs_that_are_equal_stay_two() -> None:
    _, log = check(
        merge_repeated,
        """
        input %x: float32[2]
        %a: float32[2] = Relu(%x)
        %b: float32[2] = Relu(%x)
        output %a
        output %b
        """,
    )
    assert "both graph outputs" in reasons(log)


def test_nodes_on_constants_are_computed_in_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[int] = []
    original = cpu.run_graph
    monkeypatch.setattr(cpu, "run_graph", lambda *a: sessions.append(1) or original(*a))
    check(
        fold_constants,
        """
        input %x: float32[2]
        const %a: float32[2] = [1.0, -2.0]
        %b: float32[2] = Relu(%a)
        %c: float32[2] = ElementWiseAdd(%b, %b)
        %d: float32[2] = ElementWiseNeg(%a)
        %e: float32[2] = ElementWiseAdd(%x, %c)
        %y: float32[2] = ElementWiseAdd(%e, %d)
        output %y
        """,
        """
        input %x: float32[2]
        const %c: float32[2] = [2.0, 0.0]
        %e: float32[2] = ElementWiseAdd(%x, %c)
        const %d: float32[2] = [-1.0, 2.0]
        %y: float32[2] = ElementWiseAdd(%e, %d)
        output %y
        """,
    )
    assert sessions == [1]


def test_views_of_constants_are_not_copied() -> None:
    weight = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    graph, _ = check(
        fold_constants,
        """
        input %x: float32[4,6]
        const %w: float32[2,3,4] = data
        %r: float32[6,4] = Reshape(%w)
        %t: float32[4,6] = Transpose(%r) perm=[1, 0]
        %y: float32[4,6] = ElementWiseAdd(%x, %t)
        output %y
        """,
        """
        input %x: float32[4,6]
        const %t: float32[4,6] = data
        %y: float32[4,6] = ElementWiseAdd(%x, %t)
        output %y
        """,
        {"w": weight},
    )
    assert np.shares_memory(graph.nodes[0].x(1).data, weight)


def test_constants_that_would_blow_up_stay_nodes() -> None:
    graph = graph_of("""
        input %x: float32[4096,2048]
        const %s: uint32[2] = [4096, 2048]
        %z: float32[4096,2048] = ConstantOfShape(%s) value=1.0
        %y: float32[4096,2048] = ElementWiseAdd(%x, %z)
        output %y
    """)
    log = Explain()
    assert fold_constants(graph, log) == 0
    assert "the result has 32 MB" in reasons(log)


def test_an_output_keeps_its_node() -> None:
    _, log = check(
        fold_constants,
        "input %x: float32[2]\nconst %a: float32[2] = [1.0, 2.0]\n%y: float32[2] = Relu(%a)\noutput %y",
    )
    assert "graph output" in reasons(log)


def test_equal_constants_become_one() -> None:
    ones = np.ones((600, 2000), np.float32)
    other = ones.copy()
    other[0, 1] = 2
    graph = graph_of(
        """
        input %x: float32[600,2000]
        const %a: float32[600,2000] = data
        const %b: float32[600,2000] = data
        const %c: float32[600,2000] = data
        %p: float32[600,2000] = ElementWiseAdd(%x, %a)
        %q: float32[600,2000] = ElementWiseAdd(%p, %b)
        %y: float32[600,2000] = ElementWiseAdd(%q, %c)
        output %y
        """,
        {"a": ones, "b": ones.copy(), "c": other},
    )
    assert merge_constants(graph, Explain()) == 1
    assert [n.x(1).name for n in graph.nodes] == ["a", "a", "c"]
    assert ops(graph) == ["ElementWiseAdd"] * 3
