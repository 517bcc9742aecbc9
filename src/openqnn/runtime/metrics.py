"""Measures of the difference between two tensors: SQNR, cosine, errors, top-k, divergence."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log10

import numpy as np

from openqnn.qnn.net import Array

_CHUNK = 1 << 20  # elements that are widened at a time


@dataclass(frozen=True, slots=True)
class Distance:
    """`largest` absolute difference, `cosine` of the two as vectors, and how many elements differ."""

    largest: float
    cosine: float
    elements: int
    of: int

    def __str__(self) -> str:
        share = f"{self.elements:,} of {self.of:,} elements differ"
        return f"{share}, by {self.largest:.6g} at most, cosine {self.cosine:.6f}"


def distance(first: Array, second: Array) -> Distance:
    """How far apart two arrays of equal size are, without a copy of either; NaN equals NaN."""
    a = first.reshape(-1)
    b = second.reshape(-1)
    largest = 0.0
    elements = 0
    dot = norm_a = norm_b = 0.0
    for start in range(0, a.size, _CHUNK):
        x, y = (each[start : start + _CHUNK].astype(np.float64) for each in (a, b))
        apart = (x != y) & ~(np.isnan(x) & np.isnan(y))
        elements += int(apart.sum())
        if apart.any():
            gaps = np.abs(x[apart] - y[apart])
            largest = max(largest, float(np.where(np.isnan(gaps), np.inf, gaps).max()))
        x, y = np.nan_to_num(x), np.nan_to_num(y)
        dot, norm_a, norm_b = dot + float(x @ y), norm_a + float(x @ x), norm_b + float(y @ y)
    return Distance(largest, cosine_of_sums(dot, norm_a, norm_b), elements, a.size)


def cosine_of_sums(dot: float, norm_a: float, norm_b: float) -> float:
    """Cosine similarity from the product of two vectors and the power of each: two of zeros are alike, and
    nothing else is like zeros."""
    if not norm_a or not norm_b:
        return float(norm_a == norm_b)
    share = dot / float(np.sqrt(norm_a) * np.sqrt(norm_b))
    return min(share, 1.0)  # in this order: min(1.0, nan) is 1, as if what is no number were alike


def decibels(signal: float, noise: float) -> float:
    """The ratio of two powers in dB; infinite where there is no noise."""
    if noise <= 0:
        return inf
    return 10 * log10(signal / noise) if signal > 0 else -inf


def sqnr(reference: Array, found: Array) -> float:
    """Signal to quantization noise ratio in dB."""
    x, y = _vectors(reference, found)
    return decibels(float(x @ x), float(np.square(x - y).sum()))


def cosine(reference: Array, found: Array) -> float:
    """Cosine similarity of two tensors as vectors; two tensors of zeros are alike."""
    x, y = _vectors(reference, found)
    return cosine_of_sums(float(x @ y), float(x @ x), float(y @ y))


def mean_squared_error(reference: Array, found: Array) -> float:
    x, y = _vectors(reference, found)
    return float(np.square(x - y).mean()) if x.size else 0.0


def mean_absolute_error(reference: Array, found: Array) -> float:
    x, y = _vectors(reference, found)
    return float(np.abs(x - y).mean()) if x.size else 0.0


def largest_error(reference: Array, found: Array) -> float:
    """The largest absolute difference of two elements."""
    x, y = _vectors(reference, found)
    return float(np.abs(x - y).max()) if x.size else 0.0


def relative_error(reference: Array, found: Array) -> float:
    """The length of the difference, as a share of the reference's length."""
    x, y = _vectors(reference, found)
    length = float(np.linalg.norm(x))
    gap = float(np.linalg.norm(x - y))
    if length == 0:
        return 0.0 if gap == 0 else inf
    return gap / length


def top_k(reference: Array, found: Array, k: int = 1) -> float:
    """The share of the reference's k largest entries along the last axis that are among the k largest of
    the other tensor."""
    rows = reference.reshape(-1, reference.shape[-1] if reference.ndim else 1)
    others = found.reshape(rows.shape)
    count = min(k, rows.shape[-1])
    best = np.argsort(-rows, axis=-1, kind="stable")[:, :count]
    got = np.argsort(-others, axis=-1, kind="stable")[:, :count]
    shared = [np.intersect1d(a, b).size for a, b in zip(best, got, strict=True)]
    return float(np.mean(shared)) / count


def kl_divergence(reference: Array, found: Array, bins: int = 128) -> float:
    """Kullback-Leibler divergence in nats of the histograms of two tensors over their common range."""
    x, y = _vectors(reference, found)
    if not x.size:
        return 0.0
    low = min(float(x.min()), float(y.min()))
    high = max(float(x.max()), float(y.max()))
    if low == high:
        return 0.0
    p = np.histogram(x, bins, (low, high))[0] + 1e-9
    q = np.histogram(y, bins, (low, high))[0] + 1e-9
    p = p / p.sum()
    q = q / q.sum()
    return float((p * np.log(p / q)).sum())


def _vectors(reference: Array, found: Array) -> tuple[Array, Array]:
    """Both tensors as vectors of doubles, without the elements that are not finite in the reference: no
    encoding reaches a mask of minus infinity. What is not finite only in the other one stays, and counts."""
    x = reference.astype(np.float64).reshape(-1)
    y = found.astype(np.float64).reshape(-1)
    finite = np.isfinite(x)
    if finite.all():
        return x, y
    return x[finite], y[finite]
