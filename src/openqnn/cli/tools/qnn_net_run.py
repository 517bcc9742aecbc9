"""qnn-net-run: read the options, run in a child process, tell what happened.

What takes time to import is imported where it is used: help does without it.
"""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Tool
from openqnn.errors import UsageError
from openqnn.options.device import DeviceRunOptions
from openqnn.options.field import read_options
from openqnn.options.net_run import (
    NetRunExecution,
    NetRunInputs,
    NetRunModel,
    NetRunOutputs,
    NetRunProfiling,
    Tooling,
)
from openqnn.options.packages import OwnDeclarations

if TYPE_CHECKING:
    from openqnn.formats.input_list import InputList
    from openqnn.runtime.run_config import RunConfig
    from openqnn.vendor.extra_outputs import Wanted
    from openqnn.vendor.net_run.run_graphs import GraphRun, RunSettings
    from openqnn.vendor.source import Source
    from openqnn.vendor.target_setup import Target

SKIP = "__"
COMPILING = 24 * 3600.0  # seconds
LOADING = 600.0  # seconds: a damaged binary can make a library loop for ever
MB = 1 << 20


def run_net_run(arguments: Namespace) -> int:
    from openqnn.cli.shared.vendor_setup import print_version, profiling, remark, say, setup, show_log
    from openqnn.formats.input_list import read_input_list
    from openqnn.vendor.extra_outputs import Wanted
    from openqnn.vendor.net_run.results import unfinished
    from openqnn.vendor.remote import run_files
    from openqnn.vendor.target_setup import SAVER_LIBRARY, check_computes

    tooling = read_options(arguments, Tooling)
    if tooling.version:
        return print_version("qnn-net-run")
    model, execution = read_options(arguments, NetRunModel), read_options(arguments, NetRunExecution)
    inputs, outputs = read_options(arguments, NetRunInputs), read_options(arguments, NetRunOutputs)
    profile = read_options(arguments, NetRunProfiling)
    _check(model, inputs, outputs, execution, profile)
    lists = tuple(None if name == SKIP else read_input_list(name) for name in inputs.input_list)
    made = setup(
        model.backend,
        model.config_file,
        model.soc,
        log_level=tooling.log_level,
        level=profile.profiling_level,
        chosen=not model.retrieve_context,
        op_packages=model.op_packages,
    )
    check_computes(made.target.library)
    records_only = Path(made.target.library).name.startswith(SAVER_LIBRARY)
    if records_only:
        say(f"note: {SAVER_LIBRARY}.so writes what it is asked into saver_output and computes nothing")
    settings = _settings(lists, inputs, outputs, execution, profile, made.config)
    measured = profiling(profile.profiling_level, profile.profiling_option, made.target.library)
    wanted = Wanted(dict(outputs.set_output_tensors), outputs.debug, _named_outputs(lists))
    opening = (execution.retrieve_context_timeout or LOADING) if model.retrieve_context else COMPILING
    where = read_options(arguments, DeviceRunOptions)
    if where.target:
        _check_device(profile, made.config, records_only)
    with unfinished(Path(outputs.output_dir)) as folder, _opened(model) as found:
        runs = _on_device(found, made.target, settings, folder, wanted, where) if where.target else run_files(
            found, made.target, settings, folder, wanted, measured,
            timeout=execution.timeout, opening=opening, note=remark,
            log=show_log if tooling.log_level else None,
        )  # fmt: skip
        if records_only:
            _drop_results(folder)
    _tell(runs, outputs.output_dir, records_only)
    return 0


def _drop_results(folder: Path) -> None:
    for result in [p for p in folder.rglob("Result_*") if p.is_dir()]:
        shutil.rmtree(result)


def _check_device(profile: NetRunProfiling, config: RunConfig, records_only: bool) -> None:
    """What a run on a device has not."""
    from openqnn.cli.shared.vendor_setup import say
    from openqnn.vendor.target_setup import SAVER_LIBRARY

    if profile.profiling_level:
        raise UsageError(
            "--profiling_level measures in this process, and --target runs elsewhere",
            hint="what the library took for each execution is printed without it",
        )
    if records_only:
        raise UsageError(f"{SAVER_LIBRARY}.so computes nothing, on a device neither")
    if config.queue_depth is not None:
        say("note: asynchronous execution: on a device one inference goes after the other")


def _on_device(
    found: Source,
    target: Target,
    settings: RunSettings,
    folder: Path,
    wanted: Wanted,
    where: DeviceRunOptions,
) -> list[GraphRun]:
    from openqnn.cli.shared.vendor_setup import remark
    from openqnn.vendor.deploy.device_run import Where, run_on_device

    place = Where(where.target, where.place, where.target_os, where.libraries)
    return run_on_device(found, target, settings, folder, wanted, place, remark)


def _check(
    model: NetRunModel,
    inputs: NetRunInputs,
    outputs: NetRunOutputs,
    execution: NetRunExecution,
    profile: NetRunProfiling,
) -> None:
    """What argparse cannot say: flags that need or exclude each other."""
    from openqnn.cli.shared.vendor_setup import required

    required(model.backend, "--backend")
    required(inputs.input_list, "--input_list")
    _check_source(model, outputs)
    if execution.retrieve_context_timeout and not model.retrieve_context:
        raise UsageError("--retrieve_context_timeout goes with --retrieve_context")
    if model.use_mmap and not model.retrieve_context:
        raise UsageError("--use_mmap goes with --retrieve_context")
    _check_profiling(profile)


def _check_source(model: NetRunModel, outputs: NetRunOutputs) -> None:
    from openqnn.cli.shared.vendor_setup import check_prefix, say

    if not (model.model or model.dlc_path or model.retrieve_context):
        raise UsageError("one of --model, --dlc_path and --retrieve_context is required")
    if model.retrieve_context and model.dlc_path:
        raise UsageError("--retrieve_context and --dlc_path exclude each other")
    if not model.retrieve_context:
        return
    if model.model:
        say("note: --model: no effect, the graphs of --retrieve_context are run")
    check_prefix(model.model_prefix, ())
    if outputs.debug or outputs.set_output_tensors:
        flag = "--debug" if outputs.debug else "--set_output_tensors"
        raise UsageError(
            f"{flag}: the outputs of a context binary are compiled into it",
            hint="compile it with --enable_intermediate_outputs or --set_output_tensors",
        )


def _check_profiling(profile: NetRunProfiling) -> None:
    window = profile.graph_profiling_start_delay or profile.graph_profiling_num_executions
    if (window or profile.profiling_option) and not profile.profiling_level:
        level = "detailed" if profile.profiling_option else "basic"
        raise UsageError("profiling needs a level", hint=f"--profiling_level {level}")


def _settings(
    lists: tuple[InputList | None, ...],
    inputs: NetRunInputs,
    outputs: NetRunOutputs,
    execution: NetRunExecution,
    profile: NetRunProfiling,
    config: RunConfig,
) -> RunSettings:
    from openqnn.formats.profiling_window import Window
    from openqnn.vendor.net_run.run_graphs import RunSettings

    cache = inputs.max_input_cache_size_mb
    return RunSettings(
        lists,
        native_inputs=inputs.use_native_input_files or inputs.input_data_type == "native",
        native_names=inputs.native_input_tensor_names,
        native_outputs=outputs.use_native_output_files or outputs.output_data_type == "native_only",
        both_outputs=outputs.output_data_type == "float_and_native",
        inferences=execution.num_inferences,
        duration=execution.duration,
        keep=outputs.keep_num_outputs,
        batch_multiplier=inputs.batch_multiplier,
        synchronous=execution.synchronous,
        depth=config.queue_depth,
        cache_sets=inputs.max_input_cache_tensor_sets,
        cache_bytes=None if cache is None else cache * MB,
        window=Window(profile.graph_profiling_start_delay, profile.graph_profiling_num_executions),
        windows=config.windows,
    )


@contextmanager
def _opened(model: NetRunModel) -> Generator[Source]:
    from openqnn.cli.shared.vendor_setup import opened_binary, source
    from openqnn.vendor.source import Source

    if not model.retrieve_context:
        yield source(model.model, model.dlc_path, model.model_prefix)
        return
    with opened_binary(model.retrieve_context) as binary:
        yield Source(binary=binary)


def _named_outputs(lists: tuple[InputList | None, ...]) -> tuple[str, ...]:
    return tuple(name for given in lists if given is not None for name in given.outputs)


def _tell(runs: list[GraphRun], folder: str, records_only: bool) -> None:
    for run in runs:
        if records_only:
            print(f"{run.name}: {run.inferences} execution(s) recorded in saver_output; nothing was computed")
            continue
        each = run.execute_seconds / max(run.inferences, 1) * 1e3
        print(
            f"{run.name}: {run.inferences} inference(s), {each:.3f} ms each in the library, "
            f"{run.results} result(s) in {folder}"
        )
    print("Finished Executing Graphs")  # scripts look for the original's last word


TOOL = Tool(
    "qnn-net-run",
    "Run a model on a backend, with inputs and results in files.",
    "(--model FILES | --dlc_path FILES | --retrieve_context FILE) --backend LIBRARY --input_list FILES "
    "[options]",
    (
        NetRunModel,
        NetRunInputs,
        NetRunOutputs,
        NetRunExecution,
        NetRunProfiling,
        DeviceRunOptions,
        Tooling,
        OwnDeclarations,
    ),
    lambda arguments, _: run_net_run(arguments),
    examples=(
        "qnn-net-run --model libmodel.so --backend libQnnHtp.so --input_list inputs.txt",
        "qnn-net-run --retrieve_context model.bin --backend libQnnHtp.so"
        " --input_list inputs.txt --output_dir results/",
    ),
)
