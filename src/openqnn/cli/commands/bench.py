"""openqnn bench: how long a model takes on this machine, on several runtimes."""

from __future__ import annotations

import dataclasses
import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.errors import UsageError
from openqnn.formats.atomic import check_place, replacing
from openqnn.options.field import option, read_options
from openqnn.options.packages import OwnOps
from openqnn.options.source import batch, dims, input_shapes, positive, shape_settings

if TYPE_CHECKING:
    from openqnn.analysis.model_bench import BenchTime

KNOWN = {
    "openqnn": "openqnn", "ort": "ort", "libqnncpu": "libQnnCpu.so", "cpu": "libQnnCpu.so",
    "libqnnhtp": "libQnnHtp.so", "htp": "libQnnHtp.so",
}  # fmt: skip


def _contenders(text: str) -> tuple[str, ...]:
    import argparse

    found: list[str] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name = KNOWN.get(word.lower().removesuffix(".so"))
        if name is None:
            raise argparse.ArgumentTypeError(f"{word!r}: known are openqnn, ort, libQnnCpu and libQnnHtp")
        found.append(name)
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class BenchOptions:
    """Models, and what they are run on."""

    models: tuple[str, ...] = option((), "models", nargs="*", metavar="MODEL", help="models of any kind")
    against: tuple[str, ...] = option(
        (), "--against", metavar="NAMES", parse=_contenders,
        help="beside the built-in backend: ort, libQnnCpu, libQnnHtp, separated by commas"
        " (default: ort for .onnx files)",
    )  # fmt: skip
    runs: int = option(50, "--runs", metavar="N", parse=positive, help="inferences of each (default: 50)")
    config: str = option(
        "", "--config", metavar="JSON", help="a configuration of QNN's benchmark script, in place of models"
    )
    output: str = option("", "--output", metavar="JSON", help="write the figures to a file as well")
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = input_shapes()
    dims: tuple[tuple[str, int], ...] = dims()
    batch: int | None = batch()


def run_bench(arguments: Namespace) -> Report:
    options = read_options(arguments, BenchOptions)
    if bool(options.config) == bool(options.models):
        raise UsageError("give models, or a configuration with --config")
    shaped = options.input_shapes or options.dims or options.batch
    if options.config and shaped:
        raise UsageError("--input_shape, --dim and --batch go with models, and --config names one library")
    if options.output:
        check_place(options.output)
    if options.config:
        return run_bench_config(options.config)
    found = {model: _measured(model, options) for model in options.models}
    figures = {m: [dataclasses.asdict(each) for each in times] for m, times in found.items()}
    record = {"environment": _environment(), "models": figures}
    if options.output:
        _write(options.output, record)
    return Report(record, partial(_print_all, found))


def _print_all(found: Mapping[str, Sequence[BenchTime]]) -> None:
    for model, times in found.items():
        _print(model, times)


def run_bench_config(path: str) -> Report:
    """A run by the JSON of QNN's benchmark script; results go where it says."""
    from openqnn.analysis.model_bench import milliseconds_of, run_vendor, summed_up
    from openqnn.cli.shared.vendor_setup import source
    from openqnn.formats.bench_config import LIBRARIES, read_bench_config
    from openqnn.formats.input_list import read_input_list
    from openqnn.qnn.model_library import PREFIX

    config = read_bench_config(path)
    for remark in config.remarks:
        print(f"note: {remark}", file=sys.stderr)
    lists = (read_input_list(config.input_list),) if config.input_list else ()
    times: list[BenchTime] = []
    memory: dict[str, int] = {}
    for backend in config.backends:
        found = source((str(config.model),), (), PREFIX)
        library = LIBRARIES[backend]
        run = run_vendor(library, found, config.runs, lists)
        times.append(summed_up(backend, library, milliseconds_of(run)))
        memory[backend] = run.after.memory
    record = {
        "Name": config.name,
        "Model": str(config.model),
        "Runs": config.runs,
        "Measurements": list(config.measurements),
        "environment": _environment(),
        "Results": [dataclasses.asdict(each) for each in times],
    }
    if "mem" in config.measurements:
        record["memory_bytes"] = memory
    target = config.results / f"{config.name}.json"
    _write(str(target), record)

    def show() -> None:
        _print(config.name, times)
        print(target)

    return Report(record, show)


def _measured(model: str, options: BenchOptions) -> list[BenchTime]:
    from openqnn.analysis.model_bench import BUILT_IN, ORT, bench_model
    from openqnn.api.files import open_graph

    usual = (ORT,) if model.endswith(".onnx") else ()
    names = tuple(dict.fromkeys((BUILT_IN, *(options.against or usual))))
    settings = shape_settings(options.input_shapes, options.dims, options.batch)
    return bench_model(model, open_graph(model, **settings), names, options.runs)


def _print(model: str, times: Sequence[BenchTime]) -> None:
    from rich.markup import escape

    from openqnn.cli.report import console, table

    rows = table(escape(model), "runs", "median ms", "p90 ms", "least ms", "by rounds", "times the first")
    for each in times:
        rounds = f"{min(each.rounds):.3f} to {max(each.rounds):.3f}"
        ratio = f"{each.median / times[0].median:.2f}"
        numbers = (f"{each.median:.3f}", f"{each.p90:.3f}", f"{each.least:.3f}")
        rows.add_row(each.contender, str(each.runs), *numbers, rounds, ratio)
    console().print(rows)
    for each in times:
        if each.remark:
            print(f"note: {each.contender}: {each.remark}")


def _environment() -> dict[str, Any]:
    from openqnn.analysis.throughput_report import host_environment

    return host_environment()


def _write(path: str, record: Mapping[str, Any]) -> None:
    with replacing(path) as file:
        file.write((json.dumps(record, indent=2) + "\n").encode("utf-8"))


COMMAND = Command(
    "bench",
    "Measure how long a model takes on this machine, beside ONNX Runtime and Qualcomm's libraries.",
    (BenchOptions, OwnOps),
    run_bench,
    examples=("openqnn bench model.onnx --against ort,libQnnHtp --runs 20",),
)
