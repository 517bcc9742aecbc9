"""The estimate of a model as one HTML file: chips, a roofline, and the layers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from openqnn.analysis.chip_fits import fits_for
from openqnn.analysis.estimate import BYTES_PER_CYCLE, COSTED_SOC, PEAK_MACS, Estimate, LayerCost
from openqnn.analysis.plain_page import NodeName, Plot, keys, note, page, table, treemap

NAMED = 10  # layers with their rank in the plot


def estimate_page(
    name: str, found: Estimate, layers: Sequence[LayerCost], remark: str = "", view: str = ""
) -> str:
    """The page of one model. `view` is the viewer's page beside it, in which layers are looked up."""
    chips = [
        (
            fit.chip,
            found.milliseconds(fit),
            f"{fit.median:.0%}",
            f"{fit.largest:.0%} ({fit.outlier})",
            fit.networks,
        )
        for fit in fits_for(found.width)
    ]
    head = ("chip", "milliseconds", "median error", "largest error", "networks")
    parts = [
        f"<p>{escape(name)}: {found.cycles:,} cycles on {COSTED_SOC} ({found.low:,} to {found.high:,}),"
        f" {found.macs / 1e6:,.0f} million MACs, {found.use} of the multipliers in use</p>",
        *([note(remark)] if remark else []),
        *([f'<p class="bad">Rough: {escape(found.rough)}</p>'] if found.rough else []),
        "<h2>Chips</h2>",
        table(head, chips),
        note("Errors are those on networks that the fit had not seen."),
        "<h2>Memory</h2>",
        table(("what", "bytes"), _memory(found)),
    ]
    if layers:
        parts += ["<h2>Roofline</h2>", _roofline(found, layers), *_layers(layers, view)]
    return page("Estimate", parts)


def _memory(found: Estimate) -> list[tuple[str, int]]:
    return [
        ("read: inputs and weights", found.read),
        ("written: outputs", found.written),
        ("spilled from VTCM", found.spilled),
        ("filled again", found.filled),
        ("activations alive at once, at most", found.live),
    ]


def _roofline(found: Estimate, layers: Sequence[LayerCost]) -> str:
    """Each layer by its multiplications a byte and a cycle, under what the cost model gives at most."""
    points = [
        (layer.macs / layer.bytes, layer.macs / layer.alone, layer)
        for layer in layers
        if layer.macs and layer.bytes and layer.alone
    ]
    if not points:
        return note("no layer multiplies")
    peak = PEAK_MACS[found.width]
    ridge = peak / BYTES_PER_CYCLE
    xs = [*(x for x, *_ in points), ridge]
    low, high = min(xs) / 2, max(xs) * 3
    plot = Plot(
        [low, high], [*(y for _, y, _ in points), peak], ("MACs per byte", "MACs per cycle"), log=(True, True)
    )
    plot.line([(low, low * BYTES_PER_CYCLE), (ridge, peak), (high, peak)], 7, "the cost model's best")
    kinds = list(dict.fromkeys(layer.ops[0] for *_, layer in points))
    for x, y, layer in points:
        title = f"{layer.name}: {layer.share:.1%} of the cycles"
        plot.dot((x, y), kinds.index(layer.ops[0]), title, 3 + 14 * layer.share**0.5)
    for x, y, layer in points:
        rank = layers.index(layer) + 1
        if rank <= NAMED:
            plot.word((x, y), str(rank))
    return plot.svg() + keys(kinds) + note("Numbers are those of the table of layers.")


def _layers(layers: Sequence[LayerCost], view: str) -> list[str]:
    rows = [
        (
            rank, NodeName(layer.source or layer.name, view, layer.name), ", ".join(layer.ops),
            round(layer.cycles), f"{layer.share:.1%}", " ".join(layer.advice),
        )
        for rank, layer in enumerate(layers[:100], 1)
    ]  # fmt: skip
    return [
        "<h2>Layers</h2>",
        note("Each was compiled alone; cycles are its share of the whole graph's."),
        treemap([(layer.name, layer.cycles, layer.ops[0]) for layer in layers], view=view),
        table(("", "layer", "ops", "cycles", "share", "what would help"), rows),
    ]
