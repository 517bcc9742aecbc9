"""Options that the tools about graphs on a vendor's library have in common."""

from __future__ import annotations

import argparse
from typing import Any

from openqnn.options.field import option, refused

NO_PLATFORM_OPTIONS = "the libraries for this machine have no platform options"


def words(text: str) -> tuple[str, ...]:
    """a,b,c."""
    return tuple(word for word in text.split(",") if word)


def tensors(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """graph0:tensor0,tensor1;graph1:tensor2; without a graph, the tensors of any ("")."""
    found: dict[str, tuple[str, ...]] = {}
    for part in filter(None, text.split(";")):
        graph, sign, names = part.rpartition(":")
        if (sign and not graph) or not words(names):
            raise argparse.ArgumentTypeError(f"{part!r}: expected GRAPH:TENSOR[,TENSOR...]")
        found[graph] = (*found.get(graph, ()), *words(names))
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: it names no tensor; expected GRAPH:TENSOR[,TENSOR...]")
    return tuple(found.items())


def model_files(exclusive: str = "") -> Any:
    return option(
        (),
        "--model",
        metavar="FILES",
        parse=words,
        exclusive=exclusive,
        help="model libraries (.so), separated by commas; also .onnx and .oqnn files. libQnnModelDlc.so "
        "stands for the files of --dlc_path",
    )


def dlc_files(what: str) -> Any:
    return option((), "--dlc_path", metavar="FILES", parse=words, help=f"{what}, separated by commas")


def model_prefix() -> Any:
    return option(
        "QnnModel",
        "--model_prefix",
        metavar="NAME",
        help="what the functions of a model library start with (default: QnnModel)",
    )


def backend_library(what: str) -> Any:
    return option(
        "",
        "--backend",
        metavar="LIBRARY",
        help=f"{what}: a path, a file name such as libQnnHtp.so, or cpu, htp",
    )


def soc_name() -> Any:
    return option(
        "",
        "--soc",
        "--soc_model",
        "--htp_socs",
        metavar="NAME",
        help="the SoC that HTP compiles for, by name or number (default: SM8650)",
    )


def op_packages() -> Any:
    return option(
        "",
        "--op_packages",
        metavar="LIST",
        help="op packages to register: PATH:PROVIDER[:TARGET], separated by commas",
    )


def no_platform_options() -> Any:
    return refused(
        "--platform_options", why=NO_PLATFORM_OPTIONS, metavar="LIST", help="options for the platform"
    )


def extra_outputs(what: str) -> Any:
    return option(
        (),
        "--set_output_tensors",
        metavar="LIST",
        parse=tensors,
        exclusive="tensors",
        help=f"intermediate tensors {what}: graph0:tensor0,tensor1;graph1:tensor2",
    )


def profiling_level(choices: tuple[str, ...], what: str) -> Any:
    return option(
        "",
        "--profiling_level",
        metavar="LEVEL",
        choices=choices,
        help=f"write qnn-profiling-data_0.log: {what}",
    )


def profiling_option() -> Any:
    return option(
        "",
        "--profiling_option",
        metavar="NAME",
        choices=("optrace",),
        help="optrace: with detailed, a trace of operations; where it compiles, HTP's library leaves"
        " <graph>_schematic.bin in the working directory",
    )


def print_version() -> Any:
    return option(False, "--version", help="print the version of the tool and of the libraries found")
