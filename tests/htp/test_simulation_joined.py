"""Ops of transformers in 8 bits, and small layers in 16: the integers of libQnnHtp."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import Array, DType, Encoding, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from tests.htp.fixed import spread
from tests.htp.test_simulation_fused import byte, convolution, differing, fixed, image
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

ALL = np.arange(256, dtype=np.uint8).reshape(1, 4, 64, 1)


def tensor(graph: Graph, name: str, shape: tuple[int, ...], encoding: Encoding) -> Value:
    made = graph.add_input(name, DType.UFIXED_8, shape)
    made.encoding = encoding
    return made


def constant(name: str, dtype: DType, encoding: Encoding, data: Array) -> Value:
    return Value(name, dtype, data.shape, encoding, data.astype(dtype.numpy))


@pytest.mark.parametrize("gate_first", [False, True])
@pytest.mark.parametrize("top", [0.5, 1.0, 2.0])
def test_numbers_times_their_own_sigmoid_are_rounded_once(gate_first: bool, top: float) -> None:
    graph = Graph("swish")
    b, x = Builder(graph), tensor(graph, "x", ALL.shape, byte(-5, 9))
    gate = fixed(b("Sigmoid", x), byte(0, top))
    y = fixed(b("ElementWiseMultiply", *((gate, x) if gate_first else (x, gate))), byte(-0.3, 4))
    assert not differing(graph, y, feeds=[{"x": ALL}])


def test_another_sigmoid_is_rounded_before_it_multiplies() -> None:
    graph = Graph("gate")
    b, x = Builder(graph), tensor(graph, "x", ALL.shape, byte(-5, 9))
    flat = fixed(b("Reshape", x, shape=(4, 64)), byte(-5, 9))
    gate = fixed(b("Reshape", fixed(b("Sigmoid", flat), byte(0, 1)), shape=ALL.shape), byte(0, 1))
    assert not differing(graph, fixed(b("ElementWiseMultiply", x, gate), byte(-0.3, 4)), feeds=[{"x": ALL}])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("inner", [15, 40, 120])
@pytest.mark.parametrize(("zero", "share"), [(-128, 0.0), (-114, 0.07)])
def test_products_of_two_matrices(inner: int, transposed: bool, zero: int, share: float) -> None:
    """Columns with a number that is no signed byte are rounded to such, here and there to another one."""
    graph = Graph("matrices")
    x = tensor(graph, "x", (1, 4, 40, inner), byte(-1, 0.9))
    shape = (1, 4, 48, inner) if transposed else (1, 4, inner, 48)
    y = tensor(graph, "y", shape, Encoding.per_tensor(0.0325, zero, 8))
    made = Builder(graph)("MatMul", x, y, transpose_in1=transposed)
    assert differing(graph, fixed(made, byte(-6, 5.5))) <= share * made.size


def normed(count: int, step: float, gamma: Encoding, out: Encoding) -> tuple[Graph, Value, dict[str, Array]]:
    rng, graph, rows = np.random.default_rng(count), Graph("norm"), 256
    x = tensor(graph, "x", (1, rows, count), Encoding.per_tensor(step, -100, 8))
    beta = Encoding.per_tensor(1.7123e-4, 0, 32)
    operands = (
        constant("gamma", DType.UFIXED_8, gamma, rng.integers(0, 256, count)),
        constant("beta", DType.SFIXED_32, beta, rng.integers(-2000, 2000, count)),
    )
    y = fixed(Builder(graph)("LayerNorm", x, *operands, axes=(2,), epsilon=1e-5), out)
    spreads, means = rng.uniform(8, 60, (1, rows, 1)), rng.uniform(90, 160, (1, rows, 1))
    drawn = np.clip(rng.uniform(-1.7, 1.7, x.shape) * spreads + means, 0, 255)
    return graph, y, {"x": drawn.astype(np.uint8)}


@pytest.mark.parametrize(
    ("count", "step", "scale", "out"),
    [(120, 0.03, 0.00575, 0.0213), (256, 0.03, 0.004, 0.017), (64, 0.3, 0.01, 0.02)],
)
def test_layer_norms(count: int, step: float, scale: float, out: float) -> None:
    gamma, result = Encoding.per_tensor(scale, -85, 8), Encoding.per_tensor(out, -100, 8)
    graph, y, feed = normed(count, step, gamma, result)
    assert differing(graph, y, feeds=[feed]) <= 0.002 * y.size


def test_layer_norms_behind_a_convolution() -> None:
    """There the channels come first in the simulation, and the integers are those of the library, too."""
    graph, b, x = image((1, 8, 8, 48))
    made = convolution(b, x, byte(-6, 6), 96)
    rng = np.random.default_rng(5)
    operands = (
        constant("gamma", DType.UFIXED_8, byte(0.3, 2), rng.integers(0, 256, 96)),
        constant("beta", DType.SFIXED_32, Encoding.per_tensor(1e-4, 0, 32), rng.integers(-5000, 5000, 96)),
    )
    rows = fixed(b("Reshape", made, shape=(1, 64, 96)), byte(-6, 6))
    y = fixed(b("LayerNorm", rows, *operands, axes=(2,), epsilon=1e-5), byte(-4, 4))
    assert differing(graph, y) <= 0.002 * y.size


def test_beta_is_rounded_for_itself() -> None:
    """So one step of the output is the least that it can do: many results are not the rounded real ones."""
    graph, y, feed = normed(
        120, 0.03, Encoding.per_tensor(0.00575, -85, 8), Encoding.per_tensor(0.0213, -100, 8)
    )
    graph.add_output(y)
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    x = (feed["x"].astype(np.float64) - 100) * 0.03
    left = x - x.mean(-1, keepdims=True)
    gamma, beta = (
        v.encoding.dequantize(v.data) for v in graph.constants() if v.encoding and v.data is not None
    )
    real = left / np.sqrt(np.square(left).mean(-1, keepdims=True) + 1e-5) * gamma + beta
    differ = np.mean(np.clip(np.rint(real / 0.0213 + 100), 0, 255) != ours)
    assert 0.1 < differ < 0.5


@pytest.mark.parametrize("beta", [1.0, 0.6])
@pytest.mark.parametrize("step", [0.01, 0.048, 0.19, 0.293])
def test_powers_of_softmax_have_a_slope_of_8_bits(step: float, beta: float) -> None:
    graph = Graph("softmax")
    x = tensor(graph, "x", (1, 1, 500, 40), Encoding.per_tensor(step, -130, 8))
    y = fixed(Builder(graph)("Softmax", x, axis=3, beta=beta), byte(0, 1))
    drawn = np.clip(np.random.default_rng(0).normal(128, 20, x.shape), 0, 255).astype(np.uint8)
    assert differing(graph, y, feeds=[{"x": drawn}]) <= 0.004 * y.size


@pytest.mark.parametrize(("count", "share"), [(2, 0.005), (4, 0.03), (16, 0.01), (17, 0.003)])
def test_powers_of_few_numbers_are_not_cut(count: int, share: float) -> None:
    """With a slope of 8 bits a fifth of them would differ."""
    graph = Graph("few")
    x = tensor(graph, "x", (1, 1, 500, count), Encoding.per_tensor(0.048, -130, 8))
    y = fixed(Builder(graph)("Softmax", x, axis=3), byte(0, 1))
    drawn = np.clip(np.random.default_rng(0).normal(128, 20, x.shape), 0, 255).astype(np.uint8)
    assert differing(graph, y, feeds=[{"x": drawn}]) <= share * y.size


def test_slopes_of_gates_half_way_between_two() -> None:
    """A channel of ppocrv4_rec_en: its slope is a half in float32, by a sixth that is a little too large."""
    graph, rng = Graph("half"), np.random.default_rng(0)
    step, weight = 0.0002660068308971092, 0.3402175002210722
    x = tensor(graph, "x", (1, 64, 64, 64), Encoding.per_tensor(step, -7, 8))
    data = rng.integers(-60, 60, (1, 1, 64, 2))
    scales = Encoding((weight, 1.7452452652097687), (0, 0), 8, 3, True)
    w = constant("w", DType.SFIXED_8, scales, data)
    made = Builder(graph)("Conv2d", x, w, stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    y = fixed(made, Encoding.per_tensor(0.07060184852749693, -117, 8))
    z = fixed(Builder(graph)("HardSwish", y), Encoding.per_tensor(0.03978173499013864, -9, 8))
    assert not differing(graph, z)


@pytest.mark.parametrize("inner", [60, 240])
def test_small_layers_of_16_bits_add_every_bit(inner: int) -> None:
    """One unit of a sum is a step of the output: whatever is cut wrong is seen."""
    graph, rng, channels = Graph("small"), np.random.default_rng(inner), 48
    x = graph.add_input("x", DType.UFIXED_16, (1, 1, 128, inner))
    x.encoding = spread(-1.0, 2.0, 16)
    data = rng.integers(-127, 128, (1, 1, inner, channels))
    scales = Encoding((0.01,) * channels, (0,) * channels, 8, 3, True)
    w = constant("w", DType.SFIXED_8, scales, data)
    y = Builder(graph)("Conv2d", x, w, stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(x.encoding.scale[0] * 0.01 * 256, -32768, 16)
    stored = rng.integers(0, 1 << 16, x.shape).astype(np.uint16)
    assert not differing(graph, y, feeds=[{"x": stored}])


def affine(b: Builder, x: Value, factors: tuple[int, ...], addends: tuple[int, ...]) -> Value:
    rng = np.random.default_rng(11)
    factor = constant("factor", DType.UFIXED_8, byte(0, 1.85), rng.integers(30, 256, factors))
    addend = constant("addend", DType.UFIXED_8, byte(-0.5, 0.6), rng.integers(0, 256, addends))
    product = fixed(b("ElementWiseMultiply", x, factor), byte(-5.4, 5.2))
    return fixed(b("ElementWiseAdd", product, addend), byte(-5.3, 5.3))


@pytest.mark.parametrize("behind_a_convolution", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1, 48), (1,)], ids=str)
def test_data_times_a_constant_plus_one_are_rounded_once(
    shape: tuple[int, ...], behind_a_convolution: bool
) -> None:
    graph, b, x = image((1, 8, 8, 48))
    data = convolution(b, x, byte(-4, 4)) if behind_a_convolution else x
    y = affine(b, data, shape, shape)
    assert differing(graph, y) <= 0.03 * y.size


@pytest.mark.parametrize(
    ("factors", "addends"),
    [((1, 1, 1, 48), (1,)), ((1, 1, 1, 48), (1, 8, 8, 48)), ((1, 8, 8, 1), (1, 8, 8, 1))],
    ids=str,
)
def test_others_than_one_for_each_channel_are_rounded_twice(
    factors: tuple[int, ...], addends: tuple[int, ...]
) -> None:
    graph, b, x = image((1, 8, 8, 48))
    assert not differing(graph, affine(b, x, factors, addends))
