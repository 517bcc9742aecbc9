"""Options about results and about what is told on the way."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from openqnn.options.field import option
from openqnn.options.source import shapes


def named_file(text: str) -> tuple[str, str]:
    """NAME=FILE; the name may itself contain `=`."""
    name, sign, file = text.rpartition("=")
    if not sign or not name or not file:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=FILE")
    return name, file


@dataclass(frozen=True)
class SplitOptions:
    """Outputs that join boxes and scores."""

    split_outputs: tuple[str, ...] | None = option(
        None, "--split_outputs", metavar="NAME", nargs="*",
        help="end the graph before outputs that join values of different kinds, such as boxes and scores, and"
        " give the parts as outputs; with names, split these",
    )  # fmt: skip


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
    shapes: str = shapes()
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


def named_param(text: str) -> tuple[str, float | str]:
    """NAME=NUMBER, or NAME=TENSOR where the number is a constant of the model."""
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=NUMBER or NAME=TENSOR")
    try:
        return name, int(value) if value.lstrip("+-").isdigit() else float(value)
    except ValueError:
        return name, value


@dataclass(frozen=True)
class FuseOptions:
    """The subgraph, the operation and the result."""

    op: str = option("", "--op", metavar="PACKAGE::NAME", help="the custom op, which --custom_ops declares")
    inputs: tuple[str, ...] = option(
        (), "--from", metavar="TENSOR", nargs="+", help="tensors that the subgraph reads: the op's inputs"
    )
    outputs: tuple[str, ...] = option(
        (), "--to", metavar="TENSOR", nargs="+", help="tensors that it computes: the op's outputs"
    )
    params: tuple[tuple[str, float | str], ...] = option(
        (), "--param", metavar="NAME=VALUE", parse=named_param, repeat=True,
        help="a parameter of the op: a number, or a constant tensor of the subgraph, which may then differ"
        " from place to place; repeat for several",
    )  # fmt: skip
    once: bool = option(False, "--once", help="replace this subgraph only, not its repeats")
    expand: bool = option(
        False, "--expand", help="the reverse: replace nodes of the op by the QNN ops of its composite"
    )
    output: str = option(
        "",
        "-o",
        "--output",
        metavar="FILE",
        help="what to write: FILE.oqnn (default: MODEL.oqnn) or FILE.dlc",
    )
    overwrite: bool = option(False, "--overwrite", help="replace a file that is not an OpenQNN graph")
