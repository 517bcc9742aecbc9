"""Masks of attention: far below all scores, or minus infinity, they take no steps away from these."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import openqnn
from openqnn.api.quantize import quantize
from openqnn.errors import OpenQnnWarning
from openqnn.ir import Array, DType, Graph
from openqnn.ops import Builder
from openqnn.runtime.compare import Noise, output_noise

RNG = np.random.default_rng(3)
LEAST = float(np.finfo(np.float32).min)
ROWS = 8


def masked_scores() -> Graph:
    """Scores and their mask are inputs; what is left of the scores weighs the rows of a constant."""
    graph = Graph("attention")
    b = Builder(graph, "test")
    scores = graph.add_input("scores", DType.FLOAT_32, (ROWS, ROWS))
    mask = graph.add_input("mask", DType.FLOAT_32, (ROWS, ROWS))
    weights = b("Softmax", b("ElementWiseAdd", scores, mask), axis=1)
    values = b.const(RNG.standard_normal((16, ROWS)).astype(np.float32))
    graph.add_output(b("FullyConnected", weights, values, keep_dims=False))
    return graph


def samples(least: float, count: int = 6) -> list[dict[str, Array]]:
    mask = np.triu(np.full((ROWS, ROWS), least, np.float32), 1)
    scores = (3 * RNG.standard_normal((count, ROWS, ROWS))).astype(np.float32)
    return [{"scores": s, "mask": mask} for s in scores]


def sqnr(graph: Graph, fixed: Graph, data: list[dict[str, Array]]) -> float:
    (found,) = output_noise(graph, fixed, data).values()
    return found.sqnr


@pytest.mark.parametrize("least", [-np.inf, LEAST, -1e4])
@pytest.mark.parametrize(("width", "wanted"), [(8, 25.0), (16, 38.0)])
def test_masks_that_come_in_leave_scores_their_steps(least: float, width: int, wanted: float) -> None:
    graph, data = masked_scores(), samples(least)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", OpenQnnWarning)
        fixed = quantize(graph, data, act_bw=width, backend="cpu")
        assert sqnr(graph, fixed, data) > wanted


@pytest.mark.parametrize("least", [LEAST, -1e9])
@pytest.mark.parametrize(("width", "wanted"), [(8, 25.0), (16, 38.0)])
def test_rows_may_be_masked_as_a_whole(least: float, width: int, wanted: float) -> None:
    """That is padding, whose results nobody reads: the other rows count."""
    graph, data = masked_scores(), samples(least)
    for sample in data:
        sample["mask"][-1] = least
    fixed = quantize(graph, data, act_bw=width, backend="cpu")
    found = Noise(None)
    with openqnn.Session(graph) as real, openqnn.Session(fixed) as other:
        for sample in data:
            (x,), (y,) = (s.run(sample).values() for s in (real, other))
            found.add(x[:-1], y[:-1], signed=False)
    assert found.sqnr > wanted


def test_scores_of_a_row_may_all_be_low() -> None:
    """Those of a codebook, minus the distances to its entries, are no masks."""
    graph, data = masked_scores(), samples(-1.0)
    for sample in data:
        sample["scores"][2:] -= 3000
    fixed = quantize(graph, data, act_bw=16, backend="cpu")
    assert sqnr(graph, fixed, data) > 25


def test_noise_is_that_of_finite_numbers() -> None:
    found = Noise(None)
    found.add(np.float32([1, -np.inf, np.nan, 3]), np.float32([1, -9, 2, 2]), signed=False)
    assert (found.count, found.signal, found.noise) == (2, 10, 1)
    found.add(np.full(2, -np.inf, np.float32), np.zeros(2, np.float32), signed=False)
    assert found.count == 2
