"""A vendor's library and how it is set up: the chip, the options of contexts and graphs, what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from openqnn.errors import UsageError
from openqnn.qnn import abi
from openqnn.qnn.library import find_library
from openqnn.qnn.op_package_library import OpPackageLibrary, packages_for
from openqnn.qnn.options import ContextOptions, DeviceOptions, GraphOptions
from openqnn.qnn.profile import Level
from openqnn.qnn.soc import find_soc
from openqnn.targets.registry import target_of_library

Settings: TypeAlias = Mapping[str, bool | float]
"""Of HTP's graphs, by the names that they have in its file."""
IR_LIBRARY, SAVER_LIBRARY = "libQnnIr", "libQnnSaver"


@dataclass(frozen=True, slots=True)
class Target:
    """A library and how it is set up; `graphs` has options by graph name, "" for every other graph."""

    library: str
    device: DeviceOptions | None = None
    context: ContextOptions | None = None
    graphs: Mapping[str, GraphOptions] = field(default_factory=dict[str, GraphOptions])
    log_level: int = abi.LOG_WARN
    enabled: tuple[str, ...] = ()
    """Of a context binary, only these graphs."""
    named: tuple[str, ...] = ()
    """Graphs that the configuration names besides those of `graphs`."""
    asked: bool = False
    """The device was asked for, and not taken for want of a word."""
    packages: tuple[OpPackageLibrary, ...] = ()
    """Op packages to register with the backend."""

    def options_of(self, graph: str) -> GraphOptions | None:
        return self.graphs.get(graph) or self.graphs.get("")


@dataclass(frozen=True, slots=True)
class Profiling:
    """What is measured: `level` by the library, `times` by us alone."""

    level: Level | None = None
    times: bool = False
    optrace: bool = False


def resolved(library: str) -> str:
    """The library's full path."""
    return str(find_library(library))


def target_of(
    library: str,
    soc: str | int | None = None,
    settings: Settings | None = None,
    packages: tuple[OpPackageLibrary, ...] = (),
) -> Target:
    """A library by name or path. HTP is set up for SM8650 unless another SoC is named."""
    path = resolved(library)
    device = device_of(path, soc)
    options = options_of(path, device, settings)
    graphs = {} if options is None else {"": options}
    return Target(path, device, graphs=graphs, packages=packages_for(path, packages))


def device_of(library: str, soc: str | int | None) -> DeviceOptions | None:
    if target_of_library(library).compiles:
        return DeviceOptions(find_soc(soc).model)
    if soc is not None:
        raise UsageError(f"a SoC can only be chosen for HTP, not for {Path(library).name}")
    return None


def options_of(library: str, device: DeviceOptions | None, settings: Settings | None) -> GraphOptions | None:
    if not settings:
        return None
    if not target_of_library(library).compiles:
        raise UsageError(f"settings are those of HTP, and {Path(library).name} is not HTP")
    from openqnn.qnn.htp_config import check_memory, graph_options

    options = graph_options(settings)
    check_memory("settings", device, {"": options})
    return options


def check_computes(library: str) -> None:
    """libQnnIr takes part like a backend, and gives out memory that nothing was written to."""
    if Path(library).name.startswith(IR_LIBRARY):
        raise UsageError(
            f"{Path(library).name} writes DLC files and computes nothing",
            hint="qairt-converter writes a DLC file; --backend htp or cpu runs it",
        )


def check_compiles(library: str) -> None:
    """Two libraries take part like backends and end in nothing, or in a program that stops in the middle."""
    if Path(library).name.startswith((IR_LIBRARY, SAVER_LIBRARY)):
        raise UsageError(
            f"{Path(library).name} makes no context binaries",
            hint="--backend htp or cpu does; qairt-converter writes a DLC file, and "
            "qnn-net-run --backend saver a Saver program",
        )
