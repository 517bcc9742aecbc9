"""Options about results and about what is told on the way."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from openqnn.options.field import option


def named_file(text: str) -> tuple[str, str]:
    """NAME=FILE; the name may itself contain `=`."""
    name, sign, file = text.rpartition("=")
    if not sign or not name or not file:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=FILE")
    return name, file


@dataclass(frozen=True)
class ConvertOutput:
    """The result."""

    output: str = option(
        "",
        "-o",
        "--output",
        metavar="FILE",
        help="what to write: FILE.oqnn (default: MODEL.oqnn), FILE.dlc, FILE.cpp or FILE.onnx",
    )
    overwrite: bool = option(False, "--overwrite", help="replace a file that is not an OpenQNN graph")
    explain: bool = option(False, "--explain", help="tell what every pass did and declined to do, and why")
    quiet: bool = option(False, "--quiet", help="print errors only")


@dataclass(frozen=True)
class CheckOutput:
    """The report."""

    explain: bool = option(False, "--explain", help="tell what every pass did and declined to do, and why")
    json: bool = option(False, "--json", help="print the report as JSON")


@dataclass(frozen=True)
class InspectOutput:
    """The report."""

    text: bool = option(False, "--text", help="print the whole graph in its text form")
    json: bool = option(False, "--json", help="print the summary as JSON")


@dataclass(frozen=True)
class RunIo:
    """Inputs and results."""

    inputs: tuple[tuple[str, str], ...] = option(
        (), "--input", metavar="NAME=FILE", parse=named_file, repeat=True,
        help="an input from a .npy file, or a .raw file of the input's own type; repeat for several",
    )  # fmt: skip
    random: bool = option(False, "--random", help="fill inputs that are not given with random numbers")
    output_dir: str = option(
        "output", "--output_dir", metavar="DIR", help="where NAME.npy of every output goes"
    )
    outputs: tuple[str, ...] = option(
        (),
        "--output",
        metavar="NAME",
        repeat=True,
        help="write this tensor, which may be an intermediate one",
    )
    backend: str = option(
        "cpu",
        "--backend",
        metavar="NAME",
        help="cpu (built in), or a vendor library such as libQnnCpu.so or htp",
    )
    threads: int = option(
        0, "--threads", metavar="N", parse=int, help="threads of the built-in backend; 0: all cores"
    )
    soc: str = option("", "--soc", metavar="NAME", help="the SoC that HTP runs as, by name or number")
    timeout: float = option(
        60.0, "--timeout", metavar="S", parse=float, help="give up on a library after so many seconds (60)"
    )
