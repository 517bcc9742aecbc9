"""Arrays at the border of a graph: from the outside view of an input to what the graph stores, and back.

The outside of a fixed-point value is real numbers, unless the source model itself has integers there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openqnn.errors import InputError
from openqnn.formats.input_list import meant_name
from openqnn.ir import Array, DType, Graph, Port, Shape, Value


def outside_dtype(port: Port) -> DType:
    """The type of the arrays that stand for an input or output."""
    return DType.FLOAT_32 if port.dtype.is_fixed else port.dtype


def is_coded(value: Value, port: Port) -> bool:
    """Whether the encoding stands between the outside's real numbers and the stored integers."""
    return value.dtype.is_fixed and value.encoding is not None and outside_dtype(port).is_float


def accepted(graph: Graph, inputs: Mapping[str, Any], *, native: bool = False) -> dict[str, Array]:
    """Arrays for all inputs of a graph, as it takes them; InputError says which is missing or unfit."""
    names = [v.name for v in graph.inputs]
    if not isinstance(inputs, Mapping):  # a lone array is easily given
        raise InputError(
            f"arrays go in by the names of inputs, and a {type(inputs).__name__} has none",
            hint=f"{{{', '.join(f'{name!r}: array' for name in names)}}}",
        )
    given: dict[str, Any] = {}
    for said in inputs:
        name = meant_name(said, names) if isinstance(said, str) else ""
        if not name:
            raise InputError(
                f"the graph has no input '{said}'", hint=f"its inputs: {', '.join(map(repr, names))}"
            )
        given[name] = inputs[said]
    missing = [n for n in names if n not in given]
    if missing:
        raise InputError(f"no array for input {', '.join(map(repr, missing))}")
    return {v.name: inward(v, graph.ports[v.name], given[v.name], native=native) for v in graph.inputs}


def shapes_text(graph: Graph) -> list[str]:
    """The inputs with their shapes, for messages."""
    return [f"{v.name}{list(graph.ports[v.name].shape)}" for v in graph.inputs]


def fitting(graphs: Sequence[Graph], inputs: Mapping[str, Any]) -> Graph:
    """The graph whose inputs have the shapes of the arrays, among several; a single one is always meant."""
    if len(graphs) == 1 or not isinstance(inputs, Mapping):
        return graphs[0]
    shapes = {said: np.shape(array) for said, array in inputs.items()}
    for graph in graphs:
        wanted = {v.name: tuple(graph.ports[v.name].shape) for v in graph.inputs}
        if {meant_name(str(said), list(wanted)): shape for said, shape in shapes.items()} == wanted:
            return graph
    given = ", ".join(f"{said}{list(shape)}" for said, shape in shapes.items())
    known = "; ".join(f"{graph.name}: {', '.join(shapes_text(graph))}" for graph in graphs)
    raise InputError(f"no graph has inputs of these shapes: {given}", hint=f"there are {known}")


def misfit(name: str, shape: Shape, port: Port) -> str:
    return f"input '{name}' has shape {list(shape)}, the graph wants {list(port.shape)}"


def inward(value: Value, port: Port, given: Any, *, native: bool = False) -> Array:
    """An array from outside as the graph takes it: same shape, and a type that holds the same numbers.

    Real numbers for a fixed-point value are quantized by its encoding; `native` arrays are stored integers.
    """
    array = np.asarray(given)
    if array.size == 1 and {array.shape, port.shape} == {(), (1,)}:  # QNN has no rank 0
        array = array.reshape(port.shape)
    if array.shape != port.shape:
        raise InputError(misfit(value.name, array.shape, port))
    if not native and is_coded(value, port):
        return _encoded(value, array)
    wanted = value.dtype.numpy
    if array.dtype == wanted:
        return array
    _check_kind(value, value.dtype if native and value.dtype.is_fixed else port.dtype, array)
    _check_range(value, array)
    return array.astype(wanted)


def _check_kind(value: Value, seen: DType, array: Array) -> None:
    """Refuses floats for integers and the reverse: whoever means that converts on purpose."""
    kinds = array.dtype.kind + seen.numpy.kind
    if kinds[0] == kinds[1] or kinds in ("iu", "ui"):
        return
    hint = f"convert it on purpose: array.astype('{seen.numpy}')"
    if seen.is_fixed:
        hint = "without native=True real numbers are quantized by the graph's encoding"
    raise InputError(f"input '{value.name}' is {array.dtype}, the graph wants {seen.label}", hint=hint)


def _check_range(value: Value, array: Array) -> None:
    wanted = value.dtype.numpy
    if wanted.kind not in "iu" or not array.size:
        return
    limits = np.iinfo(wanted.name)
    if array.min() < limits.min or array.max() > limits.max:
        raise InputError(
            f"input '{value.name}' has values beyond {value.dtype.label}, which QNN computes with"
        )


def outward(value: Value, port: Port | None, array: Array, *, native: bool = False) -> Array:
    """What the graph gives as the outside sees it; a value without a port keeps its own layout."""
    port = port or Port(value.dtype, value.shape)
    if array.shape != port.shape:
        array = array.reshape(port.shape)
    if native and value.dtype.is_fixed:
        return array
    wanted = outside_dtype(port).numpy
    if is_coded(value, port):
        assert value.encoding is not None
        array = value.encoding.dequantize(array)
    return np.asarray(array, wanted)


def _encoded(value: Value, array: Array) -> Array:
    assert value.encoding is not None
    if array.dtype.kind != "f":
        raise InputError(
            f"input '{value.name}' is {array.dtype}, the graph wants real numbers, which it quantizes itself",
            hint="array.astype('float32'), or native=True for stored integers",
        )
    if np.isnan(array).any():
        raise InputError(f"input '{value.name}' has NaN, which {value.dtype.label} cannot hold")
    stored = value.encoding.quantize(array, value.dtype.signed)
    return np.asarray(stored, value.dtype.numpy)  # of a single number numpy makes no array


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Arrays that fit the graph's inputs: normal floats, small integers, coin-flip booleans."""
    rng = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for value in graph.inputs:
        port = graph.ports[value.name]
        if is_coded(value, port) or port.dtype.is_float:
            made[value.name] = rng.standard_normal(port.shape).astype(outside_dtype(port).numpy)
        else:
            high = 2 if port.dtype is DType.BOOL_8 else 10
            made[value.name] = rng.integers(0, high, port.shape).astype(port.dtype.numpy)
    return made
