"""Figures of quantization: on samples that had no part in it, output by output and part by part."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.api.quantize import Outcome
from openqnn.errors import AccuracyWarning
from openqnn.ir import Graph
from openqnn.quant.verdict import joined_parts
from tests.frontends.onnx.against_ort import model_of, node, rand

Sample = dict[str, Any]


def samples(count: int, *shape: int) -> list[Sample]:
    return [{"x": rand(*shape, seed=i)} for i in range(count)]


def layer() -> Graph:
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    return openqnn.convert(model_of(nodes, {"x": rand(2, 8)}, {"w": rand(8, 6)}, 17))


def outcome(graph: Graph, data: Any, **choices: Any) -> Outcome:
    found: list[Outcome] = []
    openqnn.quantize(graph, data, backend="cpu", outcome=found.append, **choices)
    return found[0]


def test_some_samples_are_held_back() -> None:
    """A calibration that saw the wild one would have steps of a half."""
    data = samples(16, 2, 8)
    data[3]["x"] = data[3]["x"] * 20
    found: list[Outcome] = []
    made = openqnn.quantize(layer(), data, backend="cpu", outcome=found.append)
    assert made.inputs[0].encoding is not None and made.inputs[0].encoding.scale[0] < 0.1
    tested = found[0].tested
    assert tested is not None and tested.words == "on 4 held-out samples"
    assert any(np.array_equal(s["x"], data[3]["x"]) for s in tested.samples)


def test_a_stream_of_unknown_length_spares_some_too() -> None:
    def stream() -> Iterator[Sample]:
        yield from samples(40, 2, 8)

    tested = outcome(layer(), stream()).tested
    assert tested is not None and tested.words == "on 8 held-out samples"


def test_few_samples_are_all_needed() -> None:
    for data in (samples(4, 2, 8), iter(samples(4, 2, 8))):
        tested = outcome(layer(), data).tested
        assert tested is not None and tested.words == "on the calibration samples"


def test_an_array_of_many_batches_is_many_samples() -> None:
    tested = outcome(layer(), rand(32, 8)).tested
    assert tested is not None and tested.words == "on 4 held-out samples"


def test_the_users_own_test_data() -> None:
    tested = outcome(layer(), samples(16, 2, 8), test_data=samples(3, 2, 8)).tested
    assert tested is not None and tested.words == "on 3 test samples"


def test_a_target_is_measured_on_what_was_held_back() -> None:
    """With all samples calibrated, the wild one would be within the range, and 20 dB be reached at once."""
    data = samples(16, 2, 8)
    data[7]["x"] = data[7]["x"] * 50
    mixed = outcome(layer(), data, target_sqnr=20.0).mixed
    assert mixed is not None and mixed.before < 20


def test_a_good_result_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        verdict = outcome(layer(), samples(16, 2, 8)).verdict
    assert verdict is not None and verdict.word == "good" and verdict.remedy is None


def test_a_bad_one_is_warned_of_with_what_was_tried() -> None:
    """Numbers of one output that are a thousand times others: 8 bits leave nothing of the small ones."""
    factors = np.geomspace(1, 1e-4, 8).astype(np.float32)
    nodes = [node("Mul", "x f", "h"), node("Sub", "h m", "d"), node("Mul", "d g", "y")]
    constants = {"f": factors, "m": factors / 2, "g": 1 / factors}
    graph = openqnn.convert(model_of(nodes, {"x": rand(2, 8)}, constants, 17))
    with pytest.warns(AccuracyWarning, match=r"useless: .* on 4 held-out samples; with 16-bit activations"):
        openqnn.quantize(graph, samples(16, 2, 8), act_bw=8, backend="cpu")


def test_an_output_that_overflows_in_floating_point_is_not_exact() -> None:
    nodes = [node("Mul", "x f", "h"), node("Mul", "h f", "y")]
    graph = openqnn.convert(model_of(nodes, {"x": rand(2, 8)}, {"f": np.full(8, 3e37, np.float32)}, 17))
    data = [{"x": 2 + np.abs(rand(2, 8, seed=i))} for i in range(8)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        openqnn.quantize(graph, data, backend="cpu")
    assert "useless: nothing left" in str(told[-1].message)
    assert "none of its numbers is finite" in str(told[-1].message)


def heads() -> Graph:
    """Boxes in pixels and scores, joined and turned, as detectors give them."""
    nodes = [
        node("MatMul", "x w", "boxes"), node("MatMul", "x v", "logits"), node("Sigmoid", "logits", "scores"),
        node("Concat", "boxes scores", "both", axis=2), node("Transpose", "both", "y", perm=[0, 2, 1]),
    ]  # fmt: skip
    constants = {"w": rand(8, 4) * 200, "v": rand(8, 3, seed=1)}
    return openqnn.convert(model_of(nodes, {"x": rand(1, 5, 8)}, constants, 17))


def test_joined_outputs_are_measured_part_by_part() -> None:
    graph = heads()
    assert [(p.label, p.stop - p.start) for p in joined_parts(graph)] == [("boxes", 4), ("scores", 3)]
    with pytest.warns(AccuracyWarning, match=r"part 'scores'"):
        verdict = outcome(graph, samples(16, 1, 5, 8), act_bw=8).verdict
    assert verdict is not None
    figures = {f.part: f.sqnr for f in verdict.figures}
    assert min(figures[""], figures["boxes"]) > 30 and figures["scores"] < 10


def test_the_default_keeps_scores() -> None:
    verdict = outcome(heads(), samples(16, 1, 5, 8)).verdict
    assert verdict is not None and verdict.worst.sqnr > 20


def test_more_bits_never_lose() -> None:
    for graph in (layer(), heads()):
        data = samples(16, *graph.ports["x"].shape)
        narrow, wide = (outcome(graph, data, act_bw=bits).verdict for bits in (8, 16))
        assert narrow is not None and wide is not None and wide.worst.sqnr >= narrow.worst.sqnr
