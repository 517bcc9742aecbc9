"""Random small graphs in fixed and floating point: what the simulation says, libQnnHtp must say, too.

`make search` runs more of them; `OPENQNN_SEEDS=100-200` says which. A seed that fails is mended or listed in
docs/quantization.md.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto

import openqnn
from openqnn.errors import OpenQnnWarning
from openqnn.runtime.metrics import sqnr
from tests.frontends.onnx.against_ort import model_of, node, typed
from tests.qnn.nets import needs_htp

SHAPE = (1, 8, 6, 6)
APART = 1.0  # dB between both, against floating point
EXACT = 40.0  # dB of one against the other, from where on nothing is to be seen


def seeds() -> range:
    first, _, last = os.environ.get("OPENQNN_SEEDS", "0-24").partition("-")
    return range(int(first), int(last or int(first) + 1))


KNOWN = {(20, 8), (38, 8), (66, 8)}  # listed in docs/quantization.md


class Graphs:
    """Blocks of convolution, attention, gates and shapes, one behind the other; each keeps the shape."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Any] = {}
        self.count = 0

    def op(self, name: str, *inputs: str, **attributes: Any) -> str:
        self.count += 1
        self.nodes.append(node(name, " ".join(inputs), f"t{self.count}", **attributes))
        return f"t{self.count}"

    def const(self, array: Any) -> str:
        self.count += 1
        self.constants[f"c{self.count}"] = np.asarray(array)
        return f"c{self.count}"

    def weight(self, *shape: int) -> str:
        spread = np.sqrt(np.prod(shape[1:]))
        return self.const((self.rng.normal(size=shape) / spread).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.const(np.asarray(values, np.int64))

    def convolution(self, x: str) -> str:
        group = int(self.rng.choice([1, 8]))
        y = self.op(
            "Conv", x, self.weight(8, 8 // group, 3, 3), self.weight(8), pads=[1, 1, 1, 1], group=group
        )
        return self.op(str(self.rng.choice(["Relu", "Sigmoid", "HardSwish", "Tanh"])), y)

    def attention(self, x: str) -> str:
        tokens = self.op("Reshape", x, self.ints(1, 8, 36))
        q, k, v = (self.op("MatMul", tokens, self.weight(36, 36)) for _ in range(3))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 2, 1]))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.op("Add", x, self.op("Reshape", y, self.ints(*SHAPE)))

    def gate(self, x: str) -> str:
        y = self.op("Conv", self.op("GlobalAveragePool", x), self.weight(8, 8, 1, 1))
        return self.op("Mul", x, self.op("Sigmoid", y))

    def shapes(self, x: str) -> str:
        axis, step = int(self.rng.integers(1, 4)), int(self.rng.choice([1, 2]))
        size = SHAPE[axis]
        bounds = [(0, size), (1, size)] if step == 2 else [(0, size // 2), (size // 2, size)]
        a, b = (
            self.op("Slice", x, self.ints(low), self.ints(high), self.ints(axis), self.ints(step))
            for low, high in bounds
        )
        y = self.op("Concat", self.op("Neg", b), a, axis=axis)
        return self.op("Reshape", self.op("Transpose", y, perm=[0, 1, 3, 2]), self.ints(*SHAPE))

    def model(self) -> Any:
        blocks, x = (self.convolution, self.attention, self.gate, self.shapes), "x"
        for index in self.rng.integers(0, len(blocks), 4):
            x = blocks[index](x)
        self.op("Mul", x, self.const(np.float32(1.5)))
        return typed(model_of(self.nodes, {"x": np.zeros(SHAPE, np.float32)}, self.constants, 17))


@needs_htp
@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("seed", seeds())
def test_simulation_and_library_agree(seed: int, bits: int, request: pytest.FixtureRequest) -> None:
    if (seed, bits) in KNOWN:
        request.applymarker(pytest.mark.xfail(reason="both part by more than 1 dB; not mended yet"))
    graph = openqnn.convert(Graphs(seed).model())
    rng = np.random.default_rng(seed)
    data = [{"x": rng.normal(size=SHAPE).astype(np.float32)} for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)
        made = graph if bits == 32 else openqnn.quantize(graph, data, act_bw=bits, judge=False)
    real, simulated, library = (
        np.concatenate([next(iter(session.run(x).values())).ravel() for x in data])
        for session in (
            openqnn.Session(graph),
            openqnn.Session(made),
            openqnn.Session(made, "htp", timeout=300),
        )
    )
    apart = sqnr(real, simulated) - sqnr(real, library) if bits != 32 else 0.0
    assert sqnr(simulated, library) > EXACT or abs(apart) < APART, (
        f"seed {seed}, {bits} bits: {apart:.1f} dB apart"
    )
    assert sqnr(simulated, library) > (EXACT if bits == 32 else 0)
