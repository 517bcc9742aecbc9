"""Weights whose encoding has its zero anywhere, as QNN's own tools choose it, are those that libQnnHtp takes.

It has signed weights of 8 bits around zero: channels with a weight that is beyond these are rounded.
"""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Graph, Value
from openqnn.ops import Builder
from openqnn.qnn.isolated import Worker
from openqnn.runtime.cpu import CpuExecutable
from tests.htp.simulation import run_htp
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

PLAIN = {"stride": (1, 1), "pad_amount": ((0, 0), (0, 0)), "dilation": (1, 1)}
CASES = {  # op, shapes of data and weights, the weights' axis of output channels, parameters
    "points": ("Conv2d", (1, 24, 24, 32), (1, 1, 32, 24), 3, PLAIN),
    "windows": ("Conv2d", (1, 24, 24, 3), (3, 3, 3, 16), 3, PLAIN),
    "depthwise": ("DepthWiseConv2d", (1, 24, 24, 24), (3, 3, 1, 24), 3, PLAIN),
    "dense": ("FullyConnected", (64, 48), (40, 48), 0, {}),
}
OFFSETS = -61, -116, -149, -200
FACTOR = 0.01 * 0.02


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", CASES)
def test_bytes_are_those_of_the_library(name: str, offset: int) -> None:
    op, data, weights, axis, params = CASES[name]
    rng = np.random.default_rng(-offset)
    graph = Graph("weights")
    x = graph.add_input("x", DType.UFIXED_8, data)
    x.encoding = Encoding.per_tensor(0.02, -9, 8)
    channels = weights[axis]
    own = rng.integers(max(0, -offset - 128), min(256, -offset + 128), weights)
    some = [slice(None)] * len(weights)
    some[axis] = slice(0, channels // 2)  # others stay within eight bits with a sign
    own[tuple(some)] = rng.integers(0, 256, own[tuple(some)].shape)
    w = Value("w", DType.UFIXED_8, weights, Encoding.per_tensor(0.01, offset, 8), data=own.astype(np.uint8))
    bias = Value("b", DType.SFIXED_32, (channels,), Encoding.per_tensor(FACTOR, 0, 32))
    bias.data = rng.integers(-9000, 9000, channels).astype(np.int32)
    spread = np.sqrt(own.size / channels) * 74 * (abs(offset + 127.5) + 74) * FACTOR * 3
    out = Encoding.per_tensor(spread / 127, -128, 8)
    graph.add_output(Builder(graph)(op, x, w, bias, dtype=DType.UFIXED_8, encoding=out, **params))
    feed = {x.name: rng.integers(0, 256, data).astype(np.uint8)}
    with Worker() as worker:
        (theirs,) = run_htp(worker, graph, [feed])[0].values()
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    assert np.ptp(theirs) > 60
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert (ours == theirs).mean() >= 0.97
