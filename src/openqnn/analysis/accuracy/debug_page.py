"""The debug report as one HTML file: no script of others, no address to load from, plots in SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from html import escape
from math import isfinite
from pathlib import Path

from openqnn.analysis.accuracy.debug_report import DebugReport, LayerReport
from openqnn.analysis.palette import REPORT_SCRIPT, REPORT_STYLE, node_link

TITLE = ": accuracy"
STYLE = (
    REPORT_STYLE
    + """
body { max-width: 96rem; } td { vertical-align: top; }
td.name { font-family: ui-monospace, monospace; font-size: 12px; overflow-wrap: anywhere; min-width: 12rem; }
.key i { display: inline-block; width: 1em; height: .6em; }
svg .bar { fill: var(--bar); } svg .limit { stroke: var(--bad); }
svg .entire { fill: #999; } svg .isolated { fill: var(--goal); } svg .added { fill: var(--bar); }
svg .broken { fill: var(--bad); } svg text { font-size: 10px; }
.card { border: 1px solid var(--edge); border-left: 4px solid var(--bad);
  padding: .5rem 1rem; margin: .7rem 0; }
"""
)
HEAD = (
    "rank", "place", "tensor", "op", "cause", "added", "isolated", "entire", "encoding", "weights", "only",
    "without", "values", "clipped", "type", "range", "seen",
)  # fmt: skip
NUMBERS = (*HEAD[:2], *HEAD[5:12], "clipped", "range", "seen", "SQNR", "cosine")
SHOWN = 10


def is_debug_page(path: Path) -> bool:
    """Whether a file is such a report."""
    with suppress(OSError), path.open("rb") as file:
        start = file.read(4096)
        return start.startswith(b"<!doctype html>") and f"{TITLE}</title>".encode() in start
    return False


def debug_page(report: DebugReport, view: str = "") -> str:
    """The whole file. `view` is the viewer's page beside it, in which names of layers are looked up."""
    name = escape(report.name)
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{name}{TITLE}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{STYLE}</style></head><body>",
            f"<h1>Where the accuracy of {name} goes</h1>",
            _summary(report),
            "<h2>Outputs against floating point</h2>",
            _outputs(report, view),
            "<h2>Broken layers</h2>" if report.broken else "<h2>Layers that add most</h2>",
            "".join(_card(layer, view) for layer in (report.broken or report.layers)[:SHOWN]),
            "<h2>Errors through the graph</h2>",
            _course(report),
            "<h2>All layers</h2>",
            '<input id="find" placeholder="find a layer" aria-label="find a layer">',
            f'<div class="scroll">{_all(report.layers, view)}</div>',
            _fused(report.fused),
            f"<script>{REPORT_SCRIPT}</script></body></html>",
        ]
    )


def _summary(report: DebugReport) -> str:
    count = len(report.broken)
    verdict = f"{count} of {len(report.layers)} layers are broken" if count else "No layer is broken"
    parts = [f"<p><b>{verdict}</b>, on {report.samples} samples.</p>"]
    if not report.complete:
        parts.append('<p class="bad">The run was interrupted: figures are of the samples until then.</p>')
    parts += [f"<p>{escape(note)}</p>" for note in report.notes]
    return "".join(parts)


def _number(value: float | None, unit: str = "", bad: bool = False, digits: int = 1) -> str:
    if value is None:
        return '<td class="n" data-v="1e9"></td>'
    text = f"{value:.{digits}f}{unit}" if isfinite(value) else "exact" if value > 0 else "lost"
    key = value if isfinite(value) else 1e8 if value > 0 else -1e8
    return f'<td class="n{" bad" if bad else ""}" data-v="{key:.6g}">{text}</td>'


def _table(head: Sequence[str], rows: Sequence[str], mark: str = "") -> str:
    cells = "".join(f"<th{' class=n' if h in NUMBERS else ''}>{escape(h)}</th>" for h in head)
    return f"<table{mark}><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _outputs(report: DebugReport, view: str) -> str:
    rows = [
        f'<tr><td class="name">{node_link(o.name, view)}</td>{_number(o.sqnr, " dB")}'
        f"{_number(o.cosine, digits=6)}</tr>"
        for o in report.outputs
    ]
    return _table(("output", "SQNR", "cosine"), rows)


def _card(layer: LayerReport, view: str) -> str:
    where = f" ({escape(layer.source)})" if layer.source else ""
    said = "".join(
        f"<p><b>{escape(f.cause.id)}</b> at <code>{escape(f.tensor)}</code>: {escape(f.cause.title)}."
        f"<br>{escape(f.detail)}<br>Remedy: {escape(f.cause.remedy)}.</p>"
        for f in layer.findings[:3]
    )
    quiet = "" if layer.broken else ' style="border-left-color: var(--bar)"'
    return (
        f'<div class="card"{quiet}><b>{layer.rank}. {node_link(layer.tensor, view)}</b>,'
        f" {escape(layer.op)}{where}:"
        f" adds an error at {_said(layer.added)} {_histogram(layer)}"
        f"{said or '<p>Rounding as usual.</p>'}</div>"
    )


def _said(db: float) -> str:
    return f"{db:.1f} dB" if isfinite(db) else "no error" if db > 0 else "nothing left of the signal"


def _course(report: DebugReport) -> str:
    """Three dots for each layer, in the order of the graph."""
    layers = sorted(report.layers, key=lambda layer: layer.place)
    known = [v for each in layers for v in (each.entire, each.isolated, each.added) if isfinite(v)]
    if not known:
        return "<p>No layer has an error.</p>"
    width, height, top = 1300, 260, min(max(60.0, *known), 120.0)
    y: Callable[[float], float] = lambda db: height - 20 - (height - 30) * min(max(db, 0.0), top) / top
    dots: list[str] = []
    for index, layer in enumerate(layers):
        x = 30 + (width - 40) * index / max(len(layers) - 1, 1)
        for kind in ("entire", "isolated", "added"):
            db: float = getattr(layer, kind)
            if not isfinite(db) and db > 0:
                continue
            mark = "broken" if layer.broken and kind == "added" else kind
            said = f"{escape(layer.tensor)} ({escape(layer.op)}): {kind} {_said(db)}"
            size = 4 if mark == "broken" else 2.5
            dots.append(
                f'<circle class="{mark}" r="{size}" cx="{x:.1f}" cy="{y(db):.1f}">'
                f"<title>{said}</title></circle>"
            )
    ticks = "".join(f'<text x="0" y="{y(db) + 3:.1f}">{db}</text>' for db in range(0, int(top) + 1, 20))
    key = (
        '<p class="key"><i style="background:#999"></i> entire <i style="background:var(--mark)"></i>'
        ' isolated <i style="background:var(--bar)"></i> added'
        ' <i style="background:var(--bad)"></i> broken; dB</p>'
    )
    box = f'viewBox="0 0 {width} {height}" role="img" aria-label="errors in dB"'
    return f'{key}<div class="scroll"><svg id="course" {box}>{ticks}{"".join(dots)}</svg></div>'


def _all(layers: Sequence[LayerReport], view: str) -> str:
    return f"<div class=scroll>{_table(HEAD, [_row(layer, view) for layer in layers], ' id=all')}</div>"


def _row(layer: LayerReport, view: str) -> str:
    reach = f"{layer.range[0]:.4g} to {layer.range[1]:.4g}" if layer.range else ""
    seen = f"{layer.statistics['min']:.4g} to {layer.statistics['max']:.4g}"
    cause = ", ".join(dict.fromkeys(f.cause.id for f in layer.findings))
    return (
        f'<tr><td class="n" data-v="{layer.rank}">{layer.rank}</td>'
        f'<td class="n" data-v="{layer.place}">{layer.place}</td>'
        f'<td class="name" title="{escape(layer.source)}">{node_link(layer.tensor, view)}</td>'
        f"<td>{escape(layer.op)}</td><td{' class=bad' if layer.broken else ''}>{escape(cause)}</td>"
        f"{_number(layer.added, bad=layer.broken)}"
        f"{_number(layer.isolated)}"
        f"{_number(layer.entire)}{_number(layer.encoding)}{_number(layer.weights)}{_number(layer.only)}"
        f"{_number(layer.without)}<td>{_histogram(layer)}</td>"
        f"{_number(100 * layer.statistics['clipped'], ' %', digits=2)}<td>{layer.type}</td>"
        f'<td class="n">{reach}</td><td class="n">{seen}</td></tr>'
    )


def _histogram(layer: LayerReport) -> str:
    """A path on a logarithmic scale; red lines are the ends of the encoding where they lie inside."""
    if not layer.counts or not sum(layer.counts):
        return ""
    width, height, most = 96.0, 24.0, max(layer.counts)
    step = width / len(layer.counts)
    tall = [height * (c.bit_length() / max(most.bit_length(), 1)) for c in layer.counts]
    path = "".join(f"V{height - t:.0f}h{step:g}" for t in tall)
    low, high = layer.statistics["min"], layer.statistics["max"]
    span = (high - low) or 1.0
    ends = "".join(
        f'<path class="limit" d="M{x:.1f} 0v{height:g}"/>'
        for x in (width * (end - low) / span for end in layer.range or ())
        if 0 < x < width
    )
    shape = f'<path class="bar" d="M0 {height:g}{path}V{height:g}z"/>'
    return f'<svg width="96" height="24" viewBox="0 0 {width:g} {height:g}">{shape}{ends}</svg>'


def _fused(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(f"<code>{escape(n)}</code>" for n in names[:200])
    return f"<h2>Fused tensors</h2><p>{len(names)} tensors exist only inside a layer: {shown}</p>"
