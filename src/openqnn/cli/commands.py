"""The commands: each reads its option groups, calls the Python API and prints."""

from __future__ import annotations

import dataclasses
import json
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli import compare, diagnose
from openqnn.errors import OutputError
from openqnn.options.architecture import LintOptions
from openqnn.options.context_tools import CompileOptions, ExtractOptions
from openqnn.options.diagnose import BackendCheck, ContextCheck, DiffOptions, DoctorOptions, ReduceOptions
from openqnn.options.encodings import EncodingsOptions
from openqnn.options.estimate import EstimateOptions
from openqnn.options.field import read_options
from openqnn.options.output import CheckOutput, ConvertOutput, InspectOutput, RunIo
from openqnn.options.quantizer import (
    QuantizeOutput,
    QuantizerChoices,
    QuantizerData,
    QuantizerEncodings,
    QuantizeTarget,
)
from openqnn.options.source import SourceOptions
from openqnn.options.view import ViewOptions

if TYPE_CHECKING:
    from openqnn.ir import Graph

SOURCE = ".cpp"


@dataclass(frozen=True)
class Command:
    name: str
    doc: str
    groups: tuple[type[Any], ...]
    run: Callable[[Namespace], int]


def version() -> str:
    from openqnn import __version__

    return __version__


def _settings(source: SourceOptions) -> dict[str, Any]:
    """The keyword arguments of `convert` that the options stand for."""
    return {"input_shapes": dict(source.input_shapes), "dims": dict(source.dims), "batch": source.batch}


def run_convert(arguments: Namespace) -> int:
    from openqnn.api.convert import convert
    from openqnn.cli.progress import Stages
    from openqnn.passes import Explain

    source, output = read_options(arguments, SourceOptions), read_options(arguments, ConvertOutput)
    target = Path(output.output or Path(source.model).with_suffix(".oqnn").name)
    _check_target(target, Path(source.model), output.overwrite)
    explain = Explain() if output.explain else None
    with Stages(quiet=output.quiet) as stages:
        graph = convert(source.model, **_settings(source), explain=explain, progress=stages.update)
        stages.update("write", 0, 1)
        _write(graph, target)
    if explain is not None:
        from openqnn.cli.report import print_explanation

        print_explanation(explain)
    if not output.quiet:
        print(f"{target}: {len(graph.nodes)} nodes, {target.stat().st_size:,} bytes")
    return 0


def _write(graph: Graph, target: Path) -> None:
    """The file that its name asks for: C++ source with weights beside it, or what `Graph.save` writes."""
    if target.suffix != SOURCE:
        graph.save(target)
        return
    from openqnn.emit import lower
    from openqnn.emit.model_source import write_model_source
    from openqnn.formats.atomic import together
    from openqnn.passes.htp import convolve_blocks

    convolve_blocks(graph)
    with together():
        write_model_source([lower(graph)], target)


def _check_target(target: Path, source: Path, overwrite: bool) -> None:
    """Before the work is done. Nothing of the user's is replaced unasked: only a graph file of ours."""
    from openqnn.formats.oqnn import is_container
    from openqnn.ir.oqnn import check_name

    if target.is_dir():
        raise OutputError(f"{target} is a directory", hint=f"-o {target / source.with_suffix('.oqnn').name}")
    if target.exists() and source.exists() and target.samefile(source):
        raise OutputError(f"{target} is the source model itself", hint="give another file with -o")
    if target.suffix != SOURCE:
        check_name(target)
    if target.exists() and not is_container(target) and not overwrite:
        raise OutputError(f"{target} exists and is not an OpenQNN graph", hint="--overwrite replaces it")


def run_check(arguments: Namespace) -> int:
    from openqnn.api.convert import check, convert
    from openqnn.cli.report import print_check, print_explanation
    from openqnn.passes import Explain

    source, output = read_options(arguments, SourceOptions), read_options(arguments, CheckOutput)
    wanted = read_options(arguments, BackendCheck)
    if wanted.backend or wanted.matrix or wanted.soc:
        return diagnose.run_backend_check(source, output, wanted)
    report = check(source.model, **_settings(source))
    if output.json:
        problems = [dataclasses.asdict(p) for p in report.problems]
        print(
            json.dumps({"ok": report.ok, "supported": dict(report.supported), "problems": problems}, indent=2)
        )
    else:
        print_check(report)
    if output.explain and report.ok:
        explain = Explain()
        convert(source.model, **_settings(source), explain=explain)
        print_explanation(explain, file=sys.stderr if output.json else sys.stdout)
    return 0 if report.ok else 1


def run_inspect(arguments: Namespace) -> int:
    from openqnn.cli.inspection import inspect

    source, output = read_options(arguments, SourceOptions), read_options(arguments, InspectOutput)
    return inspect(source.model, _settings(source), output)


def run_run(arguments: Namespace) -> int:
    from openqnn.api.files import open_graph
    from openqnn.api.session import Session
    from openqnn.cli.arrays import output_paths, read_inputs, write_array
    from openqnn.cli.report import print_results

    source, io = read_options(arguments, SourceOptions), read_options(arguments, RunIo)
    graph = open_graph(source.model, **_settings(source))
    inputs = read_inputs(graph, dict(io.inputs), fill=io.random)
    with Session(graph, io.backend, threads=io.threads) as session:
        results = session.run(inputs, io.outputs or None)
    paths = output_paths(Path(io.output_dir), results)
    for name, array in results.items():
        write_array(paths[name], array)
    print_results(results, paths)
    return 0


def run_compile(arguments: Namespace) -> int:
    from openqnn.cli import context_tools

    return context_tools.run_compile(arguments)


def run_extract(arguments: Namespace) -> int:
    from openqnn.cli import context_tools

    return context_tools.run_extract(arguments)


def run_encodings(arguments: Namespace) -> int:
    from openqnn.cli import encodings

    return encodings.run_encodings(arguments)


def run_quantize(arguments: Namespace) -> int:
    from openqnn.cli import quantizing

    settings = _settings(read_options(arguments, SourceOptions))
    return quantizing.run_quantize(arguments, settings, _check_target, _write)


def run_estimate(arguments: Namespace) -> int:
    from openqnn.cli import estimate

    return estimate.run_estimate(arguments)


def run_lint(arguments: Namespace) -> int:
    from openqnn.cli import architecture

    return architecture.run_lint(arguments)


def run_view(arguments: Namespace) -> int:
    from openqnn.cli import view

    return view.run_view(arguments)


COMMANDS = (
    Command("convert", "Convert an ONNX model to a QNN graph.", (SourceOptions, ConvertOutput), run_convert),
    Command(
        "check",
        "Tell what of a model is supported, and why the rest is not.",
        (SourceOptions, BackendCheck, CheckOutput),
        run_check,
    ),
    Command(
        "inspect",
        "Summarise a model: ops, parameters, MACs, memory.",
        (SourceOptions, InspectOutput),
        run_inspect,
    ),
    Command("run", "Run a model on arrays from files.", (SourceOptions, RunIo), run_run),
    Command(
        "quantize",
        "Quantize a model: a graph in fixed point, and what that costs.",
        (SourceOptions, QuantizeOutput, QuantizeTarget, QuantizerData, QuantizerChoices, QuantizerEncodings),
        run_quantize,
    ),
    Command(
        "encodings",
        "List the encodings of a model, hold an encodings file against it, or write one in any version.",
        (SourceOptions, EncodingsOptions),
        run_encodings,
    ),
    Command(
        "doctor",
        "Tell what is installed, what works, and what to do about the rest.",
        (DoctorOptions,),
        diagnose.run_doctor,
    ),
    Command(
        "reduce",
        "Cut a graph that a library fails on down to the smallest part that still fails.",
        (SourceOptions, ReduceOptions),
        diagnose.run_reduce,
    ),
    Command(
        "diff",
        "Tell what differs between two graphs: nodes, parameters, constants, inputs and outputs.",
        (DiffOptions,),
        compare.run_diff,
    ),
    Command(
        "context",
        "Tell whether a context binary will load on a chip and with a library.",
        (ContextCheck,),
        diagnose.run_context_command,
    ),
    Command(
        "compile",
        "Compile a model for a SoC into a context binary.",
        (SourceOptions, CompileOptions),
        run_compile,
    ),
    Command(
        "extract",
        "Take the context binary out of an EPContext model.",
        (ExtractOptions,),
        run_extract,
    ),
    Command(
        "estimate",
        "Tell how fast a model will be on HTP, with no device: the vendor's cost model, and its error.",
        (SourceOptions, EstimateOptions),
        run_estimate,
    ),
    Command(
        "lint",
        "Tell what in a model keeps it from being fast on HTP.",
        (SourceOptions, LintOptions),
        run_lint,
    ),
    Command(
        "view",
        "Show models in the browser: graph, tensors, overlays, and what differs between several.",
        (ViewOptions,),
        run_view,
    ),
)
