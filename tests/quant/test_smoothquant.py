"""SmoothQuant: outliers of activations go into weights, and the function stays the same."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.api.quantize import HTP, prepared_for, quantize, recipe_of
from openqnn.ir import Array, DType, Encoding, Given, Graph
from openqnn.ops import Builder
from openqnn.quant.algorithms.smooth_activations import places_of, smooth_activations
from openqnn.runtime.metrics import decibels
from tests.models.fetch import model_path
from tests.models.samples import sample_inputs
from tests.models.sets import shapes_of
from tests.quant.test_rounding import noise

TOKENS, WIDTH, BLOCKS = 16, 32, 3
OUTLIERS = [3, 17]


class Transformer:
    """Blocks of norms and layers with a way around them; some channels of the norms are large, as in LLMs."""

    def __init__(self, norm: str = "LayerNorm", seed: int = 5) -> None:
        self.chance = np.random.default_rng(seed)
        self.graph = Graph("transformer")
        x = self.graph.add_input("x", DType.FLOAT_32, (1, TOKENS, WIDTH))
        self.b = Builder(self.graph, "test")
        for _ in range(BLOCKS):
            x = self.b.add(x, self.attention(self.normed(x, norm)))
            x = self.b.add(x, self.layer(self.b.gelu(self.layer(self.normed(x, norm), 2 * WIDTH)), WIDTH))
        self.graph.add_output(x)

    def random(self, *shape: int) -> Array:
        return self.chance.standard_normal(shape).astype(np.float32)

    def normed(self, x: openqnn.Value, norm: str) -> openqnn.Value:
        gamma = 1 + 0.1 * self.random(WIDTH)
        gamma[OUTLIERS] = 60
        if norm == "product":
            return self.b.mul(x, self.b.const(gamma.reshape(1, 1, WIDTH)))
        return self.b(norm, x, self.b.const(gamma), self.b.const(0.1 * self.random(WIDTH)), axes=(2,))

    def layer(self, x: openqnn.Value, units: int) -> openqnn.Value:
        weight = self.random(x.shape[-1], units) / np.sqrt(x.shape[-1], dtype=np.float32)
        if x.shape[-1] == WIDTH:
            weight[OUTLIERS] /= 60
        return self.b("MatMul", x, self.b.const(weight), self.b.const(0.1 * self.random(units)))

    def attention(self, x: openqnn.Value) -> openqnn.Value:
        q, k, v = (self.layer(x, WIDTH) for _ in range(3))
        scores = self.b.mul(self.b("MatMul", q, k, transpose_in1=True), WIDTH**-0.5)
        return self.b("MatMul", self.b("Softmax", scores), v)

    def data(self, count: int) -> list[dict[str, Array]]:
        return [{"x": self.random(1, TOKENS, WIDTH)} for _ in range(count)]


def outputs(graph: Graph, feeds: list[dict[str, Array]]) -> list[dict[str, Array]]:
    with openqnn.Session(graph) as session:
        return [session.run(feed) for feed in feeds]


def assert_same(graph: Graph, other: Graph, feeds: list[dict[str, Array]]) -> None:
    for before, after in zip(outputs(graph, feeds), outputs(other, feeds), strict=True):
        for name, array in before.items():
            assert np.abs(array - after[name]).max() <= 1e-4 * np.abs(array).max(), name


@pytest.mark.parametrize("norm", ["LayerNorm", "RmsNorm", "product"])
def test_the_function_stays(norm: str) -> None:
    net = Transformer(norm)
    smoothed, said = smooth_activations(net.graph, net.data(4))
    assert len(said) == 2 * BLOCKS and all("smoothquant" in line for line in said)
    assert_same(net.graph, smoothed, net.data(4))


def test_eight_bits_gain_six_decibels() -> None:
    net = Transformer()
    data, unseen = net.data(16), net.data(8)
    plain, smooth = (quantize(net.graph, data, algorithms=a) for a in ((), ("smoothquant",)))
    assert decibels(noise(net.graph, plain, unseen), noise(net.graph, smooth, unseen)) > 6


def test_half_of_the_difference_goes_into_the_weights() -> None:
    """The channels of a norm become as large as what their weights are multiplied with."""
    net = Transformer()
    smoothed, _ = smooth_activations(net.graph, net.data(4))
    place = places_of(smoothed)[0]
    (before, after) = (places_of(g)[0].constants[0].data for g in (net.graph, smoothed))
    assert before is not None and after is not None
    spread = [np.abs(a).max() / np.median(np.abs(a)) for a in (before, after)]
    assert spread[1] < 0.1 * spread[0]
    assert len(place.layers) == 3


def test_what_something_else_reads_stays() -> None:
    net = Transformer()
    first = places_of(net.graph)[0].node
    net.graph.add_output(first.out)
    assert first not in [p.node for p in places_of(net.graph)]


def test_what_has_an_encoding_stays() -> None:
    net = Transformer()
    first = places_of(net.graph)[0]
    known = {first.layers[0].x(1).name: Given("override", 8, encoding=Encoding.per_tensor(0.1))}
    assert [p.node for p in places_of(net.graph, known)] == [p.node for p in places_of(net.graph)][1:]


def test_a_norm_over_another_axis_is_no_place() -> None:
    graph = Graph("g")
    x = graph.add_input("x", DType.FLOAT_32, (1, 8, 8))
    b = Builder(graph, "test")
    gamma = b.const(np.ones(8, np.float32))
    y = b("LayerNorm", x, gamma, b.const(np.zeros(8, np.float32)), axes=(1,))
    graph.add_output(b("MatMul", y, b.const(np.ones((8, 4), np.float32))))
    assert places_of(graph) == []


def test_a_real_model() -> None:
    """A recogniser of text lines ends in a transformer."""
    model = "ppocrv4_rec_en"
    graph = openqnn.convert(model_path(model), input_shapes=shapes_of(model))
    real = prepared_for(graph, recipe_of(None, {}), HTP)
    feed = sample_inputs(model)
    smoothed, said = smooth_activations(real, [feed])
    assert len(said) >= 4
    assert_same(real, smoothed, [feed])
