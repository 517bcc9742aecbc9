"""Reductions, running sums, the largest few."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from openqnn.ir import DType, Node, Value
from openqnn.ops import Builder
from openqnn.targets.htp.ranks import view
from openqnn.targets.htp.rules import Instead, again, fixed_rule, rule, takes

INT = DType.INT_32
_NO_PADS = ((0, 0), (0, 0))


takes("ReduceMin", "ReduceSum", kinds="FI")
takes("Argmax", "CumulativeSum", "TopK", kinds="FI", axes=4)
takes("Argmin", axes=4)


def flipped(b: Builder, x: Value, axis: int) -> Value:
    size = x.shape[axis]
    return x if size == 1 else b.part(x, axis, size - 1, -size - 1, -1)


def _over(node: Node) -> tuple[tuple[int, ...], bool]:
    """Axes and keep_dims of a reduction."""
    return node.ints("axes"), node.flag("keep_dims")


@rule("ReduceProd")
def product_by_halves(node: Node, b: Builder) -> Instead:
    # "OpValidator not found": multiply one half by the other until one element is left.
    x, axes = node.x(0), sorted(node.ints("axes"))
    rest = [i for i in range(x.rank) if i not in axes]
    turned = b.transpose(x, (*rest, *axes)) if rest else x
    flat = view(b, turned, (prod(x.shape[i] for i in rest), prod(x.shape[i] for i in axes)))
    while (size := flat.shape[1]) > 1:
        half = size // 2
        product = b.mul(b.part(flat, 1, 0, half), b.part(flat, 1, half, 2 * half))
        flat = product if size % 2 == 0 else b.concat([product, b.part(flat, 1, size - 1, size)], 1)
    return view(b, flat, node.out.shape) if flat is not x else b.reshape(flat, node.out.shape)


@rule("ReduceSumSquare")
def sum_of_squares(node: Node, b: Builder) -> Instead:
    # "OpValidator not found".
    return b.reduce_sum(b.square(node.x(0)), *_over(node))


@rule("Moments")
def moments(node: Node, b: Builder) -> Instead:
    # "OpValidator not found".
    x, axes = node.x(0), node.ints("axes")
    mean = b.reduce_mean(x, axes, keep_dims=True)
    centred = b.sub(x, mean)
    variance = b.reduce_mean(b.square(centred), axes, keep_dims=True)
    return [view(b, v, node.out.shape) for v in (mean, variance)]


@rule("ReduceMax")
def largest_integer(node: Node, b: Builder) -> Instead:
    # Floats only, but ReduceMin has int32: the largest is the smallest of the negated.
    x = node.x(0)
    if x.dtype is DType.BOOL_8:
        return b.cast(b.reduce_max(b.cast(x, INT), *_over(node)), x.dtype)
    if x.dtype is not INT:
        return None
    zero = b.scalar(0, x)
    smallest = b.reduce_min(b.sub(zero, x), *_over(node))
    return b.sub(zero, smallest)


@rule("ReduceMean")
def mean_of_integers(node: Node, b: Builder) -> Instead:
    # Floats only; ONNX cuts an integer mean towards zero, as Divide does.
    x = node.x(0)
    if x.dtype is not INT:
        return None
    count = prod(x.shape[a] for a in node.ints("axes"))
    return b.div(b.reduce_sum(x, *_over(node)), count)


@rule("Argmin")
def argmin_by_argmax(node: Node, b: Builder) -> Instead:
    # Wrong positions on a last axis of two, and floats only; Argmax is right and has int32.
    x = node.x(0)
    negated = b.neg(x) if x.dtype.is_float else b.sub(0, x)
    return b.argmax(negated, node.int("axis"), node.flag("keep_dims"), node.out.dtype)


@rule("CumulativeSum")
def plain_running_sum(node: Node, b: Builder) -> Instead:
    # On floats, `exclusive` and `reverse` fail in finalize (1002).
    x, axis = node.x(0), node.int("axis")
    exclusive, reverse = node.flag("exclusive"), node.flag("reverse")
    if not exclusive and not reverse:
        return None
    turned = flipped(b, x, axis) if reverse else x
    done = again(b, node, turned, exclusive=False, reverse=False)
    if exclusive:
        shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
        zeros = b.const(np.zeros(shape), x.dtype.numpy)
        size = x.shape[axis]
        done = b.concat([zeros, b.part(done, axis, 0, size - 1)], axis) if size > 1 else zeros
        done = done if done is not zeros else b.mul(x, 0)
    return flipped(b, done, axis) if reverse else done


_FLIPPED = "htp_flipped"


@rule("TopK")
def first_of_equals(node: Node, b: Builder) -> Instead:
    # Of equal values HTP takes the last first, ONNX the first: the data is turned around, the positions back.
    x = node.x(0)
    size = x.shape[-1]
    source = x.producer
    done = source is not None and source.name.startswith(_FLIPPED)
    if done or size == 1:
        return None
    b.stem = f"{_FLIPPED}.{b.stem}"
    turned = flipped(b, x, x.rank - 1)
    k, largest = node.int("k"), node.flag("largest")
    values, places = b.many(node.op, turned, dtypes=[x.dtype, INT], k=k, largest=largest)
    where = b.sub(size - 1, places)
    return [values, where if node.outputs[1].dtype is INT else b.cast(where, node.outputs[1].dtype)]


@rule("Argmax", "Argmin")
def argument_of_five_axes(node: Node, b: Builder) -> Instead:
    # Four axes at most, where the axis is not the last of more.
    x = node.x(0)
    if x.rank <= 4 or x.dtype is DType.BOOL_8:
        return None
    axis = node.int("axis")
    shape = (prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :]))
    return view(b, again(b, node, view(b, x, shape), axis=1, keep_dims=True), node.out.shape)


@fixed_rule("ReduceMean", "ReduceSum")
def mean_of_channels(node: Node, b: Builder, width: int) -> Value | None:
    """Sums over the last axis come in 32s, and the kernel leaves out up to four that are left over. A layer
    with the same weight for every channel is right."""
    if not sums_channels(node):
        return None
    x = node.x(0)
    channels = x.shape[-1]
    weight = np.full(channels, 1 / channels if node.op == "ReduceMean" else 1.0, np.float32)
    if x.rank == 4:
        y = b.conv(x, b.const(weight.reshape(1, 1, channels, 1)), None, stride=(1, 1), pad_amount=_NO_PADS)
    else:
        y = b.fully_connected(b.reshape(x, (x.size // channels, channels)), b.const(weight[None]))
    return b.reshape(y, node.out.shape)


def sums_channels(node: Node) -> bool:
    """Whether a node sums up the last axis of a tensor of such a shape that results are left out."""
    if node.op not in ("ReduceMean", "ReduceSum"):
        return False
    x = node.x(0)
    return node.ints("axes") == (x.rank - 1,) and _leaves_out(x.shape[:-1])


def _leaves_out(rows: Sequence[int]) -> bool:
    """Whether a tile loses its last results: eight rows or what is left of them, as wide as the tensor. Of
    batches nothing is known."""
    *batch, height, width = (1, 1, *rows)
    if prod(batch) > 1 and width % 8:
        return True
    tile = (height % 8 or 8 if height > 8 else height) * width
    return tile > 32 and 1 <= tile % 32 <= 4
