"""Tables and ratios, for people and as JSON."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Section:
    """One table with its verdicts: what was measured, against which target."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def text(self) -> str:
        cells = [self.columns, *([_cell(c) for c in row] for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
        return "\n".join([self.title, "", *lines, "", *map(str, self.verdicts)])

    def as_json(self) -> dict[str, Any]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {
            "title": self.title,
            "rows": rows,
            "verdicts": [vars(v) | {"met": v.met} for v in self.verdicts],
        }


@dataclass
class Verdict:
    """A figure and the target that it is held against."""

    what: str
    value: float
    target: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return (
            f"{'ok  ' if self.met else 'MISS'} {self.what}: {self.value:.2f} (target {sign} {self.target:g})"
        )


def _cell(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else 0.0


def median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def machine() -> str:
    kind = f"{platform.system()} {platform.machine()}"
    return f"{kind}, {os.cpu_count()} cores, Python {platform.python_version()}"
