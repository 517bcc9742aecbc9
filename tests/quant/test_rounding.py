"""Rounding with regard to the data: outputs stay closer than with the nearest integers, on unseen data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import openqnn
from openqnn.api.quantize import quantize
from openqnn.errors import OpenQnnWarning
from openqnn.ir import Array, DType, Graph
from openqnn.ops import Builder
from openqnn.quant.algorithms.layers import Layer
from openqnn.quant.sample_reservoir import keeping

RNG = np.random.default_rng(7)
SHAPE = (1, 12, 12, 8)


def random(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def network(group: int = 1) -> Graph:
    """Two convolutions and a layer of rows."""
    graph = Graph("net")
    x = graph.add_input("x", DType.FLOAT_32, SHAPE)
    b = Builder(graph, "test")
    around = {"pad_amount": ((1, 1), (1, 1))}
    wide, thin = b.const(random(3, 3, 8 // group, 16)), b.const(random(3, 3, 1, 16))
    first = b("Relu", b("Conv2d", x, wide, b.const(random(16)), stride=(1, 1), group=group, **around))
    y = b("DepthWiseConv2d", first, thin, b.const(random(16)), stride=(2, 2), **around)
    rows = b("Reshape", y, shape=(36, 16))
    graph.add_output(b("FullyConnected", rows, b.const(random(5, 16)), b.const(random(5)), keep_dims=False))
    return graph


def smooth(count: int) -> list[dict[str, Array]]:
    """Images whose neighbouring pixels and channels resemble each other, as those of real data do."""
    found = []
    for _ in range(count):
        noise = random(1, 14, 14, 10)
        parts = [
            noise[:, i : i + 12, j : j + 12, k : k + 8] for i in range(3) for j in range(3) for k in range(3)
        ]
        found.append({"x": np.sum(parts, axis=0, dtype=np.float32) / 5})
    return found


def noise(graph: Graph, fixed: Graph, feeds: list[dict[str, Array]]) -> float:
    with openqnn.Session(graph) as real, openqnn.Session(fixed) as other:
        (name,) = real.output_names
        pairs = [(real.run(f)[name], other.run(f)[name]) for f in feeds]
    return float(np.mean([(a - b) ** 2 for a, b in pairs]))


@pytest.mark.parametrize("group", [1, 4])
def test_outputs_of_unseen_data_stay_closer(group: int) -> None:
    graph, data, unseen = network(group), smooth(16), smooth(16)
    choices = {"act_bw": 16, "backend": "cpu"}
    nearest = quantize(graph, data, algorithms=(), **choices)
    rounded = quantize(graph, data, algorithms=("adaround",), **choices)
    assert noise(graph, rounded, unseen) < 0.8 * noise(graph, nearest, unseen)


def test_an_infinite_number_spoils_nothing() -> None:
    graph, data, unseen = network(), smooth(16), smooth(16)
    nearest = quantize(graph, data, algorithms=(), act_bw=16, backend="cpu")
    data[3]["x"][0, 5, 5, 2] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)  # and no other
        rounded = quantize(graph, data, act_bw=16, backend="cpu")
    assert noise(graph, rounded, unseen) < 0.8 * noise(graph, nearest, unseen)


def test_four_bits_gain_too() -> None:
    graph, data, unseen = network(), smooth(16), smooth(16)
    choices = {"act_bw": 16, "weight_bw": 4, "backend": "cpu"}
    nearest = quantize(graph, data, algorithms=(), **choices)
    rounded = quantize(graph, data, algorithms=("adaround",), **choices)
    assert noise(graph, rounded, unseen) < 0.8 * noise(graph, nearest, unseen)
    for node in rounded.nodes:
        if node.op == "Conv2d":
            assert node.x(1).data is not None and np.abs(node.x(1).data).max() <= 7


@pytest.mark.parametrize("group", [1, 4])
def test_layers_are_products(group: int) -> None:
    """rows @ matrix + bias is what the node computes."""
    graph = network(group)
    (feed,) = smooth(1)
    outputs = [n.out.name for n in graph.nodes]
    with openqnn.Session(graph) as session:
        known = {**session.run(feed, outputs), **feed}
    layers = [n for n in graph.nodes if n.op in ("Conv2d", "DepthWiseConv2d", "FullyConnected")]
    assert len(layers) == 3
    for node in layers:
        layer = Layer(node)
        weight, bias = node.x(1).data, node.x(2).data
        assert weight is not None and bias is not None
        matrix = layer.matrix(weight)
        np.testing.assert_array_equal(layer.weight(matrix), weight)
        product = layer.rows(known[node.x(0).name], np.arange(layer.positions)) @ matrix
        found = product.transpose(1, 0, 2).reshape(layer.positions, -1) + bias
        np.testing.assert_allclose(found, known[node.out.name].reshape(found.shape), rtol=1e-4, atol=1e-4)


def test_samples_are_kept_while_they_pass() -> None:
    graph = network()

    def source() -> Iterator[dict[str, Array]]:
        for number in range(50):
            yield {"x": np.full(SHAPE, number, np.float32)}

    kept = keeping(graph, source(), 8)
    assert sum(1 for _ in kept) == 50
    numbers = [int(s["x"].flat[0]) for s in kept.samples]
    assert len(numbers) == 8 and numbers == sorted(numbers) and numbers != list(range(8))
    counted = keeping(graph, list(source())[:3], 8)
    assert len(counted) == 3 and len(list(counted)) == 3 and len(counted.samples) == 3
