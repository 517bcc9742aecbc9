"""Outputs that join boxes and scores: warned of where scores get few steps, and split where that is asked."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest

import openqnn
from openqnn.errors import AccuracyWarning, InputError, UsageError
from openqnn.passes.boundary.split_joins import joins_of
from tests.cli.tool import assert_refused
from tests.cli.tool import openqnn as command
from tests.frontends.onnx.against_ort import model_of, node, rand
from tests.qnn.nets import needs_htp
from tests.quant.test_verdict import heads, samples


def scales() -> onnx.ModelProto:
    """Two scales, each joined of boxes, sizes and scores along the last axis, and then with the other."""
    nodes = []
    for s in "ab":
        nodes += [
            node("MatMul", f"x w{s}", f"boxes{s}"), node("MatMul", f"x u{s}", f"sizes{s}"),
            node("MatMul", f"x v{s}", f"logits{s}"), node("Sigmoid", f"logits{s}", f"scores{s}"),
            node("Concat", f"boxes{s} sizes{s} scores{s}", f"both{s}", axis=2),
            node("Reshape", f"both{s} shape", f"flat{s}"),
        ]  # fmt: skip
    nodes.append(node("Concat", "flata flatb", "y", axis=1))
    constants = {
        k + s: rand(8, n, seed=ord(s)) * f for s in "ab" for k, n, f in (("w", 2, 200), ("u", 2, 90))
    }
    constants |= {"va": rand(8, 3), "vb": rand(8, 3, seed=3), "shape": np.array([1, 5, 7])}
    return model_of(nodes, {"x": rand(1, 5, 8)}, constants, 17)


def results(
    graph: openqnn.Graph, sample: dict[str, np.ndarray], backend: str = "cpu"
) -> dict[str, np.ndarray]:
    with openqnn.Session(graph, backend) as session:
        return session.run(sample)


def test_a_detector_gives_boxes_and_scores() -> None:
    whole = heads()
    split = openqnn.split_outputs(whole)
    assert [v.shape for v in split.outputs] == [(1, 4, 5), (1, 3, 5)]
    assert len(whole.outputs) == 1, "the graph that was given stays as it is"
    sample = samples(1, 1, 5, 8)[0]
    parts = list(results(split, sample).values())
    np.testing.assert_array_equal(np.concatenate(parts, 1), results(whole, sample)["y"])


def test_scales_are_joined_kind_by_kind() -> None:
    whole = openqnn.convert(scales())
    assert [(j.output, j.axis, [p.stop for p in j.pieces]) for j in joins_of(whole)] == [("y", 2, [2, 4, 7])]
    split = openqnn.split_outputs(whole)
    assert {v.name: v.shape for v in split.outputs} == {"y_0": (1, 10, 4), "y_1": (1, 10, 3)}
    sample = samples(1, 1, 5, 8)[0]
    np.testing.assert_array_equal(
        np.concatenate(list(results(split, sample).values()), 2), results(whole, sample)["y"]
    )


def test_scales_are_measured_part_by_part_too() -> None:
    with pytest.warns(AccuracyWarning, match="part 'scoresa'"):
        openqnn.quantize(openqnn.convert(scales()), samples(16, 1, 5, 8), act_bw=8, backend="cpu")


def test_a_join_that_leaves_scores_few_steps_is_warned_of() -> None:
    with pytest.warns(
        AccuracyWarning, match=r"output 'y' joins values of different ranges: .* part 'scores'"
    ):
        openqnn.quantize(heads(), samples(16, 1, 5, 8), act_bw=8, backend="cpu")


def test_nobody_is_warned_where_all_is_well() -> None:
    """Parts have steps of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        openqnn.quantize(openqnn.split_outputs(heads()), samples(16, 1, 5, 8), act_bw=8, backend="cpu")


@needs_htp
def test_scores_are_right_on_htp_in_bytes() -> None:
    data = samples(16, 1, 5, 8)
    split = openqnn.split_outputs(heads())
    fixed = openqnn.quantize(split, data, act_bw=8)
    want, got = list(results(split, data[0]).values())[1], list(results(fixed, data[0], "htp").values())[1]
    assert np.abs(want - got).max() < 0.05


def test_what_cannot_be_split() -> None:
    graph = heads()
    with pytest.raises(InputError, match="no output 'z'"):
        openqnn.split_outputs(graph, ["z"])
    with pytest.raises(UsageError, match="no output joins"):
        openqnn.split_outputs(openqnn.split_outputs(graph))
    with pytest.raises(UsageError, match="is in fixed point"):
        openqnn.split_outputs(openqnn.quantize(graph, samples(4, 1, 5, 8), backend="cpu"))


def test_what_is_given_already_is_given_once_more() -> None:
    """An input and an output that are joined, too."""
    nodes = [node("Sigmoid", "x", "s"), node("Concat", "x s", "y", axis=0)]
    proto = model_of(nodes, {"x": rand(2, 3)}, {}, 17)
    proto.graph.output.append(onnx.helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, (2, 3)))
    split = openqnn.split_outputs(openqnn.convert(proto), ["y"])
    x = rand(2, 3)
    found = results(split, {"x": x})
    assert list(found) == ["y_0", "y_1", "s"]
    np.testing.assert_array_equal(found["y_0"], x)
    np.testing.assert_array_equal(found["y_1"], found["s"])


def test_the_commands(tmp_path: Path) -> None:
    onnx.save(scales(), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.concatenate([s["x"] for s in samples(8, 1, 5, 8)]))
    made = tmp_path / "m.oqnn"
    assert command("convert", tmp_path / "m.onnx", "-o", made, "--split_outputs").code == 0
    assert [v.name for v in openqnn.load(made).outputs] == ["y_0", "y_1"]
    fixed = tmp_path / "q.oqnn"
    result = command(
        "quantize", tmp_path / "m.onnx", "--data", tmp_path / "x.npy", "-o", fixed, "--split_outputs"
    )
    assert result.code == 0 and "outputs: y_0 [1, 10, 4], y_1 [1, 10, 3]" in result.err
    assert [v.name for v in openqnn.load(fixed).outputs] == ["y_0", "y_1"]
    refused = command("convert", tmp_path / "m.onnx", "-o", tmp_path / "z.oqnn", "--split_outputs", "z")
    assert_refused(refused, "no output 'z'")
