"""Graphs of one operation of the user's with random data, on which a library is held against its function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openqnn.formats.op_package import OperandDef
from openqnn.ir import Array, DType, Graph, Node, Shape, Value, dtype_of
from openqnn.ops import OPS, Builder, complete
from openqnn.ops.custom import CustomOp, dtypes_of, results_of
from openqnn.ops.schema import REQUIRED, Param

_SHAPES: Mapping[int, Shape] = {0: (), 1: (8,), 2: (2, 8), 3: (1, 4, 8), 4: (1, 4, 4, 3), 5: (1, 2, 3, 4, 2)}
_SEVERAL = ("", "_2", "_3")  # of an input that may be repeated


def has_choices(op: CustomOp) -> bool:
    """Whether something may be left out, or chosen among few: then there is more than one thing to run."""
    chosen = any(d.enumeration or not d.mandatory or "BOOL" in d.datatypes[0] for d in op.declared.params)
    return chosen or any(d.repeated or not d.mandatory for d in op.declared.inputs)


def sample_graph(
    op: CustomOp, shapes: Mapping[str, Sequence[int]], *, everything: bool = False
) -> tuple[Graph, dict[str, Array]]:
    """A graph of one operation, and random numbers for its inputs: those that it must have, or all.

    `shapes` are those of inputs and tensor parameters by name, where the usual ones do not suit.
    """
    graph, rng = Graph("check"), np.random.default_rng(0)
    inputs, feeds = list[Value | None](), dict[str, Array]()
    for d in op.declared.inputs:
        if not d.mandatory and not everything:
            inputs += [] if d.repeated else [None]
            continue
        dtype = _dtype(op, d)
        rank = 4 if d.fixed_rank is None else d.fixed_rank
        shape = tuple(shapes.get(d.name, _SHAPES.get(rank, (1,) * rank)))
        for end in _SEVERAL if d.repeated and everything else _SEVERAL[:1]:
            data = rng.normal(size=shape) if dtype.is_float else rng.integers(0, 2, shape)
            inputs.append(_value(graph, d, d.name + end, data.astype(dtype.numpy), feeds))
    while inputs and inputs[-1] is None:
        inputs.pop()
    _add(graph, op, inputs, _params(op, everything, shapes))
    return graph, feeds


def _dtype(op: CustomOp, d: OperandDef) -> DType:
    return next((t for t in dtypes_of(op, d) if not t.is_fixed), DType.FLOAT_32)


def _value(graph: Graph, d: OperandDef, name: str, data: Array, feeds: dict[str, Array]) -> Value:
    """A constant where the operation wants one, else an input that is fed."""
    made = Value(name, dtype_of(data.dtype), data.shape, data=data)
    if d.static:
        return made
    feeds[name] = data
    return graph.add_input(name, made.dtype, made.shape)


def _params(op: CustomOp, everything: bool, shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Parameters that must be given; with `everything` also those that are chosen among few."""
    found: dict[str, Any] = {}
    for p in OPS[op.key].params:
        is_choice = bool(p.members) or p.dtype is DType.BOOL_8
        if p.default is REQUIRED or (everything and is_choice):
            found[p.name] = _some_value(p, everything, shapes.get(p.name, (1,)))
    return found


def _some_value(param: Param, other: bool, shape: Sequence[int]) -> Any:
    """A value, of this shape for a tensor; the `other` one is not the first of those that can be chosen."""
    if param.members:
        return param.member(len(param.members) - 1 if other else 0)
    if param.dtype is DType.BOOL_8 and not param.is_tensor:
        return not (other and param.default is True)
    number = 0.75 if param.dtype.is_float else 1
    return np.full(shape, number).tolist() if param.is_tensor else number


def _add(graph: Graph, op: CustomOp, inputs: list[Value | None], params: dict[str, Any]) -> None:
    first = next(v for v in inputs if v is not None)
    builder = Builder(graph)
    builder.stem = "out"
    dtypes = [_dtype(op, d) for d in op.declared.outputs]
    made: list[Shape] = [first.shape] * len(dtypes)
    if op.function is not None:
        full = complete(OPS[op.key], dict(params), first.rank, op.key)
        made = [tuple(a.shape) for a in results_of(op, Node(op.key, "out", list(inputs), [], full))]
    for value in builder.many(
        op.declared.name, *inputs, package=op.package, shapes=made, dtypes=dtypes, **params
    ):
        graph.add_output(value)
