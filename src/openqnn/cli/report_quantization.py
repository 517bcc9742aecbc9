"""What `openqnn quantize` prints."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from rich.markup import escape

from openqnn.cli.report import console, table

if TYPE_CHECKING:
    from openqnn.analysis.quant_report import QuantReport
    from openqnn.quant.algorithms.mixed_precision import Mixed


def print_quantization(found: QuantReport) -> None:
    """The outputs, and the tensors where most is lost."""
    out = console()
    outputs = table("output", "SQNR", "cosine", right=("SQNR", "cosine"))
    for each in found.outputs:
        name = f"{each.name}: {each.part}" if each.part else each.name
        outputs.add_row(escape(name), shown_decibels(each.sqnr), f"{each.cosine:.6f}")
    out.print(outputs)
    if found.worst:
        rows = table(
            "tensor",
            "op",
            "bits",
            "SQNR",
            "alone",
            "clipped",
            "what would mend it",
            right=("bits", "SQNR", "alone", "clipped"),
        )
        for t in found.worst:
            rows.add_row(
                escape(t.name), escape(t.op), str(t.bits), shown_decibels(t.sqnr), shown_decibels(t.own_sqnr),
                f"{100 * t.clipped:.1f} %", escape(t.advice),
            )  # fmt: skip
        out.print(rows)
    out.print(f"{found.fixed_nodes} of {found.nodes} nodes compute in fixed point.")
    if found.verdict:
        out.print(escape(found.verdict))
    elif found.on:
        out.print(f"Measured {escape(found.on)}.")


def print_mixed(mixed: Mixed) -> None:
    """The nodes that got more bits, the most sensitive first, and what it took in all."""
    from openqnn.quant.algorithms.mixed_precision import described
    from openqnn.quant.recipe import FLOAT

    out = console()
    if mixed.promotions:
        rows = table("node", "op", "bits", "noise", "cost", right=("bits", "noise", "cost"))
        for each in mixed.promotions:
            rows.add_row(
                escape(each.unit.names[0]), escape(each.unit.op),
                "float" if each.width == FLOAT else str(each.width),
                f"{100 * each.share:.1f} %", f"{100 * each.unit.cost / max(mixed.total, 1):.1f} %",
            )  # fmt: skip
        out.print(rows)
        out.print("noise: its share of all noise, cost: its share of all multiply-adds, which take longer.")
    out.print(f"{'target reached' if mixed.reached else 'target not reached'}: {described(mixed)}")


def shown_decibels(value: float) -> str:
    return f"{value:z.1f} dB" if isfinite(value) else "exact" if value > 0 else "lost"
