"""What `openqnn compare` prints."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from rich.markup import escape

from openqnn.cli.report import console, table
from openqnn.cli.report_quantization import shown_decibels

if TYPE_CHECKING:
    from openqnn.analysis.compare_backends import BackendGaps, TensorGap


def print_gaps(found: BackendGaps, most: int) -> None:
    """The outputs, the tensors whose nodes part, or where none does, those that are furthest apart."""
    out = console()
    out.print(f"{escape(found.second)} held against {escape(found.first)} on {found.samples} samples")
    outputs = table("output", "SQNR", "cosine", "largest gap", right=("SQNR", "cosine", "largest gap"))
    for each in found.outputs:
        outputs.add_row(
            escape(each.name), shown_decibels(each.sqnr), f"{each.cosine:.6f}", f"{each.largest:.3g}"
        )
    out.print(outputs)
    parting = found.parting
    shown = parting[:most] or tuple(sorted(found.tensors, key=lambda t: t.sqnr)[:most])
    right = ("SQNR", "before", "cosine", "largest gap", "reaches")
    rows = table("tensor", "op", "type", *right, right=right)
    for t in shown:
        rows.add_row(
            escape(t.name), escape(t.op), t.dtype, shown_decibels(t.sqnr), shown_decibels(t.before),
            f"{t.cosine:.6f}", f"{t.largest:.3g}", f"{t.reach:.3g}",
        )  # fmt: skip
    out.print(rows)
    for t in shown:
        if t.half:
            out.print(f"half precision: {escape(t.half)}", soft_wrap=True)
    _say_where(found, parting, most)


def _say_where(found: BackendGaps, parting: Sequence[TensorGap], most: int) -> None:
    out = console()
    if parting:
        first = parting[0]
        place = f" ({escape(first.source)})" if first.source else ""
        out.print(f"They part first at {escape(first.op)} '{escape(first.node)}'{place}.", soft_wrap=True)
        more = len(parting) - most
        out.print("before: the worst of what the node reads." + (f" {more} more part." if more > 0 else ""))
    else:
        out.print(
            f"No node of {len(found.tensors)} tensors loses anything of its own below {found.limit:g} dB."
        )
    if isfinite(found.tapping):
        out.print(
            f"Looking at tensors inside changes the outputs of {escape(found.second)}: {found.tapping:.1f} dB"
        )
    if found.hidden:
        names = ", ".join(map(escape, found.hidden[:3]))
        out.print(f"{len(found.hidden)} tensors exist on one of both only: {names}", soft_wrap=True)
