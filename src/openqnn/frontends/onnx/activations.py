"""Activation functions of ONNX and of com.microsoft."""

from __future__ import annotations

from math import pi, sqrt

from openqnn.frontends.onnx.compose import add, as_float, div, mul, sub
from openqnn.frontends.onnx.registry import MICROSOFT, rows, translates
from openqnn.frontends.onnx.translation import Translation
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
    return t("Elu", x, alpha=alpha)


@translates("Celu")
def celu(t: Translation, x: Value, *, alpha: float = 1.0) -> Value:
    """alpha * Elu(x / alpha)."""
    if alpha <= 0:
        t.refuse(f"alpha={alpha} is not positive")
    return t("Elu", x, alpha=1.0) if alpha == 1 else mul(t, t("Elu", mul(t, x, 1 / alpha), alpha=1.0), alpha)


@translates("Selu")
def selu(
    t: Translation, x: Value, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805
) -> Value:
    return mul(t, t("Elu", x, alpha=alpha), gamma)


@translates("LeakyRelu")
def leaky_relu(t: Translation, x: Value, *, alpha: float = 0.01) -> Value:
    return t("Prelu", x, t.scalar(alpha, x))


@translates("ThresholdedRelu")
def thresholded_relu(t: Translation, x: Value, *, alpha: float = 1.0) -> Value:
    return t("ElementWiseSelect", t("ElementWiseGreater", x, t.scalar(alpha, x)), x, t.scalar(0, x))


@translates("HardSigmoid")
def hard_sigmoid(t: Translation, x: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Value:
    return t("ElementWiseNeuron", x, operation="HARD_SIGMOID", alpha=alpha, beta=beta)


@translates("Softplus")
def softplus(t: Translation, x: Value) -> Value:
    return t("ElementWiseSoftplus", x, beta=1.0, threshold=20.0)


@translates("Mish")
def mish(t: Translation, x: Value) -> Value:
    return mul(t, x, t("Tanh", softplus(t, x)))


@translates("Softsign")
def softsign(t: Translation, x: Value) -> Value:
    return div(t, x, add(t, t("ElementWiseAbs", x), 1.0))


@translates("Swish")
def swish(t: Translation, x: Value, *, alpha: float = 1.0) -> Value:
    return mul(t, x, t("Sigmoid", x if alpha == 1 else mul(t, x, alpha)))


@translates("QuickGelu", domain=MICROSOFT)
def quick_gelu(t: Translation, x: Value, *, alpha: float = 1.702) -> Value:
    return swish(t, x, alpha=alpha)


@translates("Shrink")
def shrink(t: Translation, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """Towards zero by bias, and zero within lambd of it."""
    real = as_float(t, x)
    above = t("ElementWiseGreater", real, t.scalar(lambd, real))
    below = t("ElementWiseLess", real, t.scalar(-lambd, real))
    inner = t("ElementWiseSelect", below, add(t, real, bias), t.scalar(0, real))
    return t.cast(t("ElementWiseSelect", above, sub(t, real, bias), inner), x.dtype)


@translates("Gelu")
def gelu(t: Translation, x: Value, *, approximate: str = "none") -> Value:
    if approximate == "none":
        return t("Gelu", x)
    if approximate != "tanh":
        t.refuse(f"approximate={approximate!r} is not known")
    return tanh_gelu(t, x)


def tanh_gelu(t: Translation, x: Value) -> Value:
    """QNN's Gelu is the exact one; the approximation by tanh differs by up to 5e-4."""
    cube = mul(t, mul(t, x, x), x)
    inner = mul(t, add(t, x, mul(t, cube, 0.044715)), sqrt(2 / pi))
    return mul(t, mul(t, x, 0.5), add(t, t("Tanh", inner), 1.0))


rows({"Gelu": "Gelu"}, domain=MICROSOFT)


@translates("BiasGelu", domain=MICROSOFT)
def bias_gelu(t: Translation, x: Value, bias: Value) -> Value:
    return t("Gelu", add(t, x, bias))


@translates("FastGelu", domain=MICROSOFT)
def fast_gelu(t: Translation, x: Value, bias: Value | None = None) -> Value:
    return tanh_gelu(t, x if bias is None else add(t, x, bias))
