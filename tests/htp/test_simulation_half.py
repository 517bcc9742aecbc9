"""Bytes to half precision and back: the very numbers that libQnnHtp has."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import Array
from openqnn.ir.graph_text import parse_graph
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

ENCODINGS = [(0.0507139290080351, -183), (0.0013, -10), (0.1, -128), (0.0037, 0), (2.3, -100), (0.00091, -50)]
GRAPH = """graph "g" {{
  input %x: {source}
  %y: {target} = {op}(%x) name "n" @ "n"
  output %y as {kind}
}}"""


def both(op: str, source: str, target: str, x: Array) -> tuple[Array, Array]:
    """What the simulation and HTP make of an array."""
    kind = target.partition(" ")[0]
    text = GRAPH.format(op=op, source=f"{source} as {source.partition(' ')[0]}", target=target, kind=kind)
    graph = parse_graph(text)
    with openqnn.Session(graph) as here, openqnn.Session(graph, backend="htp") as there:
        ours, theirs = (session.run({"x": x}, native=True)["y"] for session in (here, there))
    return ours, theirs


def encoded(scale: float, offset: int, size: int) -> str:
    return f"ufixed8[1,1,1,{size}] <scale=[{scale}] offset=[{offset}] bits=8 symmetric=false>"


@pytest.mark.parametrize(("scale", "offset"), ENCODINGS)
def test_every_byte(scale: float, offset: int) -> None:
    x = np.arange(256, dtype=np.uint8).reshape(1, 1, 1, 256)
    ours, theirs = both("Dequantize", encoded(scale, offset, 256), "float16[1,1,1,256]", x)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("scale", "offset"), ENCODINGS)
def test_numbers_within_and_beyond_the_range(scale: float, offset: int) -> None:
    x = np.random.default_rng(0).uniform(-300 * scale, 300 * scale, (1, 1, 1, 4096)).astype(np.float16)
    ours, theirs = both("Quantize", "float16[1,1,1,4096]", encoded(scale, offset, 4096), x)
    np.testing.assert_array_equal(ours, theirs)
