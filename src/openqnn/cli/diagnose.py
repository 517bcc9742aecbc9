"""Commands that find out what is wrong: with the installation, with a graph on a backend, with a binary."""

from __future__ import annotations

import dataclasses
import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import UsageError
from openqnn.options.diagnose import BackendCheck, ContextCheck, DoctorOptions, ReduceOptions
from openqnn.options.field import read_options
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.analysis.validation import Validation
    from openqnn.ir import Graph
    from openqnn.options.output import CheckOutput


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


def run_backend_check(source: SourceOptions, output: CheckOutput, wanted: BackendCheck) -> int:
    """The conversion check, and where it passes, what the library says about every node."""
    from openqnn.analysis.validation import validate_graph, validation_matrix
    from openqnn.cli import report_diagnosis as show

    if (wanted.soc or wanted.backend) and wanted.matrix:
        flag = "--soc" if wanted.soc else "--backend"
        raise UsageError(
            f"{flag} and --matrix exclude each other",
            hint="the matrix asks the CPU library and every architecture of HTP",
        )
    if not wanted.backend and not wanted.matrix:
        raise UsageError("--soc needs --backend", hint="--backend htp")
    graph = _checked_graph(source, _settings(source), output)
    if graph is None:
        return 1
    if wanted.matrix:
        matrix = validation_matrix(graph)
        if output.json:
            columns = {name: _validation(each) for name, each in matrix.columns.items()}
            _print_json({"ok": matrix.ok, "columns": columns, "missing": dict(matrix.missing)})
        else:
            show.print_matrix(matrix)
        return 0 if matrix.ok else 1
    found = validate_graph(graph, wanted.backend, wanted.soc or None)
    if output.json:
        _print_json(_validation(found))
    else:
        show.print_validation(found)
    return 0 if found.ok else 1


def _checked_graph(source: SourceOptions, settings: Mapping[str, Any], output: CheckOutput) -> Graph | None:
    """The graph; None when the source model cannot be converted, which is then reported."""
    from openqnn.api.convert import check
    from openqnn.api.files import VENDOR_FILES, open_graph
    from openqnn.cli.report import print_check, print_explanation
    from openqnn.formats.oqnn import is_container
    from openqnn.passes import Explain

    explain = Explain() if output.explain else None
    if is_container(source.model) or Path(source.model).suffix in VENDOR_FILES:
        return open_graph(source.model, **settings)
    report = check(source.model, **settings)
    if not report.ok:
        if output.json:
            problems = [dataclasses.asdict(p) for p in report.problems]
            _print_json({"ok": False, "supported": dict(report.supported), "problems": problems})
        else:
            print_check(report)
        return None
    graph = open_graph(source.model, **settings, explain=explain)
    if explain is not None:
        print_explanation(explain, file=sys.stderr if output.json else sys.stdout)
    return graph


def run_reduce(arguments: Namespace) -> int:
    from openqnn.analysis.bug_report import write_bundle
    from openqnn.analysis.shrink import reduce_net
    from openqnn.analysis.validation import suited_net
    from openqnn.api.files import open_graph
    from openqnn.cli import report_diagnosis as show
    from openqnn.cli.progress import Stages
    from openqnn.qnn.library import find_library, is_htp
    from openqnn.qnn.options import DeviceOptions
    from openqnn.qnn.soc import find_soc

    source, options = read_options(arguments, SourceOptions), read_options(arguments, ReduceOptions)
    library = find_library(options.backend)
    for_htp = is_htp(library)
    if options.soc and not for_htp:
        raise UsageError(f"--soc: a chip can be chosen for HTP only, not for {library.name}")
    chip = find_soc(options.soc or None) if for_htp else None
    graph = open_graph(source.model, **_settings(source))
    net = suited_net(graph, for_htp and not options.as_is)
    with Stages() as stages:
        reduced = reduce_net(
            net,
            str(library),
            DeviceOptions(chip.model) if chip else None,
            seconds=options.seconds,
            trial_seconds=options.trial_seconds,
            progress=lambda _, left, total: stages.update("reduce", total - left, total),
        )
    about = {"model": source.model, "library": str(library), "target": str(chip or "")}
    bundle = write_bundle(reduced, Path(options.output), about)
    if options.json:
        print((Path(options.output) / "report.json").read_text(encoding="utf-8"), end="")
    else:
        show.print_reduced(reduced, bundle)
    return 0


def run_context_command(arguments: Namespace) -> int:
    from openqnn.analysis.context_check import check_context
    from openqnn.analysis.context_summary import summarise_context
    from openqnn.cli import report_diagnosis as show
    from openqnn.cli.vendor_tools import opened_binary

    options = read_options(arguments, ContextCheck)
    with opened_binary(options.binary) as binary:
        report = check_context(binary, options.soc or None, options.against or None)
    if options.json:
        findings = [dataclasses.asdict(finding) for finding in report.findings]
        summary = dataclasses.asdict(summarise_context(report.info))
        _print_json({"ok": report.ok, "binary": summary, "findings": findings})
    else:
        show.print_context_report(options.binary, report)
    return 0 if report.ok else 1


def _validation(found: Validation) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "library": found.library,
        "target": found.target,
        "nodes": found.nodes,
        "ops": dict(found.counts),
        "refused": [dataclasses.asdict(each) for each in found.refused],
        "warning": found.warning,
    }


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def _settings(source: SourceOptions) -> dict[str, Any]:
    """The keyword arguments of `open_graph` that the options stand for."""
    return {"input_shapes": dict(source.input_shapes), "dims": dict(source.dims), "batch": source.batch}
