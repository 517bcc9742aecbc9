"""Files of qnn-quantization-checker: HTML pages, CSV tables, the log and histograms."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from openqnn.analysis.accuracy.quantization_checks import COLUMNS, CheckResult
from openqnn.analysis.accuracy.tensor_folder import safe_path
from openqnn.analysis.palette import REPORT_SCRIPT, REPORT_STYLE, node_link
from openqnn.cli.shared.view_beside import write_graph_beside
from openqnn.formats.atomic import replacing
from openqnn.ir import Array, Graph
from openqnn.viewer.view import Overlay

LEGEND = {
    "stats": "Indicates whether the data is symmetric or not.",
    "data_range_analyzer": "Indicates whether the data can be reasonably quantized within the bit-width.",
    "data_distribution_analyzer": "Indicates whether many different values are quantized to the same value."
    " A node does not fail by it.",
    "minmax": "Indicates how different the least and largest values are before and after quantization.",
    "maxdiff": "Indicates whether the largest difference before and after quantization is too large.",
    "sqnr": "Indicates whether the signal to quantization noise ratio is too low.",
}
STYLE = "table { margin: 1rem 0; } body { max-width: none; } .Fail { color: var(--bad); font-weight: 600; }"
HEAD = ("Op Name", "Node Name", "Node Type")
MOST_CHANNELS = 32  # histograms of single channels


class CheckerFiles:
    """The folders of one model's results."""

    def __init__(self, place: Path, logs: str, time: str) -> None:
        self.place = place
        (place / logs).mkdir(parents=True, exist_ok=True)
        self.log = place / logs / f"{time}.txt"
        self.lines: list[str] = []
        self._view = ""

    def say(self, text: str) -> None:
        """Prints a line and keeps it for the log, which is valid at any time."""
        print(text)
        self.note(text)

    def note(self, text: str) -> None:
        self.lines.append(text)
        with replacing(self.log) as file:
            file.write(("\n".join(self.lines) + "\n").encode())

    def close(self) -> None:
        print(self.log)

    def view(self, graph: Graph, failed: Mapping[str, Mapping[str, int]]) -> None:
        """The graph in the viewer, to whose nodes the pages lead: how many checks failed, for each option."""
        overlays = [
            Overlay(f"failed checks, {option}", {name: float(count) for name, count in counts.items()})
            for option, counts in failed.items()
        ]
        self._view = write_graph_beside(self._html(f"{graph.name}.html"), graph, graph.name, overlays)

    def _html(self, name: str) -> Path:
        folder = self.place / "html"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / safe_path(name).replace("/", "_")

    def page(self, option: str, source: str, model: str, results: Sequence[CheckResult]) -> None:
        """One HTML file for an option and an input."""
        title = f"Results for quantizer: {option} using input file: {source} on model: {model}"
        legend = "".join(f"<tr><td>{COLUMNS[n]}</td><td>{escape(t)}</td></tr>" for n, t in LEGEND.items())
        nodes = _by_node(results)
        failed = {key: found for key, found in nodes.items() if _fails(found)}
        text = (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f"<style>{REPORT_STYLE}{STYLE}</style></head><body><h1>{escape(title)}</h1><h2>Legend:</h2>"
            f"<table><tr><th>Quantization Checker Name</th><th>Description</th></tr>{legend}</table>"
            "<h2>Summary of failed nodes that should be inspected: (Total number of nodes analyzed: "
            f"{len(nodes)} Total number of failed nodes: {len(failed)})</h2>{_table(failed, self._view)}"
            f"<h2>Results for all nodes:</h2>{_table(nodes, self._view)}"
            f"<script>{REPORT_SCRIPT}</script></body></html>"
        )
        self._write(Path("html") / f"{option}_{safe_path(source).replace('/', '_')}.html", text.encode())

    def table(self, name: str, results: Sequence[CheckResult]) -> None:
        """One CSV file without a head: op, node, passes, result, threshold, algorithm."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for r in results:
            writer.writerow([r.op, r.name, str(r.passed).upper(), r.text, f"{r.threshold:g}", r.algorithm])
        self._write(Path("csv") / f"{name}.csv", text.getvalue().encode())

    def failures(self, kind: str, node: str, by_option: Mapping[str, Sequence[CheckResult]]) -> None:
        """A section of the log."""
        self.note(f"<===={kind} ANALYSIS FAILURES=====>")
        for option, results in by_option.items():
            failed = [r for r in results if not r.passed]
            if not failed:
                continue
            self.note(f"Results for the {option} quantization:")
            head = (
                "Op Name",
                node,
                "Passes Accuracy",
                "Accuracy Difference",
                "Threshold Used",
                "Algorithm Used",
            )
            self.note(" | ".join(head))
            for r in failed:
                self.note(" | ".join((r.op, r.name, str(r.passed), r.text, f"{r.threshold:g}", r.algorithm)))

    def histogram(self, folder: str, name: str, real: Array, by_channel: bool) -> None:
        from openqnn.analysis.accuracy.plots import Plot, Series, draw_png

        parts = [(name, real)]
        if by_channel and real.ndim > 1:
            parts += [
                (f"{name} channel {i}", real[..., i]) for i in range(min(real.shape[-1], MOST_CHANNELS))
            ]
        plots: list[Plot] = []
        for title, numbers in parts:
            counts, edges = np.histogram(numbers, 100)
            middles = (edges[1:] + edges[:-1]) / 2
            plots.append(Plot(title, [Series("values", middles, counts.astype(np.float64), "bars")]))
        self._write(Path(folder) / f"{safe_path(name).replace('/', '_')}.png", draw_png(plots))

    def _write(self, path: Path, content: bytes) -> None:
        target = self.place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as file:
            file.write(content)


Node = tuple[str, str, str]


def _by_node(results: Sequence[CheckResult]) -> dict[Node, dict[str, bool]]:
    found: dict[Node, dict[str, bool]] = {}
    for r in results:
        found.setdefault((r.op, r.name, r.kind), {})[r.algorithm] = r.passed
    return found


def _fails(found: Mapping[str, bool]) -> bool:
    return not all(passed for name, passed in found.items() if name != "data_distribution_analyzer")


def _table(nodes: Mapping[Node, Mapping[str, bool]], view: str) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in (*HEAD, *COLUMNS.values()))
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{word}</td>" for word in _words(node, view))
        + "".join(f'<td class="{w}">{w}</td>' for w in (_word(found.get(name)) for name in COLUMNS))
        + "</tr>"
        for node, found in nodes.items()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _words(node: Node, view: str) -> tuple[str, ...]:
    """What a row begins with, as HTML: names lead to the node in the viewer's page."""
    op, name, kind = node
    return node_link(op, view, name), node_link(name, view), escape(kind)


def _word(passed: bool | None) -> str:
    return "N/A" if passed is None else "Pass" if passed else "Fail"
