"""Rotary embeddings in fixed point: pairs of numbers are taken apart by strided slices and joined again."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.runtime.metrics import sqnr
from tests.frontends.onnx.against_ort import model_of, node, rand
from tests.qnn.nets import needs_htp

SHAPE = (1, 4, 6, 8)


@needs_htp
@pytest.mark.parametrize("bits", [8, 16])
def test_pairs_are_joined_in_one_encoding(bits: int) -> None:
    """libQnnHtp joins the integers of what is reshaped behind a strided slice, whatever their encoding is."""
    nodes = [
        node("Mul", "x factor", "h"), node("Slice", "h zero end last two", "even"),
        node("Slice", "h one end last two", "odd"), node("Neg", "odd", "turned"),
        node("Unsqueeze", "even last", "a"), node("Unsqueeze", "turned last", "b"),
        node("Concat", "b a", "pairs", axis=-1), node("Reshape", "pairs shape", "r"), node("Tanh", "r"),
    ]  # fmt: skip
    names = {"zero": [0], "one": [1], "two": [2], "end": [8], "last": [-1], "shape": SHAPE}
    constants = {name: np.asarray(value, np.int64) for name, value in names.items()}
    x = {"x": rand(*SHAPE) * np.arange(1, 9, dtype=np.float32)}
    graph = openqnn.convert(model_of(nodes, x, {**constants, "factor": np.float32(0.7)}, 17))
    fixed = openqnn.quantize(graph, [x], act_bw=bits, algorithms=())
    with openqnn.Session(fixed) as simulation, openqnn.Session(fixed, "htp", timeout=300) as library:
        (wanted,), (found,) = simulation.run(x).values(), library.run(x).values()
    assert sqnr(wanted, found) > 40
