"""What differs between two graphs: nodes, their parameters and results, constants, inputs and outputs.

Both are compared as plain QNN records, which every file can be brought to. Nodes are matched by name, then by
what they produce, then by their place; a node that only has another name is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from openqnn.ir import DType
from openqnn.qnn.net import Net, NetNode, NetQuant, NetScalar, NetTensor, TensorKind
from openqnn.runtime.metrics import Distance, distance

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
_SHOWN = 6  # numbers of a parameter or encoding


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; `kind` is node, constant, input or output."""

    kind: str
    change: str
    name: str
    detail: str = ""
    distance: Distance | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """All differences. `renamed` pairs nodes that are the same but for their names."""

    differences: tuple[Difference, ...]
    renamed: tuple[tuple[str, str], ...]
    matched: int

    @property
    def equal(self) -> bool:
        return not self.differences


def diff_nets(first: Net, second: Net, tolerance: float = 0.0) -> Diff:
    """From the first to the second; constants that differ by no more than `tolerance` are the same."""
    pairs = _match(first, second)
    found = [*_border("input", first, second), *_border("output", first, second)]
    found += _nodes(first, second, pairs)
    found += _constants(first, second, pairs, tolerance)
    renamed = tuple((a.name, b.name) for a, b in pairs if a.name != b.name)
    return Diff(tuple(found), renamed, len(pairs))


# -- matching ------------------------------------------------------------------------------------------------

Pair = tuple[NetNode, NetNode]


def _match(first: Net, second: Net) -> list[Pair]:
    pairs: dict[str, NetNode] = {}
    taken: set[str] = set()

    def pair(node: NetNode, other: NetNode) -> None:
        if node.name not in pairs and other.name not in taken:
            pairs[node.name] = other
            taken.add(other.name)

    for node, other in (*_by_name(first, second), *_by_result(first, second)):
        pair(node, other)
    left = [node for node in first.nodes if node.name not in pairs]
    right = [node for node in second.nodes if node.name not in taken]
    for node, other in _aligned(first, second, left, right):
        pair(node, other)
    return [(node, pairs[node.name]) for node in first.nodes if node.name in pairs]


def _by_name(first: Net, second: Net) -> Iterator[Pair]:
    named = {node.name: node for node in second.nodes}
    for node in first.nodes:
        other = named.get(node.name)
        if other is not None and other.op == node.op:
            yield node, other


def _by_result(first: Net, second: Net) -> Iterator[Pair]:
    producer = {name: node for node in second.nodes for name in node.outputs}
    for node in first.nodes:
        shared = [name for name in node.outputs if name in producer]
        if shared:
            yield node, producer[shared[0]]


def _aligned(first: Net, second: Net, left: Sequence[NetNode], right: Sequence[NetNode]) -> Iterator[Pair]:
    """Nodes with the same op and result shape, in the same order."""
    keys = [[_key(net, node) for node in nodes] for net, nodes in ((first, left), (second, right))]
    for block in SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            yield left[block.a + step], right[block.b + step]


def _key(net: Net, node: NetNode) -> tuple[object, ...]:
    return node.op, *(net.tensors[name].dims for name in node.outputs)


# -- comparing -----------------------------------------------------------------------------------------------


def _border(kind: str, first: Net, second: Net) -> Iterator[Difference]:
    names = [net.inputs if kind == "input" else net.outputs for net in (first, second)]
    for name in names[0]:
        if name not in names[1]:
            yield Difference(kind, REMOVED, name, _described(first.tensors[name]))
            continue
        changes = _tensor_changes(first.tensors[name], second.tensors[name])
        if changes:
            yield Difference(kind, CHANGED, name, "; ".join(changes))
    for name in names[1]:
        if name not in names[0]:
            yield Difference(kind, ADDED, name, _described(second.tensors[name]))
    if names[0] != names[1] and sorted(names[0]) == sorted(names[1]):
        yield Difference(kind, CHANGED, "order", f"{', '.join(names[0])} -> {', '.join(names[1])}")


def _nodes(first: Net, second: Net, pairs: Sequence[Pair]) -> Iterator[Difference]:
    ours, theirs = {a.name for a, _ in pairs}, {b.name for _, b in pairs}
    for node in first.nodes:
        if node.name not in ours:
            yield Difference("node", REMOVED, node.name, node.op)
    for node in second.nodes:
        if node.name not in theirs:
            yield Difference("node", ADDED, node.name, node.op)
    same = _same_inputs(first, second)
    for a, b in pairs:
        changes = [*_op_changes(a, b), *_operand_changes(first, second, a, b, same)]
        same |= dict(zip(a.outputs, b.outputs, strict=False))
        changes += _result_changes(first, second, a, b)
        if changes:
            yield Difference("node", CHANGED, a.name, "; ".join(changes))


def _same_inputs(first: Net, second: Net) -> dict[str, str]:
    """The inputs of the second graph that are those of the first: by position, and by name."""
    same: dict[str, str] = {}
    if len(first.inputs) == len(second.inputs):
        same |= dict(zip(first.inputs, second.inputs, strict=False))
    return same | {name: name for name in first.inputs if name in second.inputs}


def _result_changes(first: Net, second: Net, a: NetNode, b: NetNode) -> Iterator[str]:
    for x, y in zip(a.outputs, b.outputs, strict=False):
        if x in first.outputs and y in second.outputs:
            continue  # these are compared as outputs of the graphs
        for change in _tensor_changes(first.tensors[x], second.tensors[y]):
            yield f"result {x}: {change}"


def _op_changes(a: NetNode, b: NetNode) -> Iterator[str]:
    for what, x, y in (("op", a.op, b.op), ("package", a.package, b.package)):
        if x != y:
            yield f"{what} {x} -> {y}"
    mine, other = dict(a.params), dict(b.params)
    for name in dict.fromkeys((*mine, *other)):
        x, y = _param(mine.get(name)), _param(other.get(name))
        if x != y:
            yield f"{name} {_short(x)} -> {_short(y)}"


def _operand_changes(first: Net, second: Net, a: NetNode, b: NetNode, same: dict[str, str]) -> Iterator[str]:
    """Constants are compared by content elsewhere; here only which tensors are read."""
    if len(a.outputs) != len(b.outputs):
        yield f"{len(a.outputs)} results -> {len(b.outputs)}"
    length = max(len(a.inputs), len(b.inputs))
    for index in range(length):
        x = a.inputs[index] if index < len(a.inputs) else None
        y = b.inputs[index] if index < len(b.inputs) else None
        if _is_constant(first, x) and _is_constant(second, y):
            continue
        if (same.get(x, x) if x is not None else None) != y:
            yield f"input {index}: {x or 'none'} -> {y or 'none'}"


def _constants(first: Net, second: Net, pairs: Sequence[Pair], tolerance: float) -> Iterator[Difference]:
    seen: set[tuple[str, str]] = set()
    for a, b in pairs:
        for x, y in zip(a.inputs, b.inputs, strict=False):
            if x is None or y is None or (x, y) in seen:
                continue
            seen.add((x, y))
            if _is_constant(first, x) and _is_constant(second, y):
                found = _constant(first.tensors[x], second.tensors[y], a, tolerance)
                if found is not None:
                    yield found


def _constant(a: NetTensor, b: NetTensor, user: NetNode, tolerance: float) -> Difference | None:
    changes = _tensor_changes(a, b)
    apart = None
    if a.dims == b.dims and a.data is not None and b.data is not None:
        apart = distance(a.data, b.data)
        if apart.largest > tolerance:
            changes.append(str(apart))
        else:
            apart = None
    if not changes:
        return None
    return Difference("constant", CHANGED, a.name, f"of {user}: {'; '.join(changes)}", apart)


def _tensor_changes(a: NetTensor, b: NetTensor) -> list[str]:
    changes: list[str] = []
    if a.dtype != b.dtype:
        changes.append(f"type {_label(a.dtype)} -> {_label(b.dtype)}")
    if a.dims != b.dims:
        changes.append(f"shape {list(a.dims)} -> {list(b.dims)}")
    if _rounded(a.quant) != _rounded(b.quant):
        changes.append(f"encoding {_encoding(a.quant)} -> {_encoding(b.quant)}")
    return changes


def _rounded(quant: NetQuant | None) -> tuple[object, ...] | None:
    """Files keep scales in single precision."""
    if quant is None:
        return None
    scales = tuple(np.asarray(quant.scales, np.float32).tolist())
    return scales, quant.offsets, quant.axis, quant.bitwidth, quant.multiples


def _encoding(quant: NetQuant | None) -> str:
    if quant is None:
        return "none"
    scales = ", ".join(f"{scale:.6g}" for scale in quant.scales[:_SHOWN])
    more = ", ..." if len(quant.scales) > _SHOWN else ""
    offsets = sorted(set(quant.offsets))
    where = "" if quant.axis is None else f" along axis {quant.axis}"
    bits = f", {quant.bitwidth} bits" if quant.bitwidth else ""
    blocks = f", {quant.block_count} blocks each" if quant.multiples else ""
    return f"(scale {scales}{more}, offset {', '.join(map(str, offsets[:_SHOWN]))}{bits}{where}{blocks})"


def _param(value: NetScalar | NetTensor | None) -> Any:
    if value is None:
        return None
    if isinstance(value, NetTensor):
        return value.data.tolist() if value.data is not None else None
    return float(np.float32(value.value)) if isinstance(value.value, float) else int(value.value)


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_constant(net: Net, name: str | None) -> bool:
    return name is not None and net.tensors[name].kind is TensorKind.STATIC


def _described(tensor: NetTensor) -> str:
    return f"{_label(tensor.dtype)}[{','.join(map(str, tensor.dims))}]"


def _label(dtype: int) -> str:
    try:
        return DType(dtype).label
    except ValueError:
        return f"{dtype:#x}"
