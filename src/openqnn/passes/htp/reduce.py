"""Reductions, running sums, the largest few."""

from __future__ import annotations

from math import prod

import numpy as np

from openqnn.ir import DType, Node, Value
from openqnn.ops import Builder
from openqnn.passes.edit import TRANSPOSE
from openqnn.passes.htp.elementwise import number
from openqnn.passes.htp.ranks import view
from openqnn.passes.htp.rules import Instead, again, rule

INT = DType.INT_32


def part(b: Builder, x: Value, axis: int, begin: int, end: int, step: int = 1) -> Value:
    """A stretch of one axis; a negative step walks down."""
    rows = [(0, d, 1) for d in x.shape]
    rows[axis] = (begin, end, step)
    return b("StridedSlice", x, ranges=tuple(rows))


def flipped(b: Builder, x: Value, axis: int) -> Value:
    size = x.shape[axis]
    return x if size == 1 else part(b, x, axis, size - 1, -size - 1, -1)


@rule("ReduceProd")
def product_by_halves(node: Node, b: Builder) -> Instead:
    # "OpValidator not found": multiply one half by the other until one element is left.
    x, axes = node.x(0), sorted(node.ints("axes"))
    rest = [i for i in range(x.rank) if i not in axes]
    turned = b(TRANSPOSE, x, perm=(*rest, *axes)) if rest else x
    flat = view(b, turned, (prod(x.shape[i] for i in rest), prod(x.shape[i] for i in axes)))
    while (size := flat.shape[1]) > 1:
        half = size // 2
        product = b("ElementWiseMultiply", part(b, flat, 1, 0, half), part(b, flat, 1, half, 2 * half))
        flat = product if size % 2 == 0 else b("Concat", product, part(b, flat, 1, size - 1, size), axis=1)
    return view(b, flat, node.out.shape) if flat is not x else b("Reshape", flat, shape=node.out.shape)


@rule("ReduceSumSquare")
def sum_of_squares(node: Node, b: Builder) -> Instead:
    # "OpValidator not found".
    square = b("ElementWiseMultiply", node.x(0), node.x(0))
    return b("ReduceSum", square, **node.params)


@rule("Moments")
def moments(node: Node, b: Builder) -> Instead:
    # "OpValidator not found".
    x, axes = node.x(0), node.ints("axes")
    mean = b("ReduceMean", x, axes=axes, keep_dims=True)
    centred = b("ElementWiseSubtract", x, mean)
    square = b("ElementWiseMultiply", centred, centred)
    variance = b("ReduceMean", square, axes=axes, keep_dims=True)
    return [view(b, v, node.out.shape) for v in (mean, variance)]


@rule("ReduceMax")
def largest_integer(node: Node, b: Builder) -> Instead:
    # Floats only, but ReduceMin has int32: the largest is the smallest of the negated.
    x = node.x(0)
    if x.dtype is DType.BOOL_8:
        return b("Cast", b("ReduceMax", b("Cast", x, dtype=INT), **node.params), dtype=x.dtype)
    if x.dtype is not INT:
        return None
    zero = number(b, x, 0)
    smallest = b("ReduceMin", b("ElementWiseSubtract", zero, x), **node.params)
    return b("ElementWiseSubtract", zero, smallest)


@rule("ReduceMean")
def mean_of_integers(node: Node, b: Builder) -> Instead:
    # Floats only; ONNX cuts an integer mean towards zero, as Divide does.
    x = node.x(0)
    if x.dtype is not INT:
        return None
    count = prod(x.shape[a] for a in node.ints("axes"))
    return b("ElementWiseDivide", b("ReduceSum", x, **node.params), number(b, x, count))


@rule("Argmin")
def argmin_by_argmax(node: Node, b: Builder) -> Instead:
    # Wrong positions on a last axis of two, and floats only; Argmax is right and has int32.
    x = node.x(0)
    negated = b("ElementWiseNeg", x) if x.dtype.is_float else b("ElementWiseSubtract", number(b, x, 0), x)
    return b("Argmax", negated, dtype=node.out.dtype, **node.params)


@rule("CumulativeSum")
def plain_running_sum(node: Node, b: Builder) -> Instead:
    # On floats, `exclusive` and `reverse` fail in finalize (1002).
    x, axis = node.x(0), node.int("axis")
    exclusive, reverse = node.flag("exclusive"), node.flag("reverse")
    if not exclusive and not reverse:
        return None
    turned = flipped(b, x, axis) if reverse else x
    done = b("CumulativeSum", turned, axis=axis, exclusive=False, reverse=False)
    if exclusive:
        shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
        zeros = b.const(np.zeros(shape), x.dtype.numpy)
        size = x.shape[axis]
        done = b("Concat", zeros, part(b, done, axis, 0, size - 1), axis=axis) if size > 1 else zeros
        done = done if done is not zeros else b("ElementWiseMultiply", x, number(b, x, 0))
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
    values, places = b.many("TopK", turned, dtypes=[x.dtype, INT], k=k, largest=largest)
    where = b("ElementWiseSubtract", number(b, places, size - 1), places)
    return [values, where if node.outputs[1].dtype is INT else b("Cast", where, dtype=node.outputs[1].dtype)]


@rule("Argmax", "Argmin")
def argument_of_five_axes(node: Node, b: Builder) -> Instead:
    # Four axes at most, where the axis is not the last of more.
    x = node.x(0)
    if x.rank <= 4 or x.dtype is DType.BOOL_8:
        return None
    axis = node.int("axis")
    shape = (prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :]))
    return view(b, again(b, node, view(b, x, shape), axis=1, keep_dims=True), node.out.shape)
