"""Sums and differences of every pair of bytes are those of libQnnHtp: scales where rounding decides."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir.graph_text import parse_graph
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

SHAPE = "[1,1,256,256]"
# Factors of sums are half way between two integers, or next to it. Those of differences are small enough to
# have a bit more than in a sum, or so small that they have as many as there can be.
CASES = {
    "a real network": ("Add", (0.08191178639729818, 0.05279762043672449, 0.09484006096335018)),
    "half, even": ("Add", (0.05579683631465643, 0.03125644884115258, 0.046331823492194724)),
    "half by division": ("Add", (0.02468351952230406, 0.08152575744378, 0.04434360176496166)),
    "a difference": ("Subtract", (0.7713, 0.4788, 0.3087)),
    "a fine difference": ("Subtract", (0.2438, 0.2966, 0.3087)),
    "a coarse difference": ("Subtract", (0.13782, 0.16763, 0.9024)),
}
OFFSETS = (-126, -133, -128)


@pytest.mark.parametrize("name", CASES)
def test_every_pair_of_bytes(name: str) -> None:
    op, scales = CASES[name]
    a, b, y = (
        f"ufixed8{SHAPE} <scale=[{scale!r}] offset=[{offset}] bits=8 symmetric=false>"
        for scale, offset in zip(scales, OFFSETS, strict=True)
    )
    graph = parse_graph(f"""graph "g" {{
  input %a: {a} as ufixed8{SHAPE}
  input %b: {b} as ufixed8{SHAPE}
  %y: {y} = ElementWise{op}(%a, %b) name "n" @ "n"
  output %y as ufixed8{SHAPE}
}}""")
    every = np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2, indexing="ij")
    given = {name: array.reshape(1, 1, 256, 256) for name, array in zip("ab", every, strict=True)}
    with openqnn.Session(graph) as here, openqnn.Session(graph, backend="htp") as there:
        ours, theirs = (session.run(given, native=True)["y"] for session in (here, there))
    np.testing.assert_array_equal(ours, theirs)
