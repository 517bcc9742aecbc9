"""openqnn check: what of a model is supported, by us and by a library, and why the rest is not."""

from __future__ import annotations

import dataclasses
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.errors import UsageError
from openqnn.options.diagnose import BackendCheck
from openqnn.options.field import read_options
from openqnn.options.output import CheckOutput
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.analysis.half_precision import HalfProblem
    from openqnn.analysis.validation import Validation
    from openqnn.api.convert import Report as Checked
    from openqnn.ir import Graph
    from openqnn.passes import Explain


def run_check(arguments: Namespace) -> Report:
    from openqnn.api.convert import check, convert
    from openqnn.passes import Explain

    source, output = read_options(arguments, SourceOptions), read_options(arguments, CheckOutput)
    wanted = read_options(arguments, BackendCheck)
    if wanted.data and not _in_half_precision(wanted.backend):
        raise UsageError("--data is for half precision, which HTP has", hint="--backend htp")
    if wanted.backend or wanted.matrix or wanted.soc:
        return _check_on_backend(source, output, wanted)
    found = check(source.model, **source.settings())
    explain = Explain() if output.explain and found.ok else None
    if explain is not None:
        convert(source.model, **source.settings(), explain=explain)
    return _report(found, output, explain)


def _report(found: Checked, output: CheckOutput, explain: Explain | None = None) -> Report:
    """The conversion check, and behind it what every pass did."""
    from openqnn.cli.report import print_check, print_explanation

    def show() -> None:
        print_check(found)
        if explain is not None:
            print_explanation(explain)

    if explain is not None and output.json:
        print_explanation(explain, file=sys.stderr)
    problems = [dataclasses.asdict(p) for p in found.problems]
    record = {"ok": found.ok, "supported": dict(found.supported), "problems": problems}
    return Report(record, show, int(not found.ok))


def _check_matrix(graph: Graph) -> Report:
    """What the CPU library and every architecture of HTP say about every node."""
    from openqnn.analysis.validation import validation_matrix
    from openqnn.cli import report_diagnosis as show

    matrix = validation_matrix(graph)
    columns = {name: _validation(each) for name, each in matrix.columns.items()}
    record = {"ok": matrix.ok, "columns": columns, "missing": dict(matrix.missing)}
    return Report(record, lambda: show.print_matrix(matrix), int(not matrix.ok))


def _check_choice(wanted: BackendCheck) -> None:
    if (wanted.soc or wanted.backend) and wanted.matrix:
        flag = "--soc" if wanted.soc else "--backend"
        raise UsageError(
            f"{flag} and --matrix exclude each other",
            hint="the matrix asks the CPU library and every architecture of HTP",
        )
    if not wanted.backend and not wanted.matrix:
        raise UsageError("--soc needs --backend", hint="--backend htp")


def _check_on_backend(source: SourceOptions, output: CheckOutput, wanted: BackendCheck) -> Report:
    """The conversion check, and where it passes, what the library says about every node."""
    from openqnn.analysis.validation import validate_graph
    from openqnn.cli import report_diagnosis as show

    _check_choice(wanted)
    graph = _checked_graph(source, output)
    if isinstance(graph, Report):
        return graph
    if wanted.matrix:
        return _check_matrix(graph)
    found = validate_graph(graph, wanted.backend, wanted.soc or None)
    halves = _half_problems(graph, wanted.backend, wanted.data) if _in_half_precision(wanted.backend) else []
    record = _validation(found) | {"half_precision": [dataclasses.asdict(each) for each in halves]}

    def print_both() -> None:
        show.print_validation(found)
        show.print_half_problems(halves)

    return Report(record, print_both, int(not found.ok or bool(halves)))


def _in_half_precision(backend: str) -> bool:
    from openqnn.targets.registry import target_of_library

    return target_of_library(backend).half_precision


def _half_problems(graph: Graph, backend: str, data: str) -> list[HalfProblem]:
    """What a graph in floats computes that half precision cannot hold."""
    from openqnn.analysis.half_precision import half_problems
    from openqnn.quant.samples import samples_of
    from openqnn.targets.registry import target_of_library

    if not any(v.dtype.is_float for n in graph.nodes for v in n.outputs):
        return []
    made = target_of_library(backend).adapt_float(graph)
    return half_problems(made, samples_of(made, data) if data else None)


def _checked_graph(source: SourceOptions, output: CheckOutput) -> Graph | Report:
    """The graph, or the report on a source model that cannot be converted."""
    from openqnn.api.convert import check
    from openqnn.api.files import VENDOR_FILES, open_graph
    from openqnn.cli.report import print_explanation
    from openqnn.formats.oqnn import is_oqnn
    from openqnn.passes import Explain

    explain = Explain() if output.explain else None
    if is_oqnn(source.model) or Path(source.model).suffix in VENDOR_FILES:
        return open_graph(source.model, **source.settings())
    found = check(source.model, **source.settings())
    if not found.ok:
        return _report(found, output)
    graph = open_graph(source.model, **source.settings(), explain=explain)
    if explain is not None:
        print_explanation(explain, file=sys.stderr if output.json else sys.stdout)
    return graph


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


COMMAND = Command(
    "check",
    "Tell what of a model is supported, and why the rest is not.",
    (SourceOptions, OwnOps, BackendCheck, CheckOutput),
    run_check,
    examples=(
        "openqnn check model.onnx --batch 1",
        "openqnn check model.onnx --backend htp --data samples/",
    ),
)
