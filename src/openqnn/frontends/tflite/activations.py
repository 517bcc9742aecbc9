"""Activation functions and normalisations, and the activations that are fused behind other operators."""

from __future__ import annotations

from math import pi, sqrt

from openqnn.frontends.tflite.table import rows, translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import Value

rows({"HARD_SWISH": "HardSwish", "LOGISTIC": "Sigmoid", "RELU": "Relu", "RELU6": "Relu6", "TANH": "Tanh"})

_NONE, _RELU, _RELU_N1_TO_1, _RELU6, _TANH = range(5)


def fused_activation(t: Translation, x: Value, code: int) -> Value:
    if code == _NONE:
        return x
    if code == _RELU:
        return t.relu(x)
    if code == _RELU6:
        return t.relu6(x)
    if code == _RELU_N1_TO_1:
        return t.clip(x, -1.0, 1.0)
    if code != _TANH:
        t.refuse(f"the fused activation {code} has no QNN equivalent")
    return t.tanh(x)


@translates("RELU_N1_TO_1")
def relu_n1_to_1(t: Translation, x: Value) -> Value:
    return t.clip(x, -1.0, 1.0)


@translates("RELU_0_TO_1")
def relu_0_to_1(t: Translation, x: Value) -> Value:
    return t.clip(x, 0.0, 1.0)


@translates("ELU")
def elu(t: Translation, x: Value) -> Value:
    return t.elu(x)


@translates("LEAKY_RELU")
def leaky_relu(t: Translation, x: Value, *, alpha: float = 0.0) -> Value:
    return t.prelu(x, t.scalar(alpha, x))


@translates("PRELU")
def prelu(t: Translation, x: Value, alpha: Value) -> Value:
    if alpha.data is not None and alpha.size == alpha.shape[-1] and alpha.size in (1, x.shape[-1]):
        return t.prelu(x, t.reshape(alpha, (alpha.size,)))
    below = t.mul(t.minimum(x, 0.0), alpha)
    return t.add(t.relu(x), below)


@translates("GELU")
def gelu(t: Translation, x: Value, *, approximate: bool = False) -> Value:
    if not approximate:
        return t.gelu(x)
    inner = t.mul(t.add(x, t.mul(t.mul(t.square(x), x), 0.044715)), sqrt(2 / pi))
    return t.mul(t.mul(x, 0.5), t.add(t.tanh(inner), 1.0))


@translates("SOFTMAX")
def softmax(t: Translation, x: Value, *, beta: float = 1.0) -> Value:
    return t.softmax(x if beta == 1 else t.mul(x, beta), x.rank - 1)


@translates("LOG_SOFTMAX")
def log_softmax(t: Translation, x: Value) -> Value:
    return t("LogSoftmax", x, axis=x.rank - 1)


@translates("L2_NORMALIZATION")
def l2_normalization(t: Translation, x: Value) -> Value:
    """A row of zeros stays one: its length counts as 1e-3 at least."""
    return t("L2Norm", x, axis=x.rank - 1, epsilon=1e-3)


@translates("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(
    t: Translation, x: Value, *, radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5
) -> Value:
    return t("Lrn", x, alpha=alpha, beta=beta, bias=bias, radius=radius)
