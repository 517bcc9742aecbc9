"""Weights that suit noisy data: less of the noise comes out, on data that they were not fitted to."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.api.quantize import quantize
from openqnn.ir import Array, DType, Graph
from openqnn.ops import Builder
from openqnn.quant.algorithms import least_squares as fitting
from openqnn.quant.algorithms.least_squares import Sample, Seen, fitted
from tests.quant.test_rounding import noise

INNER, OUTER, ROWS, LOUD = 6, 4, 40, 2.0


def samples(count: int, seed: int, weights: Array, groups: int = 1, spread: float = 1.0) -> list[Sample]:
    """Inputs that are nearly alike, as neighbouring pixels are, each with a noise of its own."""
    chance = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        return chance.standard_normal((groups, *shape)).astype(np.float32)

    found: list[Sample] = []
    for _ in range(count):
        real = LOUD * normal(ROWS, 1) + normal(ROWS, INNER)
        off = spread * normal(ROWS, INNER)
        found.append(Sample(real + off, -off @ weights))
    return found


def differences(groups: int = 1) -> Array:
    """Weights that take what is alike away."""
    found = np.random.default_rng(1).standard_normal((groups, INNER, OUTER)).astype(np.float32)
    return found - found.mean(axis=1, keepdims=True)


def left(weights: Array, changed: Array, seen: list[Sample]) -> float:
    return float(np.mean([np.square(s.noise - s.data @ (changed - weights)) for s in seen]))


@pytest.mark.parametrize("groups", [1, 3])
def test_less_noise_comes_out_of_unseen_data(groups: int) -> None:
    weights = differences(groups)
    changed = fitted(weights, Seen(samples(8, 2, weights, groups)))
    unseen = samples(8, 3, weights, groups)
    assert changed.shape == weights.shape
    assert left(weights, changed, unseen) < 0.7 * left(weights, weights, unseen)


def test_what_is_worth_little_is_left() -> None:
    weights = differences()
    assert fitted(weights, Seen(samples(8, 2, weights, spread=0.05))) is weights


def test_too_few_rows_or_samples_change_nothing() -> None:
    weights = differences()
    assert fitted(weights, Seen(samples(fitting.FOLDS - 1, 2, weights))) is weights
    few = [Sample(s.data[:, :2], s.noise[:, :2]) for s in samples(8, 2, weights)]
    assert fitting.ROWS_PER_INPUT * INNER > 8 * 2
    assert fitted(weights, Seen(few)) is weights


def test_what_samples_do_not_agree_on_is_left() -> None:
    """Half of them are noisy one way, half of them the other: each half would be made worse by the other."""
    weights = differences()
    seen = [Sample(s.data, s.data @ weights * (-1) ** (i // 2)) for i, s in enumerate(samples(8, 2, weights))]
    assert fitted(weights, Seen(seen)) is weights


def test_outputs_decide_for_themselves() -> None:
    """One has no noise."""
    weights = differences()
    seen = [Sample(s.data, s.noise * [1, 1, 0, 1]) for s in samples(8, 2, weights)]
    changed = fitted(weights, Seen(seen))
    assert np.array_equal((changed != weights).any(axis=(0, 1)), [True, True, False, True])


def test_a_network_of_differences_keeps_more() -> None:
    """Two layers, the second of which takes away what the outputs of the first have in common."""
    chance = np.random.default_rng(4)
    graph = Graph("net")
    x = graph.add_input("x", DType.FLOAT_32, (1, 16, 16, 4))
    b = Builder(graph, "test")
    wide = np.repeat(chance.uniform(1, 2, (1, 1, 4, 1)), 8, axis=3) + chance.normal(0, 0.03, (1, 1, 4, 8))
    thin = chance.standard_normal((1, 1, 8, 8))
    thin -= thin.mean(axis=2, keepdims=True)
    y = x
    for weight in (wide, thin):
        zeros = b.const(np.zeros(8, np.float32))
        around = {"stride": (1, 1), "pad_amount": ((0, 0), (0, 0))}
        y = b("Conv2d", y, b.const(weight.astype(np.float32)), zeros, **around)
    graph.add_output(y)
    data, unseen = (
        [{"x": chance.uniform(0, 1, (1, 16, 16, 4)).astype(np.float32)} for _ in range(16)] for _ in range(2)
    )
    made = {
        name: quantize(graph, data, algorithms=(name,), act_bw=8, backend="cpu")
        for name in ("bias_correction", "adaround")
    }
    lost = {name: noise(graph, fixed, unseen) for name, fixed in made.items()}
    assert lost["adaround"] < 0.9 * lost["bias_correction"]
