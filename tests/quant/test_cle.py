"""Cross-layer equalization: weights of neighbouring layers become alike, and the function stays the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import openqnn
from openqnn.api.quantize import HTP, prepared_for, quantize, recipe_of
from openqnn.ir import Array, DType, Encoding, Given, Graph
from openqnn.ops import Builder
from openqnn.quant.algorithms.channels import input_size, output_size
from openqnn.quant.algorithms.equalise_layers import equalise_layers, pairs_of
from openqnn.runtime.metrics import decibels
from tests.models.fetch import model_path
from tests.models.sets import data_set, shapes_of
from tests.quant.test_rounding import noise
from tests.quant.test_smoothquant import assert_same

CHANNELS = 16
SHAPE = (1, 10, 10, 8)


class Net:
    """Three convolutions, the middle one by channel, and a layer of rows; channels differ a lot in size."""

    def __init__(self, activation: str = "Relu", *, padded: bool = True, group: int = 1) -> None:
        self.chance = np.random.default_rng(11)
        self.graph = Graph("net")
        self.b = Builder(self.graph, "test")
        x = self.graph.add_input("x", DType.FLOAT_32, SHAPE)
        pads = ((1, 1), (1, 1)) if padded else ((0, 0), (0, 0))
        sizes = np.exp(2 * self.random(CHANNELS))
        wide = self.b.const(self.random(3, 3, 8 // group, CHANNELS) * sizes)
        params = {"stride": (1, 1), "pad_amount": pads}
        x = self.b("Conv2d", x, wide, self.bias(CHANNELS, 0.3 * sizes), group=group, **params)
        x = self.act(x, activation)
        thin = self.b.const(self.random(3, 3, 1, CHANNELS) / sizes)
        x = self.b("DepthWiseConv2d", x, thin, self.bias(CHANNELS, 1), **params)
        x = self.act(x, activation)
        x = self.b("Conv2d", x, self.b.const(self.random(1, 1, CHANNELS, 12) / 4), None, **params)
        flat = self.b("Reshape", self.act(x, activation), shape=(1, x.size))
        weight = self.b.const(self.random(5, x.size) / np.float32(20))
        self.graph.add_output(self.b("FullyConnected", flat, weight, self.bias(5, 1), keep_dims=False))

    def random(self, *shape: int) -> Array:
        return self.chance.standard_normal(shape).astype(np.float32)

    def bias(self, size: int, scale: object) -> openqnn.Value:
        return self.b.const((self.random(size) * scale).astype(np.float32))

    def act(self, x: openqnn.Value, activation: str) -> openqnn.Value:
        if activation == "Prelu":
            return self.b.prelu(x, self.b.const(np.full(x.shape[-1], 0.2, np.float32)))
        if activation == "ReluMinMax":
            return self.b.clip(x, 0.0, 4.0)
        return self.b(activation, x) if activation else x

    def data(self, count: int) -> list[dict[str, Array]]:
        return [{"x": self.random(*SHAPE)} for _ in range(count)]


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("activation", ["Relu", "Prelu", ""])
@pytest.mark.parametrize("group", [1, 4])
def test_the_function_stays(activation: str, padded: bool, group: int) -> None:
    net = Net(activation, padded=padded, group=group)
    made, said = equalise_layers(net.graph, net.data(4))
    assert sum("equalized" in line for line in said) == 3
    assert_same(net.graph, made, net.data(4))


def test_ranges_become_equal() -> None:
    """Without data nothing holds the scales back, and both layers of a pair have the same range."""
    net = Net()
    for first, second, channels in ((p.first, p.second, p.channels) for p in pairs_of(net.graph)):
        assert not np.allclose(output_size(first), input_size(second, channels), rtol=0.05)
    made, _ = equalise_layers(net.graph)
    for first, second, channels in ((p.first, p.second, p.channels) for p in pairs_of(made)):
        np.testing.assert_allclose(output_size(first), input_size(second, channels), rtol=0.01)


@pytest.mark.parametrize("activation", ["Relu6", "ReluMinMax"])
def test_bounds_go_and_that_is_said(activation: str) -> None:
    net = Net(activation)
    made, said = equalise_layers(net.graph, net.data(2))
    assert sum(f"{activation} '" in line and "became Relu" in line for line in said) == 3
    assert {n.op for n in made.nodes if n.op.startswith("Relu")} == {"Relu"}
    assert_same(Net("Relu").graph, made, net.data(2))


def test_eight_bits_for_whole_tensors_gain() -> None:
    net = Net()
    data, unseen = net.data(8), net.data(8)
    choices = {"per_channel": False, "per_row": False, "backend": "cpu", "hold_back": False}
    plain, even = (quantize(net.graph, data, algorithms=a, **choices) for a in ((), ("cle",)))
    assert decibels(noise(net.graph, plain, unseen), noise(net.graph, even, unseen)) > 10


def lifted(padded: bool) -> Net:
    """A network whose first layer has channels far above zero, so that its Relu lets all of them through."""
    net = Net(padded=padded)
    first = pairs_of(net.graph)[0].first
    assert first.x(2).data is not None
    first.x(2).data = first.x(2).data + 40 * output_size(first).astype(np.float32)
    return net


def test_high_biases_are_absorbed_unless_the_border_would_change() -> None:
    for padded, count in ((False, 1), (True, 0)):
        net = lifted(padded)
        made, said = equalise_layers(net.graph, net.data(4))
        first = pairs_of(net.graph)[0].first.name
        assert sum(f"biases of '{first}' went into" in line for line in said) == count
        assert_same(net.graph, made, net.data(4))
    net = lifted(False)
    data = net.data(4)
    (before, after) = (
        highest(g, data) for g in (equalise_layers(net.graph)[0], equalise_layers(net.graph, data)[0])
    )
    assert after < 0.6 * before


def highest(graph: Graph, data: list[dict[str, Array]]) -> float:
    """What the first layer reaches, in parts of its largest weight."""
    first = pairs_of(graph)[0].first
    with openqnn.Session(graph) as session:
        reached = max(session.run(d, [first.out.name])[first.out.name].max() for d in data)
    return float(reached / output_size(first).max())


def test_a_small_channel_with_a_large_bias_does_not_widen_its_tensor() -> None:
    net = Net()
    first = pairs_of(net.graph)[0].first
    weight, bias = first.x(1).data, first.x(2).data
    assert weight is not None and bias is not None
    weight[..., 0] *= 1e-6
    bias[0] = np.abs(bias).max()
    data = net.data(4)
    made, _ = equalise_layers(net.graph, data)
    assert_same(net.graph, made, data)
    shares = np.sort(channel_shares(made, data))
    assert shares[-2] > 0.01, "all but one channel share a hundredth of the range"


def channel_shares(graph: Graph, data: list[dict[str, Array]]) -> Array:
    name = pairs_of(graph)[0].first.out.name
    with openqnn.Session(graph) as session:
        tops = np.max([np.abs(session.run(d, [name])[name]).max(axis=(0, 1, 2)) for d in data], axis=0)
    return tops / tops.max()


def test_branches_outputs_and_other_activations_stay() -> None:
    net = Net("Tanh")
    assert pairs_of(net.graph) == []
    made, said = equalise_layers(net.graph, net.data(1))
    assert len(said) == 1 and "no two layers" in said[0]
    assert_same(net.graph, made, net.data(1))
    branched = Net()
    first = pairs_of(branched.graph)[0].first
    branched.graph.add_output(first.out)
    assert len(pairs_of(branched.graph)) == 2


def test_what_has_an_encoding_stays() -> None:
    net = Net()
    first = pairs_of(net.graph)[0]
    for value in (first.first.x(1), first.first.out, first.between[0].out):
        known = {value.name: Given("override", 8, encoding=Encoding.per_tensor(0.1))}
        assert len(pairs_of(net.graph, known)) == 2


@cache
def classifier() -> Graph:
    """Of lines of text, upright or not: a MobileNetV3 with squeeze and excitation."""
    graph = openqnn.convert(model_path("ppocr_cls"), input_shapes=shapes_of("ppocr_cls"))
    return prepared_for(graph, recipe_of(None, {}), HTP)


def test_a_real_model_stays_and_gains() -> None:
    """Whole-tensor weights of 8 bits: 15 dB as they are."""
    real, data = classifier(), data_set("ppocr_cls")
    made, said = equalise_layers(real, data.calibration)
    assert sum("equalized" in line for line in said) >= 10
    assert_same(real, made, data.evaluation[:4])
    choices = {"per_channel": False, "per_row": False, "backend": "cpu", "algorithms": ()}
    plain, even = (quantize(g, data.calibration, **choices) for g in (real, made))
    before, after = (noise(real, made, data.evaluation[:16]) for made in (plain, even))
    assert decibels(before, after) > 2
