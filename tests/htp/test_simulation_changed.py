"""8-bit tensors in another encoding: what is joined with others is computed in theirs, or changed to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Graph, Value
from openqnn.ops import Builder
from openqnn.qnn.isolated import Worker
from openqnn.runtime.cpu import CpuExecutable
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
    with Worker() as worker:
        (theirs,) = run_htp(worker, graph, [feed])[0].values()
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    assert np.ptp(theirs) > 60
    np.testing.assert_array_equal(ours, theirs)
