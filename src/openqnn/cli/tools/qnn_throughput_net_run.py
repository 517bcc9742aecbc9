"""qnn-throughput-net-run: several models, backends and threads at once, by a JSON file."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from argparse import Namespace
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from openqnn.cli.command import Tool
from openqnn.cli.shared.vendor_setup import opened_binary, print_version, remark, say, setup, show_log, source
from openqnn.errors import InputError, LibraryError, ModelError, UsageError
from openqnn.formats.atomic import check_place, replacing
from openqnn.formats.input_list import read_input_list
from openqnn.formats.throughput_config import (
    BackendEntry,
    ModelEntry,
    ThroughputConfig,
    read_throughput_config,
)
from openqnn.options.field import option, read_options
from openqnn.options.net_run import NO_PERF_PROFILE, seconds
from openqnn.options.packages import OwnOps
from openqnn.options.source import positive
from openqnn.options.vendor import NO_PLATFORM_OPTIONS
from openqnn.qnn.model_library import PREFIX
from openqnn.qnn.op_package_library import op_package_libraries
from openqnn.qnn.profile import Level
from openqnn.vendor.net_run.results import unfinished
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import Profiling, check_computes
from openqnn.vendor.throughput.plan import BackendPlan, Lists, ModelPlan, ThroughputPlan
from openqnn.vendor.throughput.scenario import SCENARIOS, SERVER, Scenario

SKIP = "__"
_LEVELS = {"BASIC": Level.BASIC, "DETAILED": Level.DETAILED}


@dataclass(frozen=True)
class ThroughputOptions:
    """The run."""

    config: str = option("", "--config", metavar="FILE.json", help="backends, models, contexts and threads")
    output: str = option("", "--output", metavar="FILE.json", help="where the results go")
    html: str = option("", "--html", metavar="FILE", help="the results as a page with plots, too")
    require_stable: bool = option(
        False, "--require_stable", help="exit with 1 unless latency stayed where it was in all threads"
    )
    sample_config: bool = option(False, "--sample_config", help="print a sample of --config and exit")
    version: bool = option(False, "--version", help="print versions and exit")


@dataclass(frozen=True)
class ScenarioOptions:
    """Load by MLPerf's definitions, in place of the loops of the file."""

    scenario: str = option(
        "", "--scenario", metavar="NAME", choices=SCENARIOS, help=f"one of {', '.join(SCENARIOS)}"
    )
    duration: float = option(
        60.0, "--duration", metavar="S", parse=seconds, help="seconds of load (default: 60; MLPerf asks 600)"
    )
    queries: int | None = option(
        None, "--queries", metavar="N", parse=positive,
        help="queries at least; of offline, the samples (default: 24576)",
    )  # fmt: skip
    target_qps: float = option(
        0.0, "--target_qps", metavar="N", parse=seconds, help="queries a second that arrive at the server"
    )
    latency_bound: float = option(
        0.0, "--latency_bound", metavar="MS", parse=seconds,
        help="milliseconds within which the server has 99 percent of the queries done",
    )  # fmt: skip


def run_throughput_net_run(arguments: Namespace) -> int:
    from openqnn.analysis.throughput_report import SAMPLE, shipped_file

    options = read_options(arguments, ThroughputOptions)
    if options.version:
        return print_version("qnn-throughput-net-run")
    if options.sample_config:
        print(shipped_file(SAMPLE), end="")
        return 0
    if not options.config:
        raise UsageError("--config is required", hint="--sample_config prints one to start from")
    scenario = _scenario(read_options(arguments, ScenarioOptions))
    for place in filter(None, (options.output, options.html)):
        check_place(place)
    config = read_throughput_config(options.config)
    return _run(config, scenario, options)


def _scenario(options: ScenarioOptions) -> Scenario | None:
    if not options.scenario:
        if options.target_qps or options.latency_bound or options.queries:
            raise UsageError("--target_qps, --latency_bound and --queries go with --scenario")
        return None
    if options.scenario == SERVER and not (options.target_qps and options.latency_bound):
        raise UsageError("--scenario server takes --target_qps and --latency_bound")
    if options.scenario != SERVER and (options.target_qps or options.latency_bound):
        raise UsageError("--target_qps and --latency_bound go with --scenario server")
    return Scenario(
        options.scenario,
        options.duration,
        options.queries,
        options.target_qps,
        options.latency_bound / 1e3,
    )


def _run(config: ThroughputConfig, scenario: Scenario | None, options: ThroughputOptions) -> int:
    from openqnn import __version__
    from openqnn.analysis.throughput_page import throughput_page
    from openqnn.analysis.throughput_report import throughput_report
    from openqnn.vendor.remote import run_throughput

    for text in _idle(config):
        say(f"note: {text}")
    with ExitStack() as open_files:
        folder = Path(open_files.enter_context(tempfile.TemporaryDirectory()))
        plan = _plan(config, scenario, options, folder, open_files)
        endless = config.iteration < 0 and scenario is None
        with _ending(folder / "stop") if endless else _nothing():
            run = run_throughput(plan, note=remark, log=show_log if config.log_level else None)
        report = throughput_report(run, config.file, __version__, asdict(scenario) if scenario else None)
        _keep_logs(folder, run.logs, options.output)
    if options.output:
        _write(options.output, json.dumps(report, indent=2) + "\n")
    if options.html:
        _write(options.html, throughput_page(report))
    _tell(report)
    return _code(report, options.require_stable)


def _plan(
    config: ThroughputConfig,
    scenario: Scenario | None,
    options: ThroughputOptions,
    folder: Path,
    open_files: ExitStack,
) -> ThroughputPlan:
    used = {thread.model for thread in config.threads}
    setups = {thread.backend: thread.config for thread in config.threads}
    backends = {
        name: _backend(config, entry, setups[name])
        for name, entry in config.backends.items()
        if name in setups
    }
    numbers = {name: index for index, name in enumerate(config.models)}
    models = {
        name: _model(config.file, numbers[name], entry, open_files)
        for name, entry in config.models.items()
        if name in used
    }
    profiled = any(plan.profiling.level is not None for plan in backends.values())
    log = str(folder) if profiled and options.output else ""
    if profiled and not options.output:
        say("note: no profiling log is written without --output")
    return ThroughputPlan(config, backends, models, str(folder / "stop"), log, scenario)


def _backend(config: ThroughputConfig, entry: BackendEntry, file: str) -> BackendPlan:
    where = f"{config.file}: backends[{list(config.backends).index(entry.name)}]"
    try:
        op_package_libraries(entry.op_package)
    except (LibraryError, UsageError) as error:
        raise type(error)(f"{where}.opPackagePath: {error.message}", hint=error.hint) from error
    if entry.platform_option:
        raise UsageError(f"{where}.platformOption: {NO_PLATFORM_OPTIONS}")
    if file and not Path(file).is_file():
        index = next(i for i, t in enumerate(config.threads) if t.config == file)
        raise InputError(f"{config.file}: testCase.threads[{index}].backendConfig: there is no file {file}")
    try:
        made = setup(
            entry.path, file, log_level=config.log_level, chooser="a backendConfig",
            op_packages=entry.op_package,
        )  # fmt: skip
        check_computes(made.target.library)
    except (LibraryError, UsageError) as error:
        raise type(error)(f"{where}.backendPath: {error.message}", hint=error.hint) from error
    return BackendPlan(made.target, Profiling(_LEVELS.get(entry.profiling)))


def _model(file: str, index: int, entry: ModelEntry, open_files: ExitStack) -> ModelPlan:
    where = f"{file}: models[{index}]"
    try:
        if entry.is_binary:
            found = Source(binary=open_files.enter_context(opened_binary(entry.path)))
        else:
            found = source((entry.path,), (), PREFIX)
    except ModelError as error:
        raise ModelError(f"{where}.modelPath: {error.message}", hint=error.hint) from error
    folder = ""
    if entry.output_path:
        folder = str(open_files.enter_context(unfinished(Path(entry.output_path))))
    inputs = _lists(entry.input_path, f"{where}.inputPath")
    return ModelPlan(found, inputs, _lists(entry.ground_truth, f"{where}.groundTruthPath"), folder)


def _lists(names: str, where: str) -> Lists:
    """A list for each graph, separated by commas."""
    try:
        return tuple(
            None if name.strip() == SKIP else read_input_list(name.strip())
            for name in names.split(",")
            if name.strip()
        )
    except InputError as error:
        raise InputError(f"{where}: {error.message}", hint=error.hint) from error


def _idle(config: ThroughputConfig) -> list[str]:
    """Settings that do nothing on this machine, with the reason."""
    found: list[str] = []
    for index, backend in enumerate(config.backends.values()):
        if backend.perf_profile != "default":
            found.append(f"backends[{index}].perfProfile: {NO_PERF_PROFILE}")
    for index, context in enumerate(config.contexts.values()):
        if context.priority not in ("DEFAULT", "NORMAL"):
            found.append(f"contexts[{index}].priority: it orders the work on a device, and does nothing here")
        if context.compatibility == "strict":
            found.append(f"contexts[{index}].cacheCompatibilityMode: only a device can judge it")
    used = {thread.backend for thread in config.threads} | {thread.model for thread in config.threads}
    for kind, entries in (("backends", config.backends), ("models", config.models)):
        for index, name in enumerate(entries):
            if name not in used:
                found.append(f"{kind}[{index}]: no thread uses '{name}'")
    return found


@contextmanager
def _ending(stop: Path) -> Generator[None]:
    """Ctrl-C ends the run in good order; a second one ends it at once."""

    def end(number: int, frame: object) -> None:
        del number, frame
        if stop.exists():
            raise KeyboardInterrupt
        stop.touch()

    before = signal.signal(signal.SIGINT, end)
    say("note: iteration is below 0: the run goes on until Ctrl-C")
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _nothing() -> Generator[None]:
    yield


def _keep_logs(folder: Path, names: list[str], output: str) -> None:
    """Profiling logs go beside the results."""
    for name in names:
        _write(str(Path(output).parent / name), (folder / name).read_bytes())


def _write(path: str, content: str | bytes) -> None:
    with replacing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def _tell(report: Mapping[str, Any]) -> None:
    from rich.markup import escape

    from openqnn.cli.report import console, table

    names = ("mean", "p50", "p90", "p99", "p99.9")
    rows = table("thread", "model", "executions", "per second", *(f"{n} us" for n in names), "verdict")
    for thread in report["threads"]:
        latency = thread["latency_us"]
        times = (f"{latency[name]:,.1f}" if name in latency else "-" for name in names)
        rate = thread["per_second"]
        rows.add_row(
            escape(thread["thread"]), escape(thread["model"]), f"{thread['executions']:,}",
            "-" if rate is None else f"{rate:,.1f}", *times, thread["stability"]["verdict"],
        )  # fmt: skip
    console().print(rows)
    _tell_more(report)


def _tell_more(report: Mapping[str, Any]) -> None:
    """What is not in the table: errors of outputs, reasons of verdicts, the scenario."""
    for thread in report["threads"]:
        for each in thread["errors"]:
            print(
                f"{thread['thread']}: output '{each['output']}': mean squared error {each['mean']:.4g},"
                f" largest {each['largest']:.4g} over {each['executions']} executions"
            )
        if thread["stability"]["reason"]:
            print(f"{thread['thread']}: {thread['stability']['reason']}")
    for model, outcome in report.get("scenario", {}).get("outcomes", {}).items():
        value = "-" if outcome["value"] is None else f"{outcome['value']:,.3f} {outcome['unit']}"
        valid = "VALID" if outcome["valid"] else f"INVALID ({outcome['reason']})"
        print(f"{model}: {outcome['metric']}: {value}; {outcome['queries']} queries; {valid}")
    for text in report["environment"]["remarks"]:
        print(f"note: {text}", file=sys.stderr)


def _code(report: Mapping[str, Any], require_stable: bool) -> int:
    """1 for a scenario that does not count, or a run that had to be steady and was not."""
    outcomes = report.get("scenario", {}).get("outcomes", {}).values()
    if any(not outcome["valid"] for outcome in outcomes):
        return 1
    return int(require_stable and report["stability"] != "stable")


TOOL = Tool(
    "qnn-throughput-net-run",
    "Run several models on one or several backends, in threads, over and over, and tell how fast they are.",
    "--config FILE.json [--output FILE.json] [options]",
    (ThroughputOptions, ScenarioOptions, OwnOps),
    lambda arguments, _: run_throughput_net_run(arguments),
    examples=("qnn-throughput-net-run --config throughput.json --output results.json",),
)
