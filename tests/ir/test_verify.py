"""Verification finds a broken invariant and names the pass that left it."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.errors import ShapeError, VerifyError
from openqnn.ir import DType, Graph, Node, Shape, Value
from openqnn.ir.verify import verify
from tests.ir.graphs import SHAPE, by_op, diamond


def _same(node: Node) -> list[tuple[Shape, DType | None]]:
    return [(node.x(0).shape, node.x(0).dtype)]


def test_a_good_graph_passes() -> None:
    verify(diamond(), _same)


def test_the_pass_is_named() -> None:
    graph = diamond()
    by_op(graph, "Left").out.producer = None
    with pytest.raises(VerifyError, match=r"^after pass fold_batchnorm: 'left\.out' does not know that Left"):
        verify(graph, after="fold_batchnorm")


def _order(graph: Graph) -> None:
    graph._nodes = list(reversed(graph.nodes))


def _forgotten_use(graph: Graph) -> None:
    by_op(graph, "Top").out.users.clear()


def _same_name(graph: Graph) -> None:
    by_op(graph, "Left").out.name = "right.out"


def _lost_output(graph: Graph) -> None:
    graph.outputs.append(Value("ghost", DType.FLOAT_32, SHAPE))


def _wrong_constant(graph: Graph) -> None:
    data = np.zeros((1, 2), np.float32)
    graph.set_input(by_op(graph, "Left"), 0, Value("c", DType.FLOAT_32, SHAPE, data=data))


def _wrong_shape(graph: Graph) -> None:
    by_op(graph, "Join").out.shape = (9, 9)


def _wrong_type(graph: Graph) -> None:
    by_op(graph, "Join").out.dtype = DType.INT_32


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_order, r"Join 'join' reads 'left\.out' before it is produced"),
        (_forgotten_use, r"'top\.out' does not know that Left 'left' uses it"),
        (_same_name, r"two values are named 'right\.out'"),
        (_lost_output, "output 'ghost' is never produced"),
        (_wrong_constant, r"constant 'c' is \(1, 2\), declared \(2, 3\)"),
        (_wrong_shape, r"Join 'join': 'join\.out' is \[9, 9\], its op says \[2, 3\]"),
        (_wrong_type, r"Join 'join': 'join\.out' is int32, its op says float32"),
    ],
)
def test_what_is_broken_is_said(damage, message: str) -> None:
    graph = diamond()
    damage(graph)
    with pytest.raises(VerifyError, match=f"^after pass p: {message}"):
        verify(graph, _same, after="p")


def test_a_refusal_of_the_op_itself_is_passed_on_with_the_pass() -> None:
    def refuse(node: Node) -> list[tuple[Shape, DType | None]]:
        raise ShapeError(f"{node.where}: ranks differ", hint="transpose it")

    with pytest.raises(
        VerifyError, match=r"^after pass layout: Top 'top': ranks differ\n  hint: transpose it$"
    ):
        verify(diamond(), refuse, after="layout")
