"""What half precision cannot hold is told, with the nodes: by samples, and by the graph alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

import openqnn
from openqnn.analysis.half_precision import half_problems
from openqnn.ir import Graph
from tests.cli.tool import openqnn as command
from tests.frontends.onnx.against_ort import model_of, node, rand, typed
from tests.qnn.nets import needs_htp


def attention(scale: float) -> onnx.ModelProto:
    """Logits of attention whose scale was left out."""
    nodes = [node("MatMul", "x w", "q"), node("MatMul", "q k", "logits"), node("Softmax", "logits", axis=-1)]
    constants = {"w": rand(16, 16) * scale, "k": rand(16, 6, seed=1)}
    return typed(model_of(nodes, {"x": rand(4, 16)}, constants, 17))


def graph_of(scale: float) -> Graph:
    return openqnn.convert(attention(scale))


def test_logits_that_are_too_far_apart() -> None:
    (found,) = half_problems(graph_of(100.0), [{"x": rand(4, 16)}])
    assert found.tensor == "logits" and 256 < found.reach < 65504 and "by the samples" in str(found)


def test_sums_beyond_the_largest_number() -> None:
    found = half_problems(graph_of(3e4), [{"x": rand(4, 16)}])
    assert {f.tensor for f in found} >= {"q", "logits"} and "65504" in str(found[0])


def test_usual_numbers_are_no_problem() -> None:
    assert half_problems(graph_of(0.1), [{"x": rand(4, 16)}]) == []


def test_bounds_that_follow_from_the_graph() -> None:
    nodes = [node("Sigmoid", "x", "s"), node("Mul", "s f", "big"), node("Add", "big f", "y")]
    graph = openqnn.convert(model_of(nodes, {"x": rand(2, 3)}, {"f": np.float32(1e5)}, 17))
    found = half_problems(graph)
    assert found and "by the graph" in str(found[0])


def test_masks_are_meant_to_be_far_below() -> None:
    nodes = [node("Add", "x m", "masked"), node("Softmax", "masked", axis=-1)]
    mask = np.where(np.eye(4), 0, np.finfo(np.float32).min).astype(np.float32)
    graph = openqnn.convert(typed(model_of(nodes, {"x": rand(4, 4)}, {"m": mask}, 17)))
    assert half_problems(graph, [{"x": rand(4, 4)}]) == []


@needs_htp
def test_the_command_tells_it(tmp_path: Path) -> None:
    onnx.save(attention(100.0), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", rand(4, 16))
    words = ["check", str(tmp_path / "m.onnx"), "--backend", "htp", "--data", str(tmp_path / "x.npy")]
    result = command(*words)
    assert result.code == 1 and "half precision" in result.out and "logits" in result.out
    refused = command("check", str(tmp_path / "m.onnx"), "--data", str(tmp_path / "x.npy"))
    assert refused.code and "--backend htp" in refused.err
