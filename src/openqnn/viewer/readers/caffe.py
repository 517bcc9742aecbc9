"""Caffe networks as views, as they stand in their files: layers with the blobs of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from openqnn.frontends.caffe.network import Layer, results
from openqnn.frontends.caffe.open_caffe import open_network
from openqnn.ir import Array
from openqnn.viewer.from_graph import statistics_of
from openqnn.viewer.readers.tensor_words import begins_with, ends_with, shortened
from openqnn.viewer.view import View, ViewNode, ViewTensor


def caffe_view(path: Path) -> View:
    """The network for inference; blobs that a layer writes over have a name for each writer."""
    network, blobs = open_network(path)
    nodes = [begins_with(ViewTensor(i.name, "float32", i.dims or None)) for i in network.inputs]
    nodes += [_node(layer, blobs.get(layer.name, ())) for layer in network.layers]
    nodes += [ends_with(ViewTensor(name, "float32")) for name in results(network.layers)]
    weights = f"{sum(array.size for arrays in blobs.values() for array in arrays):,}" if blobs else "no file"
    facts = {"network": network.name, "layers": f"{len(network.layers):,}", "parameters": weights}
    return View(path.name, "Caffe", tuple(nodes), facts)


def _node(layer: Layer, blobs: Sequence[Array]) -> ViewNode:
    read = [ViewTensor(name, "float32") for name in layer.bottoms]
    read += [_weight(layer, number, array) for number, array in enumerate(blobs)]
    made = tuple(ViewTensor(name, "float32") for name in layer.tops)
    params = {name: _shown(values) for name, values in layer.params.items()}
    return ViewNode(layer.name, layer.type, "", params, tuple(read), made, (*layer.tops, layer.name))


def _weight(layer: Layer, number: int, array: Array) -> ViewTensor:
    name = f"{layer.name} blob {number}"
    return ViewTensor(name, "float32", array.shape, weight=partial(statistics_of, array))


def _shown(values: Sequence[Any]) -> str:
    return shortened(", ".join(map(str, values)))
