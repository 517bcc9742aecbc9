"""Normalisations and softmax of ATen."""

from __future__ import annotations

import numpy as np

from openqnn.frontends.onnx import norm as onnx
from openqnn.frontends.torch.promotion import real, to_type
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import DType, Value

_UPDATES = (
    "the norm is in training mode: it takes the statistics of its data, and does not update the running ones;"
    " export the model for inference, after eval()"
)


def _filled(t: TorchTranslation, value: Value | None, count: int, number: float, like: Value) -> Value:
    return t.constant(np.full(count, number, like.dtype.numpy)) if value is None else value


@translates("batch_norm")
def batch_norm(
    t: TorchTranslation, x: Value, weight: Value | None, bias: Value | None, running_mean: Value | None,
    running_var: Value | None, training: bool, momentum: float = 0.1, eps: float = 1e-5,
    cudnn_enabled: bool = False,
) -> Value:  # fmt: skip
    if training or running_mean is None or running_var is None:
        if running_mean is not None:
            t.warn(_UPDATES)
        return _own_statistics(t, x, weight, bias, eps)
    channels = x.shape[1] if x.rank > 1 else 1
    scale, shift = _filled(t, weight, channels, 1.0, x), _filled(t, bias, channels, 0.0, x)
    return onnx.batch_normalization(t, x, scale, shift, running_mean, running_var, epsilon=eps)


def _own_statistics(
    t: TorchTranslation, x: Value, weight: Value | None, bias: Value | None, eps: float
) -> Value:
    """Mean and variance of the data itself, over all axes but the channels."""
    axes = [0, *range(2, x.rank)]
    shape = [1, x.shape[1], *[1] * (x.rank - 2)]
    centred = t.sub(x, t.reduce_mean(x, axes, keep_dims=True))
    var = t.reduce_mean(t.square(centred), axes, keep_dims=True)
    y = t.mul(centred, t.rsqrt(t.add(var, eps)))
    y = y if weight is None else t.mul(y, t.reshape(weight, shape))
    return y if bias is None else t.add(y, t.reshape(bias, shape))


@translates("_native_batch_norm_legit_no_training")
def native_batch_norm(
    t: TorchTranslation, x: Value, weight: Value | None, bias: Value | None, running_mean: Value,
    running_var: Value, momentum: float, eps: float,
) -> list[Value]:  # fmt: skip
    return [batch_norm(t, x, weight, bias, running_mean, running_var, False, momentum, eps)]


@translates("_native_batch_norm_legit", "native_batch_norm", "_native_batch_norm_legit_functional",
            "_native_batch_norm_legit.no_stats", "cudnn_batch_norm")  # fmt: skip
def legit_batch_norm(
    t: TorchTranslation, x: Value, weight: Value | None, bias: Value | None,
    running_mean: Value | None = None, running_var: Value | None = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> list[Value]:  # fmt: skip
    """Mean and inverse deviation come with it where they are those of the data."""
    own = running_mean is None or running_var is None or training
    found = [batch_norm(t, x, weight, bias, running_mean, running_var, training, momentum, eps)]
    if own and (t.is_read(1) or t.is_read(2)):
        found += _statistics(t, x, [0, *range(2, x.rank)], eps, keep=False)
    return found


@translates("instance_norm")
def instance_norm(
    t: TorchTranslation, x: Value, weight: Value | None, bias: Value | None, running_mean: Value | None,
    running_var: Value | None, use_input_stats: bool, momentum: float = 0.1, eps: float = 1e-5,
    cudnn_enabled: bool = False,
) -> Value:  # fmt: skip
    channels = x.shape[1]
    if not use_input_stats:
        return batch_norm(t, x, weight, bias, running_mean, running_var, False, momentum, eps)
    if running_mean is not None:
        t.warn(_UPDATES)
    scale, shift = _filled(t, weight, channels, 1.0, x), _filled(t, bias, channels, 0.0, x)
    return onnx.instance_normalization(t, x, scale, shift, epsilon=eps)


@translates("group_norm")
def group_norm(
    t: TorchTranslation, x: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None,
    eps: float = 1e-5, cudnn_enabled: bool = False,
) -> Value:  # fmt: skip
    scale, shift = _filled(t, weight, x.shape[1], 1.0, x), _filled(t, bias, x.shape[1], 0.0, x)
    return onnx.group_normalization(t, x, scale, shift, epsilon=eps, num_groups=num_groups)


@translates("native_group_norm")
def native_group_norm(
    t: TorchTranslation, x: Value, weight: Value | None, bias: Value | None, N: int, C: int, HxW: int,
    group: int, eps: float,
) -> list[Value]:  # fmt: skip
    found = [group_norm(t, x, group, weight, bias, eps)]
    if t.is_read(1) or t.is_read(2):
        found += _statistics(t, t.reshape(x, (N, group, C // group * HxW)), [2], eps, keep=False)
    return found


def _statistics(t: TorchTranslation, x: Value, axes: list[int], eps: float, keep: bool = True) -> list[Value]:
    mean = t.reduce_mean(x, axes, keep_dims=True)
    var = t.reduce_mean(t.square(t.sub(x, mean)), axes, keep_dims=True)
    found = [mean, t.rsqrt(t.add(var, eps))]
    return (
        found if keep else [t.reshape(v, [d for i, d in enumerate(x.shape) if i not in axes]) for v in found]
    )


@translates("layer_norm")
def layer_norm(
    t: TorchTranslation, x: Value, normalized_shape: list[int], weight: Value | None = None,
    bias: Value | None = None, eps: float = 1e-5, cudnn_enable: bool = False,
) -> Value:  # fmt: skip
    axes = list(range(x.rank - len(normalized_shape), x.rank))
    return t.layer_norm(x, weight, bias, axes, eps)


@translates("native_layer_norm")
def native_layer_norm(
    t: TorchTranslation, x: Value, normalized_shape: list[int], weight: Value | None, bias: Value | None,
    eps: float,
) -> list[Value]:  # fmt: skip
    found = [layer_norm(t, x, normalized_shape, weight, bias, eps)]
    if t.is_read(1) or t.is_read(2):
        found += _statistics(t, x, list(range(x.rank - len(normalized_shape), x.rank)), eps)
    return found


@translates("rms_norm", "_fused_rms_norm")
def rms_norm(
    t: TorchTranslation, x: Value, normalized_shape: list[int], weight: Value | None = None,
    eps: float | None = None,
) -> list[Value]:  # fmt: skip
    axes = list(range(x.rank - len(normalized_shape), x.rank))
    epsilon = float(np.finfo(x.dtype.numpy).eps) if eps is None else eps
    found = [t.rms_norm(x, weight, None, axes, epsilon)]
    if t.is_read(1):
        found.append(t.rsqrt(t.add(t.reduce_mean(t.square(x), axes, keep_dims=True), epsilon)))
    return found


# -- softmax -------------------------------------------------------------------------------------------------


def _as_asked(t: TorchTranslation, x: Value, dtype: DType | str | None) -> Value:
    return real(t, x) if dtype is None else to_type(t, x, t.type_of(dtype))


@translates("_safe_softmax")
def safe_softmax(t: TorchTranslation, x: Value, dim: int, dtype: DType | None = None) -> Value:
    """Zero where a row is all minus infinity."""
    y = softmax(t, x, dim, dtype=dtype)
    return t.select(t.is_nan(y), t.scalar(0, y), y)


@translates("softmax.int", "_softmax", "special_softmax")
def softmax(
    t: TorchTranslation, x: Value, dim: int, half_to_float: bool = False, dtype: DType | None = None
) -> Value:
    return onnx.softmax(t, _as_asked(t, x, dtype), axis=dim)


@translates("log_softmax.int", "_log_softmax", "special_log_softmax")
def log_softmax(
    t: TorchTranslation, x: Value, dim: int, half_to_float: bool = False, dtype: DType | None = None
) -> Value:
    return onnx.log_softmax(t, _as_asked(t, x, dtype), axis=dim)
