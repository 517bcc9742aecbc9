"""Encodings that came with a model: said of more tensors before the passes, and looked after behind them.

Encodings go by the names of tensors, and passes keep a name for the same real numbers. A weight may have been
turned, reshaped or computed anew: its encoding holds where the weight's numbers come out of it, but for what
float32 rounds. Torch trains filters times the factor of the batch norm behind them, and divides by it again.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from openqnn.errors import OpenQnnWarning
from openqnn.ir import Array, Encoding, Given, Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Role
from openqnn.passes.explain import Explain

NAME = "given_encodings"
_FEW = 4096  # elements that are tried before a whole weight is
_SHOWN = 3
_ROUNDED = 2e-6  # of a number: a few products in float32, and less than a tenth of a step of 16 bits


def spread_given(graph: Graph) -> None:
    """What is said of a tensor holds for those that have the same values in another order or shape.

    It holds for what is only clipped to it, too: integers saturate at the same ends. Passes turn and merge
    all these, and the encoding must not hang on one that goes.
    """
    given = graph.given
    if not given:
        return
    for node in graph.nodes:
        x = _moved(node)
        if x is not None and x.name in given:
            given.setdefault(node.out.name, given[x.name])
    for node in reversed(graph.nodes):
        x = node.x(0) if schema_of(node).clips else _moved(node)
        if x is None or x.is_constant or graph.is_output(x) or set(x.users) != {node}:
            continue
        if node.out.name in given:
            given.setdefault(x.name, given[node.out.name])


def _moved(node: Node) -> Value | None:
    """The only tensor whose values a node hands on, to a single result."""
    schema = schema_of(node)
    if not schema.hands_on(node) or len(node.outputs) != 1 or not node.out.dtype.is_float:
        return None
    roles = [(v, schema.operand(i).role) for i, v in enumerate(node.inputs) if v is not None]
    data = [v for v, role in roles if role is Role.ACTIVATION and v.dtype.is_float]
    return data[0] if len(data) == 1 else None


def settle_given(graph: Graph, log: Explain, notes: Iterable[tuple[str, str]] = ()) -> None:
    """Leaves the encodings that still hold, with the axis that weights have now; others go, with a word.

    Of a weight that a pass changed, its width remains: the quantizer finds an encoding for its new numbers.
    `notes` are what was left out before, by tensor.
    """
    for name, reason in notes:
        log.decline(NAME, f"'{name}'", reason)
    if not graph.given:
        return
    said, kept = graph.given, dict[str, Given]()
    changed = _keep_encodings(graph, kept, log)
    known = {*kept, *(_stem(v) for v in graph.constants())}
    for name in (n for n in said if n not in known):
        log.decline(NAME, f"'{name}'", "the tensor is not in the graph any more: it was fused with others")
    graph.given = kept
    if changed:
        more = " ..." if len(changed) > _SHOWN else ""
        names = ", ".join(f"'{n}'" for n in changed[:_SHOWN]) + more
        message = f"{len(changed)} weights lose the model's encodings, because passes changed them: {names}"
        warnings.warn(message, OpenQnnWarning, stacklevel=5)


def _keep_encodings(graph: Graph, kept: dict[str, Given], log: Explain) -> list[str]:
    """Puts the encodings that hold into `kept`; gives the weights of which only the width remains."""
    changed: list[str] = []
    for value in graph.values():
        given = graph.given.get(value.name) or graph.given.get(_stem(value))
        if given is None:
            continue
        held = _of_constant(value, given) if value.data is not None else _of_result(given)
        if held is not None:
            kept[value.name] = held
        elif value.data is not None:
            kept[value.name] = replace(given, encoding=None, also=())
            changed.append(value.name)
            log.decline(NAME, value, "a pass changed the weight's numbers: of its encoding the width remains")
    return changed


def _stem(value: Value) -> str:
    """The weight that a constant is a copy of: one that is needed in two forms has a number on the second."""
    return re.sub(r"_\d+$", "", value.name) if value.data is not None else ""


def _of_result(given: Given) -> Given | None:
    return given if given.encoding is None or given.encoding.axis is None else None


def _of_constant(value: Value, given: Given) -> Given | None:
    """The encoding along whichever axis gives the numbers back."""
    data = value.data
    if given.encoding is None or data is None:
        return given
    for encoding in _forms(given.encoding, data):
        if _holds(encoding, given.signed, data):
            found = replace(given, encoding=encoding)
            return found if _stays_signed(value) else found.unsigned()
    return None


def _forms(encoding: Encoding, data: Array) -> Iterator[Encoding]:
    if encoding.axis is None or encoding.blocks is not None:
        yield encoding
        return
    fitting = [axis for axis, size in enumerate(data.shape) if size == len(encoding.scale)]
    for axis in sorted(fitting, key=lambda axis: axis != encoding.axis):
        yield replace(encoding, axis=axis)


def _holds(encoding: Encoding, signed: bool, data: Array) -> bool:
    if data.size > _FEW and not _comes_back(*_part(encoding, data), signed):
        return False
    return _comes_back(encoding, data, signed)


def _part(encoding: Encoding, data: Array) -> tuple[Encoding, Array]:
    """The start of every axis, but for the one that the encoding counts."""
    places = tuple(slice(None) if axis == encoding.axis else slice(0, 2) for axis in range(data.ndim))
    return encoding, data[places]


def _comes_back(encoding: Encoding, data: Array, signed: bool) -> bool:
    again = encoding.dequantize(encoding.quantize(data, signed))
    return np.allclose(again, data, rtol=_ROUNDED, atol=0)


def _stays_signed(value: Value) -> bool:
    """Weights and biases of layers; an operand like any other is stored as activations are."""
    for user in value.users:
        for index, operand in enumerate(user.inputs):
            declared = schema_of(user).operand(index)
            plain = declared.role is Role.ACTIVATION and declared.channel_axis is None
            if operand is value and plain:
                return False
    return True
