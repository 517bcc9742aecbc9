"""Joining, cutting, padding, filling."""

from __future__ import annotations

import numpy as np

from openqnn.ir import DType, Node, Value
from openqnn.ops import Builder
from openqnn.ops.layout import is_view
from openqnn.targets.htp.ranks import has_too_many_axes, transpose, view
from openqnn.targets.htp.rules import Instead, rule, takes

# Squeeze and ExpandDims are reshapes in the end.
takes("Concat", "Reshape", "Split", "Squeeze", "Tile", "Transpose", kinds="FIB")
takes("ExpandDims", kinds="FIB", axes=4)
takes("StridedSlice", kinds="FI")
takes("Pack", axes=4)
takes("ConstantOfShape", "OneHot", kinds="")

_MODES = {"EDGE": "edge", "MIRROR_REFLECT": "reflect", "MIRROR_SYMMETRIC": "symmetric"}


@rule("Transpose")
def transposition_in_place(node: Node, b: Builder) -> Instead:
    # After a Reshape, one that moves axes of size 1 only is merged wrongly: [1,3,3] as [3,1,3], then perm
    # 1,0,2, comes out transposed. It is a reshape too.
    if not is_view(node.x(0).shape, node.ints("perm")):
        return None
    return b.reshape(node.x(0), node.out.shape)


@rule("Transpose")
def transposition_of_many_axes(node: Node, b: Builder) -> Instead:
    # Five axes at most.
    return transpose(b, node.x(0), node.ints("perm")) if has_too_many_axes(node) else None


def is_join(node: Node) -> bool:
    return node.op == "Concat"


@rule("Pack")
def stack_by_concat(node: Node, b: Builder) -> Instead:
    # Floats of one to four axes only: "Output[0] has incorrect Rank 1".
    axis = node.int("axis")
    shape = (*node.x(0).shape[:axis], 1, *node.x(0).shape[axis:])
    parts = [view(b, v, shape) for v in node.inputs if v is not None]
    return b.concat(parts, axis) if len(parts) > 1 else b.reshape(node.x(0), node.out.shape)


@rule("UnPack")
def unstack_by_split(node: Node, b: Builder) -> Instead:
    # Floats only.
    x, axis = node.x(0), node.int("axis")
    if x.shape[axis] == 1:
        return [b.reshape(x, node.out.shape)]
    parts = b.split(x, axis, range(1, x.shape[axis]))
    return [b.reshape(p, node.out.shape) for p in parts]


@rule("Pad")
def pad_by_copies(node: Node, b: Builder) -> Instead:
    # EDGE gives wrong numbers, and integers are not taken at all.
    x, scheme = node.x(0), node.enum("scheme")
    if (x.dtype.is_float or x.dtype.is_fixed) and scheme != "EDGE":
        return None
    if x.dtype is DType.BOOL_8:
        return b.cast(b(node.op, b.cast(x, DType.INT_32), **node.params), x.dtype)
    for axis, (before, after) in enumerate(node.rows("pad_amount")):
        if before or after:
            x = _filled(node, b, x, axis, before, after) if scheme == "CONSTANT" else _copied(
                b, x, axis, before, after, _MODES[scheme]
            )  # fmt: skip
    return x if x is not node.x(0) else b.reshape(x, x.shape)


def _copied(b: Builder, x: Value, axis: int, before: int, after: int, mode: str) -> Value:
    where = np.pad(np.arange(x.shape[axis]), (before, after), mode=mode)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return b.gather(x, b.const(where, np.int32), axis=axis)


def _filled(node: Node, b: Builder, x: Value, axis: int, before: int, after: int) -> Value:
    value = node.float("pad_constant_value")

    def block(size: int) -> list[Value]:
        shape = tuple(size if i == axis else d for i, d in enumerate(x.shape))
        return [b.const(np.full(shape, value), x.dtype.numpy)] if size else []

    return b.concat([*block(before), x, *block(after)], axis)


@rule("OneHot")
def one_hot_by_comparison(node: Node, b: Builder) -> Instead:
    # Quantized outputs only.
    x, axis, depth = node.x(0), node.int("axis"), node.int("depth")
    rank = x.rank + 1
    column = view(b, x, (*x.shape[:axis], 1, *x.shape[axis:]))
    shape = tuple(depth if i == axis else 1 for i in range(rank))
    hit = b.equal(column, b.const(np.arange(depth).reshape(shape), np.int32))
    dtype = node.out.dtype
    if dtype is DType.BOOL_8:
        return hit if node.float("on_value") else b.logical_not(hit)
    on, off = (b.const(np.full((1,) * rank, node.float(k)), dtype.numpy) for k in ("on_value", "off_value"))
    return b.select(hit, on, off)


@rule("ConstantOfShape")
def filled(node: Node, b: Builder) -> Instead:
    # "OpValidator not found"; what it gives is a constant.
    full = b.const(np.full(node.out.shape, node.float("value")), node.out.dtype.numpy)
    return b.reshape(full, node.out.shape)


@rule("StridedSlice")
def slice_without_masks(node: Node, b: Builder) -> Instead:
    # new_axes_mask fails in finalize.
    if not node.int("new_axes_mask"):
        return None
    rows = [r for i, r in enumerate(node.rows("ranges")) if not node.int("new_axes_mask") >> i & 1]
    if any(node.int(m) for m in ("begin_mask", "end_mask", "shrink_axes")):
        return None
    return view(b, b.strided_slice(node.x(0), rows), node.out.shape)


@rule("BatchPermutation")
def permuted_rows(node: Node, b: Builder) -> Instead:
    # "OpValidator not found".
    return b.gather(node.x(0), node.x(1), axis=0)


@rule("ChannelShuffle")
def shuffled(node: Node, b: Builder) -> Instead:
    # The last axis only.
    axis, x = node.int("axis"), node.x(0)
    if axis == x.rank - 1 and x.rank <= 4:
        return None
    groups, channels = node.int("num_groups"), x.shape[axis]
    index = np.arange(channels).reshape(groups, -1).T.ravel()
    return b.gather(x, b.const(index, np.int32), axis=axis)
