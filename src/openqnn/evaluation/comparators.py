"""Comparators of the accuracy evaluator: how alike the outputs of two runs are, as a percentage or a value.

A percentage is 100 where both are equal and never below 0. The reference (x) is what the other one (y) is
held against; elements that are not finite in x are left out where a whole tensor becomes one number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf

import numpy as np

from openqnn.errors import UsageError
from openqnn.ir import Array
from openqnn.runtime import metrics

PERCENT, VALUE = "percentage", "value"
ELEMENTWISE = ("abs", "topk")
Compare = Callable[[Array, Array, float], float]


@dataclass(frozen=True, slots=True)
class Comparator:
    """A measure with its name. `tolerance` is the usual one, and what it means is in `doc`."""

    name: str
    unit: str
    doc: str
    compare: Compare
    tolerance: float = 0.001
    higher_is_better: bool = True

    @property
    def title(self) -> str:
        """The words before the mean of all outputs."""
        return "Avg Match (all outputs)" if self.unit == PERCENT else "Avg Value (all outputs)"

    def measure(self, x: Array, y: Array, tolerance: float) -> float:
        """The comparison; the worst value where the other tensor has NaN or infinity for a number, unless
        elements count one by one."""
        if self.name not in ELEMENTWISE and not np.isfinite(_flat(x, y)[1]).all():
            return 0.0 if self.unit == PERCENT else -inf if self.higher_is_better else inf
        return self.compare(x, y, tolerance)

    def rank(self, value: float) -> float:
        """What results are ordered by: less is better; nothing known comes last."""
        if value != value:  # noqa: PLR0124  NaN
            return inf
        return -value if self.higher_is_better else value


def _flat(x: Array, y: Array) -> tuple[Array, Array]:
    a, b = (np.asarray(each, np.float64).reshape(-1) for each in (x, y))
    finite = np.isfinite(a)
    return (a, b) if finite.all() else (a[finite], b[finite])


def _lost(error: float, whole: float) -> float:
    """A percentage: 100 less the share that is lost."""
    if error != error:  # noqa: PLR0124  NaN
        return 0.0
    if whole <= 0:
        return 100.0 if error == 0 else 0.0
    return max(0.0, 100.0 * (1.0 - error / whole))


def _abs(x: Array, y: Array, tolerance: float) -> float:
    a, b = _flat(x, y)
    return 100.0 * float(np.isclose(b, a, rtol=tolerance, atol=0.0).mean()) if a.size else 100.0


def _cos(x: Array, y: Array, _: float) -> float:
    return max(0.0, 100.0 * metrics.cosine(x, y))


def _topk(x: Array, y: Array, tolerance: float) -> float:
    return 100.0 * metrics.top_k(np.atleast_1d(x), np.atleast_1d(y), max(1, round(tolerance)))


def _avg(x: Array, y: Array, _: float) -> float:
    a, _b = _flat(x, y)
    return _lost(metrics.mean_absolute_error(x, y), float(np.abs(a).max()) if a.size else 0.0)


def _l1norm(x: Array, y: Array, _: float) -> float:
    a, b = _flat(x, y)
    return _lost(float(np.abs(a - b).sum()), float(np.abs(a).sum()))


def _l2norm(x: Array, y: Array, _: float) -> float:
    return _lost(metrics.relative_error(x, y), 1.0)


def _std(x: Array, y: Array, _: float) -> float:
    a, b = _flat(x, y)
    if not a.size:
        return 100.0
    return _lost(abs(float(a.std()) - float(b.std())), float(a.std()))


def _rme(x: Array, y: Array, _: float) -> float:
    a, _b = _flat(x, y)
    return _lost(float(np.sqrt(metrics.mean_squared_error(x, y))), float(np.ptp(a)) if a.size else 0.0)


def _pixels(x: Array, y: Array, _: float) -> float:
    return metrics.mean_absolute_error(x, y)


def _row(
    name: str, unit: str, doc: str, compare: Compare, tolerance: float = 0.001, higher: bool = True
) -> tuple[str, Comparator]:
    return name, Comparator(name, unit, doc, compare, tolerance, higher)


BOX, PIXELS = "box", "pixelbypixel"
COMPARATORS: Mapping[str, Comparator] = dict([
    _row("abs", PERCENT, "share of elements with |x - y| <= tolerance * |x|", _abs),
    _row("cos", PERCENT, "cosine similarity; opposite directions give 0", _cos),
    _row("topk", PERCENT, "share of the k largest entries that stay; the tolerance is k", _topk, 1.0),
    _row("avg", PERCENT, "100 less the mean |x - y| as a share of the largest |x|", _avg),
    _row("l1norm", PERCENT, "100 less the sum of |x - y| as a share of that of |x|", _l1norm),
    _row("l2norm", PERCENT, "100 less the length of x - y as a share of that of x", _l2norm),
    _row("std", PERCENT, "100 less the difference of standard deviations as a share of that of x", _std),
    _row("rme", PERCENT, "100 less the root of the mean squared error as a share of the range of x", _rme),
    _row("snr", VALUE, "signal to noise ratio in dB", lambda x, y, _: metrics.sqnr(x, y)),
    _row("maxerror", VALUE, "largest |x - y|", lambda x, y, _: metrics.largest_error(x, y), higher=False),
    _row(
        "kld", VALUE, "Kullback-Leibler divergence of the histograms, in nats",
        lambda x, y, _: metrics.kl_divergence(x, y), higher=False,
    ),
    _row(PIXELS, VALUE, "mean |x - y|, and a picture of it for each input", _pixels, higher=False),
    _row(BOX, PERCENT, "boxes found again: same class, overlap of at least the tolerance", _pixels, 0.5),
])  # fmt: skip


def comparator_named(name: str) -> Comparator:
    """The comparator; UsageError with the nearest names where there is none."""
    found = COMPARATORS.get(name.lower())
    if found is None:
        near = get_close_matches(name.lower(), COMPARATORS, 2)
        hint = f"did you mean {' or '.join(near)}?" if near else ", ".join(COMPARATORS)
        raise UsageError(f"there is no comparator '{name}'", hint=hint)
    return found
