"""Inferences on a device: model, inputs and runner go there, results come back as qnn-net-run leaves them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openqnn.errors import BackendError, UsageError
from openqnn.formats import execution_metadata
from openqnn.qnn import abi
from openqnn.qnn.net import Array, Net, NetTensor
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.soc import Soc, find_soc, soc_of_arch
from openqnn.targets.registry import target_of_library
from openqnn.vendor.deploy.devices import Device, find_device, system_of
from openqnn.vendor.deploy.runner_folder import HOST, put_libraries, put_model, put_runner
from openqnn.vendor.deploy.send import run_there
from openqnn.vendor.extra_outputs import Wanted
from openqnn.vendor.net_run.feed import Feed
from openqnn.vendor.net_run.results import Results
from openqnn.vendor.net_run.run_graphs import GraphRun, RunSettings, check_lists, file_stem, run_entry
from openqnn.vendor.remote import describe_context, suited_nets
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import Target

_RUN = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$here/outputs"
cd "$here"
export LD_LIBRARY_PATH="$here/lib:$LD_LIBRARY_PATH" ADSP_LIBRARY_PATH="$here/lib"
exec $OPENQNN_EMULATOR "$here/bin/runner" "$here/{backend}" "$here/{model}" "$here/inputs" "$here/outputs" \\
  {soc} run{count}
"""


@dataclass(frozen=True, slots=True)
class Where:
    """A device, a folder on it, what runs on it, and where Qualcomm's libraries for that are."""

    target: str
    place: str = "/tmp"
    system: str = ""
    libraries: str = ""


@dataclass(frozen=True, slots=True)
class GraphPorts:
    """A graph as seen from outside, and what the runner calls it."""

    name: str
    inputs: tuple[NetTensor, ...]
    outputs: tuple[NetTensor, ...]
    there: str

    @property
    def folder(self) -> str:
        return file_stem(self.there)


def run_on_device(
    source: Source,
    target: Target,
    settings: RunSettings,
    folder: Path,
    wanted: Wanted,
    where: Where,
    note: Callable[[str], None],
) -> list[GraphRun]:
    """Run a source on files where `where` says, with results in `folder` as `run_files` leaves them."""
    _check(settings, target)
    device = find_device(where.target)
    system = where.system or system_of(device)
    with tempfile.TemporaryDirectory() as temporary:
        kit, found = Path(temporary) / "run", Path(temporary) / "results"
        kit.mkdir()
        graphs, model = _put_graphs(kit, source, target, wanted, system, note)
        check_lists(graphs, settings)
        feeds = _put_inputs(kit / "inputs", graphs, settings)
        count = "" if settings.inferences is None else f" {settings.inferences}"
        _put_rest(kit, model, Path(target.library), chip_of(target.device), where.libraries, system, count)
        start = time.perf_counter()
        said = run_there(device, kit, where.place, found)
        return _kept(graphs, feeds, settings, found, folder, said, time.perf_counter() - start, target)


def chip_of(device: DeviceOptions | None) -> Soc:
    """The chip that options of a device name: by number, by architecture, or the usual one."""
    if device is not None and device.arch is not None:
        return soc_of_arch(f"v{device.arch}")
    return find_soc(device.soc if device is not None else None)


def _check(settings: RunSettings, target: Target) -> None:
    """What a program without this package cannot do there."""
    reasons = {
        "--duration goes by the clock of this machine": settings.duration is not None,
        "--batch_multiplier composes another graph": settings.batch_multiplier != 1,
        "settings of graphs are compiled into a context binary": bool(target.graphs),
        "op packages are built for this machine": bool(target.packages),
    }
    for reason, holds in reasons.items():
        if holds:
            raise UsageError(
                f"{reason}, and the run is on a device", hint="leave it out, or leave --target out"
            )


def _put_graphs(
    kit: Path, source: Source, target: Target, wanted: Wanted, system: str, note: Callable[[str], None]
) -> tuple[list[GraphPorts], str]:
    if source.binary:
        return _put_binary(kit, source.binary), "context.bin"
    nets = suited_nets(source, target.library, wanted, note=note)
    put_model(kit, nets, system)
    only = len(nets) == 1  # a model library calls its only graph as its file
    return [
        GraphPorts(
            net.name,
            tuple(net.tensors[name] for name in net.inputs),
            tuple(net.tensors[name] for name in net.outputs),
            "model_optimized" if only else net.name,
        )
        for net in nets
    ], "model_optimized.so"


def _put_binary(kit: Path, binary: str) -> list[GraphPorts]:
    """A context binary, and a description of its graphs for the runner, which does not ask libQnnSystem."""
    info = describe_context(binary)
    shutil.copyfile(binary, kit / "context.bin")
    lines: list[str] = []
    for graph in info.graphs:
        lines.append(f"graph {graph.name}")
        for kind, tensors in (("in", graph.inputs), ("out", graph.outputs)):
            for each in tensors:
                tensor = each.tensor
                numbers = (each.id, tensor.dtype, len(tensor.dims), *tensor.dims)
                lines.append(f"{kind} {' '.join(map(str, numbers))} {tensor.name}")
    (kit / "context.bin.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [
        GraphPorts(g.name, tuple(t.tensor for t in g.inputs), tuple(t.tensor for t in g.outputs), g.name)
        for g in info.graphs
    ]


def _put_inputs(place: Path, graphs: Sequence[GraphPorts], settings: RunSettings) -> list[Feed | None]:
    """A folder for each set of inputs of each graph that has a list."""
    feeds: list[Feed | None] = []
    for graph, given in zip(graphs, settings.lists, strict=True):
        feeds.append(None if given is None else Feed(graph, given, settings))
        if feeds[-1] is None:
            continue
        arrays = feeds[-1].blank()
        for number in range(len(feeds[-1].groups)):
            folder = place / graph.folder / str(number)
            folder.mkdir(parents=True)
            feeds[-1].fill(number, arrays)
            for name, array in arrays.items():
                array.tofile(folder / f"{file_stem(name)}.raw")
    return feeds


def _put_rest(
    kit: Path, model: str, library: Path, chip: Soc, libraries: str, system: str, count: str = ""
) -> None:
    """Qualcomm's libraries, the runner, and the script that starts it."""
    given = libraries or (str(library.parent) if system == HOST else "")
    backend = put_libraries(kit, system, chip, given, library.name)
    put_runner(kit, system)
    soc = chip.model if target_of_library(library.name).compiles else 0
    (kit / "run.sh").write_text(_RUN.format(backend=backend, model=model, soc=soc, count=count))


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a small graph on a device: its results, and the library's own words about itself."""

    outputs: dict[str, Array]
    core_api: str
    build: str


def try_on_device(
    net: Net,
    inputs: Mapping[str, Array],
    library: Path,
    chip: Soc,
    device: Device,
    *,
    place: str = "/tmp",
    system: str = "",
    libraries: str = "",
) -> Tried:
    """Run one graph once on a device, on a library of this name there."""
    system = system or system_of(device)
    with tempfile.TemporaryDirectory() as temporary:
        kit, found = Path(temporary) / "try", Path(temporary) / "results"
        (kit / "inputs").mkdir(parents=True)
        put_model(kit, [net], system)
        for name, array in inputs.items():
            array.tofile(kit / "inputs" / f"{name}.raw")
        _put_rest(kit, "model_optimized.so", library, chip, libraries, system)
        said = run_there(device, kit, place, found)
        outputs = {n: _fetched(found / f"{n}.raw", net.tensors[n]) for n in net.outputs}
    return Tried(outputs, _word(said, "api"), _word(said, "build"))


def _word(said: str, key: str) -> str:
    """What the runner says behind a word at the start of a line."""
    return next((line.partition(" ")[2] for line in said.splitlines() if line.startswith(f"{key} ")), "")


# -- results -------------------------------------------------------------------------------------------------


def _kept(
    graphs: Sequence[GraphPorts],
    feeds: Sequence[Feed | None],
    settings: RunSettings,
    found: Path,
    folder: Path,
    said: str,
    seconds: float,
    target: Target,
) -> list[GraphRun]:
    """Results in their folders, and the record of the run beside them."""
    times = _times(said)
    runs: list[GraphRun] = []
    entries = []
    for graph, feed in zip(graphs, feeds, strict=True):
        if feed is None:
            continue
        if graph.there not in times:
            raise BackendError(f"the device did not run graph '{graph.name}': it said {said.strip()!r}")
        count, inside = times[graph.there]
        place = folder / file_stem(graph.name) if len(graphs) > 1 else folder
        results = _written(graph, feed, settings, found / graph.folder, place, count)
        runs.append(GraphRun(graph.name, count, results.count, inside, seconds, False))
        entries.append(run_entry(graph, settings, results, count, place.name if len(graphs) > 1 else ""))
    library = Path(target.library).name
    text = execution_metadata.dump("qnn-net-run", library, _word(said, "build"), entries)
    (folder / execution_metadata.FILE).write_text(text, encoding="utf-8")
    return runs


def _times(said: str) -> dict[str, tuple[int, float]]:
    """How often each graph ran, by the words of the runner, and the seconds inside the library."""
    found: dict[str, tuple[int, float]] = {}
    for line in said.splitlines():
        if line.startswith("ran "):
            name, count, microseconds = line[4:].rsplit(" ", 2)
            found[name] = (int(count), float(microseconds) / 1e6)
    return found


def _written(
    graph: GraphPorts, feed: Feed, settings: RunSettings, found: Path, place: Path, count: int
) -> Results:
    whole = [t.name for t in graph.outputs if feed.size > 1 and not feed.divides(t)]
    results = Results(place, graph, settings.native_outputs, file_stem, whole, both=settings.both_outputs)
    for turn in range(count):
        keep = settings.keep
        if keep is not None and results.count >= keep:
            break
        outputs = {t.name: _fetched(found / str(turn) / f"{file_stem(t.name)}.raw", t) for t in graph.outputs}
        lines = len(feed.groups[turn % len(feed.groups)])
        results.write(outputs, lines, feed.size, None if keep is None else keep - results.count)
    results.finish()
    return results


def _fetched(file: Path, tensor: NetTensor) -> Array:
    try:
        return np.fromfile(file, abi.numpy_dtype(tensor.dtype)).reshape(tensor.dims)
    except (OSError, ValueError) as error:
        raise BackendError(f"the device gave no whole result for '{tensor.name}': {error}") from error
