"""Options of the commands that find out what is wrong: doctor, check, reduce, diff, context check."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option
from openqnn.options.source import positive


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
