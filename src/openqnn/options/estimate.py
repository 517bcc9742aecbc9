"""Options of `openqnn estimate`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option
from openqnn.options.source import positive


@dataclass(frozen=True)
class EstimateOptions:
    """The estimate."""

    act_bw: int = option(
        8,
        "--act_bw",
        metavar="N",
        parse=int,
        choices=(8, 16, 32),
        help="bits of activations of a model in floats: 8, 16, or 32 for half precision, which is rough",
    )
    layers: int = option(
        10,
        "--layers",
        metavar="N",
        parse=positive,
        help="how many of the costliest layers to tell (default: 10)",
    )
    whole: bool = option(False, "--whole", help="the whole graph only, without its layers")
    json: bool = option(False, "--json", help="print the estimate as JSON")
    html: str = option("", "--html", metavar="FILE", help="write a page with a roofline plot")
    trace: str = option(
        "",
        "--trace",
        metavar="FILE",
        help="write what the cost model expects each unit to do and when, as a Chrome trace",
    )
