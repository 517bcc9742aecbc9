"""openqnn quantize: a graph in fixed point, and what that costs."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.graph_files import check_graph_file, split_as_asked, write_graph_file
from openqnn.cli.shared.quantizing import (
    Asked,
    check_encodings,
    quantized,
    read_asked,
    warn,
    write_encodings,
)
from openqnn.cli.shared.view_beside import check_beside, write_graph_beside
from openqnn.errors import OutputError, TargetMissedError, UsageError
from openqnn.formats.atomic import check_place, replacing, replacing_any_kind
from openqnn.options.field import read_options
from openqnn.options.output import SplitOptions
from openqnn.options.packages import OwnOps
from openqnn.options.quantizer import (
    QuantizeOutput,
    QuantizerChoices,
    QuantizerData,
    QuantizerEncodings,
    QuantizeTarget,
)
from openqnn.options.source import SourceOptions
from openqnn.quant.recipe import Recipe

if TYPE_CHECKING:
    from openqnn.analysis.quant_report import QuantReport
    from openqnn.api.quantize import Outcome
    from openqnn.ir import Graph
    from openqnn.quant.algorithms.mixed_precision import Mixed

COMPARED = 8  # samples that a report is made from


def run_quantize(arguments: Namespace) -> Report:
    """Quantizes, writes, and tells what it cost."""
    from openqnn.api.files import open_graph
    from openqnn.api.quantize import DEFAULT_ALGORITHMS

    output, asked = read_options(arguments, QuantizeOutput), read_asked(arguments, with_data=True)
    given = read_options(arguments, SourceOptions)
    source = Path(given.model)
    asked = _with_data(asked, output)
    target = Path(output.output or f"{source.stem}.quantized.oqnn")
    check_graph_file(target, source, output.overwrite)
    _check_beside(asked, output, target, source)
    goal = read_options(arguments, QuantizeTarget)
    found: list[Outcome] = []
    opened = open_graph(source, **given.settings())
    opened = split_as_asked(opened, read_options(arguments, SplitOptions), quiet=output.quiet)
    made = quantized(
        opened, asked, Recipe(), quiet=output.quiet,
        algorithms=DEFAULT_ALGORITHMS, target=goal, outcome=found.append, test_data=output.test_data,
    )  # fmt: skip
    with replacing_any_kind(output.overwrite):
        write_graph_file(made, target)
    written = write_encodings(made, target, output.overwrite) if asked.encodings.dump_encoding_json else None
    wanted = output.report or arguments.json or not output.quiet
    compares = asked.data.input_list and not output.no_report and wanted
    report = _compared(found[0], made, asked, output) if compares else None
    result = _Result(target, made, written, report, output.report, found[0].mixed)
    return Report(result.record(), result.show, _code(found[0].mixed, target))


@dataclass(frozen=True, slots=True)
class _Result:
    """What was written, and what is known of it."""

    target: Path
    graph: Graph
    encodings: Path | None
    report: QuantReport | None
    page: str
    mixed: Mixed | None

    def record(self) -> dict[str, Any]:
        outputs = self.report.outputs if self.report else ()
        return {
            "output": str(self.target),
            "nodes": len(self.graph.nodes),
            "bytes": self.target.stat().st_size,
            "encodings": None if self.encodings is None else str(self.encodings),
            "report": self.page or None,
            "fixed_nodes": self.report.fixed_nodes if self.report else None,
            "outputs": [
                {"name": o.name, "part": o.part, "sqnr_db": o.sqnr, "cosine": o.cosine} for o in outputs
            ],
            "verdict": self.report.verdict if self.report else "",
            "target": None if self.mixed is None else _target(self.mixed),
        }

    def show(self) -> None:
        from openqnn.cli.report_quantization import print_mixed, print_quantization

        print(f"{self.target}: {len(self.graph.nodes)} nodes, {self.target.stat().st_size:,} bytes")
        if self.encodings is not None:
            print(self.encodings)
        if self.report is not None:
            print_quantization(self.report)
        if self.page and self.report is not None:
            print(self.page)
        if self.mixed is not None:
            print_mixed(self.mixed)


def _target(mixed: Mixed) -> dict[str, Any]:
    """What was asked for, and which nodes got more bits for it; 0 bits are floating point."""
    wider = [{"node": p.unit.names[0], "op": p.unit.op, "bits": p.width} for p in mixed.promotions]
    return {"reached": mixed.reached, "before": mixed.before, "after": mixed.after, "wider": wider}


def _with_data(asked: Asked, output: QuantizeOutput) -> Asked:
    """The options with the data of --data, checked against those of the result."""
    if output.data and asked.data.input_list:
        raise UsageError("--data and --input_list both say what to calibrate with: give one")
    if output.data and asked.encodings.float_fallback:
        raise UsageError("--float_fallback calibrates nothing, so it cannot be given with --data")
    if output.data:
        asked = replace(asked, data=replace(asked.data, input_list=output.data))
    if not asked.wanted:
        raise UsageError("there is nothing to quantize with", hint="--data PATH, or --float_fallback")
    if output.report:
        if not asked.data.input_list:
            raise UsageError("--report compares results on data, and --float_fallback takes none")
        check_place(output.report)
    return asked


def _check_beside(asked: Asked, output: QuantizeOutput, target: Path, source: Path) -> None:
    """Before the work is done: what is written beside the result replaces nothing of the user's unasked."""
    from openqnn.analysis.quant_page import is_quant_page

    if asked.encodings.dump_encoding_json and not output.overwrite:
        check_encodings(target)
    report = Path(output.report)
    if not output.report:
        return
    data = asked.data.input_list
    for other, what in ((target, "the result"), (source, "the source model"), (data, "the data")):
        if os.path.abspath(report) == os.path.abspath(other):
            raise OutputError(f"--report {report} is {what} itself", hint="give another file")
    if report.exists() and not is_quant_page(report) and not output.overwrite:
        raise OutputError(f"{report} exists and is no report", hint="--overwrite replaces it")
    check_beside(report, overwrite=output.overwrite)


def _code(mixed: Mixed | None, target: Path) -> int:
    """1 where a target cannot be reached, which is said; the best that there is was written."""
    if mixed is None or mixed.reached:
        return 0
    missed = TargetMissedError(
        f"the target is not reached, whatever computes in floating point: {target} has the best that"
        f" was found, {mixed.after:.4g}"
    )
    print(missed.told(), file=sys.stderr)
    return 1


def _compared(found: Outcome, made: Graph, asked: Asked, output: QuantizeOutput) -> QuantReport | None:
    """The result beside floating point, which is written as a page where one was asked for."""
    from openqnn.analysis.quant_page import quant_page
    from openqnn.analysis.quant_report import OutputReport, quant_report
    from openqnn.viewer.read_overlays import quant_overlays

    if found.tested is None:
        warn("no report: all samples have NaN")
        return None
    report = quant_report(found.real, made, found.tested.samples[:COMPARED])
    figures = found.verdict.figures if found.verdict is not None else ()
    if figures:  # tensors inside may be scaled, but outputs are what they always were
        outputs = tuple(OutputReport(f.output, f.sqnr, f.cosine, f.part) for f in figures)
        report = replace(report, outputs=outputs)
    report = replace(
        report, on=found.tested.words, verdict=str(found.verdict or ""), facts=_facts(found, made, asked)
    )
    if output.report:
        view = write_graph_beside(output.report, made, made.name, quant_overlays(report))
        with replacing_any_kind(output.overwrite), replacing(output.report) as file:
            file.write(quant_page(report, view).encode())
    return report


def _facts(found: Outcome, made: Graph, asked: Asked) -> tuple[tuple[str, str], ...]:
    """What a reader of the report wants to know of the run, and the command that may mend it."""
    size = lambda graph: sum(v.nbytes for v in graph.constants())
    known = [
        ("command", shlex.join(["openqnn", *sys.argv[1:]])),
        ("data", asked.data.input_list),
        ("weights", f"{size(found.origin):,} bytes in floating point, {size(made):,} in fixed point"),
    ]
    remedy = found.verdict.remedy if found.verdict is not None else None
    if remedy is not None:
        options = " ".join(f"--{word.replace('=', ' ')}" for word in remedy.option.split(", "))
        known.append(("what would mend it", f"{options}: {remedy.what}, {remedy.sqnr:.1f} dB"))
    return tuple(known)


COMMAND = Command(
    "quantize",
    "Quantize a model: a graph in fixed point, and what that costs.",
    (
        SourceOptions,
        OwnOps,
        QuantizeOutput,
        SplitOptions,
        QuantizeTarget,
        QuantizerData,
        QuantizerChoices,
        QuantizerEncodings,
    ),
    run_quantize,
    examples=(
        "openqnn quantize model.onnx --data samples/ -o model.oqnn --report report.html",
        "openqnn quantize model.onnx --data samples/ --act_bw 16 -o model.dlc",
        "openqnn quantize model.onnx --data samples/ --target_sqnr 30 -o model.oqnn",
    ),
)
