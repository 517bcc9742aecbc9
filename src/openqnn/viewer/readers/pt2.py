"""PyTorch's .pt2 files as views, as they stand in the file: ATen calls, with the user's lines of Python."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from openqnn.frontends.torch.archive import open_archive
from openqnn.frontends.torch.program import Argument, Program, ProgramNode, Ref
from openqnn.frontends.torch.read_pt2 import read_pt2
from openqnn.frontends.torch.source_line import module_path, source_line
from openqnn.ir import DType
from openqnn.viewer.from_graph import statistics_of
from openqnn.viewer.readers.tensor_words import begins_with, ends_with, shortened
from openqnn.viewer.view import View, ViewNode, ViewTensor


def pt2_view(path: Path) -> View:
    """The exported program; weights and buffers stand at their readers."""
    program = read_pt2(open_archive(path))
    tensors = dict(_tensors(program))
    nodes = [
        begins_with(tensors[i.name], i.outside)
        for i in program.inputs
        if not i.state and not i.is_number and i.name in tensors
    ]
    nodes += [_node(node, number, tensors) for number, node in enumerate(program.nodes)]
    for output in program.outputs:
        for name in _names(output.value):
            said = output.state or output.target or name
            nodes.append(ends_with(_tensor_of(name, tensors), said))
    facts = {"program": program.name, "calls": f"{len(program.nodes):,}"}
    facts |= {f"not read: {name}": why for name, why in program.foreign.items()}
    return View(path.name, "PyTorch program", tuple(nodes), facts)


def _tensors(program: Program) -> Iterator[tuple[str, ViewTensor]]:
    state = {i.name: i.state for i in program.inputs if i.state}
    for name, info in program.tensors.items():
        dtype = info.dtype.label if isinstance(info.dtype, DType) else str(info.dtype)
        held = program.arrays.get(state.get(name, ""))
        weight = None if held is None else partial(statistics_of, held)
        yield name, ViewTensor(state.get(name, name), dtype, info.dims, weight=weight)


def _tensor_of(name: str, tensors: dict[str, ViewTensor]) -> ViewTensor:
    return tensors.get(name) or ViewTensor(name, "number")


def _node(node: ProgramNode, number: int, tensors: dict[str, ViewTensor]) -> ViewNode:
    outputs = tuple(_tensor_of(name, tensors) for name in node.outputs if name)
    read = [name for argument in node.arguments for name in _names(argument.value)]
    inputs = tuple(_tensor_of(name, tensors) for name in read)
    params = {a.name or f"argument {i}": _shown(a) for i, a in enumerate(node.arguments) if not _is_tensor(a)}
    module = module_path(node)
    if module:
        params["module"] = module
    name = outputs[0].name if outputs else f"{_short(node.target)}_{number}"
    return ViewNode(
        name, _short(node.target), source_line(node), params, inputs, outputs,
        (*(t.name for t in outputs), name), module.replace(".", "/"),
    )  # fmt: skip


def _short(target: str) -> str:
    """`torch.ops.aten.conv2d.default` as `aten.conv2d`."""
    return target.removeprefix("torch.ops.").removesuffix(".default")


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, list):
        for each in value:
            yield from _names(each)


def _is_tensor(argument: Argument) -> bool:
    return isinstance(argument.value, Ref)


def _shown(argument: Argument) -> str:
    value = argument.value
    if isinstance(value, Program):
        return f"a graph of {len(value.nodes)} calls"
    if isinstance(value, DType):
        return value.label
    if isinstance(value, list):
        return shortened(
            f"[{', '.join(each.name if isinstance(each, Ref) else str(each) for each in value)}]"
        )
    return shortened(str(value))
