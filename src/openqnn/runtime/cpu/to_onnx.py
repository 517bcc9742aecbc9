"""From a graph to ONNX: the walk that lets every op write itself into one ONNX body.

A value may exist in several axis orders at once. Each node runs in the order in which its data already is,
and a transposition of the graph costs nothing: it only says under which other order the same data is known.
So a graph that is channel-last for the NPU runs channel-first here, as its source model did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import onnx

from openqnn.errors import BackendError
from openqnn.ir import Array, DType, Encoding, Graph, Node, Shape, Value
from openqnn.ops import OpSchema, schema_of
from openqnn.ops.layout import (
    Moved,
    Perm,
    compose,
    identity,
    inverse,
    is_reshape,
    move,
    permutation_of,
    permuted,
    travels,
)
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import Moves
from openqnn.runtime.cpu.arithmetic import simulated_arithmetic


@dataclass(slots=True)
class NumpyStep:
    """An op that ONNX cannot say, between two stretches of ONNX nodes."""

    node: Node
    position: int  # how many ONNX nodes come before it
    inputs: list[str]
    outputs: list[str]


@dataclass(slots=True)
class Lowered:
    """The ONNX body of a graph and the ONNX names of its inputs and outputs."""

    body: Body
    inputs: dict[str, Value]
    outputs: dict[str, str]  # value name -> ONNX name
    steps: list[NumpyStep]
    types: dict[str, tuple[np.dtype[np.generic], Shape]] = field(
        default_factory=lambda: dict[str, tuple[np.dtype[np.generic], Shape]]()
    )


class Lowering:
    def __init__(self) -> None:
        self.body = Body()
        self.arithmetic = simulated_arithmetic()
        self.known: dict[tuple[Value, bool], dict[Perm, str]] = {}
        self.steps: list[NumpyStep] = []
        self.types: dict[str, tuple[np.dtype[np.generic], Shape]] = {}
        self.twins: dict[tuple[Value, Encoding | None], Value] = {}
        self.wanted: dict[Value, list[Encoding]] = {}
        self.joined: dict[Value, list[Encoding]] = {}
        self.followed: set[Value] = set()  # by the target's own arithmetic
        self.shown: set[Value] = set()  # outputs of the graph
        self.half = False  # whether what is floating has the half precision that the target computes it in
        self._inputs: dict[str, Value] = {}

    def run(self, graph: Graph, extra: Iterable[Value] = ()) -> Lowered:
        """The outputs and the `extra` values in their own axis order."""
        self.add(graph)
        wanted = dict.fromkeys([*graph.outputs, *extra])
        return self.lowered(
            {v.name: self.body.op("Identity", self._get(v, identity(v.rank))) for v in wanted}
        )

    def add(self, graph: Graph) -> None:
        """All nodes; `known` then tells the names and axis orders of their values."""
        self.half = any(map(_is_fixed, graph.nodes))
        self._inputs = {f"in.{i}": v for i, v in enumerate(graph.inputs)}
        for name, value in self._inputs.items():
            self.types[name] = value.dtype.numpy, value.shape
            self._remember(value, identity(value.rank), self._halved(value, name))
        self.shown.update(graph.outputs)
        for node in graph.nodes:
            if self.arithmetic.copies(node) and node.x(0).encoding != node.out.encoding:
                self.wanted.setdefault(node.x(0), []).append(cast(Encoding, node.out.encoding))
        for node in reversed(graph.nodes):
            self._look_ahead(node)
        for node in graph.nodes:
            self._node(node)

    def _look_ahead(self, node: Node) -> None:
        """Notes the encodings in which what is joined with others is computed in the first place."""
        own = (
            [node.out.encoding]
            if self.arithmetic.concatenates(node) and node.out.encoding is not None
            else []
        )
        for value in self.arithmetic.sources(node):
            for wanted in (*own, *self.joined.get(node.out, ())):
                known = self.joined.setdefault(value, [])
                if self.arithmetic.is_direct(value, wanted) and wanted not in known:
                    known.append(wanted)

    def lowered(self, outputs: dict[str, str]) -> Lowered:
        """What these ONNX names depend on, and nothing that nobody reads: what a sum is rounded to where an
        activation takes the sum itself, or what comes after the last name."""
        read, steps = set(outputs.values()), list[NumpyStep]()
        kept: list[onnx.NodeProto] = []
        waiting = list(self.steps)
        for index in range(len(self.body.nodes), -1, -1):
            while waiting and waiting[-1].position == index:
                step = waiting.pop()
                if read.intersection(step.outputs):
                    read.update(step.inputs)
                    steps.append(NumpyStep(step.node, len(kept), step.inputs, step.outputs))
            node = self.body.nodes[index - 1] if index else None
            if node is not None and any(name in read for name in node.output):
                read.update(node.input)
                kept.append(node)
        for step in steps:
            step.position = len(kept) - step.position
        self.body.nodes, self.steps = kept[::-1], steps[::-1]
        self.body.constants = {k: v for k, v in self.body.constants.items() if k in read}
        return Lowered(self.body, self._inputs, outputs, self.steps, self.types)

    # -- values ----------------------------------------------------------------------------------------------

    def _remember(self, value: Value, perm: Perm, name: str, real: bool = False) -> None:
        self.known.setdefault((value, real), {}).setdefault(perm, name)
        dtype = np.dtype(np.float32) if real else value.dtype.numpy
        self.types[name] = (dtype, permuted(value.shape, perm))

    def _get(self, value: Value, perm: Perm, real: bool = False) -> str:
        """The ONNX name of a value in an axis order; transposes or dequantizes only what is not there yet."""
        real = real and value.dtype.is_fixed
        have = self.known.get((value, real), {})
        if perm not in have:
            name = (
                self._constant(value, perm)
                if not real and value.data is not None
                else self._derive(value, perm, real)
            )
            self._remember(value, perm, name, real)
        return self.known[value, real][perm]

    def _constant(self, value: Value, perm: Perm) -> str:
        assert value.data is not None
        return self._const(value, value.data.transpose(perm))

    def _const(self, value: Value, data: Array) -> str:
        if self._is_halved(value):
            with np.errstate(over="ignore"):
                data = data.astype(np.float16).astype(np.float32)
        return self.body.const(data)

    def _is_halved(self, value: Value) -> bool:
        return self.half and value.dtype is DType.FLOAT_32

    def _halved(self, value: Value, name: str) -> str:
        """Real numbers in half precision, whatever type the graph says."""
        if not self._is_halved(value):
            return name
        return self.body.cast(self.body.cast(name, np.float16), np.float32)

    def _derive(self, value: Value, perm: Perm, real: bool) -> str:
        have = self.known.get((value, real), {})
        if have:
            base = next(iter(have))
            return self.body.transpose(have[base], compose(inverse(base), perm))
        if not real:
            raise BackendError(f"'{value.name}' is read before anything produces it")
        if value.data is not None and value.encoding is not None and value.encoding.blocks is not None:
            return self.body.const(value.encoding.dequantize(value.data).transpose(perm))
        stored = next(iter(self.known.get((value, False), {})), perm)
        name = self._dequantize(value, self._get(value, stored), stored)
        self._remember(value, stored, name, real=True)
        return self._get(value, perm, real=True)

    def _scale_and_zero(self, value: Value, perm: Perm) -> tuple[str, str, int]:
        encoding = value.encoding
        if encoding is None:
            raise BackendError(f"'{value.name}' is {value.dtype.label} but has no encoding")
        moved = encoding.permuted(perm)
        pick = slice(None) if moved.axis is not None else 0
        scale = self.body.const(np.asarray(moved.scale, np.float32)[pick])
        zero = self.body.const((-np.asarray(moved.offset)).astype(value.dtype.numpy)[pick])
        return scale, zero, moved.axis if moved.axis is not None else 1

    def _dequantize(self, value: Value, name: str, perm: Perm) -> str:
        scale, zero, axis = self._scale_and_zero(value, perm)
        return self.body.op("DequantizeLinear", name, scale, zero, axis=axis)

    def _quantize(self, value: Value, name: str, perm: Perm) -> str:
        scale, zero, axis = self._scale_and_zero(value, perm)
        stored = self.body.op("QuantizeLinear", name, scale, zero, axis=axis)
        encoding = value.encoding
        if encoding is None or encoding.bitwidth >= value.dtype.numpy.itemsize * 8:
            return stored
        low = -(1 << (encoding.bitwidth - 1)) if value.dtype.signed else 0
        bounds = (self.body.const(v, value.dtype.numpy) for v in (low, low + (1 << encoding.bitwidth) - 1))
        return self.body.op("Clip", stored, *bounds)

    # -- nodes -----------------------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        schema = schema_of(node)
        perm = permutation_of(node)
        if perm is not None and node.out.encoding == node.x(0).encoding:
            self._absorb(node, perm)
        elif self._is_behind_reshape(node):
            self._before_reshape(node, schema)
        elif schema.lower is not None:
            twin = self.twins.get((node.x(0), node.out.encoding)) if self.arithmetic.copies(node) else None
            inputs = self._twins(node, node.out.encoding) if twin is None else [twin]
            self._emit(_with(node, inputs, node.outputs), schema)
        elif schema.compute is not None:
            self._numpy(node, schema)
        else:
            raise BackendError(f"{node.where}: the built-in backend does not run this op: {schema.why_not}")
        if len(node.outputs) == 1 and schema.lower is not None:
            self._as_joined(node)

    def _is_behind_reshape(self, node: Node) -> bool:
        """Whether the target fuses an activation into a layer: the Reshape between is none to its four axes.

        A Relu of bytes whose zero is not the first goes by any Reshape, unless what is before and behind that
        is shown and has the same encoding.
        """
        schema = schema_of(node)
        shaped = node.x(0).producer if self.arithmetic.joins_layer(node) else None
        if shaped is None or not is_reshape(shaped):
            return False
        data, out = shaped.x(0), node.out.encoding
        if not any(name in self.body.sums for name in self.known[data, False].values()):
            return False
        shown = [v for v in (data, shaped.out) if v in self.shown]
        if schema.clips and out is not None and out.bitwidth == 8 and out.offset[0]:
            return len(shown) < 2 or data.encoding != out
        return not shown and _is_plain_reshape(data, shaped.out)

    def _before_reshape(self, node: Node, schema: OpSchema) -> None:
        shaped = cast(Node, node.x(0).producer)
        found = Value(node.out.name, node.out.dtype, shaped.x(0).shape, node.out.encoding)
        self._emit(_with(node, [shaped.x(0)], [found]), schema)
        self._emit(_with(shaped, [found], [node.out]), schema_of(shaped))

    def _absorb(self, node: Node, perm: Perm) -> None:
        """A transposition: the data stays where it is and is known under other axis orders."""
        x = node.x(0)
        self._get(x, next(iter(self.known.get((x, False), {identity(x.rank): ""}))))
        for order, name in self.known[x, False].items():
            self._remember(node.out, tuple(perm.index(a) for a in order), name)

    def _numpy(self, node: Node, schema: OpSchema) -> None:
        real = self._is_simulated(node, schema)
        inputs = ["" if v is None else self._get(v, identity(v.rank), real) for v in node.inputs]
        outputs = [self.body.fresh("np") for _ in node.outputs]
        seen = self._as_real(node) if real else node
        self.steps.append(NumpyStep(seen, len(self.body.nodes), inputs, outputs))
        for value, view, name in zip(node.outputs, seen.outputs, outputs, strict=True):
            self.types[name] = (view.dtype.numpy, value.shape)
            self._result(value, name, identity(value.rank), real)

    def _follow(self, node: Node, schema: OpSchema) -> None:
        # A function like Sigmoid has one encoding, whatever those are into which it is copied.
        if not schema.clips and not schema.keeps_values and schema.output_range is None:
            self.followed.add(node.out)

    def _emit(self, node: Node, schema: OpSchema) -> None:
        perm = self._choose(node, schema)
        moved = move(node, perm)
        assert moved is not None and schema.lower is not None
        real = self._is_simulated(node, schema)
        outputs = self._by_kernel(node, schema, perm, moved) if real or schema.on_stored else None
        if outputs is not None and real:
            real = False
            self._follow(node, schema)
        if outputs is None:
            names = self._operands(node, schema, perm, real)
            outputs = schema.lower(self._shadow(node, perm, moved, real), self.body, names)
        names = [outputs] if isinstance(outputs, str) else outputs
        for i, (value, name) in enumerate(zip(node.outputs, names, strict=False)):
            moves = moved.out_perm if value.rank == len(moved.out_perm) else identity(value.rank)
            self._result(value, name, schema.result(i).order(value.rank) or moves, real)
            if name in self.body.sums and len(set(value.users)) > 1:
                self.body.sums[name] = replace(self.body.sums[name], shared=True)
        if node.out in self.wanted:
            self._as_wanted(node, schema)

    def _as_joined(self, node: Node) -> None:
        """The result in the encodings of what it is joined to."""
        for wanted in self.joined.get(node.out, ()):
            inputs, schema = self._twins(node, wanted), schema_of(node)
            if self.arithmetic.kernel(node) is None and schema.hands_on(node) and inputs == node.inputs:
                continue  # moved from what there is in its own encoding only
            self.twins[node.out, wanted] = Value(node.out.name, node.out.dtype, node.out.shape, wanted)
            self._emit(_with(node, inputs, [self.twins[node.out, wanted]]), schema)

    def _twins(self, node: Node, wanted: Encoding | None) -> list[Value | None]:
        """The inputs of a node, those that are there in the encoding of its output in that."""
        found = self.arithmetic.sources(node)
        return [self.twins.get((v, wanted), v) if v is not None and v in found else v for v in node.inputs]

    def _as_wanted(self, node: Node, schema: OpSchema) -> None:
        """The result in other encodings, too, for ops that copy it into them.

        A Relu that its encoding does is left out: what is copied has gone without.
        """
        encoding = node.out.encoding
        implied = schema.clips and encoding is not None and not encoding.offset[0]
        made = node.x(0).producer if implied and node.x(0) in self.followed else node
        if made is None or made.out not in self.followed:
            return
        for wanted in self.wanted[node.out]:
            twin = Value(node.out.name, node.out.dtype, node.out.shape, wanted)
            self.twins[node.out, wanted] = twin
            self._emit(_with(made, made.inputs, [twin]), schema_of(made))

    def _by_kernel(self, node: Node, schema: OpSchema, perm: Perm, moved: Moved) -> str | None:
        """The stored result by the target's own arithmetic, where that is known to differ from rounding."""
        kernel, lower = self.arithmetic.kernel(node), schema.lower
        if kernel is None or not (schema.on_stored or all(v.dtype.is_fixed for v in node.outputs)):
            return None
        assert lower is not None
        seen = self._shadow(node, perm, moved, real=not schema.on_stored)

        def compute(names: Sequence[str]) -> str:
            made = lower(seen, self.body, [*names, *[""] * (len(schema.inputs) - len(names))])
            return made if isinstance(made, str) else made[0]

        names = self._operands(node, schema, perm, real=False)
        return kernel(self._shadow(node, perm, moved, real=False), self.body, names, compute)

    def _operands(self, node: Node, schema: OpSchema, perm: Perm, real: bool) -> list[str]:
        names = [self._operand(node, schema, i, perm, real) for i in range(len(node.inputs))]
        return names + [""] * (len(schema.inputs) - len(names))

    def _is_simulated(self, node: Node, schema: OpSchema) -> bool:
        """Whether fixed-point data goes through real numbers: not for ops that only move it about."""
        if schema.on_stored or not any(
            v.dtype.is_fixed for v in (*node.outputs, *node.inputs) if v is not None
        ):
            return False
        data = [v for v in (*node.inputs, *node.outputs) if v is not None and v.dtype.is_fixed]
        return not (schema.keeps_values and len({v.encoding for v in data}) == 1)

    def _result(self, value: Value, name: str, perm: Perm, real: bool) -> None:
        if real and value.dtype.is_fixed:
            self._remember(value, perm, self._quantize(value, name, perm))
        else:
            self._remember(value, perm, self._halved(value, name))

    def _operand(self, node: Node, schema: OpSchema, index: int, perm: Perm, real: bool) -> str:
        value, declared = node.inputs[index], schema.operand(index)
        if value is None:
            return ""
        order = declared.order(value.rank)
        if order is not None:
            return self._get(value, order, real)
        if not travels(node, index) or perm == identity(len(perm)):
            return self._get(value, identity(value.rank), real)
        if value.rank == len(perm):
            return self._get(value, perm, real)
        return self._aligned(value, perm, real)

    def _aligned(self, value: Value, perm: Perm, real: bool) -> str:
        """A broadcast operand of lower rank, given all axes so that it can follow the permutation."""
        shape = (1,) * (len(perm) - value.rank) + value.shape
        if value.data is not None and not (real and value.dtype.is_fixed):
            return self._const(value, value.data.reshape(shape).transpose(perm))
        full = self.body.reshape(self._get(value, identity(value.rank), real), shape)
        return self.body.transpose(full, perm)

    # -- the choice of an axis order -------------------------------------------------------------------------

    def _choose(self, node: Node, schema: OpSchema) -> Perm:
        """The order in which the least data must be transposed first; ties go to the order that data is
        in."""
        rank = _rank_of_data(node, schema)
        natural = identity(rank)
        if schema.moves is Moves.FIXED or self.arithmetic.by_place(node):
            return natural
        data = [v for i, v in enumerate(node.inputs) if v is not None and travels(node, i)]
        present = [(v, self._orders(v)) for v in data if v.data is None and v.rank == rank]
        orders = dict.fromkeys(p for _, have in present for p in have)
        candidates = [p for p in (*orders, natural) if move(node, p) is not None]
        cost = lambda p: sum(v.size for v, have in present if p not in have)
        return min(candidates, key=cost, default=natural)

    def _orders(self, value: Value) -> dict[Perm, str]:
        return self.known.get((value, False), {})

    def _shadow(self, node: Node, perm: Perm, moved: Moved, real: bool) -> Node:
        """The node as its `lower` should see it: permuted shapes and parameters, real types."""
        if perm == identity(len(perm)) and not real:
            return node
        inputs = [
            None if v is None else self._seen(v, perm if travels(node, i) else None, real)
            for i, v in enumerate(node.inputs)
        ]
        outputs = [
            self._seen(v, moved.out_perm if v.rank == len(moved.out_perm) else None, real)
            for v in node.outputs
        ]
        return Node(node.op, node.name, inputs, outputs, moved.params, node.source)

    def _as_real(self, node: Node) -> Node:
        inputs = [None if v is None else self._seen(v, None, real=True) for v in node.inputs]
        outputs = [self._seen(v, None, real=True) for v in node.outputs]
        return Node(node.op, node.name, inputs, outputs, node.params, node.source)

    def _seen(self, value: Value, perm: Perm | None, real: bool) -> Value:
        dtype = DType.FLOAT_32 if real and value.dtype.is_fixed else value.dtype
        encoding = None if real else value.encoding
        if perm is None:
            return Value(value.name, dtype, value.shape, encoding, data=None if real else value.data)
        shape = (1,) * (len(perm) - value.rank) + value.shape
        moved = encoding.permuted(perm) if encoding is not None and len(perm) == value.rank else encoding
        return Value(value.name, dtype, permuted(shape, perm), moved)


def _is_fixed(node: Node) -> bool:
    """Whether it computes in fixed point, and does not only change to it and back or move it about."""
    schema = schema_of(node)
    changes = schema.on_stored or schema.keeps_values
    return not changes and any(v.dtype.is_fixed for v in node.outputs)


def _trailing(shape: Shape) -> Shape:
    """Without the ones in front."""
    return shape[next((i for i, size in enumerate(shape) if size != 1), len(shape)) :]


def _with(node: Node, inputs: Sequence[Value | None], outputs: Sequence[Value]) -> Node:
    return Node(node.op, node.name, list(inputs), list(outputs), node.params, node.source)


def to_onnx(graph: Graph, extra: Sequence[Value] = ()) -> Lowered:
    """The ONNX body that computes the graph's outputs and the `extra` values."""
    return Lowering().run(graph, extra)


def _is_plain_reshape(data: Value, shaped: Value) -> bool:
    """Whether only a Reshape of at most four axes lies between that keeps inner sizes and encoding."""
    alone = len(data.users) == 1 and len(shaped.users) == 1
    same = _trailing(data.shape) == _trailing(shaped.shape) and data.encoding == shaped.encoding
    return alone and same and max(data.rank, shaped.rank) <= 4


def _rank_of_data(node: Node, schema: OpSchema) -> int:
    if schema.moves is Moves.ELEMENTWISE:
        return node.out.rank
    return node.x(0).rank if node.inputs else 0
