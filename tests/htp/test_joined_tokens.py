"""A small class token in front of large patches: it is computed with apart, and joined for what wants all."""

from __future__ import annotations

import numpy as np

import openqnn
from openqnn.ir import Graph
from openqnn.runtime.metrics import sqnr
from openqnn.targets.htp import legalise_htp
from tests.frontends.onnx.against_ort import model_of, node, rand

PATCHES, CHANNELS = 15, 32


def class_attention() -> Graph:
    """As CaiT and XCiT have it: all tokens are normed, the class token alone is changed."""
    nodes = [
        node("Mul", "x large", "patches"),
        node("Concat", "token patches", "all", axis=1),
        node("LayerNormalization", "all scale", "n", axis=-1),
        node("Gather", "n first", "query", axis=1),
        node("Slice", "n one end one", "rest"),
        node("MatMul", "n w", "keys"),
        node("Transpose", "keys", "turned", perm=[0, 2, 1]),
        node("MatMul", "query turned", "scores"),
        node("Softmax", "scores", "weights"),
        node("MatMul", "weights n", "answer"),
        node("Concat", "answer rest", "changed", axis=1),
        node("Add", "all changed", "residual"),
        node("Slice", "residual zero one one", "class"),
        node("LayerNormalization", "class scale", "y", axis=-1),
    ]
    constants = {
        "large": np.float32(4000), "token": rand(1, 1, CHANNELS, seed=1) / 10,
        "scale": np.ones(CHANNELS, np.float32), "w": rand(CHANNELS, CHANNELS, seed=2) / 30,
        "first": np.array([0]), "zero": np.array([0]), "one": np.array([1]), "end": np.array([PATCHES + 1]),
    }  # fmt: skip
    return openqnn.convert(model_of(nodes, {"x": rand(1, PATCHES, CHANNELS)}, constants, 17))


def test_a_token_that_is_less_than_a_step_of_the_others() -> None:
    graph = class_attention()
    data = [{"x": rand(1, PATCHES, CHANNELS, seed=i)} for i in range(6)]
    made = openqnn.quantize(graph, data[:4], act_bw=16, weight_bw=8, algorithms=())
    with openqnn.Session(graph, "cpu") as real, openqnn.Session(made) as fixed:
        pairs = [[np.ravel(s.run(d)["y"]) for d in data[4:]] for s in (real, fixed)]
    assert sqnr(*map(np.concatenate, pairs)) > 40


def test_the_result_is_the_same_and_only_what_wants_all_reads_a_join() -> None:
    graph = class_attention()
    legal = legalise_htp(graph)
    feed = {"x": rand(1, PATCHES, CHANNELS, seed=9)}
    with openqnn.Session(graph, "cpu") as before, openqnn.Session(legal, "cpu") as after:
        assert np.allclose(before.run(feed)["y"], after.run(feed)["y"], rtol=1e-4, atol=1e-4)
    readers = {user.op for n in legal.nodes if n.op == "Concat" for v in n.outputs for user in v.users}
    assert not readers & {"LayerNorm", "ElementWiseAdd", "StridedSlice", "Gather"}
