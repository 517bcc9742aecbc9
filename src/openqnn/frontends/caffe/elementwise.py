"""Layers that compute every number by itself, or several blobs number by number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import log

import numpy as np

from openqnn.frontends.caffe.table import rows, translates
from openqnn.frontends.compositions import power
from openqnn.frontends.onnx import activations
from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Value

rows({"ReLU6": "Relu6", "TanH": "Tanh", "AbsVal": "ElementWiseAbs"})


@translates("Sigmoid")
def sigmoid(t: Translation, x: Value) -> Value:
    return t.sigmoid(x)


@translates("ReLU")
def relu(t: Translation, x: Value, *, negative_slope: float = 0.0) -> Value:
    return activations.leaky_relu(t, x, alpha=negative_slope) if negative_slope else t.relu(x)


@translates("PReLU")
def prelu(t: Translation, x: Value, *, blobs: Sequence[Value], channel_shared: bool = False) -> Value:
    size = blobs[0].size
    if x.rank < 2 or size not in (1, x.shape[1]):
        t.refuse(f"slopes {list(blobs[0].shape)} do not fit data {list(x.shape)}")
    return t.prelu(x, t.reshape(blobs[0], (size, *(1,) * (x.rank - 2))))


@translates("ELU")
def elu(t: Translation, x: Value, *, alpha: float = 1.0) -> Value:
    return t.elu(x, alpha)


@translates("BNLL")
def bnll(t: Translation, x: Value) -> Value:
    return activations.softplus(t, x)


@translates("Swish")
def swish(t: Translation, x: Value, *, beta: float = 1.0) -> Value:
    return activations.swish(t, x, alpha=beta)


@translates("Mish")
def mish(t: Translation, x: Value) -> Value:
    return activations.mish(t, x)


@translates("HardSwish")
def hard_swish(t: Translation, x: Value) -> Value:
    return t.mul(x, t.hard_sigmoid(x, 1 / 6, 0.5))


@translates("Clip")
def clip(t: Translation, x: Value, *, min: float, max: float) -> Value:
    return t.clip(x, min, max)


@translates("Threshold")
def threshold(t: Translation, x: Value, *, threshold: float = 0.0) -> Value:
    return t.cast(t.greater(x, threshold), DType.FLOAT_32)


def _line(t: Translation, x: Value, scale: float, shift: float) -> Value:
    y = x if scale == 1 else t.mul(x, scale)
    return y if shift == 0 else t.add(y, shift)


def _base(t: Translation, base: float) -> float:
    """The logarithm of a base; -1 stands for e."""
    if base == -1:
        return 1.0
    if base <= 0 or base == 1:
        t.refuse(f"base {base} is no base of powers")
    return log(base)


@translates("Power")
def powered(t: Translation, x: Value, *, power: float = 1.0, scale: float = 1.0, shift: float = 0.0) -> Value:
    if power == 0:
        return t.constant(np.ones(x.shape, np.float32))
    return _power(t, _line(t, x, scale, shift), power)


_power = power


@translates("Exp")
def exp(t: Translation, x: Value, *, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> Value:
    factor = _base(t, base)
    return t.exp(_line(t, x, scale * factor, shift * factor))


@translates("Log")
def logarithm(
    t: Translation, x: Value, *, base: float = -1.0, scale: float = 1.0, shift: float = 0.0
) -> Value:
    return _line(t, t.log(_line(t, x, scale, shift)), 1 / _base(t, base), 0.0)


# -- several blobs -------------------------------------------------------------------------------------------


@translates("Eltwise")
def eltwise(t: Translation, *xs: Value, operation: str = "SUM", coeff: list[float] | None = None) -> Value:
    if len({x.shape for x in xs}) != 1 or len(xs) < 2:
        t.refuse(f"blobs {[list(x.shape) for x in xs]}: at least two of one shape are expected")
    word = {"PROD": t.mul, "SUM": t.add, "MAX": t.maximum, "MIN": t.minimum}.get(operation)
    if word is None:
        t.refuse(f"operation: {operation} is not known")
    return reduce(word, _weighted(t, xs, coeff, operation) if coeff else xs)


def _weighted(t: Translation, xs: Sequence[Value], coeff: list[float], operation: str) -> list[Value]:
    if operation != "SUM" or len(coeff) != len(xs):
        t.refuse(f"{len(coeff)} coefficients do not fit a {operation} of {len(xs)} blobs")
    return [x if c == 1 else t.mul(x, c) for x, c in zip(xs, coeff, strict=True)]
