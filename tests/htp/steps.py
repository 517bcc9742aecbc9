"""How far libQnnHtp is from the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import openqnn
from openqnn.ir import Array, Graph


def steps_apart(graph: Graph, data: Sequence[Mapping[str, Array]], width: int) -> float:
    """The most, in steps of the output, on the first of the data that the graph is quantized with."""
    fixed = openqnn.quantize(graph, data, act_bw=width, algorithms=())
    with openqnn.Session(fixed) as ours, openqnn.Session(fixed, backend="htp") as htp:
        (said,), (found,) = ours.run(data[0]).values(), htp.run(data[0]).values()
    encoding = fixed.outputs[0].encoding
    assert encoding is not None
    return float(np.abs(said - found).max() / encoding.scale[0])
