"""Parts of HTML pages that stand alone: a page, tables, plots and treemaps in SVG, no addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10
from typing import TypeAlias

from openqnn.analysis.palette import REPORT_SCRIPT, REPORT_STYLE, node_address, node_link

STYLE = (
    REPORT_STYLE
    + """
p.note { color: var(--dim); max-width: 60rem; }
svg { max-width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; }
svg .axis { stroke: currentColor; stroke-opacity: .5; } svg .grid { stroke: var(--edge); }
svg .line { fill: none; stroke-width: 1.8; }
svg .tile { stroke: var(--back); stroke-width: 1; } svg .on { fill: #fff; }
.keys span { display: inline-block; margin-right: 1.2rem; }
.keys i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; border-radius: 2px; }
"""
)
COLOURS = ("#3b7dd8", "#d9822b", "#2e8b57", "#a044b0", "#c0392b", "#16808c", "#8a6d3b", "#6b7280")
WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 760, 300, 82, 40, 12, 34
LETTER = 7.4  # the width of a letter of 11 pixels, where fonts are wide
TELLING = 10  # letters of a name that say something
LONGEST_WORD = 30  # letters that make a column no wider than others
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class NodeName:
    """A node in a cell of a table: `view` is the viewer's page beside the report, in which it is looked up by
    the name that is shown, or by another."""

    shown: str
    view: str = ""
    name: str = ""


Cell: TypeAlias = str | float | int | NodeName | None


def page(title: str, parts: Sequence[str]) -> str:
    """A whole HTML file; the parts are HTML."""
    return "\n".join((
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *parts,
        f"<script>{REPORT_SCRIPT}</script></body></html>\n",
    ))  # fmt: skip


def note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Numbers stand to the right, with as many digits as they need."""
    numeric = [all(_is_number(row[i]) for row in rows) and bool(rows) for i in range(len(head))]
    titles = "".join(f"<th{_class(n)}>{escape(word)}</th>" for word, n in zip(head, numeric, strict=True))
    lines = [
        "<tr>"
        + "".join(
            f"<td{_class(n) or _long(cell)}>{_cell(cell)}</td>" for cell, n in zip(row, numeric, strict=True)
        )
        for row in rows
    ]
    body = "</tr>\n".join(lines)
    below = f"<tbody>{body}</tr></tbody>" if lines else "<tbody></tbody>"
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead>{below}</table></div>'


def _is_number(cell: Cell) -> bool:
    """Also shares, which have their sign behind them."""
    if isinstance(cell, str):
        return cell.endswith("%") and cell[:-1].replace(".", "", 1).isdecimal()
    return not isinstance(cell, NodeName)


def _long(cell: Cell) -> str:
    """Text with names that are longer than a column may be broken anywhere."""
    has_names = isinstance(cell, str) and any(len(word) > LONGEST_WORD for word in cell.split())
    return ' class="long"' if has_names else ""


def keys(names: Sequence[str]) -> str:
    """Which colour is what."""
    each = (f'<span><i style="background:{colour(i)}"></i>{escape(n)}</span>' for i, n in enumerate(names))
    return f'<p class="keys">{"".join(each)}</p>'


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def number(value: float) -> str:
    """Three or four digits that count."""
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = max(0, 3 - 1 - floor(log10(abs(value))))
    return f"{value:.{digits}f}"


class Plot:
    """Axes of an SVG plot, linear or logarithmic, and what is drawn in them."""

    def __init__(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        labels: tuple[str, str],
        *,
        log: tuple[bool, bool] = (False, False),
        zero: bool = True,
        loose: bool = False,
    ) -> None:
        """With `loose` linear axes begin a little before the first value and end a little behind the last."""
        self._labels, self._log = labels, log
        self._x = _range(xs, log[0], zero=False)
        self._y = _range(ys, log[1], zero=zero)
        if loose:
            self._x, self._y = _loose(xs), _loose(ys)
        self._drawn: list[str] = []
        self._words: list[tuple[float, float]] = []

    def line(self, points: Points, index: int, title: str = "") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self.place, points))
        self._drawn.append(
            f'<polyline class="line" stroke="{colour(index)}" points="{path}">'
            f"<title>{escape(title)}</title></polyline>"
        )

    def dot(self, point: tuple[float, float], index: int, title: str = "", radius: float = 4) -> None:
        x, y = self.place(point)
        self._drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour(index)}" fill-opacity=".75">'
            f"<title>{escape(title)}</title></circle>"
        )

    def word(self, point: tuple[float, float], text: str) -> None:
        """Beside a point, unless it would stand on a word that is there."""
        x, y = self.place(point)
        if any(abs(x - left) < LETTER * (len(text) + 1) and abs(y - base) < 12 for left, base in self._words):
            return
        self._words.append((x, y))
        self._drawn.append(f'<text x="{x + 7:.1f}" y="{y - 5:.1f}">{escape(text)}</text>')

    def place(self, point: tuple[float, float]) -> tuple[float, float]:
        across = _share(point[0], self._x, self._log[0])
        up = _share(point[1], self._y, self._log[1])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BELOW - up * (HEIGHT - BELOW - ABOVE)

    def svg(self) -> str:
        bottom, right = HEIGHT - BELOW, WIDTH - RIGHT
        marks: list[str] = []
        for value in _ticks(self._x, self._log[0]):
            x, _ = self.place((value, self._y[0]))
            marks.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{ABOVE}" y2="{bottom}"/>')
            marks.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{_tick(value)}</text>')
        for value in _ticks(self._y, self._log[1]):
            _, y = self.place((self._x[0], value))
            marks.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            marks.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(value)}</text>')
        middle = (LEFT + right) / 2
        return "\n".join((
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
            f' aria-label="{escape(self._labels[1])} by {escape(self._labels[0])}">',
            *marks,
            f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>',
            f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{ABOVE}" y2="{bottom}"/>',
            f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(self._labels[0])}</text>',
            f'<text transform="translate(13 {(ABOVE + bottom) / 2}) rotate(-90)" text-anchor="middle">'
            f"{escape(self._labels[1])}</text>",
            *self._drawn,
            "</svg>",
        ))  # fmt: skip


def line_plot(
    series: Mapping[str, Points], labels: tuple[str, str], *, log: tuple[bool, bool] = (False, False)
) -> str:
    """Lines with their names below."""
    points = [point for line in series.values() for point in line]
    if not points:
        return note("nothing to plot")
    plot = Plot([x for x, _ in points], [y for _, y in points], labels, log=log)
    for index, (name, line) in enumerate(series.items()):
        plot.line(line, index, name)
    return plot.svg() + (keys(list(series)) if len(series) > 1 else "")


def treemap(
    items: Sequence[tuple[str, float, str]], width: int = 1000, height: int = 420, view: str = ""
) -> str:
    """Areas by value, the largest first; each item is a name, a value and a kind. The largest kinds have a
    colour each, and the last colour is for all others. `view` is the viewer's page beside the report, to
    whose nodes the areas lead."""
    kinds = _kinds(items)
    chosen = sorted((item for item in items if item[1] > 0), key=lambda item: -item[1])
    total = sum(value for _, value, _ in chosen)
    tiles: list[str] = []
    for (name, value, kind), (x, y, w, h) in zip(
        chosen, _squarify([v for _, v, _ in chosen], 0.0, 0.0, float(width), float(height)), strict=True
    ):
        share = f"{value / total:.1%}"
        tiles.append(
            f'{_opening(name, view)}<rect class="tile" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}"'
            f' height="{h:.1f}" fill="{colour(kinds.index(kind) if kind in kinds else -1)}">'
            f"<title>{escape(name)} ({escape(kind)}): {number(value)} ({share})</title></rect>"
        )
        room = int((w - 8) / LETTER)
        words = [*_short(name, room), *([share] if len(share) <= room else [])]
        for line, word in enumerate(words[: int(h / 14)], 1):
            tiles.append(f'<text class="on" x="{x + 4:.1f}" y="{y + 13 * line:.1f}">{escape(word)}</text>')
        tiles.append("</a>" if view else "</g>")
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    role = "group" if view else "img"
    svg = f'<svg {size} role="{role}" aria-label="areas by value">{"".join(tiles)}</svg>'
    return svg + keys(kinds)


def _kinds(items: Sequence[tuple[str, float, str]]) -> list[str]:
    """By what they take, as many as there are colours; "others" stands for those beyond."""
    totals: dict[str, float] = {}
    for _, value, kind in items:
        totals[kind] = totals.get(kind, 0.0) + value
    kinds = sorted(totals, key=lambda kind: -totals[kind])
    return kinds if len(kinds) <= len(COLOURS) else [*kinds[: len(COLOURS) - 1], "others"]


def _short(name: str, room: int) -> list[str]:
    """The end of a name where there is no room for all of it, and none where so little says nothing."""
    if len(name) <= room:
        return [name]
    return ["\u2026" + name[1 - room :]] if room >= TELLING else []


def _opening(name: str, view: str) -> str:
    return f'<a href="{node_address(name, view)}">' if view else "<g>"


def _squarify(
    values: Sequence[float], x: float, y: float, w: float, h: float
) -> list[tuple[float, float, float, float]]:
    """Rectangles with areas like the values, row by row along the shorter side, as square as can be."""
    total, found = sum(values), list[tuple[float, float, float, float]]()
    scale = w * h / total if total else 0.0
    areas, start = [value * scale for value in values], 0
    while start < len(areas):
        side, end = min(w, h), start + 1
        while end < len(areas) and _worst(areas[start : end + 1], side) <= _worst(areas[start:end], side):
            end += 1
        row = areas[start:end]
        thick = sum(row) / side if side else 0.0
        at = 0.0
        for area in row:
            long = area / thick if thick else 0.0
            found.append((x, y + at, thick, long) if w >= h else (x + at, y, long, thick))
            at += long
        if w >= h:
            x, w = x + thick, max(w - thick, 0.0)
        else:
            y, h = y + thick, max(h - thick, 0.0)
        start = end
    return found


def _worst(row: Sequence[float], side: float) -> float:
    total = sum(row)
    if not total or not side:
        return float("inf")
    return max(side * side * max(row) / total**2, total**2 / (side * side * min(row)))


def _range(values: Sequence[float], log: bool, *, zero: bool) -> tuple[float, float]:
    kept = [value for value in values if isfinite(value) and (value > 0 or not log)] or [0.1, 1.0]
    low, high = min(kept), max(kept)
    if log:
        return 10.0 ** floor(log10(low)), 10.0 ** max(ceil(log10(high)), floor(log10(low)) + 1)
    if zero:
        low = min(0.0, low)
    return (low, high * 1.05) if high > low else (low - 0.5, low + 1.0)


def _loose(values: Sequence[float]) -> tuple[float, float]:
    kept = [value for value in values if isfinite(value)] or [0.0]
    low, high = min(kept), max(kept)
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 0.5
    return low - margin, high + margin


def _share(value: float, limits: tuple[float, float], log: bool) -> float:
    low, high = limits
    if log:
        return (log10(max(value, low)) - log10(low)) / (log10(high) - log10(low))
    return (value - low) / (high - low)


def _ticks(limits: tuple[float, float], log: bool) -> list[float]:
    low, high = limits
    if log:
        return [10.0**n for n in range(round(log10(low)), round(log10(high)) + 1)]
    step = 10 ** floor(log10((high - low) / 4))
    step *= next(each for each in (1, 2, 5, 10) if (high - low) / (step * each) <= 6)
    first = ceil(low / step)
    return [step * n for n in range(first, floor(high / step) + 1)]


def _tick(value: float) -> str:
    """Short enough to stand beside the name of the axis."""
    if abs(value) >= 1e7:
        return f"{value / 1e6:,.6g} M"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def _class(is_number: bool) -> str:
    return ' class="n"' if is_number else ""


def _cell(value: Cell) -> str:
    if isinstance(value, NodeName):
        return node_link(value.shown, value.view, value.name)
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return escape(value) if isinstance(value, str) else number(value)
