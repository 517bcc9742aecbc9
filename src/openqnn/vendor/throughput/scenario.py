"""Load as MLPerf defines it: single stream, multi stream, server and offline, with early stopping.

A query of the single stream is one sample, and the next one starts when it is done; of the multi stream it is
eight. Queries of the server arrive by a Poisson process, whether or not the last one is done, and a share of
them must be done within a bound. Offline hands over all samples at once. A percentile holds with 99 percent
confidence when the binomial distribution says so, which decides how few queries are enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

SINGLE_STREAM, MULTI_STREAM, SERVER, OFFLINE = "single_stream", "multi_stream", "server", "offline"
SCENARIOS = (SINGLE_STREAM, MULTI_STREAM, SERVER, OFFLINE)
PERCENTILE = {SINGLE_STREAM: 0.90, MULTI_STREAM: 0.99, SERVER: 0.99, OFFLINE: 0.0}
SAMPLES_PER_QUERY = 8  # of the multi stream
OFFLINE_SAMPLES = 24576
CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load and its limits. `rate` is queries a second, `bound` seconds; both are the server's."""

    kind: str
    duration: float = 60.0
    queries: int | None = None
    """The least number of them, or for offline the number of samples."""
    rate: float = 0.0
    bound: float = 0.0
    seed: int = 1

    @property
    def percentile(self) -> float:
        return PERCENTILE[self.kind]

    @property
    def samples(self) -> int:
        return SAMPLES_PER_QUERY if self.kind == MULTI_STREAM else 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scenario came to for one model: the figure, its unit, and whether the run counts."""

    valid: bool
    metric: str
    value: float | None
    unit: str
    queries: int
    over: int
    """Queries beyond the bound, or beyond the figure that is given."""
    reason: str = ""


def arrivals(scenario: Scenario) -> Iterator[float]:
    """Seconds at which the server's queries arrive: gaps are exponential."""
    random = np.random.default_rng(scenario.seed)
    at = 0.0
    while True:
        for gap in random.exponential(1.0 / scenario.rate, 1024):
            at += float(gap)
            yield at


def allowed_over(queries: int, percentile: float) -> int:
    """How many of so many queries may be too late for the percentile to hold with confidence; -1 for none.

    The largest t for which t or fewer late ones of n have a chance of at most 1 percent, were the share of
    late ones exactly what the percentile leaves.
    """
    late = 1.0 - percentile
    total, term, allowed = 0.0, queries * math.log1p(-late), -1
    for number in range(queries + 1):
        if number:
            term += math.log((queries - number + 1) / number) + math.log(late / (1.0 - late))
        total += math.exp(term)
        if total > 1.0 - CONFIDENCE:
            return allowed
        allowed = number
    return allowed


def judge(scenario: Scenario, latencies: np.ndarray, seconds: float) -> Outcome:
    """The figure of a scenario from the latencies of its queries, and whether it counts."""
    count = len(latencies)
    if scenario.kind == OFFLINE:
        value = count / seconds if seconds else None
        wanted = scenario.queries or OFFLINE_SAMPLES
        return Outcome(
            count >= wanted, "samples per second", value, "samples/s", count, 0,
            "" if count >= wanted else f"{count} of {wanted} samples",
        )  # fmt: skip
    allowed = allowed_over(count, scenario.percentile)
    if scenario.kind == SERVER:
        return _server(scenario, latencies, seconds, allowed)
    metric = f"{scenario.percentile:.0%} of queries within"
    if allowed < 1:
        why = f"{count} queries are too few for the {scenario.percentile:.0%} percentile to be told"
        return Outcome(False, metric, None, "ms", count, 0, why)
    value = float(np.sort(latencies)[count - 1 - allowed]) * 1e3  # as many as are allowed took longer
    return Outcome(True, metric, value, "ms", count, allowed)


def _server(scenario: Scenario, latencies: np.ndarray, seconds: float, allowed: int) -> Outcome:
    count, over = len(latencies), int((latencies > scenario.bound).sum())
    rate = count / seconds if seconds else None
    reason = ""
    if allowed < 0:
        reason = f"{count} queries are too few for the {scenario.percentile:.0%} percentile to be told"
    elif over > allowed:
        share = over / count
        reason = (
            f"{share:.1%} of {count} queries took longer than {scenario.bound * 1e3:g} ms;"
            f" {max(allowed, 0)} of them may"
        )
    metric = f"queries per second with {scenario.percentile:.0%} within {scenario.bound * 1e3:g} ms"
    return Outcome(not reason, metric, rate, "queries/s", count, over, reason)
