"""The words that patterns are written in: the ops of arithmetic by short names, in all their spellings."""

from __future__ import annotations

from openqnn.passes.rewrite import Condition, Number, Op, Term, op, swappable

ROOT_TWO = 2**0.5


def add(a: Term, b: Term, name: str = "") -> Op:
    return swappable("ElementWiseAdd", a, b, name=name)


def mul(a: Term, b: Term, name: str = "") -> Op:
    return swappable("ElementWiseMultiply", a, b, name=name)


def sub(a: Term, b: Term, name: str = "") -> Op:
    return op("ElementWiseSubtract", a, b, name=name)


def div(a: Term, b: Term, name: str = "") -> Op:
    return op("ElementWiseDivide", a, b, name=name)


def maximum(a: Term, b: Term, name: str = "") -> Op:
    return swappable("ElementWiseMaximum", a, b, name=name)


def minimum(a: Term, b: Term, name: str = "") -> Op:
    return swappable("ElementWiseMinimum", a, b, name=name)


def neg(a: Term) -> Term:
    return op("ElementWiseNeg", a) | mul(a, Number(-1))


def absolute(a: Term, name: str = "") -> Op:
    return op("ElementWiseAbs", a, name=name)


def sqrt(a: Term) -> Term:
    return op("ElementWiseSquareRoot", a) | op("ElementWisePower", a, Number(0.5))


def reciprocal(a: Term) -> Term:
    one_over = op("ElementWiseUnary", a, where=lambda n: n.enum("operation") == "RECIPROCAL")
    return div(Number(1), a) | one_over | op("ElementWisePower", a, Number(-1))


def rsqrt(a: Term) -> Term:
    return op("ElementWiseRsqrt", a) | op("ElementWisePower", a, Number(-0.5)) | reciprocal(sqrt(a))


def exp(a: Term) -> Op:
    return op("ElementWiseExp", a)


def square(a: Term) -> Term:
    return mul(a, a) | op("ElementWisePower", a, Number(2))


def over(a: Term, number: float) -> Term:
    """Divided by a number, or multiplied by its reciprocal."""
    return div(a, Number(number)) | mul(a, Number(1 / number))


def halved(a: Term) -> Term:
    return over(a, 2)


def mean(a: Term, name: str = "") -> Op:
    return op("ReduceMean", a, name=name)


def sum_of(a: Term, name: str = "") -> Op:
    return op("ReduceSum", a, name=name)


def sum_of_squares(a: Term, name: str = "") -> Term:
    return op("ReduceSumSquare", a, name=name) | sum_of(square(a), name)


def rectified(a: Term) -> Op:
    return op("Relu", a)


def relu(a: Term) -> Term:
    return rectified(a) | maximum(a, Number(0))


def tanh(a: Term) -> Op:
    return op("Tanh", a)


def gelu(a: Term) -> Op:
    return op("Gelu", a)


def at_least(a: Term, low: float | None, name: str = "low") -> Term:
    """max(a, number); with a name the number is bound."""
    return maximum(a, Number(low, name if low is None else ""))


def at_most(a: Term, high: float | None, name: str = "high") -> Term:
    return minimum(a, Number(high, name if high is None else ""))


def clip(a: Term, where: Condition | None = None) -> Op:
    """Between two bounds that are parameters."""
    return op("ReluMinMax", a, where=where)


def reshape(a: Term, name: str = "") -> Op:
    return op("Reshape", a, name=name)


def transpose(a: Term, where: Condition | None = None, name: str = "") -> Op:
    return op("Transpose", a, where=where, name=name)


def gather(data: Term, indices: Term) -> Op:
    return op("Gather", data, indices)


def erf(a: Term) -> Term:
    """The error function, which QNN does not have: 2 gelu(z) / z - 1 for z = a * sqrt 2, by sign and size."""
    z = mul(a, Number(ROOT_TWO), name="erf.z")
    size = maximum(absolute(z), Number(), name="erf.size")
    half = div(gelu(size), size)
    return mul(sub(mul(half, Number(2)), Number(1)), div(z, size))
