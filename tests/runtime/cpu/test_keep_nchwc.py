"""Fixed-point graphs that keep the blocks of convolutions give the very integers of those that do not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import openqnn
from openqnn.ir import Graph
from openqnn.runtime.boundary import inward
from openqnn.runtime.cpu import executable
from openqnn.runtime.cpu.executable import CpuExecutable, OnnxStep, compile_steps
from openqnn.runtime.cpu.to_onnx import to_onnx
from tests.models.fetch import model_path
from tests.models.sets import data_set, shapes_of

# How many orders are left: those of inputs and of pools. Blocks are of as many channels as the processor's
# registers hold, and where they are of 16 ppocr_cls has one more.
MODELS = {"mtcnn_onet": 0, "ppocr_cls": 5}
SAMPLES = 2


def quantized(model: str) -> Graph:
    graph = openqnn.convert(model_path(model), input_shapes=shapes_of(model))
    return openqnn.quantize(graph, list(data_set(model).calibration)[:SAMPLES], wide=False)


@pytest.mark.parametrize("model", MODELS)
def test_real_models_give_the_same_integers(model: str) -> None:
    fixed = quantized(model)
    lowered = to_onnx(fixed)
    (plain,) = compile_steps(lowered, threads=1)
    assert isinstance(plain, OnnxStep)
    blocked = CpuExecutable(fixed, threads=1)
    for sample in list(data_set(model).evaluation)[:SAMPLES]:
        given = {v.name: inward(v, fixed.ports[v.name], sample[v.name]) for v in fixed.inputs}
        feeds = {name: given[v.name] for name, v in lowered.inputs.items()}
        want = plain.session.run(list(lowered.outputs.values()), feeds)
        got = blocked.run(given)
        for name, expected in zip(lowered.outputs, want, strict=True):
            np.testing.assert_array_equal(got[name], expected)


@pytest.mark.parametrize(("model", "most"), MODELS.items())
def test_nothing_is_put_in_order_between_convolutions(model: str, most: int) -> None:
    lowered = to_onnx(quantized(model))
    before = Counter(n.op_type for n in executable.optimized(lowered).graph.node)
    after = Counter(n.op_type for n in executable.Blocks(lowered).body(in_parts=False).body.nodes)
    orders = ("ReorderInput", "ReorderOutput")
    assert sum(before[o] for o in orders) > 2 * most + 4
    assert sum(after[o] for o in orders) <= most
    assert after["BatchNormalization"] < before["BatchNormalization"] / 4


@pytest.mark.parametrize(("model", "share"), {"mtcnn_onet": True, "ppocr_cls": False}.items())
def test_threads_share_what_is_worth_it(model: str, share: bool) -> None:
    fixed = quantized(model)
    nodes = executable.Blocks(to_onnx(fixed)).found.nodes
    assert executable._is_enough_for_threads(fixed, nodes) is share  # pyright: ignore[reportPrivateUsage]
