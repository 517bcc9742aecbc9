"""Options of `openqnn debug`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option
from openqnn.options.source import positive


@dataclass(frozen=True)
class DebugOptions:
    """What to compare, and the report."""

    data: str = option(
        "", "--data", metavar="PATH",
        help="inputs to compare on, and to calibrate with: an input list, a .npy or .npz file, or a folder",
    )  # fmt: skip
    quantized: str = option(
        "", "--quantized", metavar="FILE",
        help="the graph in fixed point to look at, an .oqnn or .dlc file (default: quantize the model as"
        " openqnn quantize does)",
    )  # fmt: skip
    samples: int = option(
        16, "--samples", metavar="N", parse=positive, help="how many samples to compare on (default: 16)"
    )
    layers: int = option(
        10, "--layers", metavar="N", parse=positive, help="how many layers to print (default: 10)"
    )
    report: str = option(
        "", "--report", metavar="DIR", help="write debug.html, .csv, .json and model.html into this folder"
    )
    no_attribution: bool = option(
        False, "--no_attribution", help="leave out what single layers do to the outputs: it takes longest"
    )
    fix: str = option(
        "", "--fix", metavar="JSON",
        help="write encodings that mend what was found, for openqnn quantize --quantization_overrides",
    )  # fmt: skip
    confirm: bool = option(
        False, "--confirm", help="run the worst layers on libQnnHtp, too, and tell what tapping changes there"
    )
    prefix: bool = option(
        False, "--prefix",
        help="with --confirm, run the graph on libQnnHtp up to each of these layers, too, nothing tapped",
    )  # fmt: skip
    json: bool = option(False, "--json", help="print the report as JSON")
    overwrite: bool = option(False, "--overwrite", help="replace files that are no reports")
    quiet: bool = option(False, "--quiet", help="print errors only")
