"""Sums with stored numbers that are scaled: libQnnHtp must not take the first of the numbers for all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph, Shape, Value
from openqnn.ops import Builder
from tests.libraries import need

Make = Callable[[Builder, Value, np.ndarray], Value]


@pytest.mark.parametrize(
    ("shape", "make"),
    [
        ((2, 5), lambda b, x, t: b.mul(b.add(x, t), 2.0)),
        ((1, 4, 4, 8), lambda b, x, t: b.mul(0.5, b.add(x, t))),
        ((1, 4, 31), lambda b, x, t: b.mul(b.reshape(b.add(b.square(x), t), (4, 31)), 2.0)),
        (
            (3, 8),
            lambda b, x, t: b.binary("MULTIPLY", b.binary("ADD", x, b.const(t)), b.const(np.float32(2))),
        ),
    ],
)
def test_all_numbers_count(shape: Shape, make: Make) -> None:
    need("libQnnHtp.so")
    graph = Graph("sum")
    x, builder = graph.add_input("x", DType.FLOAT_32, shape), Builder(graph)
    builder.stem = "y"
    graph.add_output(make(builder, x, np.linspace(-2, 3, shape[-1], dtype=np.float32)))
    data = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    found: list[np.ndarray] = []
    for backend in ("cpu", "htp"):
        with openqnn.Session(graph, backend) as session:
            found += session.run(data).values()
    np.testing.assert_allclose(found[1], found[0], atol=0.02)
