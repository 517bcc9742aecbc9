"""8-bit tensors in another encoding: what is joined with others, resized, or goes into an activation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Encoding, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import run_htp
from tests.htp.test_simulation_fused import convolution, differing, fixed
from tests.htp.test_simulation_joined import tensor
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

SHAPE = (1, 16, 16, 32)
WINDOW = {"filter_size": (3, 3), "stride": (1, 1), "pad_amount": ((1, 1), (1, 1))}
Made = Callable[[Builder, Value, Value], Value]


def step(scale: float, offset: int) -> Encoding:
    return Encoding.per_tensor(scale, offset, 8)


OWN, ZERO, JOINED = step(0.0311, -100), step(0.0163, 0), step(0.0407, -90)


def layer(b: Builder, x: Value, encoding: Encoding = OWN) -> Value:
    return convolution(b, x, encoding, 32)


def swish(b: Builder, x: Value) -> Value:
    return fixed(b("ElementWiseMultiply", x, fixed(b("Sigmoid", x), step(1 / 255, 0))), step(0.0213, -15))


def largest(b: Builder, x: Value, encoding: Encoding) -> Value:
    return fixed(b("PoolMax2d", x, **WINDOW), encoding)


MADE: dict[str, Made] = {
    "layer": lambda b, x, z: layer(b, x),
    "sum": lambda b, x, z: fixed(b("ElementWiseAdd", x, z), OWN),
    "swish": lambda b, x, z: swish(b, layer(b, x)),
    "turned": lambda b, x, z: fixed(b("Transpose", layer(b, x), perm=(0, 2, 1, 3)), OWN),
    "joined": lambda b, x, z: fixed(
        b("Concat", layer(b, x), largest(b, z, JOINED), axis=3), step(0.0351, -110)
    ),
    "clipped": lambda b, x, z: fixed(b("Relu", layer(b, x, ZERO)), ZERO),
    "positive": lambda b, x, z: layer(b, x, step(0.0311, 0)),
    "largest": lambda b, x, z: largest(b, layer(b, x), OWN),
    "some": lambda b, x, z: fixed(
        b("StridedSlice", layer(b, x), ranges=((0, 1, 1), (0, 16, 1), (0, 16, 1), (0, 16, 1))), OWN
    ),
}


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_what_is_joined(name: str, shown: bool) -> None:
    """A third of the integers differ where these are taken from the tensor's own encoding."""
    graph = Graph("joined")
    b, x, z = Builder(graph), tensor(graph, "x", SHAPE, step(0.03, -110)), tensor(graph, "z", SHAPE, JOINED)
    y = MADE[name](b, x, z)
    out = fixed(b("Concat", y, z, axis=3), JOINED)
    assert not differing(graph, out, *([y] if shown else []))


@pytest.mark.parametrize("ratio", [0.302, 0.431, 0.613, 0.964, 1.27, 1.914, 2.37])
def test_changes_behind_layers(ratio: float) -> None:
    """All integers that a layer gives, in another encoding."""
    graph, rng = Graph("changed"), np.random.default_rng(0)
    b, x = Builder(graph), tensor(graph, "x", SHAPE, step(0.03, -110))
    clipped = fixed(b("Relu", layer(b, x, ZERO)), ZERO)
    y = b.convert(clipped, DType.UFIXED_8)
    y.encoding = step(ZERO.scale[0] / ratio, -30)
    graph.add_output(y)
    feed = {"x": rng.integers(0, 256, SHAPE).astype(np.uint8)}
    with LibraryWorker() as worker:
        (theirs,) = run_htp(worker, graph, [feed])[0].values()
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    assert np.ptp(theirs) > 60
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("out", [step(0.03, -100), step(0.0237, -80), step(0.0713, 0)])
@pytest.mark.parametrize(("mode", "size"), [("HALF_PIXEL", 16), ("HALF_PIXEL", 24), ("ASYMMETRIC", 16)])
def test_means_of_neighbours_are_rounded_before_they_change(mode: str, size: int, out: Encoding) -> None:
    graph = Graph("between")
    x = tensor(graph, "x", (1, 8, 8, 32), step(0.03, -100))
    shape = (1, size, size, 32)
    y = Builder(graph)("Resize", x, shape=shape, interpolation_mode="LINEAR", transformation_mode=mode)
    assert not differing(graph, fixed(y, out))


def test_means_of_neighbours_share_the_encoding() -> None:
    """A second rounding would take half of the accuracy that 8 bits have left."""
    graph, rng = Graph("sharing"), np.random.default_rng(0)
    x = graph.add_input("x", DType.FLOAT_32, (1, 8, 8, 32))
    b = Builder(graph)
    small = b("Tanh", x)
    large = b(
        "Resize", small, shape=(1, 16, 16, 32), interpolation_mode="LINEAR", transformation_mode="HALF_PIXEL"
    )
    graph.add_output(large)
    data = [{"x": rng.normal(0, 1, x.shape).astype(np.float32)} for _ in range(3)]
    made = openqnn.quantize(graph, data, act_bw=8, algorithms=())
    tanh, resized = made.nodes
    assert tanh.out.encoding == resized.out.encoding


GAPS: dict[str, tuple[int, int]] = {"gaps": (2, 2), "one gap": (1, 3), "no gaps": (1, 1)}
AROUND = step(0.0611, -130)


@pytest.mark.parametrize("act", ["Relu", "Prelu", "other Relu"])
@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("depthwise", [False, True])
def test_activations_behind_filters_with_gaps(depthwise: bool, gaps: str, act: str) -> None:
    """These get stored integers, but for Relu, and Relu does behind depthwise filters unless it clips by
    encoding. Prelu rounds a few of these otherwise; with the sum itself it were 29 %."""
    graph, rng = Graph("gaps"), np.random.default_rng(1)
    b, x = Builder(graph), tensor(graph, "x", SHAPE, step(0.03, -110))
    shape = (3, 3, 1, 32) if depthwise else (3, 3, 32, 32)
    scales = rng.uniform(0.3, 1.5, 32) * 2.5 / (74 * 74 * 0.03 * np.sqrt(np.prod(shape[:3])))
    w = Value("w", DType.SFIXED_8, shape, Encoding(tuple(scales), (0,) * 32, 8, 3, True))
    w.data = rng.integers(-127, 128, shape).astype(np.int8)
    apart = GAPS[gaps]
    op = "DepthWiseConv2d" if depthwise else "Conv2d"
    y = fixed(b(op, x, w, stride=(1, 1), pad_amount=tuple((d, d) for d in apart), dilation=apart), AROUND)
    if act == "Prelu":
        slope = Value("a", DType.UFIXED_8, (32,), step(0.002, 0), np.full(32, 100, np.uint8))
        z = fixed(b("Prelu", y, slope), step(0.0307, -60))
    else:
        z = fixed(b("Relu", y), AROUND if act == "Relu" else step(0.0307, 0))
    assert differing(graph, z) <= (0.05 * z.size if act == "Prelu" and gaps != "no gaps" else 0)


@pytest.mark.parametrize("zero", [0, -61])
def test_channels_times_a_number_each(zero: int) -> None:
    """As by filters of one tap: rounded at once, one in a hundred differs."""
    graph, rng = Graph("channels"), np.random.default_rng(0)
    x = tensor(graph, "x", SHAPE, step(0.0224, -84))
    gamma = Value("g", DType.UFIXED_8, (32,), step(0.0117, zero), rng.integers(0, 256, 32).astype(np.uint8))
    beta = Value("b", DType.SFIXED_32, (32,), Encoding.per_tensor(1e-4, 0, 32))
    beta.data = rng.integers(-8000, 8000, 32).astype(np.int32)
    y = fixed(Builder(graph)("Batchnorm", x, gamma, beta), step(0.025, -79))
    assert differing(graph, y) <= 0.004 * y.size
