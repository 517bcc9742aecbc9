"""Verifiers of the accuracy debugger: ten measures of how far a tensor is from its golden one.

The original documents names and parameters only; the formulas are ours, and docs/debugging.md has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import inf

import numpy as np

from openqnn.errors import InputError, UsageError
from openqnn.ir import Array
from openqnn.runtime import metrics

Parameters = Mapping[str, float]
Measure = Callable[[Sequence[Array], Sequence[Array], Parameters], float]
PERFECT_DB = 300.0  # dB that stand for no difference at all, as infinity is no JSON


@dataclass(frozen=True, slots=True)
class Verifier:
    """A measure with the parameters that it takes. `best` is its value for equal tensors."""

    name: str
    measure: Measure
    best: float
    defaults: Parameters = field(default_factory=dict[str, float])
    tensors: int = 1
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ChosenVerifier:
    """A verifier with the parameters that a user chose."""

    verifier: Verifier
    parameters: Parameters

    @property
    def name(self) -> str:
        return self.verifier.name

    def __call__(self, golden: Sequence[Array], found: Sequence[Array]) -> float:
        """The value, finite wherever the numbers allow one."""
        for first, second in zip(golden, found, strict=True):
            if first.size != second.size:
                raise InputError(f"{first.size:,} golden numbers cannot be held against {second.size:,}")
        return self.verifier.measure(golden, found, {**self.verifier.defaults, **self.parameters})

    def is_match(self, value: float) -> bool:
        """Whether a value says that both tensors are the same."""
        return bool(np.isclose(value, self.verifier.best, rtol=1e-6, atol=1e-9))


def _pair(golden: Sequence[Array], found: Sequence[Array]) -> tuple[Array, Array]:
    return golden[0].astype(np.float64).reshape(-1), found[0].astype(np.float64).reshape(-1)


def _beyond(x: Array, y: Array, limit: Array) -> float:
    """The percentage of elements whose difference is beyond a limit; what is no number in both is equal."""
    if not x.size:
        return 0.0
    with np.errstate(invalid="ignore"):
        near = (np.abs(x - y) <= limit) | (x == y) | (np.isnan(x) & np.isnan(y))
    return 100.0 * float(np.mean(~near))


def _rtol_atol(golden: Sequence[Array], found: Sequence[Array], given: Parameters) -> float:
    x, y = _pair(golden, found)
    return _beyond(x, y, given["atolmargin"] + given["rtolmargin"] * np.abs(x))


def _adjusted(golden: Sequence[Array], found: Sequence[Array], given: Parameters) -> float:
    x, y = _pair(golden, found)
    finite = x[np.isfinite(x)]
    step = float(finite.max() - finite.min()) / given["levels_num"] if finite.size else 0.0
    return _beyond(x, y, np.full_like(x, step))


def _top_k(golden: Sequence[Array], found: Sequence[Array], given: Parameters) -> float:
    k = max(1, int(given["k"]))
    rows = golden[0].reshape(-1, golden[0].shape[-1] if golden[0].ndim else 1)
    others = found[0].reshape(rows.shape)
    if not given["ordered"]:
        return metrics.top_k(rows, others, k)
    k = min(k, rows.shape[-1])
    best, got = (np.argsort(-a, axis=-1, kind="stable")[:, :k] for a in (rows, others))
    return float(np.mean(best == got))


def _scaled(value: float, given: Parameters) -> float:
    return value * given["multiplier"] / given["scale"]


def _l1(golden: Sequence[Array], found: Sequence[Array], given: Parameters) -> float:
    return _scaled(metrics.mean_absolute_error(golden[0], found[0]), given)


def _cosine(golden: Sequence[Array], found: Sequence[Array], given: Parameters) -> float:
    return _scaled(metrics.cosine(golden[0], found[0]), given)


def _sqnr(golden: Sequence[Array], found: Sequence[Array], _: Parameters) -> float:
    value = metrics.sqnr(golden[0], found[0])
    return PERFECT_DB if value == inf else max(value, -PERFECT_DB)


def _scaled_diff(golden: Sequence[Array], found: Sequence[Array], _: Parameters) -> float:
    x, y = _pair(golden, found)
    good = np.isfinite(x)
    if not good.any():
        return 0.0
    most, size = float(np.abs(x[good] - y[good]).max()), float(np.abs(x[good]).max())
    return most / size if size else (0.0 if most == 0 else inf)


def _mean_iou(golden: Sequence[Array], found: Sequence[Array], given: Parameters) -> float:
    """Boxes (y1, x1, y2, x2) and their classes: for each golden box that is not background the best overlap
    with a found one of its class."""
    boxes, others = (a[0].astype(np.float64).reshape(-1, 4) for a in (golden, found))
    classes, labels = (a[1].reshape(-1)[: len(b)] for a, b in ((golden, boxes), (found, others)))
    overlaps = [
        max(
            (_overlap(box, o) for o, label in zip(others, labels, strict=False) if label == kind), default=0.0
        )
        for box, kind in zip(boxes, classes, strict=False)
        if kind != given["background_classification"]
    ]
    return float(np.mean(overlaps)) if overlaps else 1.0


def _overlap(first: Array, second: Array) -> float:
    low, high = np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])
    shared = float(np.prod(np.clip(high - low, 0, None)))
    areas = sum(float(np.prod(np.clip(b[2:] - b[:2], 0, None))) for b in (first, second))
    return shared / (areas - shared) if areas > shared else float(np.array_equal(first, second))


_SCALING = {"multiplier": 1.0, "scale": 1.0}
VERIFIERS: dict[str, Verifier] = {
    v.name.lower(): v
    for v in (
        Verifier(
            "RtolAtol", _rtol_atol, 0.0, {"rtolmargin": 0.01, "atolmargin": 0.01},
            doc="per cent of elements with |golden - found| > atolmargin + rtolmargin * |golden|",
        ),
        Verifier(
            "AdjustedRtolAtol", _adjusted, 0.0, {"levels_num": 256},
            doc="per cent of elements that differ by more than (max - min) / levels_num of the golden tensor",
        ),
        Verifier(
            "TopK", _top_k, 1.0, {"k": 1, "ordered": 0},
            doc="share of the k largest of the last axis that are among the k largest, or in their places",
        ),
        Verifier("L1Error", _l1, 0.0, _SCALING, doc="multiplier / scale * mean |golden - found|"),
        Verifier("CosineSimilarity", _cosine, 1.0, _SCALING, doc="multiplier / scale * cosine of both"),
        Verifier("MSE", lambda g, f, _: metrics.mean_squared_error(g[0], f[0]), 0.0, doc="mean square"),
        Verifier("MAE", lambda g, f, _: metrics.mean_absolute_error(g[0], f[0]), 0.0, doc="mean |error|"),
        Verifier("SQNR", _sqnr, PERFECT_DB, doc="power of golden over that of the difference, in dB"),
        Verifier(
            "MeanIOU", _mean_iou, 1.0, {"background_classification": 1.0}, tensors=2,
            doc="mean overlap of golden boxes with the best found one of their class; boxes, then classes",
        ),
        Verifier("ScaledDiff", _scaled_diff, 0.0, doc="max |golden - found| / max |golden|"),
    )
}  # fmt: skip
_OTHER_NAMES = {"number_of_levels": "levels_num", "levels": "levels_num", "param1": "", "param2": ""}


def verifier_named(name: str) -> Verifier:
    """The verifier of a name, in any case; UsageError names the others."""
    found = VERIFIERS.get(name.strip().lower())
    if found is None:
        near = get_close_matches(name.lower(), VERIFIERS) or list(VERIFIERS)
        known = ", ".join(VERIFIERS[n].name for n in near)
        raise UsageError(f"there is no verifier '{name}'", hint=f"there are {known}")
    return found


def read_verifier(words: Sequence[str]) -> ChosenVerifier:
    """`rtolatol,rtolmargin,0.01` or the words of `TopK k 5`: a name, then parameters by name and value."""
    parts = [p for word in words for p in word.split(",") if p.strip()]
    if not parts:
        raise UsageError("a verifier has a name", hint="--default_verifier CosineSimilarity")
    verifier = verifier_named(parts[0])
    if len(parts) % 2 == 0:
        raise UsageError(
            f"{verifier.name}: parameter '{parts[-1]}' has no value", hint=f"{verifier.name},name,value"
        )
    return with_parameters(verifier, dict(zip(parts[1::2], parts[2::2], strict=True)))


def with_parameters(verifier: Verifier, given: Mapping[str, object]) -> ChosenVerifier:
    """A verifier with parameters, checked; placeholders of the documented samples have no effect."""
    found: dict[str, float] = {}
    for name, text in given.items():
        known = _OTHER_NAMES.get(name.lower(), name.lower())
        if not known:
            continue
        if known not in verifier.defaults:
            takes = ", ".join(verifier.defaults) or "none"
            raise UsageError(f"{verifier.name} has no parameter '{name}'", hint=f"it takes {takes}")
        found[known] = _number(verifier, name, text)
    return ChosenVerifier(verifier, found)


def _number(verifier: Verifier, name: str, text: object) -> float:
    if isinstance(text, str) and text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        return float(text)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        raise UsageError(f"{verifier.name}: parameter '{name}' is {text!r}, and must be a number") from None
