"""Commands that find out what is wrong: with the installation, with a graph on a backend, with a binary."""

from __future__ import annotations

import dataclasses
import json
from argparse import Namespace

from openqnn.options.diagnose import DoctorOptions
from openqnn.options.field import read_options


def run_doctor(arguments: Namespace) -> int:
    from openqnn.analysis.doctor import diagnose
    from openqnn.cli.report_diagnosis import print_diagnosis

    options = read_options(arguments, DoctorOptions)
    found = diagnose()
    if options.json:
        print(
            json.dumps(
                {"ok": found.ok, "items": [dataclasses.asdict(item) for item in found.items]}, indent=2
            )
        )
    else:
        print_diagnosis(found)
    return 0 if found.ok else 1
