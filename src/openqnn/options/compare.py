"""Options of `openqnn compare`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option
from openqnn.options.source import positive


@dataclass(frozen=True)
class CompareOptions:
    """What to compare, and the report."""

    data: str = option(
        "", "--data", metavar="PATH", required=True,
        help="inputs to compare on: an input list, a .npy or .npz file, or a folder of them",
    )  # fmt: skip
    backend: str = option(
        "htp", "--backend", metavar="NAME",
        help="what to look at: htp (default), a vendor library, or anything that --reference takes",
    )  # fmt: skip
    reference: str = option(
        "cpu", "--reference", metavar="NAME",
        help="what to hold it against: cpu, the built-in backend (default), a vendor library, the file of the"
        " source model, which runs in its own framework, that of another graph, or a folder of raw files",
    )  # fmt: skip
    soc: str = option("", "--soc", metavar="NAME", help="the chip that HTP compiles for (default: SM8650)")
    samples: int = option(
        4, "--samples", metavar="N", parse=positive, help="how many samples to compare on (default: 4)"
    )
    limit: float = option(
        40.0, "--limit", metavar="DB", parse=float, help="tensors are apart below so many dB (default: 40)"
    )
    tensors: int = option(
        10, "--tensors", metavar="N", parse=positive, help="how many tensors to print (default: 10)"
    )
    csv: str = option("", "--csv", metavar="FILE", help="write all tensors in the order of computation")
    timeout: float = option(
        600.0, "--timeout", metavar="S", parse=float, help="seconds that a library has for a run (600)"
    )
    json: bool = option(False, "--json", help="print the report as JSON")
    overwrite: bool = option(False, "--overwrite", help="replace a file that is not such a table")
    quiet: bool = option(False, "--quiet", help="print errors only")
