"""What every ONNX graph must hold to before it is translated: names are unique and lead somewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import onnx

from openqnn.errors import ModelError


def check_structure(graph: onnx.GraphProto) -> None:
    """Raises when a name is given twice, or read and never given."""
    for kind, names in (
        ("inputs", [i.name for i in graph.input]),
        ("weights", [i.name for i in graph.initializer]),
        ("outputs", [o.name for o in graph.output]),
    ):
        _unique(kind, names)
    if not graph.output:
        raise ModelError("the model has no outputs", hint="the file may be truncated; export it again")
    _connected(graph)


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
