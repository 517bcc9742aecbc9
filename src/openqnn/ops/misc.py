"""Random numbers, sparse tensors, control flow, deformable convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import Array, Node, Shape
from openqnn.ops.gather import first_rows, wide
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import BIAS, FREE, INDEX, WEIGHT, Compute, Lower, f32, op, result, tensor
from openqnn.ops.shape_rules import declared, same

# -- random numbers ------------------------------------------------------------------------------------------


def random_shape(n: Node) -> list[Shape]:
    """The values of the shape operand where they are known, else the declared output."""
    shape, known = declared(n)[0], n.x(0).data
    if n.x(0).shape != (len(shape),) or (known is not None and tuple(known.tolist()) != shape):
        raise ShapeError(f"{n.where}: the shape operand does not say {list(shape)}")
    return [shape]


def drawn(draw: Callable[[Node, np.random.Generator], Array]) -> Compute:
    """Numbers from a generator; the same seed gives the same numbers."""

    def compute(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
        seed = arrays[1] if len(arrays) > 1 else None
        bits = None if seed is None else int(np.asarray(seed, np.float32).view(np.uint32)[0])
        return [draw(n, np.random.default_rng(bits))]

    return compute


@op
class RandomNormalLike:
    """Normally distributed numbers with mean 0 and deviation 1, in the shape that the operand holds."""

    shape = tensor(1, role=INDEX)
    seed = tensor(1, optional=True)
    out0 = result(FREE)
    infer = random_shape
    compute = drawn(lambda n, random: random.normal(size=n.out.shape))


@op
class RandomUniformLike:
    """Evenly distributed numbers from low to high, in the shape that the operand holds."""

    shape = tensor(1, role=INDEX)
    seed = tensor(1, optional=True)
    out0 = result(FREE)
    low = f32(default=0.0)
    high = f32(default=1.0)
    infer = random_shape
    compute = drawn(lambda n, random: random.uniform(n.float("low"), n.float("high"), n.out.shape))


# -- sparse tensors: the built-in backend keeps them dense ---------------------------------------------------


def create_sparse_shape(n: Node) -> list[Shape]:
    shape, indices, values = declared(n)[0], n.x(0).shape, n.x(1).shape
    if indices[1] > len(shape) or values != (indices[0], *shape[indices[1] :]):
        raise ShapeError(f"{n.where}: values {list(values)} at {list(indices)} do not make {list(shape)}")
    return [shape]


def create_sparse(n: Node, b: Body, x: Sequence[str]) -> str:
    zeros = b.const(np.zeros(n.out.shape), n.x(1).dtype.numpy)
    return b.op("ScatterND", zeros, wide(n, b, x, 0), x[1])


def sparse_rows_shape(n: Node) -> list[Shape]:
    shape = declared(n)[0]
    if len(shape) != 2 or shape[1] != n.x(0).rank:
        raise ShapeError(f"{n.where}: the output {list(shape)} should be rows of {n.x(0).rank} coordinates")
    return [shape]


def sparse_values_shape(n: Node) -> list[Shape]:
    shape = declared(n)[0]
    if len(shape) != 1:
        raise ShapeError(f"{n.where}: the output {list(shape)} should be a list of values")
    return [shape]


def _coordinates(b: Body, dense: str) -> str:
    return b.transpose(b.op("NonZero", b.cast(dense, np.bool_)), (1, 0))


def sparse_values(n: Node, b: Body, x: Sequence[str]) -> str:
    """Rows that are not used repeat a zero: they read one that is put behind the values."""
    found = b.op("GatherND", x[0], _coordinates(b, x[0]))
    room = n.out.shape[0]
    full = b.op("Concat", found, b.const(np.zeros(room), n.x(0).dtype.numpy), axis=0)
    return b.op("Slice", full, b.ints(0), b.ints(room), b.ints(0))


@op
class CreateSparse:
    """A sparse tensor from coordinates and the values there."""

    indices = tensor(2, role=INDEX)
    values = tensor()
    out0 = result(1)
    infer = create_sparse_shape
    lower = create_sparse


@op
class GetSparseIndices:
    """The coordinates that a sparse tensor has values at; unused rows hold -1."""

    in0 = tensor()
    out0 = result(FREE)
    infer = sparse_rows_shape
    lower: Lower = lambda n, b, x: b.cast(
        first_rows(b, _coordinates(b, x[0]), *n.out.shape, fill=-1), n.out.dtype.numpy
    )


@op
class GetSparseValues:
    """The values that a sparse tensor holds; unused rows are zero."""

    in0 = tensor()
    out0 = result()
    infer = sparse_values_shape
    lower = sparse_values


@op
class SparseToDense:
    """A sparse tensor with all its zeros."""

    in0 = tensor()
    out0 = result()
    infer = same
    lower: Lower = lambda n, b, x: b.op("Identity", x[0])
    keeps_values = True


# -- control flow --------------------------------------------------------------------------------------------


@op
class If:
    """One of two graphs, as a condition says."""

    condition = tensor()
    inputs = tensor(optional=True, variadic=True)
    out0 = result(FREE, variadic=True)
    infer = declared
    why_not = (
        "its branches are graphs that a node holds, which no QNN artefact that can be read here contains"
    )


# -- deformable convolution ----------------------------------------------------------------------------------


def deform_shape(n: Node) -> list[Shape]:
    """Stride 1 and no padding, as the op is known without parameters; offsets are (y, x) for every tap."""
    (batch, height, width, channels), (rows, columns, depth, out) = n.x(0).shape, n.x(2).shape
    shape = (batch, height - rows + 1, width - columns + 1, out)
    taps = rows * columns
    fits = n.x(1).shape == (*shape[:3], 2 * taps) and depth == channels and min(shape) > 0
    if not fits or (n.has(3) and n.x(3).shape != (*shape[:3], taps)):
        raise ShapeError(f"{n.where}: offsets {list(n.x(1).shape)} do not fit an output {list(shape)}")
    return [shape]


def deform_macs(n: Node) -> int:
    return n.out.size * (n.x(2).size // n.x(2).shape[-1])


@op
class DeformConv2d:
    """Convolution whose taps are moved by offsets that depend on the place, and may be weighted by a mask."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    offset = tensor(4, layout="NHWC", onnx="NCHW")
    weight = tensor(4, layout="HWIO", onnx="OIHW", role=WEIGHT, channel_axis=3)
    mask = tensor(4, layout="NHWC", onnx="NCHW", optional=True)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NHWC", onnx="NCHW")
    infer = deform_shape
    lower: Lower = lambda n, b, x: b.op("DeformConv", x[0], x[2], x[1], x[4], x[3])
    macs = deform_macs
