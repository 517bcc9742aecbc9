"""What a translator sees of the model and the graph while it translates one node."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from openqnn.errors import OpenQnnError, OpenQnnWarning, ShapeError
from openqnn.ir import Array, DType, Encoding, Graph, Shape, Value, dtype_of
from openqnn.ops import Builder
from openqnn.ops.vocabulary import Vocabulary

# QNN computes in 32 bits at most: wider source types are narrowed, and values that do not fit are an error.
NARROW = {DType.INT_64: DType.INT_32, DType.UINT_64: DType.UINT_32, DType.FLOAT_64: DType.FLOAT_32}
FOREIGN = (DType.STRING, DType.BFLOAT_16)


class Refused(OpenQnnError):
    """A node that cannot be translated, with the reason. The importer collects them over the whole model."""


def narrow_type(dtype: DType) -> DType:
    return NARROW.get(dtype, dtype)


class Translation(Vocabulary):
    """Builds QNN nodes for the source node at hand: `t.add(x, 1)` gives the result Value."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.op = ""  # the source node's op, for translators of several
        self.outputs: Sequence[str] = ()  # names of the source node's results, "" where nobody reads one
        self.builder = Builder(graph)
        self.run_subgraph: Any = None  # set by an importer of models with control flow: body -> list[Value]
        self.declared: Mapping[str, Shape | None] = {}  # shapes that the model itself states, by value name
        self.channels_last = False  # whether images of the source are NHWC, as QNN's are
        self.fixed = False  # in the body of a function: names and source stay those of the call

    def begin(self, op: str, source: str, outputs: Sequence[str]) -> None:
        """The next source node. `source` names it to users, as in "onnx node conv1"."""
        self.op = op
        self.outputs = outputs
        if not self.fixed:
            self.builder.source = source
            self.builder.stem = next((o for o in outputs if o), op)

    def place(self) -> tuple[Any, ...]:
        """Where the translation is, to come back to after the nodes of a body."""
        return self.op, self.outputs, self.declared, self.builder.stem, self.builder.source

    def restore(self, place: tuple[Any, ...]) -> None:
        self.op, self.outputs, self.declared, self.builder.stem, self.builder.source = place

    # -- building --------------------------------------------------

    def __call__(self, op: str, *inputs: Value | None, **params: Any) -> Value:
        return self.builder(op, *(self.operand(v) for v in inputs), **params)

    def many(self, op: str, *inputs: Value | None, **params: Any) -> list[Value]:
        return self.builder.many(op, *(self.operand(v) for v in inputs), **params)

    def operand(self, value: Value | None) -> Value | None:
        """A value as QNN takes it: 64-bit constants are narrowed."""
        if not isinstance(value, Value | None):
            self.refuse("an input is a sequence, where a tensor is expected")
        if value is not None and value.dtype in FOREIGN:
            self.refuse(
                f"'{value.name}' has element type {value.dtype.label}, which QNN does not compute with"
            )
        if value is None or value.dtype not in NARROW:
            return value
        assert value.data is not None, "64-bit values exist only as constants"
        return self.constant(self.narrowed(value.data), value.name)

    def narrowed(self, data: Array) -> Array:
        target = NARROW[dtype_of(data.dtype)]
        if target is not DType.FLOAT_32 and data.size:
            info = np.iinfo(target.numpy)
            if data.min() < info.min or data.max() > info.max:
                self.refuse(f"a constant has values up to {np.abs(data).max()}, beyond {target.label}")
        with np.errstate(over="ignore"):
            return data.astype(target.numpy)

    def constant(self, data: Any, name: str = "") -> Value:
        """A constant, part of the graph when a node uses it; the importer makes names unique in the end."""
        array = np.asarray(data)
        try:
            dtype = dtype_of(array.dtype)
        except ValueError:
            self.refuse(f"a constant has element type {array.dtype}, which QNN does not have")
        return Value(name or f"{self.builder.stem}.const", dtype, array.shape, data=array)

    def scalar(self, number: float, like: Value) -> Value:
        """A one-element constant of the type of another value."""
        try:
            return self.constant(np.asarray(number, narrow_type(like.dtype).numpy))
        except (ValueError, OverflowError):
            self.refuse(f"{number} is no {like.dtype.label}")

    # -- helpers that most families need --------------------------------------------------

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        """Constants are turned in place, as views; others get a Transpose."""
        if list(perm) == list(range(x.rank)):
            return x
        if x.data is not None:
            return self.constant(x.data.transpose(perm), x.name)
        return super().transpose(x, perm)

    def reshape(self, x: Value, shape: Sequence[int], encoding: Encoding | None = None) -> Value:
        """Nothing for the shape that it has; constants are views, others get a Reshape."""
        if tuple(shape) == x.shape:
            return x
        if x.data is not None:
            if -1 not in shape and x.size != prod(shape):
                raise ShapeError(f"a constant of shape {list(x.shape)} cannot become {list(shape)}")
            return self.constant(x.data.reshape(shape), x.name)
        return super().reshape(x, shape, encoding)

    def copy(self, x: Value) -> Value:
        """Makes the same data the result of a node."""
        return super().reshape(x, x.shape)

    def cast(self, x: Value, dtype: DType, encoding: Encoding | None = None) -> Value:
        """Nothing for the type that it has; constants are converted, others get a Cast."""
        dtype = dtype if x.data is not None else narrow_type(dtype)
        if x.dtype is dtype:
            return x
        if x.data is not None:
            with np.errstate(all="ignore"):
                return self.constant(x.data.astype(dtype.numpy), x.name)
        return super().cast(x, dtype, encoding)

    def _reduce(self, op: str, x: Value, axes: Sequence[int], keep_dims: bool) -> Value:
        """Over no axes at all it is the data itself. QNN has no rank 0: it gives [1] for a scalar."""
        if not axes:
            return x
        y = super()._reduce(op, x, axes, keep_dims)
        return self.reshape(y, ()) if not keep_dims and len(axes) == x.rank else y

    def axis(self, axis: int, rank: int) -> int:
        """A possibly negative axis as QNN wants it."""
        if not -rank <= axis < max(rank, 1):
            self.refuse(f"axis {axis} is outside a tensor of rank {rank}")
        return axis % rank if rank else 0

    def static(self, value: Value | None, what: str) -> Array:
        """The data of an input that QNN needs to know when the graph is built."""
        if value is None:
            self.refuse(f"{what} is missing")
        if not value.size:
            return np.zeros(value.shape, value.dtype.numpy)  # without elements there is nothing to wait for
        if value.data is None:
            self.refuse(f"{what} is computed at run time; QNN needs it when the graph is built")
        return value.data

    def ints(self, value: Value | None, what: str) -> tuple[int, ...]:
        data = self.static(value, what)
        if data.dtype.kind not in "biu":
            self.refuse(f"{what} should be integers, not {data.dtype}")
        return tuple(int(v) for v in data.ravel())

    def output_shape(self, index: int = 0) -> Shape | None:
        """What the model states about the shape of one of the node's outputs; None when it leaves it open."""
        return self.declared.get(self.outputs[index]) if index < len(self.outputs) else None

    def is_read(self, index: int) -> bool:
        """Whether the source node's output `index` has a name, so that somebody may read it."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def refuse(self, reason: str, hint: str = "") -> NoReturn:
        raise Refused(reason, hint=hint)

    def warn(self, message: str) -> None:
        warnings.warn(f"{self.builder.source}: {message}", OpenQnnWarning, stacklevel=2)


def broadcast_shape(*shapes: Shape) -> Shape:
    return tuple(int(d) for d in np.broadcast_shapes(*shapes))
