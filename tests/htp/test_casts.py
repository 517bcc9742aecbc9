"""Integers and fixed point into each other, as nodes that a model keeps have them."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Encoding, Graph
from openqnn.ops import Builder
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

FIXED = {DType.SFIXED_8: 7, DType.UFIXED_8: -120}  # with an offset that has zero in range
REAL = np.array([[-5.0, -1.0, -0.1, 0.0, 0.1, 0.2, 1.0, 5.0]], np.float32)


def both(graph: Graph, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The result of the built-in backend and of HTP."""
    found: list[np.ndarray] = []
    for backend in ("cpu", "htp"):
        with openqnn.Session(graph, backend=backend) as session:
            (result,) = session.run({"x": x}).values()
            found.append(result)
    return found[0], found[1]


@pytest.mark.parametrize("fixed", FIXED)
@pytest.mark.parametrize("integer", [DType.INT_8, DType.INT_32])
def test_stored_steps_are_integers(fixed: DType, integer: DType) -> None:
    graph, encoding = Graph("to_integers"), Encoding.per_tensor(0.1, FIXED[fixed], 8)
    b = Builder(graph, "test")
    x = graph.add_input("x", DType.FLOAT_32, REAL.shape)
    graph.add_output(b.cast(b.quantize(x, fixed, encoding), integer))
    here, there = both(graph, REAL)
    assert np.array_equal(here, there) and len(set(here.flat)) == REAL.size


@pytest.mark.parametrize("fixed", FIXED)
def test_integers_are_stored_steps(fixed: DType) -> None:
    graph, encoding = Graph("from_integers"), Encoding.per_tensor(0.1, FIXED[fixed], 8)
    b = Builder(graph, "test")
    x = graph.add_input("x", DType.INT_32, REAL.shape)
    graph.add_output(b.dequantize(b.cast(x, fixed, encoding), DType.FLOAT_32))
    steps = np.rint(REAL * 10).astype(np.int32) - FIXED[fixed]
    here, there = both(graph, steps)
    np.testing.assert_allclose(here, REAL, atol=1e-6)
    np.testing.assert_allclose(there, REAL, atol=0.01)
