"""What qnn-net-run, qnn-context-binary-generator and `openqnn compile` have in common."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from openqnn.errors import LibraryError, ModelError, UsageError
from openqnn.qnn.htp_config import check_memory
from openqnn.qnn.library import find_library
from openqnn.qnn.model_library import PREFIX
from openqnn.qnn.op_package_library import op_package_libraries, packages_for
from openqnn.qnn.options import ContextOptions, DeviceOptions
from openqnn.qnn.probe import probe_library
from openqnn.qnn.profile import Level
from openqnn.qnn.soc import Soc, find_soc, soc_of_arch
from openqnn.runtime.run_config import RunConfig, read_config
from openqnn.targets.registry import target_of_library
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import SAVER_LIBRARY, Profiling, Target, resolved

MODEL_DLC = "libQnnModelDlc.so"
"""The original's stand-in for a model library when a DLC is given."""
GRAPH_FILES = (".so", ".dlc")
_LOG = {"": 2, "error": 1, "warn": 2, "info": 3, "verbose": 4, "debug": 5}
_LEVELS = {"basic": Level.BASIC, "detailed": Level.DETAILED, "backend": Level.LINTING}


@dataclass(frozen=True)
class Setup:
    """The target of a tool with all settings from flags and files."""

    target: Target
    config: RunConfig


def say(text: str) -> None:
    """A word on the way; results are not mixed with it."""
    print(text, file=sys.stderr)


def remark(text: str) -> None:
    """A word from the process that does the work."""
    say(f"note: {text}")


def show_log(text: str) -> None:
    print(text, end="", file=sys.stderr)


def required(value: object, flag: str) -> None:
    if not value:
        raise UsageError(f"{flag} is required")


def setup(
    backend: str,
    config_file: str,
    soc: str = "",
    arch: str = "",
    log_level: str = "",
    *,
    level: str = "",
    chosen: bool = True,
    chooser: str = "--soc",
    op_packages: str = "",
) -> Setup:
    """Find the library and settle what it compiles for; `chosen=False`: a binary has its SoC already.

    `level` is that of profiling, `chooser` what the user can choose a chip by.
    """
    library = resolved(backend)
    config = read_config(config_file) if config_file else RunConfig()
    for remark in (*config.remarks, *_idle(config, level, chosen)):
        say(f"note: {remark}")
    device = _device(library, config, soc, arch, chosen, chooser)
    graphs = dict(config.htp.graphs)
    if config.htp.every_graph is not None:
        graphs[""] = config.htp.every_graph
    context = _context(library, config)
    if not target_of_library(library).compiles and (graphs or config.htp.context or config.htp.device):
        raise UsageError(f"{config_file} has settings of HTP, and {Path(library).name} is not HTP")
    if graphs and not chosen:
        say(f"note: {config_file}: settings of graphs do nothing here: a context binary has its own")
    if chosen:
        check_memory(config_file, device, graphs)
    target = Target(
        library, device, context, graphs, _LOG[log_level], config.enabled, config.graph_names,
        asked=bool(soc or arch), packages=packages_for(library, op_package_libraries(op_packages)),
    )  # fmt: skip
    return Setup(target, config)


def _idle(config: RunConfig, level: str, chosen: bool) -> list[str]:
    """Settings of the file that do nothing beside these flags."""
    reasons = {
        "context_configs.enable_graphs: it chooses among the graphs of a context binary": (
            bool(config.enabled) and chosen
        ),
        "graph_configs.graph_profiling_*: nothing is profiled without --profiling_level": (
            bool(config.windows) and not level
        ),
        "devices.profiling_level: linting goes with --profiling_level backend": (
            config.htp.profiling_level is not None and level != "backend"
        ),
    }
    return [reason for reason, holds in reasons.items() if holds]


def _context(library: str, config: RunConfig) -> ContextOptions | None:
    """The settings of the context, with those that stand outside the part for HTP."""
    context = config.htp.context
    if not target_of_library(library).compiles:
        if config.priority is not None:
            say(f"note: context_configs.context_priority: {Path(library).name} does not support it")
        return context
    if config.queue_depth is not None:
        context = replace(context or ContextOptions(), queue_depth=config.queue_depth)
    if config.priority is not None:
        context = replace(context or ContextOptions(), priority=config.priority)
    return context


def _device(
    library: str, config: RunConfig, soc: str, arch: str, chosen: bool, chooser: str
) -> DeviceOptions | None:
    if not target_of_library(library).compiles:
        if soc or arch:
            raise UsageError(f"a SoC can only be chosen for HTP, not for {Path(library).name}")
        return None
    if soc and arch:
        raise UsageError("--soc and --htp_arch exclude each other: a SoC has one architecture")
    if not soc and not arch and config.htp.device is not None:
        return config.htp.device
    found = soc_of_arch(arch) if arch else find_soc(soc or None)
    _say_chip(found, config.htp.device)
    if chosen and not soc and not arch:
        say(f"note: compiling for {found}; {chooser} chooses another")
    return DeviceOptions(found.model)


def _say_chip(found: Soc, other: DeviceOptions | None) -> None:
    if other is not None and other not in (DeviceOptions(found.model), DeviceOptions(arch=found.arch)):
        say(f"note: the chip of the configuration file gives way to {found}, which the command line names")


def source(models: Sequence[str], dlcs: Sequence[str], prefix: str) -> Source:
    """Models of every kind: what needs a library to be read is left to the child process."""
    check_prefix(prefix, models)
    graphs, files = [], list[str]()
    for name in models:
        if Path(name).name == MODEL_DLC:
            if not dlcs:
                raise UsageError(f"{MODEL_DLC} needs a DLC file", hint="--dlc_path MODEL.dlc")
            continue
        if not Path(name).is_file():
            raise ModelError(f"{name}: no such file")
        if Path(name).suffix in GRAPH_FILES:
            files.append(name)
        else:
            from openqnn.api.files import open_graph
            from openqnn.vendor.trust import trusting

            with trusting():  # a model that is given to be run
                graphs.append(open_graph(name))
    for name in dlcs:
        if not Path(name).is_file():
            raise ModelError(f"{name}: no such file")
    return Source(tuple(graphs), files=(*files, *dlcs), prefix=prefix)


def check_prefix(prefix: str, models: Sequence[str]) -> None:
    if prefix != PREFIX and not any(Path(name).suffix == ".so" for name in models):
        raise UsageError("--model_prefix goes with a model library (.so) in --model")


@contextmanager
def opened_binary(path: str) -> Generator[str]:
    """The path of a context binary: the file itself, or one taken out of an EPContext model or a DLC."""
    inside = _binary_inside(path)
    if not isinstance(inside, bytes):
        yield inside
        return
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(inside)
        file.flush()
        yield file.name


def _binary_inside(path: str) -> str | bytes:
    """The file of a binary, or its bytes where it is in another file."""
    kind = Path(path).suffix
    if kind != ".onnx" and not Path(path).is_file():
        raise ModelError(f"{path}: no such file")
    if kind == ".dlc":
        from openqnn.formats.dlc_contexts import the_context

        return the_context(path)
    if kind != ".onnx":
        return path
    from openqnn.emit.epcontext import read_epcontext

    found = read_epcontext(path)
    return found.binary() if found.file is None else str(found.file)


def profiling(level: str, option: str, library: str) -> Profiling:
    if option and level != "detailed":
        raise UsageError("--profiling_option optrace goes with --profiling_level detailed")
    if level == "client":
        return Profiling(times=True)
    if level and Path(library).name.startswith(SAVER_LIBRARY):
        raise UsageError(f"{Path(library).name} computes nothing that could be measured")
    if level == "backend" and not target_of_library(library).compiles:
        raise UsageError(f"{Path(library).name} has no profiling level of its own")
    return Profiling(_LEVELS.get(level), optrace=bool(option))


def print_version(tool: str) -> int:
    """The version of the tool, and the build of every library that is there."""
    from openqnn import __version__

    print(f"{tool} (openqnn {__version__})")
    print_builds()
    return 0


def print_builds() -> None:
    """The build of every library that is there."""
    for name in ("libQnnHtp.so", "libQnnCpu.so", "libQnnSystem.so"):
        try:
            found = probe_library(find_library(name))
        except LibraryError:
            continue
        print(f"{name} {found.build_id or found.core_api or found.error}")
