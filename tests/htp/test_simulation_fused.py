"""What HTP does to several ops at once, and how it rounds: the very integers of libQnnHtp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from openqnn.ir import Array, DType, Encoding, Graph, Node, Value
from openqnn.ops import OPS, Builder
from openqnn.ops.builder import complete
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.fixed import spread
from tests.htp.simulation import NONE, ONE, run_htp
from tests.qnn.nets import needs_htp

pytestmark = needs_htp


def byte(low: float, high: float) -> Encoding:
    return spread(low, high, 8)


def convolution(b: Builder, x: Value, out: Encoding, channels: int = 48, **params: Any) -> Value:
    """Weights of 8 bits with a scale per channel, such that results fill the range that they are for."""
    rng = np.random.default_rng(7)
    depthwise = "stride" in params
    taps = (3, 3, 1) if depthwise else (1, 1, x.shape[-1])
    weights = rng.integers(-127, 128, (*taps, channels)).astype(np.int8)
    spread_out = 74 * 74 * np.sqrt(np.prod(taps))  # of the sums of products
    assert x.encoding is not None
    scale = rng.uniform(0.3, 1.5, channels) * 2.5 / spread_out / x.encoding.scale[0]
    bias = rng.integers(-3000, 3000, channels).astype(np.int32)
    zeros = (0,) * channels
    operands = [
        x,
        Value("w", DType.SFIXED_8, weights.shape, Encoding(tuple(scale), zeros, 8, 3, True), weights),
        Value(
            "b", DType.SFIXED_32, bias.shape,
            Encoding(tuple(scale * x.encoding.scale[0]), zeros, 32, 0, True), bias,
        ),
    ]  # fmt: skip
    if depthwise:
        y = b("DepthWiseConv2d", *operands, pad_amount=ONE, dilation=(1, 1), **params)
    else:
        y = b("Conv2d", *operands, stride=(1, 1), pad_amount=NONE)
    y.dtype, y.encoding = DType.UFIXED_8, out
    return y


def fixed(value: Value, encoding: Encoding) -> Value:
    value.dtype, value.encoding = DType.UFIXED_8, encoding
    return value


def image(shape: tuple[int, ...] = (1, 32, 32, 48)) -> tuple[Graph, Builder, Value]:
    graph = Graph("image")
    x = graph.add_input("x", DType.UFIXED_8, shape)
    x.encoding = byte(-3, 4)
    return graph, Builder(graph), x


def differing(graph: Graph, *outputs: Value, feeds: Sequence[dict[str, Array]] = ()) -> int:
    """How many stored integers are not those of libQnnHtp."""
    for value in outputs:
        graph.add_output(value)
    rng = np.random.default_rng(1)
    given = feeds or [{v.name: rng.integers(0, 256, v.shape).astype(np.uint8) for v in graph.inputs}]
    executable = CpuExecutable(graph, threads=1)
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, given)
    ours = [executable.run(feed) for feed in given]
    return sum(int((o[n] != t[n]).sum()) for o, t in zip(ours, theirs, strict=True) for n in t)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-0.375, 6), (-0.375, 0.7), (-0.375, 40), (-3, 3)],
    ids=["net", "narrow", "wide", "even"],
)
@pytest.mark.parametrize("strides", [None, (1, 1), (2, 1), (2, 2)], ids=str)
def test_hard_swish_behind_a_convolution(low: float, high: float, strides: tuple[int, int] | None) -> None:
    """It gets the sum cut off, but not that of kernels with strides."""
    graph, b, x = image()
    params: dict[str, Any] = {"stride": strides} if strides else {}
    made = convolution(b, x, byte(-8, 8), **params)
    assert differing(graph, fixed(b("HardSwish", made), byte(low, high))) == 0


@pytest.mark.parametrize("alpha", [(0.0, 0.3), (-0.4, 0.4), (0.5, 1.5)], ids=str)
def test_prelu_behind_a_convolution(alpha: tuple[float, float]) -> None:
    graph, b, x = image()
    made = convolution(b, x, byte(-8, 8))
    slopes = np.random.default_rng(3).integers(0, 256, 48).astype(np.uint8)
    constant = Value("alpha", DType.UFIXED_8, (48,), byte(*alpha), slopes)
    assert differing(graph, fixed(b("Prelu", made, constant), byte(-3, 7))) == 0


@pytest.mark.parametrize("out", [(0, 6), (-1, 6), (-8, 8)], ids=str)
def test_relu_behind_a_convolution(out: tuple[float, float]) -> None:
    """The last has the encoding of the convolution."""
    graph, b, x = image()
    made = convolution(b, x, byte(-8, 8))
    assert differing(graph, fixed(b("Relu", made), byte(*out))) == 0


def batchnorm(b: Builder, x: Value, out: Encoding) -> Value:
    rng, count = np.random.default_rng(7), x.shape[-1]
    weights, offsets = (rng.integers(0, 256, count).astype(np.uint8) for _ in range(2))
    operands = (("w", byte(-2, 2), weights), ("b", byte(-3, 3), offsets))
    constants = [Value(name, DType.UFIXED_8, (count,), e, data) for name, e, data in operands]
    return fixed(b("Batchnorm", x, *constants), out)


@pytest.mark.parametrize("op", ["HardSwish", "Prelu", "Relu"])
def test_activations_behind_a_batchnorm(op: str) -> None:
    """HTP computes it as a layer, which takes them in."""
    graph, b, x = image()
    made = batchnorm(b, x, byte(-8, 8))
    slopes = Value("alpha", DType.UFIXED_8, (48,), byte(0, 0.3), np.arange(48, dtype=np.uint8) * 5)
    y = b(op, made, slopes) if op == "Prelu" else b(op, made)
    assert differing(graph, fixed(y, byte(-1 if op == "Prelu" else 0, 7))) < 0.002 * made.size


def test_an_activation_does_not_get_a_sum_that_others_read() -> None:
    graph, b, x = image()
    made = convolution(b, x, byte(-8, 8))
    swish, bent = fixed(b("HardSwish", made), byte(-0.375, 6)), fixed(b("Tanh", made), byte(-1, 1))
    assert differing(graph, swish, bent) == 0


@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 2)], ids=str)
def test_depthwise_convolutions_with_strides(strides: tuple[int, int]) -> None:
    graph, b, x = image()
    assert differing(graph, convolution(b, x, byte(-5, 6), stride=strides)) == 0


@pytest.mark.parametrize("low", [0, -2.9])
@pytest.mark.parametrize("shape", [(1, 32, 32, 48), (1, 1, 1, 48)], ids=["equal", "gate"])
def test_products(low: float, shape: tuple[int, ...]) -> None:
    graph, b, x = image()
    y = graph.add_input("y", DType.UFIXED_8, shape)
    y.encoding = byte(low, 1)
    assert differing(graph, fixed(b("ElementWiseMultiply", x, y), byte(-5, 6))) == 0


def test_a_sum_whose_constant_is_half_way() -> None:
    """Such a constant is rounded down."""
    graph, b, x = image()
    y = graph.add_input("y", DType.UFIXED_8, x.shape)
    x.encoding, y.encoding = (Encoding.per_tensor(s, o, 8) for s, o in ((0.515625, -3), (0.5, 0)))
    assert differing(graph, fixed(b("ElementWiseAdd", x, y), Encoding.per_tensor(1.0, -100, 8))) == 0


@pytest.mark.parametrize("before", ["ElementWiseAdd", "ElementWiseMultiply", "Conv2d", "Relu", "Sigmoid"])
def test_nearest_neighbours_in_another_encoding(before: str) -> None:
    """HTP copies integers: those of sums and products it computes in the other encoding."""
    graph, b, x = image()
    if before in ("Conv2d", "Relu"):
        made = convolution(b, x, byte(-8, 8))
        made = fixed(b("Relu", made), byte(0, 6)) if before == "Relu" else made
    elif before == "Sigmoid":
        made = fixed(b("Sigmoid", x), byte(0, 1))
    else:
        y = graph.add_input("y", DType.UFIXED_8, x.shape)
        y.encoding = byte(-1, 1)
        made = fixed(b(before, x, y), byte(-4, 5))
    nearest = {"interpolation_mode": "NEAREST", "transformation_mode": "ASYMMETRIC", "nearest_mode": "FLOOR"}
    larger = Value("larger", DType.UFIXED_8, (1, 64, 64, 48), byte(-7, 11))
    graph.add(Node("Resize", "larger", [made], [larger], complete(OPS["Resize"], nearest, 4, "larger"), ""))
    assert differing(graph, larger) == 0


def test_means_behind_an_activation() -> None:
    graph, b, x = image((1, 20, 20, 1024))
    made = fixed(b("HardSwish", x), byte(-0.375, 4))
    mean = fixed(b("ReduceMean", made, axes=(1, 2), keep_dims=True), byte(-0.2, 1.1))
    rng = np.random.default_rng(2)
    drawn = [rng.normal(rng.uniform(80, 170, 1024), 20, x.shape) for _ in range(16)]
    assert differing(graph, mean, feeds=[{"x": np.clip(d, 0, 255).astype(np.uint8)} for d in drawn]) == 0


@pytest.mark.parametrize("op", ["Relu", "HardSwish"])
@pytest.mark.parametrize("shape", [(1, 32, 48), (32, 48), (1, 16, 96)], ids=str)
def test_activation_is_taken_into_the_layer_before_a_reshape_of_leading_axes(
    op: str, shape: tuple[int, ...]
) -> None:
    """HTP has four axes, to which there is no such Reshape. Where other axes change, the layer is rounded."""
    graph, b, x = image((1, 1, 32, 48))
    z = fixed(b("Reshape", convolution(b, x, byte(-4, 5)), shape=shape), byte(-4, 5))
    assert not differing(graph, fixed(b(op, z), byte(0, 2.6)))


@pytest.mark.parametrize("before", [(1, 4, 8, 48), (8, 1, 4, 48), (1, 1, 32, 48), (1, 1, 31, 48)], ids=str)
@pytest.mark.parametrize("out", [(-4, 5), (-1, 2.6)], ids=str)
@pytest.mark.parametrize("shown", [False, True])
def test_relu_around_a_zero_goes_by_any_reshape(
    before: tuple[int, ...], out: tuple[float, float], shown: bool
) -> None:
    """Into the layer, or right behind it where data are in one row of several times 8 places."""
    graph, b, x = image(before)
    made = convolution(b, x, byte(-4, 5))
    z = fixed(b("Reshape", made, shape=(x.size // 48, 6, 8)), byte(-4, 5))
    y = fixed(b("Relu", z), byte(*out))
    assert not differing(graph, y, *([made, z] if shown else []))
