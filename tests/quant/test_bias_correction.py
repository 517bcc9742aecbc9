"""Bias correction alone: weights stay, and the means of outputs come back to where they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.api.quantize import quantize
from openqnn.ir import Array, Graph
from openqnn.quant.recipe import Scheme
from tests.models.fetch import model_path
from tests.models.sets import data_set, shapes_of
from tests.quant.test_auto_widths import sqnr
from tests.quant.test_rounding import network, smooth

DEEP = "effword_fp32"


def shift(graph: Graph, fixed: Graph, feeds: list[dict[str, Array]]) -> float:
    """How far the means of the outputs are from those in floating point."""
    with openqnn.Session(graph) as real, openqnn.Session(fixed) as other:
        (name,) = real.output_names
        errors = [other.run(f)[name] - real.run(f)[name] for f in feeds]
    return float(np.abs(np.mean(errors, axis=0).mean(axis=0)).mean())


def weights(graph: Graph) -> list[Array]:
    return [v.data for n in graph.nodes for v in n.inputs[1:2] if v is not None and v.data is not None]


@pytest.mark.parametrize("more", [{}, {"param": Scheme()}], ids=["around zero", "with an offset"])
def test_means_come_back(more: dict[str, Any]) -> None:
    """Weights of four bits with one scale for all move means by so much that all samples agree on it."""
    choices = {"weight_bw": 4, "act_bw": 16, "per_channel": False, "per_row": False, **more}
    graph, data, unseen = network(), smooth(16), smooth(16)
    plain, correct = (
        quantize(graph, data, algorithms=a, backend="cpu", **choices) for a in ((), ("bias_correction",))
    )
    assert shift(graph, correct, data) < 0.5 * shift(graph, plain, data)
    assert shift(graph, correct, unseen) < shift(graph, plain, unseen)
    for before, after in zip(weights(plain), weights(correct), strict=True):
        np.testing.assert_array_equal(before, after)


def test_dropped_bits_do_not_add_up() -> None:
    """HTP cuts sums of 16-bit data: through a deep network, restored means would leave less and less."""
    graph = openqnn.convert(model_path(DEEP), input_shapes=shapes_of(DEEP))
    data = data_set(DEEP)
    plain, correct = (
        quantize(graph, data.calibration[:4], algorithms=a, act_bw=16) for a in ((), ("bias_correction",))
    )
    assert sqnr(graph, correct, data.evaluation[:4]) > sqnr(graph, plain, data.evaluation[:4]) - 6
