"""Quantization checks: what an option of the quantizer does to weights, biases and activations, one by one.

The original documents names, parameters and result texts; how a threshold is used is ours, and told in
docs/debugging.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openqnn.errors import UsageError
from openqnn.ir import Array, Encoding
from openqnn.runtime.metrics import sqnr

WEIGHT, BIAS, ACTIVATION = "Weight", "Bias", "Activation"


@dataclass(frozen=True, slots=True)
class CheckedTensor:
    """A tensor before and after quantization; `encoding` is None where it stays in floating point."""

    op: str
    name: str
    kind: str
    real: Array
    found: Array
    encoding: Encoding | None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One algorithm on one tensor."""

    op: str
    name: str
    kind: str
    algorithm: str
    threshold: float
    passed: bool
    text: str


def _minmax(tensor: CheckedTensor, limit: float) -> tuple[bool, str]:
    low = abs(float(tensor.real.min()) - float(tensor.found.min()))
    high = abs(float(tensor.real.max()) - float(tensor.found.max()))
    return max(low, high) <= limit, f"min: {low} max: {high}"


def _maxdiff(tensor: CheckedTensor, limit: float) -> tuple[bool, str]:
    most = float(np.abs(tensor.real - tensor.found).max())
    return most <= limit, str(most)


def _sqnr(tensor: CheckedTensor, limit: float) -> tuple[bool, str]:
    value = sqnr(tensor.real, tensor.found)
    return value >= limit, str(value)


def _data_range(tensor: CheckedTensor, _: float) -> tuple[bool, str]:
    """Passes where the range is no larger than the largest integer of the width."""
    bits = tensor.encoding.bitwidth if tensor.encoding is not None else 32
    span = float(tensor.real.max()) - float(tensor.real.min())
    some = tensor.real.reshape(-1)[:4096]
    places = {len(f"{v:.7g}".partition(".")[2].partition("e")[0]) for v in some.tolist()}
    return span <= 2.0**bits - 1, f"unique dec places: {len(places)} data range : {span}"


def _distribution(tensor: CheckedTensor, limit: float) -> tuple[bool, str]:
    """The share of stored values that stand for more than a percentage of all different real ones."""
    unique, first = np.unique(tensor.real.reshape(-1), return_index=True)
    _, counts = np.unique(tensor.found.reshape(-1)[first], return_counts=True)
    share = float(np.mean(counts > limit / 100 * max(unique.size, 1)))
    return True, f"Distribution of pixels above threshold: {share}"


def _stats(tensor: CheckedTensor, limit: float) -> tuple[bool, str]:
    x = tensor.real.astype(np.float64).reshape(-1)
    spread = float(x.std())
    skew = float(np.mean(((x - x.mean()) / spread) ** 3)) if spread else 0.0
    values, counts = np.unique(x, return_counts=True)
    text = (
        f"skew: {skew} min: {x.min()} max: {x.max()} median: {np.median(x)} variance: {spread**2}"
        f" stdDev: {spread} mode: {values[counts.argmax()]}"
    )
    return abs(skew) <= limit, text


CHECKS: Mapping[str, Callable[[CheckedTensor, float], tuple[bool, str]]] = {
    "minmax": _minmax,
    "maxdiff": _maxdiff,
    "sqnr": _sqnr,
    "data_range_analyzer": _data_range,
    "data_distribution_analyzer": _distribution,
    "stats": _stats,
}
COLUMNS = {
    "stats": "Symmetry",
    "data_range_analyzer": "Quantization Bit-Width Range",
    "data_distribution_analyzer": "Clustering of Unquantized Data",
    "minmax": "Minimum/Maximum Difference Value",
    "maxdiff": "Maximum Absolute Difference",
    "sqnr": "Signal to Quantization Noise Ratio",
}
_OTHER_NAMES = {
    "act_minmax": "minmax", "act_maxdiff": "maxdiff", "act_sqnr": "sqnr", "data_range": "data_range_analyzer",
    "data_distribution": "data_distribution_analyzer", "sqr": "sqnr",
}  # fmt: skip
USUAL = {"minmax": 10.0, "maxdiff": 10.0, "sqnr": 26.0, "stats": 2.0}


def chosen_checks(said: Sequence[Mapping[str, object]]) -> dict[str, float]:
    """Thresholds by algorithm, from entries with algo_name and threshold."""
    found: dict[str, float] = {}
    for entry in said:
        name = str(entry.get("algo_name", "")).lower()
        name = _OTHER_NAMES.get(name, name)
        if name not in CHECKS:
            raise UsageError(f"there is no algorithm '{name}'", hint=f"there are {', '.join(CHECKS)}")
        try:
            found[name] = float(str(entry.get("threshold", USUAL.get(name, 10.0))))
        except ValueError:
            raise UsageError(f"{name}: threshold {entry['threshold']!r} is no number") from None
    return found


def check_tensor(tensor: CheckedTensor, checks: Mapping[str, float]) -> list[CheckResult]:
    """All algorithms on one tensor; an empty tensor, or one without a number, has nothing to check."""
    if not tensor.real.size or not np.isfinite(tensor.real).all():
        return []
    return [
        CheckResult(tensor.op, tensor.name, tensor.kind, name, limit, *CHECKS[name](tensor, limit))
        for name, limit in checks.items()
    ]
