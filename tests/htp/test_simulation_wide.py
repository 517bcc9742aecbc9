"""Sums of products of 16-bit data: how many bits libQnnHtp drops, and which filters it computes wrong."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.ir import Array, DType, Encoding, Given, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.metrics import sqnr
from openqnn.targets.htp.kernels.words.curves import HIGHEST
from openqnn.targets.htp.kernels.words.products import goes_astray, taps
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

ZERO, MIDDLE = -31561, -32768
CASES = [  # op, data, filters, stride, bits of weights
    ("Conv2d", (1, 1, 600, 8), (1, 1, 8, 16), 1, 16),
    ("Conv2d", (1, 1, 600, 8), (1, 1, 8, 16), 1, 8),
    ("Conv2d", (1, 16, 40, 8), (3, 3, 8, 16), 1, 16),
    ("Conv2d", (1, 1, 600, 4), (1, 16, 4, 16), 2, 16),
    ("Conv2d", (1, 1, 300, 4), (1, 64, 4, 16), 1, 16),
    ("Conv2d", (1, 1, 300, 4), (1, 40, 4, 16), 1, 8),
    ("DepthWiseConv2d", (1, 16, 40, 32), (3, 3, 1, 32), 1, 16),
    ("DepthWiseConv2d", (1, 16, 40, 32), (3, 3, 1, 32), 1, 8),
    ("DepthWiseConv2d", (1, 16, 40, 32), (3, 3, 1, 32), 2, 16),
    ("DepthWiseConv2d", (1, 16, 40, 16), (3, 3, 1, 32), 1, 8),
    ("DepthWiseConv2d", (1, 16, 40, 16), (3, 3, 1, 32), 1, 16),
    ("FullyConnected", (64, 32), (16, 32), 0, 16),
    ("MatMul", (64, 32), (32, 16), 0, 16),
]
ROUNDS_ONCE = "DepthWiseConv2d", (1, 16, 40, 32), (3, 3, 1, 32), 2, 8
ASTRAY = [
    ("Conv2d", (1, 1, 200, 4), (1, 9, 4, 16), 1, 16),
    ("Conv2d", (1, 40, 40, 4), (9, 3, 4, 16), 1, 16),
    ("Conv2d", (1, 1, 300, 4), (1, 17, 4, 16), 2, 16),
    ("DepthWiseConv2d", (1, 1, 300, 32), (1, 16, 1, 32), 2, 16),
]


def layer(op: str, shape: tuple[int, ...], filters: tuple[int, ...], stride: int, bits: int) -> Graph:
    """Filters of small integers, and steps of the output so fine that a dropped bit can be seen."""
    rng, graph = np.random.default_rng(3), Graph("layer")
    x = graph.add_input("x", DType.UFIXED_16, shape)
    x.encoding = Encoding.per_tensor(1.0, ZERO, 16)
    kind = DType.SFIXED_16 if bits == 16 else DType.SFIXED_8
    data = rng.integers(-3000, 3000, filters) if bits == 16 else rng.integers(-100, 100, filters)
    axis = 0 if op == "FullyConnected" else len(filters) - 1
    count = filters[axis]
    scales = (
        Encoding.per_tensor(1.0, 0, bits)
        if not stride
        else Encoding((1.0,) * count, (0,) * count, bits, 3, True)
    )
    operands = [x, Value("w", kind, filters, scales, data.astype(kind.numpy))]
    params: dict[str, Any] = {}
    if stride:
        own = Encoding((1.0,) * count, (0,) * count, 32, 0, True)
        bias = rng.integers(-(10**7), 10**7, count).astype(np.int32)
        operands.append(Value("b", DType.SFIXED_32, (count,), own, bias))
        along = (stride if shape[1] > 1 else 1, stride)
        params = {"stride": along, "pad_amount": ((0, 0), (0, 0)), "dilation": (1, 1)}
    y = Builder(graph)(op, *operands, **params)
    largest = float(np.abs(data).sum() / count) * 40000
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(largest / 32000 / 4, MIDDLE, 16)
    graph.add_output(y)
    return graph


def both(graph: Graph) -> tuple[Array, Array]:
    """Stored integers of ours and of the library, where neither is at an end."""
    x = np.random.default_rng(4).integers(0, 1 << 16, graph.inputs[0].shape).astype(np.uint16)
    found: list[Array] = []
    for backend in ("cpu", "htp"):
        with openqnn.Session(graph, backend=backend) as session:
            (y,) = session.run({"x": x}, native=True).values()
        found.append(y.astype(np.int64).ravel())
    inside = np.all([(y > 0) & (y < 65535) for y in found], axis=0)
    assert inside.mean() > 0.3
    return found[0][inside], found[1][inside]


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_sums_are_those_of_the_library(case: tuple[str, tuple[int, ...], tuple[int, ...], int, int]) -> None:
    graph = layer(*case)
    assert case[-1] == 8 or not goes_astray(graph.nodes[0])
    ours, theirs = both(graph)
    assert np.mean(np.abs(ours - theirs) <= 1) >= 0.995
    assert np.mean(ours == theirs) >= 0.9
    assert abs(np.mean(ours - theirs)) < 0.05, "dropped bits make sums smaller on average"


def test_the_kernel_for_strides_of_two_drops_nothing() -> None:
    ours, theirs = both(layer(*ROUNDS_ONCE))
    assert np.mean(np.abs(ours - theirs) <= 1) >= 0.995


@pytest.mark.parametrize("least", [0.3, 0.01, 0.002])
def test_channels_that_are_far_apart_have_the_other_kernel(least: float) -> None:
    graph = layer("DepthWiseConv2d", (1, 16, 40, 64), (3, 3, 1, 64), 2, 8)
    weights, bias, y = graph.nodes[0].x(1), graph.nodes[0].x(2), graph.outputs[0]
    assert weights.encoding is not None and bias.encoding is not None and y.encoding is not None
    scales = (0.3,) * 63 + (least,)
    weights.encoding = replace(weights.encoding, scale=scales)
    bias.encoding = replace(bias.encoding, scale=scales)
    y.encoding = replace(y.encoding, scale=(y.encoding.scale[0] * 0.3,))
    ours, theirs = both(graph)
    assert np.mean(np.abs(ours - theirs) <= 1) >= 0.995


@pytest.mark.parametrize("case", ASTRAY, ids=lambda c: "-".join(map(str, c)))
def test_filters_that_the_library_computes_wrong(
    case: tuple[str, tuple[int, ...], tuple[int, ...], int, int],
) -> None:
    graph = layer(*case)
    assert goes_astray(graph.nodes[0])
    ours, theirs = both(graph)
    assert np.abs(ours - theirs).max() > 500, "right by now: quantize() need not narrow them any more"


def test_weights_end_at_two_signed_bytes() -> None:
    graph = Graph("end")
    x = graph.add_input("x", DType.UFIXED_16, (1, 1, 64, 1))
    x.encoding = Encoding.per_tensor(1.0, MIDDLE, 16)
    scales = Encoding((1.0,) * 3, (0,) * 3, 16, 3, True)
    w = Value(
        "w",
        DType.SFIXED_16,
        (1, 1, 1, 3),
        scales,
        np.array([HIGHEST, 32767, -32768], np.int16).reshape(1, 1, 1, 3),
    )
    y = Builder(graph)("Conv2d", x, w, stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(32768.0, MIDDLE, 16)
    graph.add_output(y)
    stored = np.linspace(0, 65535, 64).astype(np.uint16).reshape(1, 1, 64, 1)
    for backend in ("cpu", "htp"):
        with openqnn.Session(graph, backend=backend) as session:
            (found,) = session.run({"x": stored}, native=True).values()
        first, second, third = (found[0, 0, :, i].astype(int) for i in range(3))
        np.testing.assert_array_equal(first, second)
        assert np.abs(first - 32768 + (third - 32768) * HIGHEST / 32768).max() < 4


def add_layer(graph: Graph, x: Value, weights: Array) -> None:
    """A convolution of real numbers, whose result is the graph's."""
    w = Value("w", DType.FLOAT_32, weights.shape, data=weights)
    graph.add_output(Builder(graph)("Conv2d", x, w, stride=(1, 1), pad_amount=((0, 0), (0, 0))))


@pytest.mark.parametrize(("width", "bits"), [(9, 8), (8, 16)])
def test_the_quantizer_leaves_such_filters_8_bits(width: int, bits: int) -> None:
    graph = Graph("wide")
    x = graph.add_input("x", DType.FLOAT_32, (1, 1, 128, 4))
    data = np.random.default_rng(0).standard_normal((1, width, 4, 8)).astype(np.float32)
    add_layer(graph, x, data)
    assert taps(graph.nodes[0]) == width
    samples = [np.random.default_rng(i).standard_normal(x.shape).astype(np.float32) for i in range(2)]
    choose = lambda: openqnn.quantize(graph, samples, act_bw=16, weight_bw=16, algorithms=())
    if bits == 8:
        with pytest.warns(openqnn.OpenQnnWarning, match="8 bits, not 16: 'w'.*9 to 63 taps"):
            fixed = choose()
    else:
        fixed = choose()
    (weights,) = [v for v in fixed.constants() if v.name == "w"]
    assert weights.encoding is not None and weights.encoding.bitwidth == bits
    assert weights.data is not None and np.abs(weights.data.astype(int)).max() <= HIGHEST
    results: list[Array] = []
    for made, backend in ((graph, "cpu"), (fixed, "htp")):
        with openqnn.Session(made, backend=backend) as session:
            results += session.run({"x": samples[0]}).values()
    assert sqnr(*results) > (35 if bits == 8 else 65)


@pytest.mark.parametrize("bits", [8, 16])
def test_scales_too_fine_for_the_output_give_huge_numbers(bits: int) -> None:
    """From 2^-24 of a step of the output for a product, or 2^-32: 2^32 times as much, and so for both."""
    exponents = np.array([*range(14, 23), *(23.9999, 24.0001, 31.9999, 32.0001), *range(33, 48, 3)])
    scales, count = 2.0**-exponents, len(exponents)
    graph, rng = Graph("fine"), np.random.default_rng(2)
    x = graph.add_input("x", DType.UFIXED_16, (1, 1, 64, 60))
    x.encoding = Encoding.per_tensor(2e-4, ZERO, 16)
    kind = DType.SFIXED_16 if bits == 16 else DType.SFIXED_8
    data = rng.integers(-127, 128, (1, 1, 60, count)).astype(kind.numpy)
    w = Value("w", kind, data.shape, Encoding(tuple(scales), (0,) * count, bits, 3, True), data)
    y = Builder(graph)("Conv2d", x, w, stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(2e-4, MIDDLE, 16)
    graph.add_output(y)
    stored = rng.integers(0, 1 << 16, x.shape).astype(np.uint16)
    found: list[Array] = []
    for backend in ("cpu", "htp"):
        with openqnn.Session(graph, backend=backend) as session:
            found += session.run({"x": stored}, native=True).values()
    ours, theirs = (f.reshape(-1, count).astype(np.int64) for f in found)
    huge = exponents > (32 if bits == 16 else 24)
    assert (np.abs(theirs - 32768).max(0) > 30)[exponents > 22].tolist() == huge[exponents > 22].tolist()
    assert np.mean(np.abs(ours - theirs) <= 1) >= 0.995


@pytest.mark.parametrize("width", [8, 16])
def test_tiny_weights_stay_tiny(width: int) -> None:
    """Channels that pruning left next to nothing of, which the quantizer gives no scale that is too fine."""
    rng, graph = np.random.default_rng(0), Graph("pruned")
    x = graph.add_input("x", DType.FLOAT_32, (1, 1, 64, 16))
    data = rng.standard_normal((1, 1, 16, 8)).astype(np.float32)
    data[..., ::2] *= 1e-9
    add_layer(graph, x, data)
    samples = [rng.standard_normal(x.shape).astype(np.float32) for _ in range(2)]
    fixed = openqnn.quantize(graph, samples, act_bw=16, weight_bw=width)
    with openqnn.Session(fixed, backend="htp") as session:
        (found,) = session.run({"x": samples[0]}).values()
    assert np.abs(found[..., ::2]).max() < 0.01 < np.abs(found[..., 1::2]).min(axis=-1).mean()


def activation(op: str, bits: int) -> Graph:
    """All stored integers through an op, or sums that reach beyond the range of the layer before it.

    That has weights of so many bits; with none there is no layer."""
    rng, graph, channels = np.random.default_rng(5), Graph("activation"), 32
    shape = (1, 1, 4096, 16) if bits else (1, 64, 1024, 1)
    b, x = Builder(graph), graph.add_input("x", DType.UFIXED_16, shape)
    x.encoding = Encoding.per_tensor(1e-4, ZERO, 16)
    if bits:
        most = (1 << bits - 1) - 1
        scales = Encoding((2.54 / most,) * channels, (0,) * channels, bits, 3, True)
        kind = DType.SFIXED_16 if bits == 16 else DType.SFIXED_8
        data = rng.integers(-most, most + 1, (1, 1, 16, channels)).astype(kind.numpy)
        w = Value("w", kind, data.shape, scales, data)
        x = b("Conv2d", x, w, stride=(1, 1), pad_amount=((0, 0), (0, 0)))
        x.dtype, x.encoding = DType.UFIXED_16, Encoding.per_tensor(2e-4, MIDDLE, 16)
    slopes = Value(
        "slopes", DType.UFIXED_16, (x.shape[-1],), Encoding.per_tensor(0.8 / 65535, -16000, 16),
        rng.integers(0, 65536, x.shape[-1]).astype(np.uint16),
    )  # fmt: skip
    y = b(op, x, slopes) if op == "Prelu" else b(op, x)
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(1.3e-4, -9000, 16)
    graph.add_output(y)
    return graph


@pytest.mark.parametrize(("op", "bits"), [("Prelu", 0), *product(("Prelu", "HardSwish"), (8, 16))])
def test_activations(op: str, bits: int) -> None:
    """Behind weights of 8 bits they get the sum, and cut what comes out of it to steps; behind 16 they get
    stored integers, as they do without a layer."""
    ours, theirs = both(activation(op, bits))
    assert np.mean(np.abs(ours - theirs) <= 1) >= 0.999
    assert abs(np.mean(ours - theirs)) < 0.05, "rounded instead of cut, results would be half a step larger"


def clip(joined: bool) -> Graph:
    """A HardSigmoid in single ops; `joined` with larger values behind it."""
    graph = Graph("clip")
    b, x = Builder(graph), graph.add_input("x", DType.FLOAT_32, (1, 8, 8, 16))
    share = b.clip(b.add(b.mul(x, 0.2), 0.5), 0.0, 1.0)
    graph.add_output(b.concat([share, b.mul(x, 3.0)], 3) if joined else share)
    return graph


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("width", [8, 16])
def test_a_clip_is_left_to_the_encoding(width: int, joined: bool) -> None:
    """libQnnHtp leaves out ReluMinMax behind what computes: with headroom above 1.0 it would give more."""
    graph = clip(joined)
    samples = [np.random.default_rng(i).normal(0, 3, (1, 8, 8, 16)).astype(np.float32) for i in range(4)]
    fixed = openqnn.quantize(graph, samples[:3], act_bw=width)
    results: list[Array] = []
    for made, backend in ((graph, "cpu"), (fixed, "cpu"), (fixed, "htp")):
        with openqnn.Session(made, backend=backend) as session:
            results += session.run({"x": samples[3] * 2}).values()
    real, ours, theirs = (r[..., :16] for r in results)
    step = (3 * 2 if joined else 1) * 12 / ((1 << width) - 1)
    assert np.abs(real - theirs).max() < 4 * step
    assert np.abs(ours - theirs).max() < 2 * step


def test_a_clip_that_an_encoding_undoes_is_talked_about() -> None:
    graph = clip(joined=False)
    (share,) = graph.outputs
    wide = Given("override", 16, encoding=Encoding.per_tensor(4 / 65535, 0, 16))
    samples = [np.random.default_rng(0).normal(0, 3, (1, 8, 8, 16)).astype(np.float32)]
    with pytest.warns(openqnn.OpenQnnWarning, match=r"clips 1 nodes .* \[0, 1\], encoded \[0, 4\]"):
        openqnn.quantize(graph, samples, act_bw=16, given={share.name: wide})
