"""The results as one HTML page: accuracy against cost, the ranking, every row; tables sort, no address."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite

from openqnn.analysis.palette import node_link
from openqnn.analysis.plain_page import Plot, keys, note, number, page, table
from openqnn.evaluation.comparators import PERCENT, Comparator
from openqnn.evaluation.evaluate_model import SUCCESS, Row
from openqnn.evaluation.results_table import COLUMNS, result_cells

TITLE = ": evaluation"
COST = "MB moved in one inference"
FRONT = "no other is both cheaper and better"
SCRIPT = """<script>
document.querySelectorAll('table').forEach(table => table.rows[0].querySelectorAll('th').forEach((th, i) => {
  th.style.cursor = 'pointer';
  th.addEventListener('click', () => {
    const number = text => Number(text.replaceAll(',', ''));
    const key = row => row.cells[i].textContent;
    const up = th.dataset.up = th.dataset.up === '1' ? '0' : '1';
    const compare = (a, b) =>
      Number.isNaN(number(a) - number(b)) ? a.localeCompare(b) : number(a) - number(b);
    const rows = [...table.rows].slice(1).sort((a, b) => compare(key(a), key(b)));
    (table.tBodies[0] ?? table).append(...(up === '1' ? rows : rows.reverse()));
  });
}));
</script>"""


def results_page(
    name: str, rows: Sequence[Row], comparator: Comparator | None, view: str = "", outputs: Sequence[str] = ()
) -> str:
    """The whole file. `view` is the viewer's page of the graph beside it, where the outputs are looked up."""
    parts = [note(_summary(rows, comparator))]
    if view:
        found = ", ".join(node_link(output, view) for output in outputs)
        parts.append(f'<p>Outputs in <a href="{escape(view)}">the graph</a>: {found}</p>')
    for title, values, higher in _measures(rows, comparator):
        parts += [f"<h2>{escape(title)} against cost</h2>", pareto_plot(values, title, higher)]
    parts += ["<h2>Ranking</h2>", _ranking(rows, comparator), "<h2>All columns</h2>", _all(rows, comparator)]
    failures = [[row.inference.label, row.message] for row in rows if row.message]
    if failures:
        parts += ["<h2>Remarks</h2>", table(("Inference schema", "Why"), failures)]
    return page(f"{name}{TITLE}", [*parts, SCRIPT])


def _summary(rows: Sequence[Row], comparator: Comparator | None) -> str:
    good = sum(row.status == SUCCESS for row in rows)
    words = f"{good} of {len(rows)} inferences have results."
    if comparator is not None:
        words += f" Comparator {comparator.name}: {comparator.doc}."
    return (
        words + " Cost is what an inference reads and writes: constants, and each tensor wherever it is used."
    )


def _measures(
    rows: Sequence[Row], comparator: Comparator | None
) -> list[tuple[str, dict[str, tuple[float, float]], bool]]:
    """What is plotted: the comparator's mean and each metric, as (cost, value) by label."""
    found: list[tuple[str, dict[str, tuple[float, float]], bool]] = []
    done = [row for row in rows if row.status == SUCCESS and isfinite(row.cost)]
    if comparator is not None:
        unit = " (%)" if comparator.unit == PERCENT else ""
        points = {r.inference.label: (r.cost, r.overall) for r in done if isfinite(r.overall)}
        found.append((f"{comparator.name}{unit}", points, comparator.higher_is_better))
    for metric in dict.fromkeys(name for row in done for name in row.metrics):
        points = {r.inference.label: (r.cost, r.metrics[metric]) for r in done if metric in r.metrics}
        found.append((metric, points, "perplexity" not in metric))
    return [each for each in found if each[1]]


def pareto_front(points: dict[str, tuple[float, float]], higher: bool) -> list[str]:
    """The labels that no other one beats in both cost and value, the cheapest first."""
    front: list[str] = []
    best = None
    for label, (_, value) in sorted(points.items(), key=lambda p: (p[1][0], -p[1][1] if higher else p[1][1])):
        if best is None or (value > best if higher else value < best):
            front.append(label)
            best = value
    return front


def pareto_plot(points: dict[str, tuple[float, float]], title: str, higher: bool) -> str:
    """Dots with the Pareto front joined by a line; a dot's name is its tooltip."""
    front = pareto_front(points, higher)
    xs, ys = zip(*points.values(), strict=True)
    plot = Plot(xs, ys, (COST, title), loose=True)
    plot.line([points[label] for label in front], 1, FRONT)
    for label, point in points.items():
        words = f"{label}: {number(point[1])}, {number(point[0])} MB"
        plot.dot(point, 1 if label in front else 0, words, 5 if label in front else 4)
    for place, label in enumerate(front, 1):
        plot.word(points[label], str(place))
    named = ", ".join(f"{place} {label}" for place, label in enumerate(front, 1))
    return plot.svg() + keys(["others", FRONT]) + note(f"{FRONT.capitalize()}: {named}.")


def _ranking(rows: Sequence[Row], comparator: Comparator | None) -> str:
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics))
    overall = [comparator.name] if comparator is not None else []
    head = ["Rank", "Inference schema", *overall, *metrics, "MB moved", "Seconds"]
    lines: list[list[str | float | int | None]] = []
    for rank, row in enumerate((r for r in rows if r.status == SUCCESS), 1):
        cells: list[str | float | int | None] = [rank, row.inference.label]
        cells += [_or_none(row.overall)] if overall else []
        cells += [_or_none(row.metrics.get(name, float("nan"))) for name in metrics]
        lines.append([*cells, _or_none(row.cost), row.seconds])
    return table(head, lines)


def _or_none(value: float) -> float | None:
    return value if value == value else None  # noqa: PLR0124  NaN


def _all(rows: Sequence[Row], comparator: Comparator | None) -> str:
    return table(COLUMNS, [result_cells(row, comparator) for row in rows])
