"""Options of qnn-net-run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from openqnn.options import vendor
from openqnn.options.field import noted, option, refused
from openqnn.options.source import positive

LOG_LEVELS = ("error", "warn", "info", "debug", "verbose")
NO_SHARED_BUFFER = "shared buffers need the memory of an Android device"
NO_PERF_PROFILE = "clocks and power are those of a device, and this machine has none"
NO_VALIDATION = (
    "the libraries for this machine cannot validate a binary; `openqnn context check` compares what it says"
)


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of seconds") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of seconds above 0")
    return value


def delay(text: str) -> float:
    """Seconds to wait, perhaps none."""
    return 0.0 if text.strip("0.") == "" and "0" in text else seconds(text)


def milliseconds(text: str) -> float:
    """Microseconds, as the original takes its limits, in seconds."""
    return min(positive(text), 10**18) / 1e6


def natural(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of at least 0")
    return int(text)


def sets(text: str) -> int:
    """A number of input sets; -1 for all."""
    try:
        return -1 if text == "-1" else natural(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or -1 for all") from None


@dataclass(frozen=True)
class Tooling:
    """The tool."""

    log_level: str = option(
        "",
        "--log_level",
        metavar="LEVEL",
        choices=LOG_LEVELS,
        help="show what the library logs, up to error, warn, info, debug or verbose",
    )
    version: bool = vendor.print_version()


@dataclass(frozen=True)
class NetRunModel:
    """The model."""

    model: tuple[str, ...] = vendor.model_files()
    retrieve_context: str = option(
        "",
        "--retrieve_context",
        metavar="FILE",
        help="a context binary to run, or an EPContext model that holds one",
    )
    dlc_path: tuple[str, ...] = vendor.dlc_files("DLC files to run")
    model_prefix: str = vendor.model_prefix()
    backend: str = vendor.backend_library("the library to run on")
    soc: str = vendor.soc_name()
    config_file: str = option(
        "",
        "--config_file",
        metavar="JSON",
        help="settings of contexts, graphs, asynchronous execution and the backend",
    )
    op_packages: str = vendor.op_packages()
    platform_options: None = vendor.no_platform_options()
    use_mmap: bool = option(False, "--use_mmap", help="map the context binary into memory (always done)")
    validate_binary: None = refused(
        "--validate_binary", why=NO_VALIDATION, help="validate the context binary"
    )


@dataclass(frozen=True)
class NetRunInputs:
    """Inputs."""

    input_list: tuple[str, ...] = option(
        (),
        "--input_list",
        metavar="FILES",
        parse=vendor.words,
        help="lists of input files, one per graph, separated by commas; __ leaves a graph out",
    )
    use_native_input_files: bool = option(
        False,
        "--use_native_input_files",
        exclusive="native",
        help="input files have the types of the graph (default: float32)",
    )
    native_input_tensor_names: tuple[str, ...] = option(
        (),
        "--native_input_tensor_names",
        metavar="NAMES",
        parse=vendor.words,
        exclusive="native",
        help="inputs whose files have the type of the graph, separated by commas",
    )
    input_data_type: str = option(
        "float",
        "--input_data_type",
        metavar="TYPE",
        choices=("float", "native"),
        exclusive="native",
        help="older form of --use_native_input_files: float or native",
    )
    batch_multiplier: int = option(
        1,
        "--batch_multiplier",
        metavar="N",
        parse=positive,
        help="run on N times the batch that the graph was composed with",
    )
    max_input_cache_tensor_sets: int | None = option(
        None,
        "--max_input_cache_tensor_sets",
        metavar="N",
        parse=sets,
        exclusive="cache",
        help="input sets to keep in memory for another round; -1 for all",
    )
    max_input_cache_size_mb: int | None = option(
        None,
        "--max_input_cache_size_mb",
        metavar="N",
        parse=natural,
        exclusive="cache",
        help="memory for input sets that are kept, in MB (default: 256)",
    )


@dataclass(frozen=True)
class NetRunOutputs:
    """Results."""

    output_dir: str = option(
        "output", "--output_dir", metavar="DIR", help="where Result_<n>/<tensor>.raw go (default: output)"
    )
    use_native_output_files: bool = option(
        False,
        "--use_native_output_files",
        exclusive="native",
        help="write <tensor>_native.raw in the types of the graph (default: float32)",
    )
    output_data_type: str = option(
        "float_only",
        "--output_data_type",
        metavar="TYPE",
        choices=("float_only", "native_only", "float_and_native"),
        exclusive="native",
        help="older form of --use_native_output_files: float_only, native_only, or float_and_native for both",
    )
    debug: bool = option(False, "--debug", exclusive="tensors", help="write the results of all layers")
    set_output_tensors: tuple[tuple[str, tuple[str, ...]], ...] = vendor.extra_outputs("to write too")
    keep_num_outputs: int | None = option(
        None,
        "--keep_num_outputs",
        metavar="N",
        parse=natural,
        help="write the results of so many inferences only",
    )


@dataclass(frozen=True)
class NetRunExecution:
    """Execution."""

    num_inferences: int | None = option(
        None,
        "--num_inferences",
        metavar="N",
        parse=positive,
        exclusive="length",
        help="so many inferences, over the list as often as needed",
    )
    duration: float | None = option(
        None,
        "--duration",
        metavar="S",
        parse=seconds,
        exclusive="length",
        help="go over the list for so many seconds",
    )
    synchronous: bool = option(
        False, "--synchronous", help="one inference after the other, whatever the configuration file says"
    )
    timeout: float | None = option(
        None,
        "--timeout",
        metavar="US",
        parse=milliseconds,
        help="give up when the executions of the graphs take longer, in microseconds",
    )
    retrieve_context_timeout: float | None = option(
        None,
        "--retrieve_context_timeout",
        metavar="US",
        parse=milliseconds,
        help="give up when loading the context binary takes longer, in microseconds",
    )
    shared_buffer: None = noted("--shared_buffer", why=NO_SHARED_BUFFER, help="share buffers with the device")
    perf_profile: None = noted(
        "--perf_profile", why=NO_PERF_PROFILE, metavar="NAME", help="performance profile"
    )


@dataclass(frozen=True)
class NetRunProfiling:
    """Profiling."""

    profiling_level: str = vendor.profiling_level(
        ("basic", "detailed", "backend", "client"),
        "basic, detailed (each node), backend (HTP: linting), client (our own times only)",
    )
    profiling_option: str = vendor.profiling_option()
    graph_profiling_start_delay: float = option(
        0.0,
        "--graph_profiling_start_delay",
        metavar="S",
        parse=delay,
        help="seconds of execution before profiling starts",
    )
    graph_profiling_num_executions: int | None = option(
        None,
        "--graph_profiling_num_executions",
        metavar="N",
        parse=positive,
        help="profile so many executions at most",
    )
