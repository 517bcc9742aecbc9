"""Percentiles, the course of time and MLPerf's early stopping, against numbers that are known."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.vendor.throughput import latencies as module
from openqnn.vendor.throughput.latencies import Latencies
from openqnn.vendor.throughput.scenario import Scenario, allowed_over, arrivals, judge


def filled(times: np.ndarray) -> Latencies:
    made = Latencies(0.0)
    for at, each in enumerate(times):
        made.add(at * 0.01, 0.0, 0.0, float(each))
    return made


@pytest.mark.parametrize("exact", [1 << 16, 100])
def test_percentiles(exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXACT", exact)
    times = np.random.default_rng(0).gamma(2.0, 1e-3, 5003)
    spread = filled(times).spread()
    for name, share in (("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9)):
        wanted = np.percentile(times, share, method="inverted_cdf")
        assert spread.percentiles[name] == pytest.approx(wanted, rel=1e-9 if exact > 5003 else 0.006)
    assert spread.count == 5003 and spread.mean == pytest.approx(times.mean())


def test_percentile_without_support() -> None:
    assert set(filled(np.full(50, 1e-3)).spread().percentiles) == {"p50", "p90", "p95"}


def test_course_in_fixed_memory() -> None:
    made = filled(np.full(10_000, 1e-3))
    course = made.course()
    assert sum(course.counts) == 10_000 and len(course.counts) <= module.SLOTS
    assert course.width * len(course.counts) == pytest.approx(100, rel=0.01)


def test_early_stopping_as_mlperf() -> None:
    """MLPerf's least numbers of queries: 64 for a percentile of 90, 662 for one of 99."""
    assert (allowed_over(63, 0.90), allowed_over(64, 0.90)) == (0, 1)
    assert (allowed_over(661, 0.99), allowed_over(662, 0.99)) == (0, 1)
    assert allowed_over(10, 0.99) == -1


def test_poisson_arrivals() -> None:
    scenario = Scenario("server", rate=100.0, bound=0.1)
    times = np.array([at for at, _ in zip(arrivals(scenario), range(20_000), strict=False)])
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(0.01, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)  # exponential


def test_server_beyond_its_bound() -> None:
    late = np.full(1000, 0.001)
    late[:30] = 0.5
    outcome = judge(Scenario("server", rate=10.0, bound=0.1), late, 100.0)
    assert not outcome.valid and outcome.over == 30 and "took longer than 100 ms" in outcome.reason
    assert judge(Scenario("server", rate=10.0, bound=1.0), late, 100.0).valid


def test_single_stream() -> None:
    times = np.linspace(0.001, 0.1, 1000)
    outcome = judge(Scenario("single_stream"), times, 50.0)
    assert outcome.valid and outcome.value is not None
    assert (times * 1e3 > outcome.value).sum() == outcome.over == allowed_over(1000, 0.9)
