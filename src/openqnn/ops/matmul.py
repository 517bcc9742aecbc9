"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.errors import ShapeError
from openqnn.ir import Node, Shape
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import BIAS, WEIGHT, Kind, Macs, flag, op, result, tensor
from openqnn.ops.shape_rules import broadcast_shapes, vector


def _matrix(n: Node, index: int) -> tuple[Shape, int, int]:
    """Leading dimensions, rows and columns of a factor after its transposition."""
    shape = n.x(index).shape
    if len(shape) < 2:
        raise ShapeError(f"{n.where}: input {index} has shape {list(shape)}, at least two axes are needed")
    rows, columns = shape[-2:]
    return (shape[:-2], columns, rows) if n.flag(f"transpose_in{index}") else (shape[:-2], rows, columns)


def _matmul_shape(n: Node) -> list[Shape]:
    (lead0, rows, inner), (lead1, inner1, columns) = _matrix(n, 0), _matrix(n, 1)
    if inner != inner1:
        shapes = f"{list(n.x(0).shape)} and {list(n.x(1).shape)}"
        raise ShapeError(f"{n.where}: cannot multiply {shapes}: {inner} columns meet {inner1} rows")
    vector(n, 2, columns)
    return [(*broadcast_shapes([lead0, lead1], n.where), rows, columns)]


def _transposed(n: Node, b: Body, x: Sequence[str], index: int) -> str:
    """ONNX Runtime merges the transposition into the product."""
    rank = n.x(index).rank
    perm = (*range(rank - 2), rank - 1, rank - 2)
    return b.transpose(x[index], perm) if n.flag(f"transpose_in{index}") else x[index]


def _matmul_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    product = b.op("MatMul", _transposed(n, b, x, 0), _transposed(n, b, x, 1))
    return b.op("Add", product, x[2]) if x[2] else product


@op
class MatMul:
    """Product of two stacks of matrices whose leading axes broadcast, plus a bias along the last axis."""

    in0 = tensor()
    in1 = tensor(channel_axis=-1)
    in2 = tensor(1, role=BIAS, optional=True)
    out0 = result()
    transpose_in0 = flag(False)
    transpose_in1 = flag(False)
    infer = _matmul_shape
    lower = _matmul_onnx
    macs: Macs = lambda n: n.out.size * _matrix(n, 0)[2]
    kind = Kind.MATRIX_PRODUCT


def _fully_connected_shape(n: Node) -> list[Shape]:
    shape, (units, inner) = n.x(0).shape, n.x(1).shape
    keep = n.flag("keep_dims")
    if inner == 0 or n.x(0).size % inner or (keep and shape[-1:] != (inner,)):
        raise ShapeError(f"{n.where}: the data {list(shape)} does not split into rows of {inner}")
    vector(n, 2, units)
    return [(*shape[:-1], units) if keep else (n.x(0).size // inner, units)]


def _fully_connected_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    units, inner = n.x(1).shape
    rows = n.x(0).size // inner
    flat = x[0] if n.x(0).shape == (rows, inner) else b.reshape(x[0], (rows, inner))
    product = b.op("Gemm", flat, x[1], x[2], transB=1)
    return product if n.out.shape == (rows, units) else b.reshape(product, n.out.shape)


@op
class FullyConnected:
    """Rows of the data times a weight [out, in], plus a bias; leading axes are kept or flattened."""

    in0 = tensor()
    weight = tensor(2, role=WEIGHT, channel_axis=0)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result()
    keep_dims = flag(False)
    infer = _fully_connected_shape
    lower = _fully_connected_onnx
    macs: Macs = lambda n: n.out.size * n.x(1).shape[1]
    kind = Kind.DENSE
