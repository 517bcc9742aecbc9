"""Special functions of ATen, by series and rational forms that hold for float32."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, sqrt

import numpy as np

from openqnn.frontends.torch.elementwise import erf, log1p
from openqnn.frontends.torch.promotion import real
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Value

# Lanczos' sum for g = 7 with nine terms.
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
_G = 7.5
_ASYMPTOTIC = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)  # of digamma, in powers of 1/x^2
_SHIFTS = 6  # digamma is moved up by that much, where its asymptotic series holds
# Giles' approximation of the inverse error function in single precision.
_CENTRE = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
           -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
         0.00943887047, 1.00167406, 2.83297682)  # fmt: skip


def polynomial(t: TorchTranslation, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's form, the highest power first."""
    y = t.add(t.mul(x, coefficients[0]), coefficients[1])
    for c in coefficients[2:]:
        y = t.add(t.mul(y, x), c)
    return y


def _lanczos(t: TorchTranslation, x: Value) -> Value:
    """log gamma for x >= 0.5."""
    z = t.sub(x, 1.0)
    total = t.add(t.div(_LANCZOS[1], t.add(z, 1.0)), _LANCZOS[0])
    for i, c in enumerate(_LANCZOS[2:], start=2):
        total = t.add(total, t.div(c, t.add(z, float(i))))
    high = t.add(z, _G)
    return t.add(t.sub(t.mul(t.add(z, 0.5), t.log(high)), high), t.add(t.log(total), log(2 * pi) / 2))


@translates("lgamma", "special_gammaln")
def lgamma(t: TorchTranslation, x: Value) -> Value:
    """Below 0.5 by reflection, from the sine of the fraction so that large numbers keep their digits."""
    y = real(t, x)
    low = t.less(y, 0.5)
    upper = _lanczos(t, t.select(low, t.sub(1.0, y), y))
    part = t.sub(y, t.floor(y))
    mirrored = t.sub(t.sub(log(pi), t.log(t.abs(t.sin(t.mul(part, pi))))), upper)
    found = t.select(low, mirrored, upper)
    whole = t.logical_and(t.equal(part, 0), t.less_equal(y, 0))
    endless = t.logical_or(whole, t.is_inf(y))
    return t.select(endless, t.scalar(np.inf, y), found)


@translates("digamma", "special_digamma", "special_psi")
def digamma(t: TorchTranslation, x: Value) -> Value:
    """Moved up by the recurrence, then the asymptotic series; below zero by reflection."""
    y = real(t, x)
    low = t.less(y, 0.0)
    z = t.select(low, t.sub(1.0, y), y)
    total: Value | None = None
    for i in range(_SHIFTS):
        step = t.div(1.0, t.add(z, float(i)) if i else z)
        total = step if total is None else t.add(total, step)
    assert total is not None
    high = t.add(z, float(_SHIFTS))
    inverse = t.div(1.0, t.square(high))
    series = t.mul(polynomial(t, inverse, list(reversed(_ASYMPTOTIC))), inverse)
    found = t.sub(t.sub(t.sub(t.log(high), t.div(0.5, high)), series), total)
    part = t.mul(t.sub(y, t.floor(y)), pi)
    mirrored = t.sub(found, t.div(t.mul(t.cos(part), pi), t.sin(part)))
    whole = t.logical_and(low, t.equal(part, 0))
    found = t.select(whole, t.scalar(np.nan, y), t.select(low, mirrored, found))
    return t.select(t.equal(y, 0), t.neg(t.div(1.0, y)), found)


@translates("polygamma", "special_polygamma")
def polygamma(t: TorchTranslation, x: int, other: Value) -> Value:
    if x != 0:
        t.refuse(f"polygamma of order {x} has no QNN equivalent")
    return digamma(t, other)


@translates("mvlgamma", "special_multigammaln")
def mvlgamma(t: TorchTranslation, x: Value, p: int) -> Value:
    if not 1 <= p <= 64:
        t.refuse(f"p={p}")
    y = real(t, x)
    total = lgamma(t, y)
    for i in range(1, p):
        total = t.add(total, lgamma(t, t.sub(y, i / 2)))
    return t.add(total, p * (p - 1) / 4 * log(pi))


@translates("erfinv", "special_erfinv")
def erfinv(t: TorchTranslation, x: Value) -> Value:
    """A rational form in the logarithm of 1 - x^2, and one step of Newton's."""
    y = real(t, x)
    w = t.neg(t.add(log1p(t, y), log1p(t, t.neg(y))))
    near = polynomial(t, t.sub(w, 2.5), _CENTRE)
    far = polynomial(t, t.sub(t.sqrt(t.maximum(w, 0.0)), 3.0), _TAIL)
    guess = t.mul(t.select(t.less(w, 5.0), near, far), y)
    edge = t.greater_equal(t.abs(y), 1.0)
    ends = t.select(t.equal(t.abs(y), 1.0), t.mul(y, np.inf), t.scalar(np.nan, y))
    return t.select(edge, ends, guess)


@translates("special_ndtri")
def ndtri(t: TorchTranslation, x: Value) -> Value:
    return t.mul(erfinv(t, t.sub(t.mul(real(t, x), 2.0), 1.0)), sqrt(2))


@translates("special_ndtr")
def ndtr(t: TorchTranslation, x: Value) -> Value:
    return t.mul(t.add(erf(t, t.mul(real(t, x), 1 / sqrt(2))), 1.0), 0.5)


@translates("angle")
def angle(t: TorchTranslation, x: Value) -> Value:
    """The angle of real numbers: pi below zero, else zero."""
    y = real(t, x)
    found = t.select(t.less(y, 0), t.scalar(pi, y), t.scalar(0, y))
    return t.select(t.is_nan(y), y, found)


@translates("sinc", "special_sinc")
def sinc(t: TorchTranslation, x: Value) -> Value:
    y = t.mul(real(t, x), pi)
    zero = t.equal(y, 0)
    safe = t.select(zero, t.scalar(1, y), y)
    return t.select(zero, t.scalar(1, y), t.div(t.sin(safe), safe))
