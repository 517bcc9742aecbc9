"""openqnn doctor: what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import dataclasses
from argparse import Namespace

from openqnn.cli.command import Command, print_json
from openqnn.options.diagnose import DoctorOptions
from openqnn.options.field import read_options


def run_doctor(arguments: Namespace) -> int:
    from openqnn.analysis.doctor import diagnose
    from openqnn.cli.report_diagnosis import print_diagnosis

    options = read_options(arguments, DoctorOptions)
    found = diagnose()
    if options.json:
        print_json({"ok": found.ok, "items": [dataclasses.asdict(item) for item in found.items]})
    else:
        print_diagnosis(found)
    return 0 if found.ok else 1


COMMAND = Command(
    "doctor",
    "Tell what is installed, what works, and what to do about the rest.",
    (DoctorOptions,),
    run_doctor,
    examples=("openqnn doctor",),
)
