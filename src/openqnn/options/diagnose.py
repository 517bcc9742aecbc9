"""Options of the commands that find out what is wrong: doctor, check, reduce, diff, context check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openqnn.options.field import option
from openqnn.options.source import named_shape, named_size, positive, shape_settings


@dataclass(frozen=True)
class DoctorOptions:
    """The report."""

    json: bool = option(False, "--json", help="print the report as JSON")


@dataclass(frozen=True)
class BackendCheck:
    """What a backend says."""

    backend: str = option(
        "", "--backend", metavar="NAME",
        help="ask this library about every node: htp, cpu (libQnnCpu.so), or the path of a library",
    )  # fmt: skip
    soc: str = option("", "--soc", metavar="NAME", help="the chip that HTP is asked for (default: SM8650)")
    matrix: bool = option(
        False, "--matrix", help="ask the CPU library and every HTP architecture, and print a table"
    )
    data: str = option(
        "", "--data", metavar="PATH",
        help="samples to find what half precision, which HTP has, cannot hold: an input list, a .npy or .npz"
        " file, or a folder of them",
    )  # fmt: skip


@dataclass(frozen=True)
class ReduceOptions:
    """Where it fails, and the result."""

    backend: str = option(
        "htp", "--backend", metavar="NAME", help="the library that fails: htp (default), cpu, or a path"
    )
    soc: str = option("", "--soc", metavar="NAME", help="the chip that HTP compiles for (default: SM8650)")
    output: str = option(
        "reduced", "-o", "--output", metavar="DIR", help="where the files go (default: reduced)"
    )
    as_is: bool = option(
        False, "--as_is", help="give the graph to the library as it is, not in the forms that HTP takes"
    )
    seconds: int = option(
        600,
        "--max_time",
        metavar="SECONDS",
        parse=positive,
        help="end the search then (default: 600)",
    )
    trial_seconds: int = option(
        60, "--timeout", metavar="SECONDS", parse=positive, help="time for one trial (default: 60)"
    )
    json: bool = option(False, "--json", help="print the result as JSON")


@dataclass(frozen=True)
class ContextCheck:
    """The binary, and where it is to be loaded."""

    action: str = option("", "action", choices=("check",), help="check: tell whether it will load")
    binary: str = option(
        "", "binary", metavar="BINARY", help="a context binary, or an EPContext model that holds one"
    )
    soc: str = option("", "--soc", metavar="NAME", help="the chip that it is to run on, such as SM8650")
    against: str = option(
        "", "--against", metavar="LIBRARY",
        help="the library that is to load it, of this machine or of a device (default: the installed one)",
    )  # fmt: skip
    json: bool = option(False, "--json", help="print the report as JSON")


@dataclass(frozen=True)
class DiffOptions:
    """What is compared: .onnx, .oqnn, .dlc or .so, in any pairing."""

    first: str = option("", "first", metavar="A", help="one model or graph")
    second: str = option("", "second", metavar="B", help="the other one")
    graph: str = option("", "--graph", metavar="NAME", help="which graph, where a file holds several")
    tolerance: float = option(
        0.0, "--tolerance", metavar="X", parse=float, help="differences of constants up to X do not count"
    )
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (), "--input_shape", metavar="NAME=DIMS", parse=named_shape, repeat=True,
        help="shape of an input of ONNX models, such as x=1,3,224,224; repeat for several",
    )  # fmt: skip
    dims: tuple[tuple[str, int], ...] = option(
        (), "--dim", metavar="SYMBOL=N", parse=named_size, repeat=True,
        help="size of a symbolic dimension of ONNX models; repeat for several",
    )  # fmt: skip
    batch: int | None = option(
        None, "--batch", metavar="N", parse=positive, help="first dimension of every input of ONNX models"
    )
    json: bool = option(False, "--json", help="print the differences as JSON")

    def settings(self) -> dict[str, Any]:
        """The keyword arguments of `convert` and `open_graph` that the options stand for."""
        return shape_settings(self.input_shapes, self.dims, self.batch)
