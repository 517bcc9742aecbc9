"""One input list for several graphs: each line goes to the graph whose inputs have the sizes of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from openqnn.errors import InputError
from openqnn.formats.input_list import InputLine, InputList, named_files
from openqnn.qnn.net import NetTensor
from openqnn.vendor.net_run.feed import Ports, file_dtype
from openqnn.worker.serve import Reporter

if TYPE_CHECKING:
    from openqnn.vendor.net_run.run_graphs import RunSettings


def lists_by_shape(
    graphs: Sequence[Ports], settings: RunSettings, reporter: Reporter
) -> tuple[InputList | None, ...]:
    """A list for every graph: as they were given, or made of the lines of the only one."""
    if len(graphs) < 2 or len(settings.lists) != 1 or settings.lists[0] is None:
        return settings.lists
    given = settings.lists[0]
    found: dict[str, list[InputLine]] = {graph.name: [] for graph in graphs}
    for line in given.lines:
        found[_fitting(graphs, given, line, settings, reporter)].append(line)
    for name, lines in found.items():
        numbers = ", ".join(str(line.number) for line in lines)
        reporter.tell(f"graph '{name}' takes " + (f"line {numbers}" if lines else "no line"))
    return tuple(replace(given, lines=tuple(lines)) if lines else None for lines in found.values())


def _fitting(
    graphs: Sequence[Ports], given: InputList, line: InputLine, settings: RunSettings, reporter: Reporter
) -> str:
    """The first graph that takes the files of a line; a word where others do, too."""
    fit = [graph.name for graph in graphs if _fits(graph, given, line, settings)]
    if not fit:
        raise _unfit(graphs, given, line, settings)
    if len(fit) > 1:
        others = ", ".join(map(repr, fit[1:]))
        reporter.tell(f"line {line.number}: its files have the sizes of '{fit[0]}', and of {others} too")
    return fit[0]


def _fits(graph: Ports, given: InputList, line: InputLine, settings: RunSettings) -> bool:
    tensors = {tensor.name: tensor for tensor in graph.inputs}
    try:
        files = named_files(given, line, list(tensors), graph.name)
    except InputError:
        return False
    return all(path.stat().st_size == _file_bytes(settings, tensors[n]) for n, path in files.items())


def _unfit(graphs: Sequence[Ports], given: InputList, line: InputLine, settings: RunSettings) -> InputError:
    sizes = ", ".join(f"{path.name} {path.stat().st_size:,}" for _, path in line.files)
    wanted = [
        f"{g.name}: " + ", ".join(f"{t.name} {_file_bytes(settings, t):,}" for t in g.inputs) for g in graphs
    ]
    where = f"{given.path}, line {line.number}"
    hint = f"in bytes they take {'; '.join(wanted)}"
    return InputError(f"{where}: no graph takes files of these sizes: {sizes}", hint=hint)


def _file_bytes(settings: RunSettings, tensor: NetTensor) -> int:
    return prod(tensor.dims) * file_dtype(settings, tensor).itemsize
