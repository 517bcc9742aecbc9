"""Options of `openqnn partition`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class PartitionOptions:
    """The partition."""

    soc: str = option("", "--soc", metavar="NAME", help="the SoC, by name or number (default: SM8650)")
    partition: str = option(
        "", "--partition", metavar="YAML", help="what is decided already: backends, pins, constraints"
    )
    backends: str = option(
        "", "--backends", metavar="LIST", help="which may be used, of htp,cpu,builtin (default: all)"
    )
    power_critical: bool = option(
        False, "--power_critical", exclusive="what counts", help="energy counts instead of time"
    )
    performance_critical: bool = option(
        False, "--performance_critical", exclusive="what counts", help="time counts (the default)"
    )
    memory_mb: float | None = option(
        None, "--memory_mb", metavar="MB", parse=float, help="the most that parts on HTP may take"
    )
    output: str = option(
        "",
        "-o",
        "--output",
        metavar="YAML",
        help="write the partition, with every node pinned",
    )
    overwrite: bool = option(False, "--overwrite", help="replace a file that is there")
