"""Weights whose encoding has its zero anywhere, as QNN's own tools choose it, are those that libQnnHtp takes.

It has signed weights of 8 bits around zero: channels with a weight that is beyond these are rounded.
"""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
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
# Type, steps in one of a byte, and shares of results that are within one step, and equal.
WIDTHS = {8: (DType.UFIXED_8, 1, 1.0, 0.97), 16: (DType.UFIXED_16, 257, 0.65, 0.6)}


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", WIDTHS)
def test_integers_are_those_of_the_library(width: int, name: str, offset: int) -> None:
    op, data, weights, axis, params = CASES[name]
    dtype, finer, within, equal = WIDTHS[width]
    rng = np.random.default_rng(-offset)
    graph = Graph("weights")
    x = graph.add_input("x", dtype, data)
    x.encoding = Encoding.per_tensor(0.02 / finer, -9 * finer, width)
    channels = weights[axis]
    own = rng.integers(max(0, -offset - 128), min(256, -offset + 128), weights)
    some = [slice(None)] * len(weights)
    some[axis] = slice(0, channels // 2)  # others stay within eight bits with a sign
    own[tuple(some)] = rng.integers(0, 256, own[tuple(some)].shape)
    w = Value("w", DType.UFIXED_8, weights, Encoding.per_tensor(0.01, offset, 8), data=own.astype(np.uint8))
    bias = Value("b", DType.SFIXED_32, (channels,), Encoding.per_tensor(FACTOR / finer, 0, 32))
    bias.data = (rng.integers(-9000, 9000, channels) * finer).astype(np.int32)
    spread = np.sqrt(own.size / channels) * 74 * (abs(offset + 127.5) + 74) * FACTOR * 3
    out = Encoding.per_tensor(spread / 127 / finer, -128 * finer, width)
    graph.add_output(Builder(graph)(op, x, w, bias, dtype=dtype, encoding=out, **params))
    feed = {x.name: rng.integers(0, 1 << width, data).astype(dtype.numpy)}
    with LibraryWorker() as worker:
        (theirs,) = run_htp(worker, graph, [feed])[0].values()
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    assert np.ptp(theirs) > 60 * finer
    apart = np.abs(ours.astype(int) - theirs)
    assert apart.max() <= finer  # one in a hundred of the weights above the largest byte is rounded otherwise
    assert (apart <= 1).mean() >= within
    assert (apart == 0).mean() >= equal
