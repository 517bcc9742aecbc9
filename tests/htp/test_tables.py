"""Tables that rows are looked up in: stored in the encoding of what comes out, with all that is in them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

ROWS, WIDTH, COUNT = 40, 24, 8


@pytest.mark.parametrize("width", [8, 16])
def test_rows_of_a_table_are_looked_up_in_fixed_point(width: int) -> None:
    """Also rows that calibration did not meet, which here have the largest numbers."""
    rng = np.random.default_rng(0)
    table = rng.normal(0, 1, (ROWS, WIDTH)).astype(np.float32)
    table[ROWS // 2 :] *= 3
    graph = Graph("table")
    places = graph.add_input("places", DType.INT_32, (1, COUNT))
    b = Builder(graph, "test")
    found = b.gather(b.const(table), places, axis=0)
    graph.add_output(b.tanh(b.mul(found, 0.1)))
    low = [{"places": rng.integers(0, ROWS // 2, (1, COUNT)).astype(np.int32)} for _ in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as of a node that HTP refuses
        fixed = openqnn.quantize(graph, low, act_bw=width)
    (lookup,) = [n for n in fixed.nodes if n.op == "Gather"]
    assert lookup.out.dtype.is_fixed
    assert lookup.x(0).encoding == lookup.out.encoding
    x = {"places": np.arange(ROWS - COUNT, ROWS, dtype=np.int32).reshape(1, COUNT)}
    with openqnn.Session(fixed) as ours, openqnn.Session(fixed, backend="htp") as htp:
        (said,) = ours.run(x).values()
        (got,) = htp.run(x).values()
    steps = 255 if width == 8 else 65535
    assert np.abs(said - got).max() <= 3 / steps
    rows = lookup.out.encoding
    assert rows is not None
    ends = rows.scale[0] * rows.offset[0], rows.scale[0] * (steps + rows.offset[0])
    assert ends[0] <= table.min() + rows.scale[0]
    assert ends[1] >= table.max() - rows.scale[0]
