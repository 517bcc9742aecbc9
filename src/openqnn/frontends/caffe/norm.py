"""Normalisations, and one number per channel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from openqnn.frontends.caffe.table import translates
from openqnn.frontends.compositions import power
from openqnn.frontends.onnx import norm as onnx_norm
from openqnn.frontends.onnx import pool as onnx_pool
from openqnn.frontends.translation import Translation
from openqnn.ir import Value


@translates("BatchNorm")
def batch_norm(
    t: Translation, x: Value, *, blobs: Sequence[Value], use_global_stats: bool = True, eps: float = 1e-5
) -> Value:
    """Mean and variance are sums; the third blob says of how many, zero of none."""
    if not use_global_stats:
        t.refuse("it takes its statistics from the batch at hand", hint="leave use_global_stats out")
    if len(blobs) != 3 or x.rank < 2 or blobs[0].size != x.shape[1] or blobs[1].size != x.shape[1]:
        found = ", ".join(str(list(b.shape)) for b in blobs)
        t.refuse(f"blobs {found} do not fit {list(x.shape)}: means, variances and a factor are expected")
    mean, variance = (np.asarray(b.data, np.float32).ravel() for b in blobs[:2])
    count = float(np.asarray(blobs[2].data).ravel()[0]) if blobs[2].size else 0.0
    share = np.float32(1 / count if count else 0.0)
    factor = 1 / np.sqrt(np.maximum(variance * share + np.float32(eps), np.finfo(np.float32).tiny))
    term = t.constant((-mean * share * factor).astype(np.float32), blobs[0].name)
    return by_channel(t, x, t.constant(factor.astype(np.float32), blobs[1].name), term)


def by_channel(t: Translation, x: Value, factor: Value, term: Value | None) -> Value:
    """x * factor + term, where both have one number per channel."""
    if x.rank < 3:
        y = t.mul(x, factor)
        return y if term is None else t.add(y, term)
    return t.to_first(t("Batchnorm", t.to_last(x), factor, term))


def _lined_up(t: Translation, v: Value, x: Value, axis: int, num_axes: int) -> Value:
    """Numbers for the axes from `axis` on, with axes of one behind; older files put axes of one in front."""
    first = t.axis(axis, x.rank)
    count = x.rank - first if num_axes == -1 else num_axes
    wanted = x.shape[first : first + count]
    if count < 0 or v.size != prod(wanted):
        t.refuse(f"{list(v.shape)} does not fit the axes {list(wanted)} of {list(x.shape)}")
    return t.reshape(v, (*wanted, *(1,) * (x.rank - first - len(wanted))))


@translates("Scale")
def scale(
    t: Translation, x: Value, by: Value | None = None, *, blobs: Sequence[Value] = (), axis: int = 1,
    num_axes: int = 1, bias_term: bool = False,
) -> Value:  # fmt: skip
    """By the layer's own numbers, or by its second bottom; then the bias."""
    given = [*([] if by is None else [by]), *blobs]
    if len(given) < 1 + bool(bias_term):
        t.refuse(f"{len(given)} blobs and bottoms are given, {1 + bool(bias_term)} are expected")
    factor, term = given[0], given[1] if bias_term else None
    count = 1 if by is None else by.rank
    num_axes = num_axes if by is None else count
    if by is None and t.axis(axis, x.rank) == 1 and num_axes == 1 and factor.size == x.shape[1]:
        flat = t.reshape(factor, (factor.size,))
        return by_channel(t, x, flat, None if term is None else t.reshape(term, (term.size,)))
    y = t.mul(x, _lined_up(t, factor, x, axis, num_axes))
    return y if term is None else t.add(y, _lined_up(t, term, x, axis, num_axes))


@translates("Bias")
def bias(
    t: Translation, x: Value, by: Value | None = None, *, blobs: Sequence[Value] = (), axis: int = 1,
    num_axes: int = 1,
) -> Value:  # fmt: skip
    given = [*([] if by is None else [by]), *blobs]
    if not given:
        t.refuse("it has neither a blob nor a second bottom")
    return t.add(x, _lined_up(t, given[0], x, axis, num_axes if by is None else by.rank))


# -- statistics of the data ----------------------------------------------------------------------------------


@translates("MVN")
def mvn(
    t: Translation, x: Value, *, normalize_variance: bool = True, across_channels: bool = False,
    eps: float = 1e-9,
) -> Value:  # fmt: skip
    """Mean zero, and if asked a deviation of one, for each image or channel."""
    if x.rank < 2:
        t.refuse(f"data of rank {x.rank} has no channels")
    axes = list(range(1 if across_channels else 2, x.rank))
    centred = t.sub(x, t.reduce_mean(x, axes, keep_dims=True))
    if not normalize_variance:
        return centred
    variance = t.reduce_mean(t.square(centred), axes, keep_dims=True)
    return t.mul(centred, t.rsqrt(t.add(variance, eps)))


@translates("Normalize")
def normalize(
    t: Translation, x: Value, *, blobs: Sequence[Value], across_spatial: bool = True,
    channel_shared: bool = True, eps: float = 1e-10,
) -> Value:  # fmt: skip
    """By the length over channels, or over all of an image; then times one number, or one per channel."""
    if x.rank != 4 or not blobs or eps < 0:
        t.refuse(f"data {list(x.shape)} with {len(blobs)} blobs: an image and a scale are expected")
    factor = t.reshape(blobs[0], (1, 1, 1, blobs[0].size))
    if factor.size not in (1, x.shape[1]):
        t.refuse(f"a scale {list(blobs[0].shape)} does not fit the {x.shape[1]} channels")
    if across_spatial:
        total = t.add(t.reduce_sum(t.square(x), [1, 2, 3], keep_dims=True), eps)
        y = t.to_last(t.mul(x, t.rsqrt(total)))
    else:
        y = t("L2Norm", t.to_last(x), axis=3, epsilon=max(sqrt(eps), 1e-12))
    return t.to_first(t.mul(y, factor))


@translates("LRN")
def lrn(
    t: Translation, x: Value, *, local_size: int = 5, alpha: float = 1.0, beta: float = 0.75,
    norm_region: str = "ACROSS_CHANNELS", k: float = 1.0,
) -> Value:  # fmt: skip
    """Within a channel the neighbours are a square, whose size counts the padding too, and k is one."""
    if norm_region == "ACROSS_CHANNELS":
        return onnx_norm.lrn(t, x, alpha=alpha, beta=beta, bias=k, size=local_size)
    if local_size < 1 or local_size % 2 == 0 or x.rank != 4:
        t.refuse(f"local_size {local_size} is not odd")
    mean = onnx_pool.average_pool(
        t, t.square(x), kernel_shape=[local_size] * 2, pads=[local_size // 2] * 4, strides=[1, 1],
        count_include_pad=1,
    )  # fmt: skip
    return t.mul(x, power(t, t.add(t.mul(mean, alpha), 1.0), -beta))
