"""Tensors that share memory: what is written into one, in place, shows in the others.

Programs may hold ops that write (`add_`, `copy_`) through views (`x[:, 0] = 1`). A QNN graph has no memory to
share: a write makes a new value, which is put back into the tensor that the view is of, and views of that
tensor are taken anew when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from openqnn.frontends.onnx.shape import expanded
from openqnn.frontends.torch import shape
from openqnn.frontends.torch.program import Program, ProgramNode, ProgramOutput, Ref
from openqnn.frontends.torch.promotion import to_type
from openqnn.frontends.torch.table import split_target
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Value

_SAME: Final = {"alias", "detach", "lift_fresh", "contiguous", "to", "dropout", "positive", "expand", "clamp"}
_RESHAPED: Final = {
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "ravel",
    "_reshape_alias",
}  # fmt: skip
_TURNED: Final = {"t", "transpose", "permute", "numpy_T", "mT", "swapaxes", "swapdims"}
_CUT: Final = {"slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind"}
RESHAPING: Final = {"squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_"}  # no numbers
_VIEWS: Final = _RESHAPED | _TURNED | _CUT


@dataclass(frozen=True)
class View:
    """A tensor that is a part or another shape of `base`: result `index` of the node; None is all of it."""

    base: str
    node: ProgramNode | None
    index: int = 0


def op_of(node: ProgramNode) -> str:
    return split_target(node.target)[1].split(".")[0]


def is_write(target: str) -> bool:
    """Whether an overload writes into its first argument."""
    domain, key = split_target(target)
    op = key.split(".")[0]
    return domain == "" and op.endswith("_") and not op.endswith("__")


def without_write(target: str) -> str:
    """The overload that gives the result instead of writing it: aten.add_.Tensor is aten.add.Tensor."""
    head, _, overload = target.rpartition(".")
    return f"{head.removesuffix('_')}.{overload}"


class Aliases:
    """Which tensors of a program are views of which."""

    def __init__(self) -> None:
        self.views: dict[str, View] = {}
        self.stale: set[str] = set()

    def learn(self, node: ProgramNode, env: Mapping[str, Any]) -> None:
        """Remembers the results of a node that are views."""
        first = node.arguments[0].value if node.arguments else None
        if not isinstance(first, Ref):
            return
        op = op_of(node)
        if op in _VIEWS:
            for index, name in enumerate(node.outputs):
                self.views[name] = View(first.name, node, index)
        elif op in _SAME and env.get(node.outputs[0]) is env.get(first.name):
            self.views[node.outputs[0]] = View(first.name, None)

    def root(self, name: str) -> str:
        while name in self.views:
            name = self.views[name].base
        return name

    def write(self, t: TorchTranslation, env: dict[str, Any], name: str, value: Value) -> None:
        """A new value for a tensor, and for all that it is a view of."""
        path = {name}
        env[name] = value
        while name in self.views:
            view = self.views[name]
            env[view.base] = _put_back(t, view, env[view.base], env[name])
            name = view.base
            path.add(name)
        self.stale -= path
        self.stale |= {v for v in self.views if v not in path and self.root(v) == name}


def _put_back(t: TorchTranslation, view: View, base: Value, part: Value) -> Value:
    if view.node is None:
        return part
    op = op_of(view.node)
    if op in _RESHAPED:
        return t.reshape(part, base.shape)
    if op in _TURNED:
        order = _order(view.node, op, base.rank)
        return t.transpose(part, [order.index(i) for i in range(base.rank)])
    taken = _taken(t, view, base)
    if taken is None:
        t.refuse(f"a write through {op}", hint="export program.run_decompositions({}) instead")
    axis, where = taken
    shaped = (*base.shape[:axis], len(where), *base.shape[axis + 1 :])
    return shape.put(t, base, axis, where, expanded(t, t.reshape(part, shaped), shaped))


def _argument(node: ProgramNode, index: int, name: str, default: Any) -> Any:
    found = next((a.value for a in node.arguments if a.name == name), None)
    if found is None and index < len(node.arguments) and node.arguments[index].positional:
        found = node.arguments[index].value
    return default if found is None else found


def _order(node: ProgramNode, op: str, rank: int) -> list[int]:
    axes = list(range(rank))
    if op == "permute":
        return [d % rank for d in _argument(node, 1, "dims", axes)]
    if op in ("t", "numpy_T"):
        return axes[::-1]
    a, b = (-1, -2) if op == "mT" else (_argument(node, 1, "dim0", 0), _argument(node, 2, "dim1", 0))
    axes[a], axes[b] = axes[b], axes[a]
    return axes


def _taken(t: TorchTranslation, view: View, base: Value) -> tuple[int, range] | None:
    """The axis and the places of it that a part was cut from; None where they are not known."""
    node = view.node
    assert node is not None
    op = op_of(node)
    last = {"slice": 1, "select": 1, "narrow": 1, "unbind": 1}.get(op, 2)
    axis = _argument(node, last, "dim", 0)
    if not isinstance(axis, int):
        return None
    axis = t.axis(axis, base.rank)
    size = base.shape[axis]
    bounds: list[Any]
    if op == "slice":
        bounds = [
            _argument(node, 2, "start", 0),
            _argument(node, 3, "end", size),
            _argument(node, 4, "step", 1),
        ]
    elif op in ("select", "unbind"):
        place = view.index if op == "unbind" else _argument(node, 2, "index", 0)
        bounds = [place, None if place == -1 else place + 1, 1] if isinstance(place, int) else [Ref("")]
    elif op == "narrow":
        start, length = _argument(node, 2, "start", 0), _argument(node, 3, "length", 0)
        bounds = [start, start + length, 1] if isinstance(start, int) else [Ref("")]
    else:
        bounds = _part(node, op, view.index, size)
    if not all(isinstance(b, int) or b is None for b in bounds):
        return None
    return axis, range(size)[slice(*bounds)]


def _part(node: ProgramNode, op: str, index: int, size: int) -> list[Any]:
    amount = _argument(node, 1, {"chunk": "chunks", "split": "split_size"}.get(op, "split_sizes"), 1)
    if isinstance(amount, list):
        if not all(isinstance(a, int) for a in amount):
            return [Ref("")]
        ends = np.cumsum([0, *amount]).tolist()
        return [ends[index], ends[index + 1], 1]
    if not isinstance(amount, int):
        return [Ref("")]
    each = -(-size // amount) if op == "chunk" else amount
    return [index * each, (index + 1) * each, 1]


def written(t: TorchTranslation, target: Value, result: Value) -> Value:
    """A result as it is written: in the type and the shape of what is written to."""
    return expanded(t, to_type(t, result, target.dtype), target.shape)


def with_written_state(program: Program) -> Program:
    """The program with its written buffers and inputs among the outputs, which not every dialect says."""
    told = {o.state or o.target for o in program.outputs}
    names = _written_names(program)
    found = [i for i in program.inputs if i.name in names and (i.state or i.name) not in told]
    names = {i.name for i in found}
    inputs = (replace(i, mutable=bool(i.state)) if i.name in names else i for i in program.inputs)
    more = (ProgramOutput(Ref(i.name), i.state, "" if i.state else i.name) for i in found)
    return replace(program, inputs=tuple(inputs), outputs=(*program.outputs, *more)) if found else program


def _written_names(program: Program) -> set[str]:
    """Tensors that are written to, themselves or through a view."""
    bases: dict[str, str] = {}
    found: set[str] = set()
    for node in program.nodes:
        first = node.arguments[0].value if node.arguments else None
        if not isinstance(first, Ref):
            continue
        root, writes = bases.get(first.name, first.name), is_write(node.target)
        if writes:
            found.add(root)
        if writes or op_of(node) in _VIEWS | _SAME:
            bases |= dict.fromkeys(node.outputs, root)
    return found
