"""How far apart two arrays are, without a copy of either."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Of two arrays with as many elements; NaN equals NaN."""
    a, b = first.reshape(-1), second.reshape(-1)
    largest, elements = 0.0, 0
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
    return Distance(largest, _cosine(dot, norm_a, norm_b), elements, a.size)


def _cosine(dot: float, norm_a: float, norm_b: float) -> float:
    if not norm_a or not norm_b:
        return float(norm_a == norm_b)
    return min(1.0, dot / float(np.sqrt(norm_a) * np.sqrt(norm_b)))
