"""Ops without a line of the table, said in simpler ones by torch's own decompositions. Needs torch."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, util
from typing import Any

from openqnn.frontends.torch.program import Argument, ProgramNode
from openqnn.frontends.torch.scalar_types import NAMES
from openqnn.frontends.torch.table import find
from openqnn.ir import Array, DType, Value

_MOST_NODES = 5000


@dataclass(frozen=True)
class Body:
    """The nodes that an op comes to; `inputs` are its tensors by the names of the body."""

    inputs: Mapping[str, Value]
    arrays: Mapping[str, Array]
    nodes: tuple[ProgramNode, ...]
    results: list[Any]


def has_torch() -> bool:
    """Whether torch is installed; it is not imported for the answer."""
    try:
        return util.find_spec("torch") is not None
    except ValueError:  # a module that was put in its place
        return False


def body_of(target: str, arguments: Sequence[Argument]) -> Body | None:
    """The op in simpler ones for arguments of these shapes; None where torch is not there or has none."""
    if not has_torch():
        return None
    op = _overload(target)
    if op is None:
        return None
    tensors: list[Value] = []
    plan = [(a.name, _planned(a.value, tensors), a.positional) for a in arguments]
    graph = _traced(op, plan, tensors)
    return None if graph is None else _body(graph, target, tensors)


def _overload(target: str) -> Any:
    found: Any = import_module("torch").ops
    for part in target.removeprefix("torch.ops.").split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


@dataclass(frozen=True)
class _Place:
    index: int


def _planned(value: Any, tensors: list[Value]) -> Any:
    if isinstance(value, Value):
        tensors.append(value)
        return _Place(len(tensors) - 1)
    if isinstance(value, list):
        return [_planned(v, tensors) for v in value]
    return getattr(import_module("torch"), NAMES[value]) if isinstance(value, DType) else value


def _filled(plan: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(plan, list):
        return [_filled(p, tensors) for p in plan]
    return tensors[plan.index] if isinstance(plan, _Place) else plan


@cache
def _table() -> dict[Any, Any]:
    """torch's decompositions of the ops that have no line of ours."""
    known: Any = import_module("torch._decomp").decomposition_table
    return {op: how for op, how in known.items() if find(f"torch.ops.{op}") is None}


def _traced(op: Any, plan: Sequence[tuple[str, Any, bool]], tensors: Sequence[Value]) -> Any:
    torch: Any = import_module("torch")
    make_fx = import_module("torch.fx.experimental.proxy_tensor").make_fx
    how = import_module("torch._decomp").decomposition_table.get(op)
    table = _table() if how is None else {**_table(), op: how}

    def work(*given: Any) -> Any:
        args = [_filled(p, given) for _, p, positional in plan if positional]
        kwargs = {name: _filled(p, given) for name, p, positional in plan if not positional}
        return op(*args, **kwargs)

    samples = [torch.zeros(v.shape, dtype=getattr(torch, NAMES[v.dtype])) for v in tensors]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            traced = make_fx(torch.func.functionalize(work), decomposition_table=table, tracing_mode="fake")
            return traced(*samples)
        except Exception:  # whatever an op raises of arguments that it does not like
            return None


def _body(graph: Any, target: str, tensors: Sequence[Value]) -> Body | None:
    from openqnn.frontends.torch.from_torch import argument, array_of, node_of

    inputs: dict[str, Value] = {}
    arrays: dict[str, Array] = {}
    nodes: list[ProgramNode] = []
    results: list[Any] = []
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            inputs[node.name] = tensors[len(inputs)]
        elif node.op == "get_attr":
            arrays[node.name] = array_of(getattr(graph, node.target))
        elif node.op == "call_function":
            found = node_of(node)
            if found is not None:
                nodes.append(found)
        elif node.op == "output":
            result = argument(node.args[0])
            results = result if isinstance(result, list) else [result]
    same = any(n.target == target for n in nodes)
    return None if same or len(nodes) > _MOST_NODES else Body(inputs, arrays, tuple(nodes), results)
