"""Which way the weights of a program lie: what encodings files speak of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from openqnn.formats.encodings import Parameter
from openqnn.frontends.torch.program import Program, ProgramNode, Ref
from openqnn.frontends.torch.table import split_target
from openqnn.ir import Array

_OUT_IN: Final = {
    "conv1d": (0, 1), "conv2d": (0, 1), "conv3d": (0, 1), "convolution": (0, 1), "linear": (0, 1),
    "conv_transpose1d": (1, 0), "conv_transpose2d": (1, 0), "conv_transpose3d": (1, 0),
}  # fmt: skip


def weight_axes(program: Program, arrays: Mapping[str, Array]) -> dict[str, Parameter]:
    """The constants, with the axes of output and input channels where a layer says so."""
    states = {i.name: i.state for i in program.inputs if i.state}
    axes: dict[str, tuple[int, int]] = {}
    for node in program.nodes:
        for name, found in _of_node(node).items():
            axes[states.get(name, name)] = found
    return {name: _parameter(array.shape, axes.get(name)) for name, array in arrays.items()}


def _of_node(node: ProgramNode) -> dict[str, tuple[int, int]]:
    op = split_target(node.target)[1].split(".")[0]
    if op not in _OUT_IN:
        return {}
    found = {a.name: a.value.name for a in node.arguments if isinstance(a.value, Ref)}
    roles = {"weight": _OUT_IN[op], "bias": (0, 0)}
    return {found[role]: axes for role, axes in roles.items() if role in found}


def _parameter(shape: tuple[int, ...], axes: tuple[int, int] | None) -> Parameter:
    if axes is None or not shape:
        return Parameter(shape)
    return Parameter(shape, 0) if len(shape) == 1 else Parameter(shape, *axes)
