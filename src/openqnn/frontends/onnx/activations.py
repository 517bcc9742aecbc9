"""Activation functions of ONNX and of com.microsoft."""

from __future__ import annotations

from math import pi, sqrt

from openqnn.frontends.compositions import as_float
from openqnn.frontends.onnx.table import MICROSOFT, rows, translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Value

rows({
    "HardSwish": "HardSwish",
    "PRelu": "Prelu",
    "Relu": "Relu",
    "Sigmoid": "Sigmoid",
    "Tanh": "Tanh",
})  # fmt: skip


@translates("Elu")
def elu(t: Translation, x: Value, *, alpha: float = 1.0) -> Value:
    return t.elu(x, alpha=alpha)


@translates("Celu")
def celu(t: Translation, x: Value, *, alpha: float = 1.0) -> Value:
    """alpha * Elu(x / alpha)."""
    if alpha <= 0:
        t.refuse(f"alpha={alpha} is not positive")
    return t.elu(x, alpha=1.0) if alpha == 1 else t.mul(t.elu(t.mul(x, 1 / alpha), alpha=1.0), alpha)


@translates("Selu")
def selu(
    t: Translation, x: Value, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805
) -> Value:
    return t.mul(t.elu(x, alpha=alpha), gamma)


@translates("LeakyRelu")
def leaky_relu(t: Translation, x: Value, *, alpha: float = 0.01) -> Value:
    return t.prelu(x, t.scalar(alpha, x))


@translates("ThresholdedRelu")
def thresholded_relu(t: Translation, x: Value, *, alpha: float = 1.0) -> Value:
    return t.select(t.greater(x, alpha), x, t.scalar(0, x))


@translates("HardSigmoid")
def hard_sigmoid(t: Translation, x: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Value:
    return t.hard_sigmoid(x, alpha, beta)


@translates("Softplus")
def softplus(t: Translation, x: Value) -> Value:
    return t("ElementWiseSoftplus", x, beta=1.0, threshold=20.0)


@translates("Mish")
def mish(t: Translation, x: Value) -> Value:
    return t.mul(x, t.tanh(softplus(t, x)))


@translates("Softsign")
def softsign(t: Translation, x: Value) -> Value:
    return t.div(x, t.add(t.abs(x), 1.0))


@translates("Swish")
def swish(t: Translation, x: Value, *, alpha: float = 1.0) -> Value:
    return t.mul(x, t.sigmoid(x if alpha == 1 else t.mul(x, alpha)))


@translates("QuickGelu", domain=MICROSOFT)
def quick_gelu(t: Translation, x: Value, *, alpha: float = 1.702) -> Value:
    return swish(t, x, alpha=alpha)


@translates("Shrink")
def shrink(t: Translation, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """Towards zero by bias, and zero within lambd of it."""
    real = as_float(t, x)
    above = t.greater(real, lambd)
    below = t.less(real, -lambd)
    inner = t.select(below, t.add(real, bias), t.scalar(0, real))
    return t.cast(t.select(above, t.sub(real, bias), inner), x.dtype)


@translates("Gelu")
def gelu(t: Translation, x: Value, *, approximate: str = "none") -> Value:
    if approximate == "none":
        return t.gelu(x)
    if approximate != "tanh":
        t.refuse(f"approximate={approximate!r} is not known")
    return tanh_gelu(t, x)


def tanh_gelu(t: Translation, x: Value) -> Value:
    """QNN's Gelu is the exact one; the approximation by tanh differs by up to 5e-4."""
    cube = t.mul(t.square(x), x)
    inner = t.mul(t.add(x, t.mul(cube, 0.044715)), sqrt(2 / pi))
    return t.mul(t.mul(x, 0.5), t.add(t.tanh(inner), 1.0))


rows({"Gelu": "Gelu"}, domain=MICROSOFT)


@translates("BiasGelu", domain=MICROSOFT)
def bias_gelu(t: Translation, x: Value, bias: Value) -> Value:
    return t.gelu(t.add(x, bias))


@translates("FastGelu", domain=MICROSOFT)
def fast_gelu(t: Translation, x: Value, bias: Value | None = None) -> Value:
    return tanh_gelu(t, x if bias is None else t.add(x, bias))
