"""Plots as PNG files, drawn with Pillow: histograms, curves and marks, with axes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from openqnn.errors import InputError
from openqnn.ir import Array

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 45
COLOURS = ("#3b7dd8", "#e0a000", "#d0402b", "#2a9d55")
INK, LIGHT = "#222222", "#dddddd"


@dataclass(frozen=True, slots=True)
class Series:
    """Points of a curve, dots, or bars (a height for each of equal steps from x[0] to x[-1])."""

    name: str
    x: Array
    y: Array
    kind: str = "line"


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line with a name."""

    name: str
    x: float


@dataclass(frozen=True, slots=True)
class Plot:
    title: str
    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    xlabel: str = ""


def draw_png(plots: Sequence[Plot]) -> bytes:
    """Plots below each other."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise InputError("plots need the package pillow", hint="pip install 'openqnn[debug]'") from None
    image = Image.new("RGB", (WIDTH, HEIGHT * len(plots)), "white")
    draw = ImageDraw.Draw(image)
    for index, plot in enumerate(plots):
        _draw(draw, plot, index * HEIGHT)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _limits(values: list[Array]) -> tuple[float, float]:
    found = [v[np.isfinite(v)] for v in values]
    joined = np.concatenate([v.reshape(-1) for v in found]) if found else np.zeros(0)
    low, high = (float(joined.min()), float(joined.max())) if joined.size else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _draw(draw: ImageDraw, plot: Plot, top: int) -> None:
    marks = np.asarray([m.x for m in plot.marks if isfinite(m.x)], np.float64)
    x0, x1 = _limits([*(s.x.astype(np.float64) for s in plot.series), marks])
    y0, y1 = _limits([s.y.astype(np.float64) for s in plot.series])
    if any(s.kind == "bars" for s in plot.series):
        y0 = min(y0, 0.0)
    across = lambda v: LEFT + (v - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)
    down = lambda v: top + HEIGHT - BOTTOM - (v - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)
    _frame(draw, plot, top, (x0, x1, y0, y1), across, down)
    for index, series in enumerate(plot.series):
        colour = COLOURS[index % len(COLOURS)]
        draw.text((LEFT + 150 * index, top + 22), series.name, colour)
        _curve(draw, series, colour, across, down, y0)
    for index, mark in enumerate(plot.marks):
        if isfinite(mark.x):
            colour = COLOURS[(index + len(plot.series)) % len(COLOURS)]
            draw.line((across(mark.x), top + TOP, across(mark.x), top + HEIGHT - BOTTOM), colour)
            draw.text((across(mark.x) + 2, top + TOP + 12 * index), mark.name, colour)


def _frame(draw: ImageDraw, plot: Plot, top: int, ends: Sequence[float], across: Any, down: Any) -> None:
    x0, x1, y0, y1 = ends
    draw.text((LEFT, top + 6), plot.title[:110], INK)
    for step in range(6):
        x, y = x0 + (x1 - x0) * step / 5, y0 + (y1 - y0) * step / 5
        draw.line((across(x), top + TOP, across(x), top + HEIGHT - BOTTOM), LIGHT)
        draw.line((LEFT, down(y), WIDTH - RIGHT, down(y)), LIGHT)
        draw.text((across(x) - 15, top + HEIGHT - BOTTOM + 5), f"{x:.3g}", INK)
        draw.text((4, down(y) - 5), f"{y:.3g}", INK)
    draw.rectangle((LEFT, top + TOP, WIDTH - RIGHT, top + HEIGHT - BOTTOM), outline=INK)
    draw.text((WIDTH // 2 - 30, top + HEIGHT - 18), plot.xlabel, INK)


def _curve(draw: ImageDraw, series: Series, colour: str, across: Any, down: Any, floor: float) -> None:
    good = np.isfinite(series.x) & np.isfinite(series.y)
    x, y = series.x[good].astype(np.float64), series.y[good].astype(np.float64)
    points = [(across(a), down(b)) for a, b in zip(x, y, strict=True)]
    if series.kind == "line" and len(points) > 1:
        draw.line(points, colour, 2)
    elif series.kind == "bars" and len(points) > 1:
        half = (points[1][0] - points[0][0]) / 2
        for a, b in points:
            draw.rectangle((a - half, b, a + half, down(floor)), outline=colour)
    else:
        for a, b in points:
            draw.ellipse((a - 1.5, b - 1.5, a + 1.5, b + 1.5), fill=colour)
