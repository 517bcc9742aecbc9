"""Formulas that leave the range or the accuracy of half precision, said so that they do not."""

from __future__ import annotations

from math import inf, log, prod, sqrt

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.passes.edit import RESHAPE, TRANSPOSE, scalar
from openqnn.passes.htp.elementwise import number
from openqnn.passes.htp.rules import Instead, rule

SMALLEST = 6.2e-5  # of the numbers that half precision holds in full accuracy


def _made_by(value: Value, op: str) -> Node | None:
    return value.producer if value.producer is not None and value.producer.op == op else None


def _square_of(value: Value) -> Value | None:
    node = _made_by(value, "ElementWiseMultiply")
    return node.x(0) if node is not None and node.x(0) is node.x(1) else None


@rule("ElementWiseMultiply", "ElementWiseDivide")
def mean_instead_of_sum(node: Node, b: Builder) -> Instead:
    # A sum of many squares passes 65504, though its mean would not: ReduceMean does not overflow on the way.
    total, factor = _made_by(node.x(0), "ReduceSum"), scalar(node.x(1))
    if total is None or factor is None or not node.out.dtype.is_float or node.out.shape != total.out.shape:
        return None
    count = prod(total.x(0).shape[a] for a in total.ints("axes"))
    share = factor if node.op == "ElementWiseMultiply" else 1 / factor if factor else 0.0
    if abs(share * count - 1) > 1e-5:
        return None
    return b("ReduceMean", total.x(0), axes=total.ints("axes"), keep_dims=total.flag("keep_dims"))


@rule("ElementWiseSubtract")
def variance_of_the_centred(node: Node, b: Builder) -> Instead:
    # The mean of squares less the square of the mean: two numbers of 350 differ by 24, and half precision has
    # three digits. The mean of the centred squares has no such loss.
    squares, mean = _made_by(node.x(0), "ReduceMean"), _square_of(node.x(1))
    first = _made_by(mean, "ReduceMean") if mean is not None else None
    x = _square_of(squares.x(0)) if squares is not None else None
    if squares is None or first is None or x is None or first.x(0) is not x or first.params != squares.params:
        return None
    axes = squares.ints("axes")
    centred = b("ElementWiseSubtract", x, b("ReduceMean", x, axes=axes, keep_dims=True))
    keep = squares.flag("keep_dims")
    return b("ReduceMean", b("ElementWiseMultiply", centred, centred), axes=axes, keep_dims=keep)


_SHIFTED = "htp_shifted"


@rule("ElementWiseLog")
def log_of_sum_of_powers(node: Node, b: Builder) -> Instead:
    # e^x leaves half precision at x = 11: the largest x is taken out before, and put back after.
    total = _made_by(node.x(0), "ReduceSum")
    power = _made_by(total.x(0), "ElementWiseExp") if total is not None else None
    if total is None or power is None:
        return None
    bounds = _made_by(power.x(0), "ReluMinMax")
    x, axes = power.x(0) if bounds is None else bounds.x(0), total.ints("axes")
    if _is_shifted(x):
        return None
    largest = b("ReduceMax", x, axes=axes, keep_dims=True)
    b.stem = f"{_SHIFTED}.{b.stem}"
    powers = b("ElementWiseExp", b("ElementWiseSubtract", x, largest))
    logarithm = b("ElementWiseLog", b("ReduceSum", powers, axes=axes, keep_dims=True))
    return b("Reshape", b("ElementWiseAdd", logarithm, largest), shape=node.out.shape)


def _is_shifted(x: Value) -> bool:
    return x.producer is not None and x.producer.name.startswith(_SHIFTED)


@rule("ElementWiseLog")
def log_of_small_power(node: Node, b: Builder) -> Instead:
    # log(m^2 + e) with e = 1e-10, as spectrograms have it: half precision ends at 6e-8. It is twice the
    # logarithm of the hypotenuse of m and sqrt(e), which are larger; both are scaled up, and back after.
    total = _made_by(node.x(0), "ElementWiseAdd")
    small = scalar(total.x(1)) if total is not None else None
    m = _square_of(total.x(0)) if total is not None else None
    if m is None or small is None or not 0 < small < SMALLEST or not node.out.dtype.is_float:
        return None
    scale = 2.0 ** round(-log(small, 4) / 1.5)  # brings sqrt(e) to about 0.02, and leaves room for m above 1
    m = _scaled_length(b, m, scale)
    e = number(b, m, sqrt(small) * scale)
    longer, shorter = b("ElementWiseMaximum", m, e), b("ElementWiseMinimum", m, e)
    ratio = b("ElementWiseDivide", shorter, longer)
    one = number(b, m, 1)
    rest = b("ElementWiseAdd", b("ElementWiseMultiply", ratio, ratio), one)
    sum_of_logs = b("ElementWiseAdd", *(_twice_log(b, longer), b("ElementWiseLog", rest)))
    return b("ElementWiseSubtract", sum_of_logs, number(b, m, 2 * log(scale)))


def _twice_log(b: Builder, x: Value) -> Value:
    return b("ElementWiseMultiply", b("ElementWiseLog", x), number(b, x, 2))


def _scaled_length(b: Builder, m: Value, scale: float) -> Value:
    """m * scale; the root of a sum of squares scales its terms, so that their squares do not vanish."""
    root = _made_by(m, "ElementWiseSquareRoot")
    total = _made_by(root.x(0), "ReduceSum") if root is not None else None
    x = _square_of(total.x(0)) if total is not None else None
    if total is None or x is None:
        return b("ElementWiseMultiply", b("ElementWiseAbs", m), number(b, m, scale))
    part = 16.0  # squares of numbers up to 16 stay in range
    large = b("ElementWiseMultiply", x, number(b, x, part))
    squares = b("ElementWiseMultiply", large, large)
    sums = b("ReduceSum", squares, axes=total.ints("axes"), keep_dims=total.flag("keep_dims"))
    return b("ElementWiseMultiply", b("ElementWiseSquareRoot", sums), number(b, m, scale / part))


@rule("Sigmoid")
def sigmoid_of_scores(node: Node, b: Builder) -> Instead:
    # Off by up to 3e-4, and 0 from -10 on: harmless inside a network, but the scores that it gives are such
    # small numbers. From -17 to 0, e^x / (1 + e^x) keeps three digits; e^x of less than -17 can be garbage.
    if not _reaches_output(b, node.out) or not node.out.dtype.is_float:
        return None
    x = node.x(0)
    power = b("ElementWiseExp", b("ReluMinMax", x, min_value=-17.0, max_value=0.0))
    low = b("ElementWiseDivide", power, b("ElementWiseAdd", power, number(b, x, 1)))
    return b("ElementWiseSelect", b("ElementWiseLess", x, number(b, x, 0)), low, b("Sigmoid", x))


def _reaches_output(b: Builder, value: Value) -> bool:
    """Whether a value is what the graph gives, if need be in another shape."""
    while not b.graph.is_output(value):
        if len(value.users) != 1 or value.users[0].op not in (RESHAPE, TRANSPOSE, "Concat"):
            return False
        value = value.users[0].out
    return True


LOWEST_POWER, HIGHEST_POWER = -18.0, 12.0  # beyond these e^x is 0, or at the end of the range


@rule("ElementWiseExp")
def power_in_range(node: Node, b: Builder) -> Instead:
    # e^x is -131008 from x = -88 down, and 0 at x = 100: where nothing is left to compute, x is cut off.
    x = node.x(0)
    bounds = _made_by(x, "ReluMinMax")
    low, high = (bounds.float(k) for k in ("min_value", "max_value")) if bounds is not None else (-inf, inf)
    if low >= LOWEST_POWER and high <= HIGHEST_POWER:
        return None
    return b("ElementWiseExp", b("ReluMinMax", x, min_value=LOWEST_POWER, max_value=HIGHEST_POWER))
