"""Measures of a difference, against numbers that were worked out by hand."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest

from openqnn.analysis.accuracy.tally import Tally
from openqnn.runtime import metrics
from openqnn.runtime.compare import Noise

X = np.array([3.0, 4.0], np.float32)
Y = np.array([3.0, 3.0], np.float32)
METRICS = {
    "sqnr": metrics.sqnr,
    "cosine": metrics.cosine,
    "mse": metrics.mean_squared_error,
    "mae": metrics.mean_absolute_error,
    "max": metrics.largest_error,
    "relative": metrics.relative_error,
    "top1": metrics.top_k,
    "kl": metrics.kl_divergence,
}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("sqnr", 10 * np.log10(25 / 1)),
        ("cosine", 21 / (5 * np.sqrt(18))),
        ("mse", 0.5),
        ("mae", 0.5),
        ("max", 1.0),
        ("relative", 0.2),
    ],
)
def test_by_hand(name: str, wanted: float) -> None:
    assert METRICS[name](X, Y) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", METRICS)
def test_equal_tensors(name: str) -> None:
    best = {"sqnr": inf, "cosine": 1.0, "top1": 1.0}
    assert METRICS[name](X, X) == pytest.approx(best.get(name, 0.0), abs=1e-12)


def test_what_is_infinite_in_the_reference_does_not_count() -> None:
    masked = np.array([-np.inf, 3.0, 4.0], np.float32)
    found = np.array([-1e4, 3.0, 3.0], np.float32)
    assert metrics.sqnr(masked, found) == pytest.approx(metrics.sqnr(X, Y))


def test_what_is_nan_only_in_the_result_counts() -> None:
    assert not metrics.sqnr(X, np.array([3.0, np.nan], np.float32)) > 0


def test_nothing_is_like_zeros_but_zeros() -> None:
    """An output whose steps are larger than all its values is no good one."""
    noise = Noise(None)
    noise.add(X, np.zeros(2, np.float32), signed=False)
    assert noise.cosine == metrics.cosine(X, np.zeros(2, np.float32)) == 0
    assert Noise(None).cosine == Tally().cosine == 1  # no numbers yet


def test_top_k_is_the_share_of_the_best_that_are_found() -> None:
    scores = np.array([[0.1, 0.6, 0.3], [0.7, 0.2, 0.1]], np.float32)
    found = np.array([[0.1, 0.3, 0.6], [0.7, 0.1, 0.2]], np.float32)
    assert metrics.top_k(scores, found) == 0.5
    assert metrics.top_k(scores, found, 2) == pytest.approx(0.75)


def test_divergence_of_two_coins() -> None:
    fair = np.array([0, 1] * 50, np.float32)
    loaded = np.array([0] * 75 + [1] * 25, np.float32)
    wanted = 0.5 * log(0.5 / 0.75) + 0.5 * log(0.5 / 0.25)
    assert metrics.kl_divergence(fair, loaded) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("name", ["sqnr", "cosine", "mse", "mae", "max"])
def test_what_is_no_number_is_not_alike(name: str) -> None:
    value = METRICS[name](X, np.array([np.nan, 3.0], np.float32))
    assert value != METRICS[name](X, X)
