"""Options of the commands that find out what is wrong: doctor, check, reduce, diff, context check."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class DoctorOptions:
    """The report."""

    json: bool = option(False, "--json", help="print the report as JSON")
