"""Formulas that leave the range or the accuracy of half precision or of int32, said so that they do not."""

from __future__ import annotations

from math import inf, log, prod, sqrt

import numpy as np

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.ops.layout import is_reshape, permutation_of
from openqnn.passes.edit import scalar
from openqnn.passes.patterns import terms
from openqnn.passes.rewrite import Any, Const, Number, find
from openqnn.targets.htp.rules import Instead, rule, takes
from openqnn.targets.htp.shape import is_join

takes("ElementWiseAdd", "ElementWiseSubtract", "ElementWiseMultiply", kinds="FI", wraps=True)
takes("ElementWiseDivide", kinds="FI")
takes("ElementWiseLog", axes=4)

SMALLEST = 6.2e-5  # of the numbers that half precision holds in full accuracy

_X, _M = Any("x"), Any("m")
_SUM = terms.sum_of(_X)
_VARIANCE = terms.sub(terms.mean(terms.square(_X), name="squares"), terms.square(terms.mean(_X, name="mean")))
_SUM_OF_POWERS = terms.sum_of(terms.exp(terms.clip(_X) | _X))
_SQUARE_AND_LITTLE = terms.add(terms.square(_M), Number(name="little"))
_LENGTH = terms.sqrt(terms.sum_of(terms.square(_X), name="sum"))
_LOOKUP = terms.gather(Const("table"), Any("places"))


@rule("ElementWiseMultiply")
def shift_left_wraps(node: Node, b: Builder) -> Instead:
    # HTP's int32 saturates where others wrap around. A product with a table of all powers of two is a shift:
    # the bits that would be lost are taken away before, x = low + half * n with -half <= low < half.
    found = find(_LOOKUP, node.x(1))
    table = found["table"].data if found is not None else None
    if found is None or table is None or table.dtype != np.int32 or table.shape != (32,) or table[31] >= 0:
        return None
    x, places = node.x(0), found["places"]
    lookup = lambda entries: b.gather(b.const(entries, np.int32), places, axis=0)
    half = lookup([1 << min(31 - k, 30) for k in range(32)])
    rest = b.mod(x, half)
    odd = b.mod(b.div(b.sub(x, rest), half), 2)
    low = b.sub(rest, b.mul(odd, half))
    done = b.mul(low, lookup([1 << max(k - 1, 0) for k in range(32)]))
    moved = b.mul(done, 2)
    return b.select(b.equal(places, 0), x, moved)


@rule("ElementWiseMultiply", "ElementWiseDivide")
def mean_instead_of_sum(node: Node, b: Builder) -> Instead:
    # A sum of many squares passes 65504, though its mean would not: ReduceMean does not overflow on the way.
    found, factor = find(_SUM, node.x(0)), scalar(node.x(1))
    if found is None or factor is None or not node.out.dtype.is_float:
        return None
    total, axes = found.root, found.root.ints("axes")
    count = prod(found["x"].shape[a] for a in axes)
    share = factor if node.op == "ElementWiseMultiply" else 1 / factor if factor else 0.0
    if node.out.shape != total.out.shape or abs(share * count - 1) > 1e-5:
        return None
    return b.reduce_mean(found["x"], axes, total.flag("keep_dims"))


@rule("ElementWiseSubtract")
def variance_of_the_centred(node: Node, b: Builder) -> Instead:
    # The mean of squares less the square of the mean: two numbers of 350 differ by 24, and half precision has
    # three digits. The mean of the centred squares has no such loss.
    found = find(_VARIANCE, node.out)
    if found is None or found.node("mean").params != found.node("squares").params:
        return None
    x, squares = found["x"], found.node("squares")
    centred = b.sub(x, b.reduce_mean(x, squares.ints("axes"), keep_dims=True))
    return b.reduce_mean(b.square(centred), squares.ints("axes"), squares.flag("keep_dims"))


_SHIFTED = "htp_shifted"


@rule("ElementWiseLog")
def log_of_sum_of_powers(node: Node, b: Builder) -> Instead:
    # e^x leaves half precision at x = 11: the largest x is taken out before, and put back after.
    found = find(_SUM_OF_POWERS, node.x(0))
    if found is None or _is_shifted(found["x"]):
        return None
    x, axes = found["x"], found.root.ints("axes")
    largest = b.reduce_max(x, axes, keep_dims=True)
    b.stem = f"{_SHIFTED}.{b.stem}"
    powers = b.exp(b.sub(x, largest))
    logarithm = b.log(b.reduce_sum(powers, axes, keep_dims=True))
    return b.reshape(b.add(logarithm, largest), node.out.shape)


def _is_shifted(x: Value) -> bool:
    return x.producer is not None and x.producer.name.startswith(_SHIFTED)


@rule("ElementWiseLog")
def log_of_small_power(node: Node, b: Builder) -> Instead:
    # log(m^2 + e) with e = 1e-10, as spectrograms have it: half precision ends at 6e-8. It is twice the
    # logarithm of the hypotenuse of m and sqrt(e), which are larger; both are scaled up, and back after.
    found = find(_SQUARE_AND_LITTLE, node.x(0))
    little = found.number("little") if found is not None else 0.0
    if found is None or not 0 < little < SMALLEST or not node.out.dtype.is_float:
        return None
    scale = 2.0 ** round(-log(little, 4) / 1.5)  # brings sqrt(e) to about 0.02, and leaves room for m above 1
    m = _scaled_length(b, found["m"], scale)
    e = b.scalar(sqrt(little) * scale, m)
    longer, shorter = b.maximum(m, e), b.minimum(m, e)
    rest = b.add(b.square(b.div(shorter, longer)), 1)
    sum_of_logs = b.add(b.mul(b.log(longer), 2), b.log(rest))
    return b.sub(sum_of_logs, 2 * log(scale))


def _scaled_length(b: Builder, m: Value, scale: float) -> Value:
    """m * scale; the root of a sum of squares scales its terms, so that their squares do not vanish."""
    found = find(_LENGTH, m)
    if found is None:
        return b.mul(b.abs(m), scale)
    total = found.node("sum")
    part = 16.0  # squares of numbers up to 16 stay in range
    squares = b.square(b.mul(found["x"], part))
    sums = b.reduce_sum(squares, total.ints("axes"), total.flag("keep_dims"))
    return b.mul(b.sqrt(sums), scale / part)


@rule("Sigmoid", half=True)
def sigmoid_of_scores(node: Node, b: Builder) -> Instead:
    # Off by up to 3e-4, and 0 from -10 on: harmless inside a network, but the scores that it gives are such
    # small numbers. From -17 to 0, e^x / (1 + e^x) keeps three digits; e^x of less than -17 can be garbage.
    if not _reaches_output(b, node.out) or not node.out.dtype.is_float:
        return None
    x = node.x(0)
    power = b.exp(b.clip(x, -17.0, 0.0))
    low = b.div(power, b.add(power, 1))
    return b.select(b.less(x, 0), low, b.sigmoid(x))


def _reaches_output(b: Builder, value: Value) -> bool:
    """Whether a value is what the graph gives, if need be in another shape."""
    while not b.graph.is_output(value):
        if len(value.users) != 1 or not _carries(value.users[0]):
            return False
        value = value.users[0].out
    return True


def _carries(node: Node) -> bool:
    return is_reshape(node) or permutation_of(node) is not None or is_join(node)


LOWEST_POWER, HIGHEST_POWER = -18.0, 12.0  # beyond these e^x is 0, or at the end of the range


@rule("ElementWiseExp")
def power_in_range(node: Node, b: Builder) -> Instead:
    # e^x is -131008 from x = -88 down, and 0 at x = 100: where nothing is left to compute, x is cut off.
    x = node.x(0)
    found = find(terms.clip(_X), x)
    low, high = (
        (found.root.float(k) for k in ("min_value", "max_value")) if found is not None else (-inf, inf)
    )
    if low >= LOWEST_POWER and high <= HIGHEST_POWER:
        return None
    return b.exp(b.clip(x, LOWEST_POWER, HIGHEST_POWER))


@rule("ElementWiseAdd", "ElementWiseBinary", half=True)
def added_numbers_first(node: Node, b: Builder) -> Instead:
    # (x + numbers) * number: of the numbers the library takes the first for all, unless their last axis is a
    # multiple of 32, behind a Reshape too. With the numbers as the first operand it is right.
    if not _is(node, "ElementWiseAdd", "ADD") or not node.out.dtype.is_float:
        return None
    x, numbers = node.x(0), node.x(1)
    if x.is_constant or not numbers.is_constant or numbers.size == 1 or not _is_scaled(node):
        return None
    return b(node.op, numbers, x, dtypes=[node.out.dtype], **node.params)


def _is(node: Node, op: str, operation: str) -> bool:
    return node.op == op or (node.op == "ElementWiseBinary" and node.enum("operation") == operation)


def _is_scaled(node: Node) -> bool:
    """Whether the result is multiplied by one number."""
    return any(
        _is_scaled(user)
        if is_reshape(user)
        else _is(user, "ElementWiseMultiply", "MULTIPLY") and any(scalar(v) is not None for v in user.inputs)
        for user in node.out.users
    )
