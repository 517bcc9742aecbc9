"""Sines of many turns, as rotary embeddings have them, by the default recipe."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.runtime.metrics import sqnr
from tests.qnn.nets import needs_htp

pytestmark = [needs_htp, pytest.mark.filterwarnings("ignore::openqnn.OpenQnnWarning")]

TOKENS, WIDTH = 32, 16


def test_angles_of_many_turns_keep_their_parts() -> None:
    """In 8 bits a step of 100 radians is 0.4: nothing is left of the fastest waves."""
    rng, graph = np.random.default_rng(0), Graph("angles")
    places = graph.add_input("places", DType.FLOAT_32, (1, TOKENS, 1))
    x = graph.add_input("x", DType.FLOAT_32, (1, TOKENS, WIDTH))
    b = Builder(graph, "test")
    speeds = b.const((10000.0 ** -np.linspace(0, 1, WIDTH)).astype(np.float32).reshape(1, 1, WIDTH))
    angles = b.mul(places, speeds)
    graph.add_output(b.add(b.mul(x, b.cos(angles)), b.mul(x, b.sin(angles))))
    sample = lambda start: {
        "places": np.arange(start, start + TOKENS, dtype=np.float32).reshape(1, TOKENS, 1),
        "x": rng.normal(0, 1, (1, TOKENS, WIDTH)).astype(np.float32),
    }
    fixed = openqnn.quantize(graph, [sample(start) for start in (0, 20, 50, 68)])
    given = sample(33)
    with openqnn.Session(graph) as real, openqnn.Session(fixed, backend="htp") as htp:
        (want,), (got,) = real.run(given).values(), htp.run(given).values()
    assert sqnr(want, got) > 28
