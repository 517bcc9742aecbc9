"""openqnn context check: whether a context binary will load on a chip and with a library."""

from __future__ import annotations

import dataclasses
from argparse import Namespace

from openqnn.cli.command import Command, Report
from openqnn.options.diagnose import ContextCheck
from openqnn.options.field import read_options


def run_context(arguments: Namespace) -> Report:
    from openqnn.analysis.context_check import check_context
    from openqnn.analysis.context_summary import summarise_context
    from openqnn.cli import report_diagnosis as show
    from openqnn.cli.shared.vendor_setup import opened_binary

    options = read_options(arguments, ContextCheck)
    with opened_binary(options.binary) as binary:
        report = check_context(binary, options.soc or None, options.against or None)
    findings = [dataclasses.asdict(finding) for finding in report.findings]
    summary = dataclasses.asdict(summarise_context(report.info))
    record = {"ok": report.ok, "binary": summary, "findings": findings}
    return Report(record, lambda: show.print_context_report(options.binary, report), int(not report.ok))


COMMAND = Command(
    "context",
    "Tell whether a context binary will load on a chip and with a library.",
    (ContextCheck,),
    run_context,
    examples=("openqnn context check model.bin --soc SM8650",),
)
