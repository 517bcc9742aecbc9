"""What every ONNX graph must hold to before it is translated: names are unique and lead somewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import onnx

from openqnn.errors import ModelError

_DAMAGED = "the file may be damaged or truncated; export it again"


def check_structure(graph: onnx.GraphProto) -> None:
    """Raises when a name is no text, is given twice, or is read and never given."""
    _readable(graph)
    for kind, names in (
        ("inputs", [i.name for i in graph.input]),
        ("weights", [i.name for i in graph.initializer]),
        ("outputs", [o.name for o in graph.output]),
    ):
        _unique(kind, names)
    if not graph.output:
        raise ModelError("the model has no outputs", hint=_DAMAGED)
    _connected(graph)


def _readable(graph: onnx.GraphProto) -> None:
    """Protobuf hands over bytes where a name is not valid UTF-8: the file is damaged."""
    for node in graph.node:
        texts = (node.op_type, node.name, node.domain, *node.input, *node.output)
        for text in (*texts, *(a.name for a in node.attribute)):
            if not isinstance(text, str):
                raise ModelError(f"a name in a node is not valid text: {text!r}", hint=_DAMAGED)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _readable(attribute.g)
    for item in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        if not isinstance(item.name, str):
            raise ModelError(f"the name of a tensor is not valid text: {item.name!r}", hint=_DAMAGED)


def _unique(kind: str, names: Iterable[str]) -> None:
    twice = next((n for n, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ModelError(f"two {kind} are named '{twice}'")


def _connected(graph: onnx.GraphProto) -> None:
    known = {"", *(i.name for i in graph.input), *(i.name for i in graph.initializer)}
    known.update(i.values.name for i in graph.sparse_initializer)
    known.update(o for n in graph.node for o in n.output)
    for node in graph.node:
        lost = next((i for i in node.input if i not in known), None)
        if lost is not None:
            label = node.name or next(iter(node.output), "")
            raise ModelError(
                f"node '{label}' ({node.op_type}) reads '{lost}', which is no input, no weight and no result"
            )
