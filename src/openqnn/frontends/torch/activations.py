"""Activation functions of ATen."""

from __future__ import annotations

from openqnn.frontends.onnx import activations as onnx
from openqnn.frontends.onnx.elementwise import clip_to
from openqnn.frontends.torch.promotion import real
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Value


@translates("hardswish")
def hardswish(t: TorchTranslation, x: Value) -> Value:
    return t("HardSwish", x)


@translates("relu")
def relu(t: TorchTranslation, x: Value) -> Value:
    return t.relu(x) if x.dtype.is_float else t.maximum(x, 0)


@translates("relu6")
def relu6(t: TorchTranslation, x: Value) -> Value:
    return hardtanh(t, x, 0, 6)


@translates("sigmoid", "special_expit")
def sigmoid(t: TorchTranslation, x: Value) -> Value:
    return t.sigmoid(real(t, x))


@translates("tanh")
def tanh(t: TorchTranslation, x: Value) -> Value:
    return t.tanh(real(t, x))


@translates("hardtanh")
def hardtanh(t: TorchTranslation, x: Value, min_val: float = -1, max_val: float = 1) -> Value:
    if not x.dtype.is_float:
        return t.minimum(t.maximum(x, min_val), max_val)
    return clip_to(t, x, float(min_val), float(max_val))


@translates("hardsigmoid")
def hardsigmoid(t: TorchTranslation, x: Value) -> Value:
    return t.hard_sigmoid(x, 1 / 6, 0.5)


@translates("silu")
def silu(t: TorchTranslation, x: Value) -> Value:
    return onnx.swish(t, x)


@translates("gelu")
def gelu(t: TorchTranslation, x: Value, *, approximate: str = "none") -> Value:
    return onnx.gelu(t, x, approximate=approximate)


@translates("elu")
def elu(
    t: TorchTranslation, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> Value:
    if input_scale == 1 and alpha >= 0:
        y = t.elu(x, alpha=float(alpha))
    else:
        below = t.mul(t.sub(t.exp(t.mul(t.minimum(x, 0.0), float(input_scale))), 1.0), float(alpha))
        y = t.select(t.greater(x, 0), x, below)
    return y if scale == 1 else t.mul(y, float(scale))


@translates("celu")
def celu(t: TorchTranslation, x: Value, alpha: float = 1.0) -> Value:
    return elu(t, x, alpha, 1.0, 1 / alpha)


@translates("selu")
def selu(t: TorchTranslation, x: Value) -> Value:
    return onnx.selu(t, x)


@translates("leaky_relu")
def leaky_relu(t: TorchTranslation, x: Value, negative_slope: float = 0.01) -> Value:
    return onnx.leaky_relu(t, x, alpha=negative_slope)


@translates("prelu", "_prelu_kernel")
def prelu(t: TorchTranslation, x: Value, weight: Value) -> Value:
    """One slope for all, or one per channel, which is axis 1."""
    if weight.size > 1 and weight.rank == 1 and x.rank > 1:
        weight = t.reshape(weight, (weight.size, *(1,) * (x.rank - 2)))
    elif weight.size == 1:
        weight = t.reshape(weight, (1,) * max(x.rank, 1))
    return t.prelu(x, weight) if x.rank else t.reshape(t.prelu(t.reshape(x, (1,)), weight), ())


@translates("softplus")
def softplus(t: TorchTranslation, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    """By -log(sigmoid(-x)) where the threshold is torch's own; else in the long form."""
    scaled = x if beta == 1 else t.mul(x, float(beta))
    safe = t.minimum(scaled, float(threshold))
    curve = t.log(t.add(t.exp(safe), 1.0))
    curve = curve if beta == 1 else t.mul(curve, 1 / beta)
    return (
        t.select(t.greater(scaled, float(threshold)), x, curve)
        if (beta, threshold) != (1, 20)
        else (onnx.softplus(t, x))
    )


@translates("mish")
def mish(t: TorchTranslation, x: Value) -> Value:
    return onnx.mish(t, x)


@translates("softsign")
def softsign(t: TorchTranslation, x: Value) -> Value:
    return onnx.softsign(t, real(t, x))


@translates("tanhshrink")
def tanhshrink(t: TorchTranslation, x: Value) -> Value:
    return t.sub(x, t.tanh(x))


@translates("hardshrink")
def hardshrink(t: TorchTranslation, x: Value, lambd: float = 0.5) -> Value:
    inside = t.less_equal(t.abs(x), float(lambd))
    return t.select(inside, t.scalar(0, x), x)


@translates("softshrink")
def softshrink(t: TorchTranslation, x: Value, lambd: float = 0.5) -> Value:
    return t.sub(x, clip_to(t, x, -float(lambd), float(lambd)))


@translates("threshold")
def threshold(t: TorchTranslation, x: Value, threshold: float, value: float) -> Value:
    return t.select(t.greater(x, threshold), x, t.scalar(value, x))


@translates("log_sigmoid")
def log_sigmoid(t: TorchTranslation, x: Value) -> Value:
    """-softplus(-x), which does not underflow."""
    size = t.abs(x)
    return t.sub(t.minimum(x, 0.0), t.log(t.add(t.exp(t.neg(size)), 1.0)))


@translates("rrelu")
def rrelu(
    t: TorchTranslation, x: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Value:
    if training:
        t.refuse("rrelu in training mode has random slopes", hint="export the model for inference: eval()")
    return onnx.leaky_relu(t, x, alpha=(lower + upper) / 2)


@translates("glu")
def glu(t: TorchTranslation, x: Value, dim: int = -1) -> Value:
    axis = t.axis(dim, x.rank)
    if not x.rank or x.shape[axis] % 2:
        t.refuse(f"axis {axis} of {list(x.shape)} has no two halves")
    a, b = t.split(x, axis, (x.shape[axis] // 2,))
    return t.mul(a, t.sigmoid(b))


@translates("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
def dropout(t: TorchTranslation, x: Value, p: float = 0.5, train: bool = False) -> Value:
    if train and p:
        t.refuse("dropout in training mode", hint="export the model for inference: eval()")
    return x


@translates("native_dropout")
def native_dropout(t: TorchTranslation, x: Value, p: float, train: bool | None = None) -> list[Value]:
    dropout(t, x, p, bool(train))
    return [x]
