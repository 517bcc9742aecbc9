"""Invariants of a graph. A pass that breaks one is named in the message."""

from __future__ import annotations

from collections.abc import Callable

from openqnn.errors import OpenQnnError, VerifyError
from openqnn.ir.dtype import DType
from openqnn.ir.graph import Graph, Node, Shape, Value

InferRule = Callable[[Node], "list[tuple[Shape, DType | None]]"]


def verify(graph: Graph, infer: InferRule | None = None, after: str = "") -> None:
    """Checks links, order, names and, with `infer`, every node's outputs against its op's declaration."""
    try:
        _links(graph)
        _names(graph)
        if infer is not None:
            for node in graph.nodes:
                _inferred(node, infer)
    except OpenQnnError as e:
        where = f"after pass {after}: " if after else ""
        raise VerifyError(f"{where}{e.message}", hint=e.hint) from e


def _links(graph: Graph) -> None:
    available = set(graph.inputs)
    for node in graph.nodes:
        for value in node.inputs:
            if value is None or value.is_constant:
                continue
            if value not in available:
                raise VerifyError(f"{node.where} reads '{value.name}' before it is produced")
            if node not in value.users:
                raise VerifyError(f"'{value.name}' does not know that {node.where} uses it")
        for value in node.outputs:
            if value.producer is not node:
                raise VerifyError(f"'{value.name}' does not know that {node.where} produces it")
            available.add(value)
    for value in graph.outputs:
        if value not in available and not value.is_constant:
            raise VerifyError(f"output '{value.name}' is never produced")


def _names(graph: Graph) -> None:
    seen: dict[str, Value] = {}
    for value in graph.values():
        if seen.setdefault(value.name, value) is not value:
            raise VerifyError(f"two values are named '{value.name}'")
        if value.data is not None and tuple(value.data.shape) != value.shape:
            raise VerifyError(f"constant '{value.name}' is {value.data.shape}, declared {value.shape}")


def _inferred(node: Node, infer: InferRule) -> None:
    for value, (shape, dtype) in zip(node.outputs, infer(node), strict=False):
        if value.shape != shape:
            raise VerifyError(
                f"{node.where}: '{value.name}' is {list(value.shape)}, its op says {list(shape)}"
            )
        if dtype is not None and value.dtype is not dtype:
            raise VerifyError(
                f"{node.where}: '{value.name}' is {value.dtype.label}, its op says {dtype.label}"
            )
