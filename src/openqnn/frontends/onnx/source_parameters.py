"""Which way the weights of an ONNX model lie: what encodings files speak of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import onnx
from onnx import helper, numpy_helper

from openqnn.formats.encodings import Parameter
from openqnn.frontends.onnx.reader import OnnxModel

_WEIGHT = 1  # the input of these ops that is a weight
_BIAS = 2
_OUT_IN = {"Conv": (0, 1), "ConvTranspose": (1, 0), "MatMul": (-1, -2)}
_SAME_SHAPE = {"Identity", "Cast", "QuantizeLinear", "DequantizeLinear"}

Axes = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class _Origin:
    """A tensor that is a constant in another form: each of its axes as an axis of the constant.

    An axis that a reshape splits or joins is none of the constant's.
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[int | None, ...] = field(default=())


def source_parameters(model: OnnxModel) -> dict[str, Parameter]:
    """The constants outside of subgraphs, with their axes as the layers behind them use them."""
    constants = {name: array.shape for name, array in model.arrays.items()}
    values: dict[str, Any] = dict(model.arrays)
    for node in model.graph.node:
        tensor = next((a.t for a in node.attribute if node.op_type == "Constant" and a.name == "value"), None)
        if tensor is not None:
            constants[node.output[0]] = tuple(tensor.dims)
            values[node.output[0]] = numpy_helper.to_array(tensor)
    forms = {name: _Origin(name, shape, tuple(range(len(shape)))) for name, shape in constants.items()}
    axes: dict[str, Axes] = {}
    for node in model.graph.node:
        form = _moved(node, forms, values)
        if form is not None:
            forms[node.output[0]] = form
        axes.update((forms[name].name, found) for name, found in _axes(node, forms))
    return {name: Parameter(shape, *axes.get(name, ())) for name, shape in constants.items()}


def _axes(node: onnx.NodeProto, forms: Mapping[str, _Origin]) -> Iterator[tuple[str, Axes]]:
    """The axes of output and input channels of a node's weight, and of its bias, in the constant's order."""
    if node.op_type == "Gemm":
        found = (0, 1) if _attribute(node, "transB", 0) else (1, 0)
    elif node.op_type in _OUT_IN:
        found = _OUT_IN[node.op_type]
    else:
        return
    weight = forms.get(node.input[_WEIGHT]) if len(node.input) > _WEIGHT else None
    if weight is not None and len(weight.axes) > 1:
        yield node.input[_WEIGHT], (weight.axes[found[0]], weight.axes[found[1]])
    bias = forms.get(node.input[_BIAS]) if len(node.input) > _BIAS else None
    if bias is not None and bias.axes and node.op_type != "MatMul":
        yield node.input[_BIAS], (bias.axes[-1], None)


# -- constants in another form -------------------------------------------------------------------------------


def _moved(node: onnx.NodeProto, forms: Mapping[str, _Origin], values: Mapping[str, Any]) -> _Origin | None:
    """What a node makes of a constant where it only turns, reshapes or rounds it."""
    x = forms.get(node.input[0]) if node.input else None
    if x is None:
        return None
    if node.op_type in _SAME_SHAPE:
        return x
    if node.op_type == "Transpose":
        perm = _attribute(node, "perm", list(reversed(range(len(x.shape)))))
        return _Origin(x.name, tuple(x.shape[i] for i in perm), tuple(x.axes[i] for i in perm))
    shape = _reshaped(node, x.shape, values)
    return None if shape is None else _Origin(x.name, shape, _same_axes(x, shape))


def _reshaped(
    node: onnx.NodeProto, shape: Sequence[int], values: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """The shape behind a reshape whose sizes are constants."""
    if node.op_type == "Flatten":
        axis = _attribute(node, "axis", 1) % (len(shape) + 1)
        return prod(shape[:axis]), prod(shape[axis:])
    said = values.get(node.input[1]) if len(node.input) > 1 else _attribute(node, "axes", None)
    known = _SHAPES.get(node.op_type)
    return None if said is None or known is None else known(shape, [int(number) for number in said])


def _into_sizes(shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    kept = [shape[i] if size == 0 and i < len(shape) else size for i, size in enumerate(sizes)]
    known = prod(size for size in kept if size != -1)
    return tuple(prod(shape) // max(known, 1) if size == -1 else size for size in kept)


def _without_axes(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    gone = {axis % len(shape) for axis in axes}
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


def _with_axes(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    made = list(shape)
    for axis in sorted(axis % (len(shape) + len(axes)) for axis in axes):
        made.insert(axis, 1)
    return tuple(made)


_SHAPES: Final = {"Reshape": _into_sizes, "Squeeze": _without_axes, "Unsqueeze": _with_axes}


def _same_axes(x: _Origin, shape: Sequence[int]) -> tuple[int | None, ...]:
    """Axes are the same where they have the same size, and as many elements lie in front of them."""
    before = {(prod(x.shape[:i]), size): x.axes[i] for i, size in enumerate(x.shape) if size > 1}
    return tuple(before.get((prod(shape[:i]), size)) for i, size in enumerate(shape))


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
