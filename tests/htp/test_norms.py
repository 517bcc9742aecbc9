"""Norms by length: HTP cuts results to whole steps, which the simulation follows and beta makes good for."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Encoding, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.metrics import sqnr
from tests.htp.test_simulation_fused import byte, differing, fixed
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

ROWS = 64


@pytest.mark.parametrize(("count", "step", "out"), [(96, 0.033, 0.05), (64, 0.1, 0.03), (512, 0.02, 0.04)])
def test_rms_norms_cut_to_whole_steps(count: int, step: float, out: float) -> None:
    rng, graph = np.random.default_rng(count), Graph("norm")
    x = graph.add_input("x", DType.UFIXED_8, (1, ROWS, count))
    x.encoding = Encoding.per_tensor(step, -120, 8)
    gamma = Value(
        "gamma", DType.UFIXED_8, (count,), byte(0, 2), rng.integers(60, 256, count).astype(np.uint8)
    )
    shifts = rng.integers(-1700, 1700, count).astype(np.int32)
    beta = Value("beta", DType.SFIXED_32, (count,), Encoding.per_tensor(1e-4, 0, 32), shifts)
    y = fixed(
        Builder(graph)("RmsNorm", x, gamma, beta, axes=(2,), epsilon=1e-6), Encoding.per_tensor(out, -125, 8)
    )
    drawn = rng.normal(0, 1, x.shape) * rng.uniform(8, 50, (1, ROWS, 1)) + 120
    feed = {"x": np.clip(drawn, 0, 255).astype(np.uint8)}
    assert differing(graph, y, feeds=[feed]) <= 0.025 * y.size


@pytest.mark.parametrize(("count", "out"), [(96, 0.01), (48, 0.0045)])
def test_l2_norms_cut_towards_zero(count: int, out: float) -> None:
    rng, graph = np.random.default_rng(count), Graph("norm")
    x = graph.add_input("x", DType.UFIXED_8, (1, ROWS, count))
    x.encoding = Encoding.per_tensor(0.03, -120, 8)
    y = fixed(Builder(graph)("L2Norm", x, axis=2, epsilon=1e-12), Encoding.per_tensor(out, -128, 8))
    feed = {"x": np.clip(rng.normal(120, 30, x.shape), 0, 255).astype(np.uint8)}
    assert differing(graph, y, feeds=[feed]) <= 0.03 * y.size


def test_what_an_rms_norm_cuts_off_is_made_good_for() -> None:
    """The mean of the errors was -0.45 steps."""
    rng, graph, count = np.random.default_rng(1), Graph("norm"), 96
    x = graph.add_input("x", DType.FLOAT_32, (1, ROWS, count))
    b = Builder(graph, "test")
    gamma = b.const(rng.uniform(0.4, 2, count).astype(np.float32))
    graph.add_output(b("RmsNorm", x, gamma, b.const(np.zeros(count, np.float32)), axes=(2,), epsilon=1e-6))
    data = [{"x": rng.normal(0, 1, x.shape).astype(np.float32)} for _ in range(4)]
    made = openqnn.quantize(graph, data, act_bw=8, algorithms=())
    with openqnn.Session(graph) as real, openqnn.Session(made, backend="htp") as htp:
        (want,), (got,) = real.run(data[0]).values(), htp.run(data[0]).values()
    coded = made.outputs[0].encoding
    assert coded is not None
    assert abs(float(np.mean(got - want))) < 0.1 * coded.scale[0]


@pytest.mark.parametrize("shape", [(1, 24, 4, 24), (24, 4, 24)])
def test_rms_norms_of_heads_are_those_of_their_own_rows(shape: tuple[int, ...]) -> None:
    """With several axes in front of the last, HTP gave other rows: 5 dB in floats, and -9 in bytes."""
    rng, graph = np.random.default_rng(1), Graph("norm")
    x = graph.add_input("x", DType.FLOAT_32, shape)
    b, count = Builder(graph, "test"), shape[-1]
    gamma, beta = (b.const(a.astype(np.float32)) for a in (rng.uniform(0.4, 2, count), np.zeros(count)))
    graph.add_output(b("RmsNorm", x, gamma, beta, axes=(len(shape) - 1,), epsilon=1e-6))
    data = [{"x": rng.normal(0, 1, shape).astype(np.float32)} for _ in range(4)]
    fixed_graph = openqnn.quantize(graph, data, act_bw=8)
    with openqnn.Session(graph) as real, openqnn.Session(fixed_graph, "htp") as htp:
        (want,), (got,) = real.run(data[0]).values(), htp.run(data[0]).values()
    assert sqnr(want, got) > 30
    with openqnn.Session(graph, "htp") as half:
        (got,) = half.run(data[0]).values()
    assert sqnr(want, got) > 60
