"""The quantization report as one HTML file: no script of others, no address to load from, plots in SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from math import isfinite
from pathlib import Path

from openqnn.analysis.palette import REPORT_SCRIPT, REPORT_STYLE, node_link
from openqnn.analysis.quant_report import GOOD_SQNR, OutputReport, QuantReport, TensorReport

STYLE = (
    REPORT_STYLE
    + """
.verdict { font-size: 1.1rem; font-weight: 600; } .facts { width: auto; }
.facts th { cursor: auto; white-space: nowrap; } .facts td { overflow-wrap: anywhere; }
tr:target { background: #e0a00033; }
svg .bar { fill: var(--bar); } svg .limit { stroke: var(--bad); stroke-width: 1; }
svg .dot { fill: var(--bar); } svg .dot.weak { fill: var(--bad); } svg .goal { stroke: var(--goal); }
svg text { font-size: 10px; }
@media (max-width: 60rem) {
  table, .course { display: block; overflow-x: auto; }
  .course svg { width: 60rem; }
}
"""
)
TITLE = ": quantization"
HEAD = ("tensor", "op", "type", "SQNR", "alone", "clipped", "range", "seen", "values", "from")
NUMBERS = ("SQNR", "cosine", "alone", "clipped", "range", "seen")  # columns of them


def is_quant_page(path: Path) -> bool:
    """Whether a file is such a report."""
    with suppress(OSError), path.open("rb") as file:
        start = file.read(4096)
        return start.startswith(b"<!doctype html>") and f"{TITLE}</title>".encode() in start
    return False


def quant_page(report: QuantReport, view: str = "") -> str:
    """The whole file. `view` is the viewer's page beside it, in which names of tensors are looked up."""
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(report.name)}{TITLE}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{STYLE}</style></head><body>",
            f"<h1>Quantization of {escape(report.name)}</h1>",
            f'<p class="verdict">{escape(report.verdict)}</p>' if report.verdict else "",
            _facts(report),
            "<h2>Outputs against floating point</h2>",
            _outputs(report.outputs, view),
            "<h2>Signal to noise ratio through the graph</h2>",
            _course(report.tensors),
            "<h2>Where most is lost, and what would mend it</h2>",
            _worst(report.worst, report.tensors),
            "<h2>All tensors</h2>",
            '<input id="find" placeholder="find a tensor" aria-label="find a tensor">',
            _all(report.tensors, view),
            f"<script>{REPORT_SCRIPT}</script></body></html>",
        ]
    )


def _table(head: Iterable[str], rows: Iterable[str], mark: str = "") -> str:
    cells = "".join(f"<th{' class=n' if h in NUMBERS else ''}>{escape(h)}</th>" for h in head)
    return f"<table{mark}><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _number(value: float, unit: str = "", weak: bool = False) -> str:
    text = f"{value:z.1f}{unit}" if isfinite(value) else "exact" if value > 0 else "lost"
    key = value if isfinite(value) else 1e9 if value > 0 else -1e9
    return f'<td class="n{" bad" if weak else ""}" data-v="{key:.6g}">{text}</td>'


def _facts(report: QuantReport) -> str:
    """What the run was: nodes, samples, and what the caller knows of it."""
    known = [("nodes in fixed point", f"{report.fixed_nodes} of {report.nodes}")]
    known += [("figures", report.on)] if report.on else []
    rows = (f"<tr><th>{escape(n)}</th><td>{escape(t)}</td></tr>" for n, t in (*known, *report.facts))
    return f'<table class="facts"><tbody>{"".join(rows)}</tbody></table>'


def _anchors(tensors: Sequence[TensorReport]) -> dict[str, str]:
    """The rows of the table of all tensors, by name."""
    return {t.name: f"t{i}" for i, t in enumerate(tensors)}


def _outputs(outputs: Sequence[OutputReport], view: str) -> str:
    rows = (
        f'<tr><td class="name">{node_link(o.name, view)}{_part(o)}</td>{_number(o.sqnr, " dB")}'
        f'<td class="n">{o.cosine:.6f}</td></tr>'
        for o in outputs
    )
    return _table(("output", "SQNR", "cosine"), rows)


def _part(output: OutputReport) -> str:
    return f": {escape(output.part)}" if output.part else ""


def _course(tensors: Sequence[TensorReport]) -> str:
    """A dot for each activation, in the order of the graph."""
    shown = [t for t in tensors if not t.is_weight and isfinite(t.sqnr)]
    if not shown:
        return "<p>No tensor has noise.</p>"
    width, height, top = 1100, 220, max(60.0, *(t.sqnr for t in shown))
    y = lambda db: height - 20 - (height - 30) * max(db, 0.0) / top
    anchors = _anchors(tensors)
    dots = "".join(
        f'<a href="#{anchors[t.name]}"><circle class="dot{" weak" if t.sqnr < GOOD_SQNR / 2 else ""}" r="3" '
        f'cx="{40 + (width - 50) * i / max(len(shown) - 1, 1):.1f}" cy="{y(t.sqnr):.1f}">'
        f"<title>{escape(t.name)} ({escape(t.op)}): {t.sqnr:z.1f} dB</title></circle></a>"
        for i, t in enumerate(shown)
    )
    ticks = "".join(f'<text x="0" y="{y(db) + 3:.1f}">{db} dB</text>' for db in range(0, int(top) + 1, 20))
    goal = f'<line class="goal" x1="36" x2="{width}" y1="{y(GOOD_SQNR):.1f}" y2="{y(GOOD_SQNR):.1f}"/>'
    box = f'viewBox="0 0 {width} {height}" role="group" aria-label="SQNR in dB"'
    unit = f'<text x="{width - 90}" y="{height - 4}">order of the graph</text>'
    legend = (
        "<p>A dot is a tensor; it leads to its row. Above the line,"
        f" {GOOD_SQNR:.0f} dB, little is lost; red dots are below {GOOD_SQNR / 2:.0f} dB.</p>"
    )
    return f'<div class="course"><svg {box}>{ticks}{unit}{goal}{dots}</svg></div>{legend}'


def _worst(worst: Sequence[TensorReport], tensors: Sequence[TensorReport]) -> str:
    if not worst:
        return "<p>Nothing stands out.</p>"
    anchors = _anchors(tensors)
    link = lambda t: f'<a href="#{anchors[t.name]}">{escape(t.name)}</a>'
    rows = (
        f'<tr><td class="name">{link(t)}</td><td>{escape(t.op)}</td>{_number(t.sqnr, " dB")}'
        f"{_number(t.own_sqnr, ' dB')}<td>{_histogram(t)}</td><td class=long>{escape(t.advice)}</td></tr>"
        for t in worst
    )
    return _table(("tensor", "op", "SQNR", "alone", "values and range", "what would mend it"), rows)


def _all(tensors: Sequence[TensorReport], view: str) -> str:
    anchors = _anchors(tensors)
    legend = (
        "<p>SQNR: with the noise of the tensors before; alone: what the encoding itself allows. Bars are"
        " counts on a logarithmic scale, red lines the ends of the encoding.</p>"
    )
    return legend + _table(HEAD, (_row(t, anchors[t.name], view) for t in tensors), ' id="all"')


def _row(t: TensorReport, anchor: str, view: str) -> str:
    weak = t.own_sqnr < GOOD_SQNR / 2
    return (
        f'<tr id="{anchor}"><td class="name">{node_link(t.name, view)}</td>'
        f"<td>{escape(t.op)}</td><td>{t.dtype}</td>"
        f"{_number(t.sqnr, ' dB')}{_number(t.own_sqnr, ' dB', weak)}{_number(100 * t.clipped, ' %')}"
        f'<td class="n">{t.low:.4g} to {t.high:.4g}</td>'
        f'<td class="n">{t.seen_low:.4g} to {t.seen_high:.4g}</td>'
        f"<td>{_histogram(t)}</td><td>{escape(t.source)}</td></tr>"
    )


def _histogram(t: TensorReport) -> str:
    """Bars on a logarithmic scale; red lines are the ends of the encoding where they lie inside."""
    if not t.counts or not sum(t.counts):
        return ""
    width, height, most = 128.0, 28.0, max(t.counts)
    tall = lambda c: height * (len(str(c)) - 1 + c / 10 ** len(str(c))) / (len(str(most)) or 1) if c else 0.0
    step = width / len(t.counts)
    bars = "".join(
        f'<rect class="bar" x="{i * step:.1f}" y="{height - tall(c):.1f}" width="{step:.1f}"'
        f' height="{tall(c):.1f}"/>'
        for i, c in enumerate(t.counts)
        if c
    )
    span = (t.seen_high - t.seen_low) or 1.0
    ends = "".join(
        f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}"/>'
        for x in (width * (end - t.seen_low) / span for end in (t.low, t.high))
        if 0 < x < width
    )
    return f'<svg width="128" height="28" viewBox="0 0 {width:g} {height:g}">{bars}{ends}</svg>'
