"""A QNN graph as a view: nodes with parameters, tensors with encodings, constants with statistics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from openqnn.ir import Array, Encoding, Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.viewer.view import Overlay, View, ViewNode, ViewTensor

BINS = 24
LARGEST = 1 << 22  # elements beyond which statistics are those of an even sample
INPUT = "Input"
OUTPUT = "Output"
TORCH_MODULE = re.compile(r"torch node .* \((?:[^;]*; )?([\w.]+)\)$")


def view_from_graph(graph: Graph, title: str, kind: str) -> View:
    constants: dict[str, ViewTensor] = {}
    nodes = [_boundary(graph, value, INPUT) for value in graph.inputs]
    nodes += [_node(graph, node, constants) for node in graph.nodes]
    nodes += [_boundary(graph, value, OUTPUT) for value in graph.outputs]
    return View(title, kind, tuple(nodes), _facts(graph), tuple(_overlays(graph)))


def _facts(graph: Graph) -> dict[str, str]:
    constants = graph.constants()
    return {
        "graph": graph.name,
        "nodes": f"{len(graph.nodes):,}",
        "parameters": f"{sum(v.size for v in constants):,}",
        "bytes of constants": f"{sum(v.nbytes for v in constants):,}",
    }


def _overlays(graph: Graph) -> list[Overlay]:
    macs: dict[str, float] = {}
    weights: dict[str, float] = {}
    bits: dict[str, float] = {}
    for node in graph.nodes:
        schema = schema_of(node)
        if schema.macs:
            macs[node.name] = float(schema.macs(node))
        held = sum(v.nbytes for v in node.inputs if v is not None and v.is_constant)
        moved = sum(v.nbytes for v in (*node.inputs, *node.outputs) if v is not None)
        if held or moved:
            weights[node.name] = float(moved)
        bits[node.name] = float(_bits(node.outputs[0]))
    found = [
        Overlay("MACs", macs),
        Overlay("bytes read and written", weights, "B"),
        Overlay("VTCM: activations alive", _alive(graph), "B"),
        Overlay("bit width", bits),
        Overlay("encoding source", {}, labels=_origins(graph)),
    ]
    return [overlay for overlay in found if overlay.is_about_something]


def _alive(graph: Graph) -> dict[str, float]:
    """Bytes of activations that are needed at once while a node runs, in the order of the graph."""
    last = _last_uses(graph)
    ending: dict[int, list[Value]] = {}
    for value, place in last.items():
        ending.setdefault(place, []).append(value)
    found: dict[str, float] = {}
    alive = sum(v.nbytes for v in graph.inputs if last[v] >= 0)
    for place, node in enumerate(graph.nodes):
        alive += sum(v.nbytes for v in node.outputs)
        found[node.name] = float(alive)
        alive -= sum(v.nbytes for v in ending.get(place, ()))
    return found


def _last_uses(graph: Graph) -> dict[Value, int]:
    """Where each activation is needed last; weights are none, whether or not they are there."""
    last: dict[Value, int] = dict.fromkeys(graph.inputs, -1)
    for place, node in enumerate(graph.nodes):
        last |= dict.fromkeys(node.outputs, place)
        last |= {v: place for v in node.inputs if v in last}
    return last | dict.fromkeys(graph.outputs, len(graph.nodes))


def _origins(graph: Graph) -> dict[str, str]:
    """Where the encoding of a node's result comes from, without what is said in addition."""
    told = {node.name: graph.provenance.get(node.outputs[0].name, "") for node in graph.nodes}
    return {name: text.split(",")[0].split(":")[0] for name, text in told.items() if text}


def _bits(value: Value) -> int:
    if value.encoding is not None:
        return value.encoding.bitwidth
    return 8 * value.dtype.numpy.itemsize


def _boundary(graph: Graph, value: Value, op: str) -> ViewNode:
    tensor = _tensor(graph, value, {})
    inputs = (tensor,) if op == OUTPUT else ()
    outputs = (tensor,) if op == INPUT else ()
    return ViewNode(value.name, op, "", {}, inputs, outputs, (f"{op}:{value.name}",))


def _node(graph: Graph, node: Node, constants: dict[str, ViewTensor]) -> ViewNode:
    inputs = tuple(_tensor(graph, v, constants) for v in node.inputs if v is not None)
    outputs = tuple(_tensor(graph, v, constants) for v in node.outputs)
    params = {name: _shown(value) for name, value in node.params.items()}
    keys = (*(v.name for v in node.outputs), node.name, *([node.source] if node.source else []))
    return ViewNode(node.name, node.op, node.source, params, inputs, outputs, keys, _scope(node.source))


def _scope(source: str) -> str:
    """The modules in what PyTorch's frontend says of a node: `torch node relu (model.py:4, Net.forward;
    block.0)`."""
    found = TORCH_MODULE.match(source)
    return found[1].replace(".", "/") if found else ""


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _tensor(graph: Graph, value: Value, constants: dict[str, ViewTensor]) -> ViewTensor:
    if value.name in constants:
        return constants[value.name]
    encoding = "" if value.encoding is None else encoding_text(value.encoding)
    origin = graph.provenance.get(value.name, "")
    data = value.data
    weight = None if data is None else lambda: statistics_of(data, value.encoding)
    found = ViewTensor(value.name, value.dtype.label, value.shape, encoding, origin, weight=weight)
    if value.data is not None:
        constants[value.name] = found
    return found


def encoding_text(encoding: Encoding) -> str:
    """An encoding in one line: width, scale and offset, or how many channels have their own."""
    if encoding.axis is None:
        return f"{encoding.bitwidth} bits, scale {encoding.scale[0]:.6g}, offset {encoding.offset[0]}"
    return (
        f"{encoding.bitwidth} bits, {len(encoding.scale)} scales along axis {encoding.axis},"
        f" {min(encoding.scale):.4g} to {max(encoding.scale):.4g}"
    )


def statistics_of(data: Array, encoding: Encoding | None = None) -> dict[str, Any]:
    """Extremes, mean, deviation and a histogram of a constant's real numbers."""
    flat = data.reshape(-1)
    step = max(1, -(-flat.size // LARGEST))
    if encoding is not None and step == 1:
        flat = encoding.dequantize(data).reshape(-1)
    numbers = flat[::step].astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = {"elements": int(data.size), "not finite": int(numbers.size - finite.size)}
    if not finite.size:
        return found
    found |= _extremes(finite)
    if finite.size > 1:
        counts, _ = np.histogram(finite, BINS)
        found["histogram"] = counts.tolist()
    if finite.size <= 8 and data.size <= 8:
        found["values"] = [float(f"{v:.6g}") for v in finite]
    return found


def _extremes(finite: Array) -> Mapping[str, float]:
    figures = {"min": finite.min(), "max": finite.max(), "mean": finite.mean(), "std": finite.std()}
    return {name: float(f"{value:.6g}") for name, value in figures.items()}
