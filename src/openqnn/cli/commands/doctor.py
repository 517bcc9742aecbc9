"""openqnn doctor: what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import dataclasses
from argparse import Namespace

from openqnn.cli.command import Command, Report
from openqnn.options.diagnose import DoctorOptions


def run_doctor(_: Namespace) -> Report:
    from openqnn.analysis.doctor import diagnose
    from openqnn.cli.report_diagnosis import print_diagnosis

    found = diagnose()
    record = {"ok": found.ok, "items": [dataclasses.asdict(item) for item in found.items]}
    return Report(record, lambda: print_diagnosis(found), int(not found.ok))


COMMAND = Command(
    "doctor",
    "Tell what is installed, what works, and what to do about the rest.",
    (DoctorOptions,),
    run_doctor,
    examples=("openqnn doctor",),
)
