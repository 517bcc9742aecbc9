"""Normalisations and softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Value

# -- one number per channel ----------------------------------------------------------------------------------


def _folded(
    t: Translation, x: Value, scale: Value, bias: Value, mean: Value, var: Value, epsilon: float
) -> tuple[Value, Value]:
    """The factor and the term that the four vectors of a batch norm come to."""
    if all(v.data is not None for v in (scale, bias, mean, var)):
        # In the type of the data and in the order in which ONNX Runtime folds it: both agree to the last bit.
        g, b, m, v = (np.asarray(v.data, x.dtype.numpy) for v in (scale, bias, mean, var))
        if not g.shape == b.shape == m.shape == v.shape:
            t.refuse("scale, bias, mean and variance differ in length")
        with np.errstate(all="ignore"):
            factor = g / np.sqrt(v + g.dtype.type(epsilon))
            term = b - m * factor
        return t.constant(factor, scale.name), t.constant(term, bias.name)
    scale, bias, mean, var = (t.cast(v, x.dtype) for v in (scale, bias, mean, var))
    factor = t.mul(scale, t.rsqrt(t.add(var, epsilon)))
    return factor, t.sub(bias, t.mul(mean, factor))


@translates("BatchNormalization")
def batch_normalization(
    t: Translation, x: Value, scale: Value, bias: Value, mean: Value, var: Value, *, epsilon: float = 1e-5,
    momentum: float = 0.9, spatial: int = 1, training_mode: int = 0,
) -> Value:  # fmt: skip
    if training_mode or any(t.is_read(i) for i in range(1, 5)):
        t.refuse(
            "a batch norm in training mode updates its statistics", hint="export the model for inference"
        )
    if not spatial:
        t.refuse("spatial=0 (statistics per position) has no QNN op", hint="export with opset 9 or newer")
    factor, term = _folded(t, x, scale, bias, mean, var, epsilon)
    if x.rank < 2:  # the only channel
        return t.add(t.mul(x, factor), term)
    return t.to_first(t("Batchnorm", t.to_last(x), factor, term))


def _as_image(t: Translation, x: Value) -> Value:
    """Channel-first data with exactly two spatial axes; what is inside them does not matter to the op."""
    if x.rank < 2:
        t.refuse(f"data of rank {x.rank} has no channels")
    spatial = x.shape[2:]
    rows = 1 if len(spatial) < 2 else spatial[0]
    return t.reshape(x, (*x.shape[:2], rows, prod(spatial) // max(rows, 1)))


@translates("InstanceNormalization")
def instance_normalization(
    t: Translation, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5
) -> Value:
    y = t("InstanceNorm", t.to_last(_as_image(t, x)), scale, bias, epsilon=epsilon)
    return t.reshape(t.to_first(y), x.shape)


@translates("GroupNormalization", since=21)
def group_normalization(
    t: Translation, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5, num_groups: int,
    stash_type: int = 1,
) -> Value:  # fmt: skip
    image = x if x.rank in (3, 4, 5) else _as_image(t, x)
    y = t("GroupNorm", t.to_last(image), scale, bias, epsilon=epsilon, group=num_groups)
    return t.reshape(t.to_first(y), x.shape)


@translates("GroupNormalization", since=18)
def group_normalization_by_group(
    t: Translation, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5, num_groups: int
) -> Value:
    """In its first version scale and bias have one number per group."""
    if x.rank < 2 or num_groups < 1 or x.shape[1] % num_groups:
        t.refuse(f"{num_groups} groups do not divide the channels of {list(x.shape)}")
    each = x.shape[1] // num_groups
    wide = [_repeated(t, v, num_groups, each) for v in (scale, bias)]
    return group_normalization(t, x, *wide, epsilon=epsilon, num_groups=num_groups)


def _repeated(t: Translation, v: Value, count: int, each: int) -> Value:
    """Every element `each` times in a row."""
    if v.shape != (count,):
        t.refuse(f"scale and bias need one number for each of the {count} groups, not {list(v.shape)}")
    if v.data is not None:
        return t.constant(np.repeat(v.data, each), v.name)
    return t.reshape(t.tile(t.reshape(v, (count, 1)), (1, each)), (count * each,))


# -- over trailing axes --------------------------------------------------------------------------------------


Norm = Callable[[Value, Value | None, Value | None, Sequence[int], float], Value]


def _scaled(
    t: Translation, norm: Norm, x: Value, gamma: Value | None, beta: Value | None, first: int, epsilon: float
) -> Value:
    """Weights of the shape of the axes go into the op; those that only broadcast are applied behind it."""
    axes = list(range(first, x.rank))
    shape = x.shape[first:]
    fits = [v is None or v.shape == shape for v in (gamma, beta)]
    if all(fits):
        return norm(x, gamma, beta, axes, epsilon)
    y = norm(x, None, None, axes, epsilon)
    y = y if gamma is None else t.mul(y, gamma)
    return y if beta is None else t.add(y, beta)


@translates("LayerNormalization")
def layer_normalization(
    t: Translation, x: Value, scale: Value, bias: Value | None = None, *, axis: int = -1,
    epsilon: float = 1e-5, stash_type: int = 1,
) -> list[Value]:  # fmt: skip
    first = t.axis(axis, x.rank)
    results = [_scaled(t, t.layer_norm, x, scale, bias, first, epsilon)]
    if t.is_read(1) or t.is_read(2):
        axes = list(range(first, x.rank))
        mean = t.reduce_mean(x, axes, keep_dims=True)
        centred = t.sub(x, mean)
        var = t.reduce_mean(t.square(centred), axes, keep_dims=True)
        results += [mean, t.rsqrt(t.add(var, epsilon))]
    return results


@translates("RMSNormalization")
def rms_normalization(
    t: Translation, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    return _scaled(t, t.rms_norm, x, scale, None, t.axis(axis, x.rank), epsilon)


@translates("SimplifiedLayerNormalization")
def simplified_layer_normalization(
    t: Translation, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> list[Value]:
    """ONNX Runtime's name for it, which it puts into ONNX's own domain."""
    if t.is_read(1):
        t.refuse("the inverse deviation as a second output")
    return [rms_normalization(t, x, scale, axis=axis, epsilon=epsilon)]


@translates("LpNormalization")
def lp_normalization(t: Translation, x: Value, *, axis: int = -1, p: int = 2) -> Value:
    a = t.axis(axis, x.rank)
    if p == 2:
        return t("L2Norm", x, axis=a, epsilon=1e-12)
    if p != 1:
        t.refuse(f"p={p} is neither 1 nor 2")
    total = t.reduce_sum(t.abs(x), [a], keep_dims=True)
    return t.div(x, t.maximum(total, 1e-12))


@translates("MeanVarianceNormalization")
def mean_variance_normalization(t: Translation, x: Value, *, axes: Sequence[int] = (0, 2, 3)) -> Value:
    over = [t.axis(a, x.rank) for a in axes]
    centred = t.sub(x, t.reduce_mean(x, over, keep_dims=True))
    deviation = t.sqrt(t.reduce_mean(t.square(centred), over, keep_dims=True))
    return t.div(centred, t.add(deviation, 1e-9))


# -- over neighbours -----------------------------------------------------------------------------------------


@translates("LRN")
def lrn(
    t: Translation, x: Value, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int
) -> Value:
    """QNN counts neighbours by radius and does not divide alpha by their number."""
    if size < 1 or size % 2 == 0:
        t.refuse(f"size={size}: QNN's window reaches equally far to both sides, so it is odd")
    image = t.to_last(_as_image(t, x))
    y = t("Lrn", image, alpha=alpha / size, beta=beta, bias=bias, radius=(size - 1) // 2)
    return t.reshape(t.to_first(y), x.shape)


# -- softmax -------------------------------------------------------------------------------------------------


Along = Callable[[Translation, Value, int], Value]


def _softmax(t: Translation, x: Value, axis: int) -> Value:
    return t.softmax(x, axis)


def _log_softmax(t: Translation, x: Value, axis: int) -> Value:
    return t("LogSoftmax", x, axis=axis)


def _hardmax(t: Translation, x: Value, axis: int) -> Value:
    """1 at the first maximum, 0 elsewhere."""
    place = t.argmax(x, axis, keep_dims=False)
    return t.one_hot(place, x.shape[axis], axis, x.dtype)


def _along(t: Translation, what: Along, x: Value, axis: int) -> Value:
    """Something of the softmax family along one axis; data of rank 0 is a row of one."""
    data = x if x.rank else t.reshape(x, (1,))
    return t.reshape(what(t, data, t.axis(axis, data.rank)), x.shape)


def _flattened(t: Translation, what: Along, x: Value, axis: int) -> Value:
    """Before opset 13 all axes from `axis` on count as one."""
    a = t.axis(axis, max(x.rank, 1)) if axis != x.rank else x.rank
    if a == x.rank - 1:
        return _along(t, what, x, a)
    flat = t.reshape(x, (prod(x.shape[:a]), prod(x.shape[a:])))
    return t.reshape(_along(t, what, flat, 1), x.shape)


@translates("Softmax")
def flat_softmax(t: Translation, x: Value, *, axis: int = 1) -> Value:
    return _flattened(t, _softmax, x, axis)


@translates("LogSoftmax")
def flat_log_softmax(t: Translation, x: Value, *, axis: int = 1) -> Value:
    return _flattened(t, _log_softmax, x, axis)


@translates("Hardmax")
def flat_hardmax(t: Translation, x: Value, *, axis: int = 1) -> Value:
    return _flattened(t, _hardmax, x, axis)


@translates("Softmax", since=13)
def softmax(t: Translation, x: Value, *, axis: int = -1) -> Value:
    return _along(t, _softmax, x, axis)


@translates("LogSoftmax", since=13)
def log_softmax(t: Translation, x: Value, *, axis: int = -1) -> Value:
    return _along(t, _log_softmax, x, axis)


@translates("Hardmax", since=13)
def hardmax(t: Translation, x: Value, *, axis: int = -1) -> Value:
    return _along(t, _hardmax, x, axis)
