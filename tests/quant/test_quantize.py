"""From a real model and real data to fixed point, on the built-in backend and on libQnnHtp."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.analysis.quant_page import quant_page
from openqnn.analysis.quant_report import quant_report
from openqnn.api.quantize import HTP, prepared_for, recipe_of
from openqnn.errors import InputError, OpenQnnWarning, UsageError
from openqnn.ir import DType, Encoding, Given, Graph
from openqnn.ir.graph_text import parse_graph
from openqnn.ops import Builder
from openqnn.quant.recipe import FLOAT, Method, Scheme
from openqnn.runtime.metrics import sqnr
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs
from tests.passes.harness import graph_of, random_inputs
from tests.qnn.nets import needs_htp

MODEL = "mtcnn_onet"
Arrays = dict[str, np.ndarray]


@cache
def converted(model: str = MODEL) -> Graph:
    return openqnn.convert(model_path(model), input_shapes=static_shapes(model))


@cache
def reference(model: str = MODEL) -> Arrays:
    with openqnn.Session(converted(model)) as session:
        return session.run(sample_inputs(model))


def run(graph: Graph, backend: str = "cpu", model: str = MODEL) -> Arrays:
    with openqnn.Session(graph, backend, timeout=240) as session:
        return session.run(sample_inputs(model))


def worst(found: Arrays, model: str = MODEL) -> float:
    """The lowest signal to noise ratio of all outputs, in dB."""
    return min(sqnr(real, found[name]) for name, real in reference(model).items())


def quantized(**choices: Any) -> Graph:
    return openqnn.quantize(converted(), [sample_inputs(MODEL)], **choices)


CHOICES: list[tuple[dict[str, Any], float]] = [
    ({}, 22),
    ({"act_bw": 16}, 27),
    ({"act_bw": 16, "weight_bw": 16}, 50),
    ({"per_channel": False, "per_row": False}, 15),
    ({"bias_bw": 8, "per_channel": False, "per_row": False}, 20),
    ({"weight_bw": 4, "act_bw": 16}, 3),
]


@pytest.mark.parametrize(("choices", "least"), CHOICES, ids=lambda x: str(x))
def test_fixed_point_stays_near_floating_point(choices: dict[str, Any], least: float) -> None:
    assert worst(run(quantized(**choices))) > least


@needs_htp
@pytest.mark.parametrize(("choices", "least"), CHOICES, ids=lambda x: str(x))
def test_libqnnhtp_takes_it_and_agrees(choices: dict[str, Any], least: float) -> None:
    assert worst(run(quantized(**choices), HTP)) > least


def test_everything_is_stored_in_integers_and_says_where_from() -> None:
    graph = quantized()
    real = [v.name for v in graph.values() if v.dtype is DType.FLOAT_32]
    assert real == []
    assert {v.name for v in graph.values() if v.encoding is not None} <= set(graph.provenance)
    sources = {source.partition(",")[0] for source in graph.provenance.values()}  # what follows is the width
    assert {"calibration", "fixed range", "data", "input scale * weight scale"} <= sources


def test_one_node_in_floats_is_converted_around() -> None:
    name = next(n.name for n in converted().nodes if n.op == "Conv2d")
    graph = quantized(widths={name: FLOAT})
    node = next(n for n in graph.nodes if n.name == name)
    assert node.out.dtype is DType.FLOAT_32 and node.x(1).dtype is DType.FLOAT_32
    assert {"Dequantize", "Quantize"} & {n.op for n in graph.nodes}
    assert worst(run(graph)) > 22


def test_mixed_widths_are_converted() -> None:
    name = [n.name for n in converted().nodes if n.op == "Conv2d"][1]
    graph = quantized(widths={name: 16})
    assert "Convert" in {n.op for n in graph.nodes}
    assert worst(run(graph)) > 22


def test_given_encodings_count_more_than_calibration() -> None:
    target = converted().outputs[0].name
    said = Encoding.per_tensor(0.5, -100)
    graph = quantized(given={target: Given("override", 8, encoding=said)})
    found = next(v for v in graph.outputs if v.name == target)
    assert found.encoding == said and graph.provenance[target] == "override"


def test_without_data_unknown_tensors_stay_real() -> None:
    node = next(n for n in converted().nodes if n.op == "Conv2d")
    target, known = node.out.name, (node.out, node.x(0), node.x(1))
    said = {v.name: Given("override", 8, encoding=Encoding.per_tensor(0.1, -100)) for v in known}
    graph = openqnn.quantize(converted(), given=said, float_fallback=True)
    fixed = {v.name for v in graph.values() if v.encoding is not None and not v.is_constant}
    assert target in fixed and graph.outputs[0].dtype is DType.FLOAT_32


def test_the_text_of_a_quantized_graph_reads_back(tmp_path: Path) -> None:
    graph = quantized()
    graph.save(tmp_path / "q.oqnn")
    again = openqnn.load(tmp_path / "q.oqnn")
    assert str(again) == str(graph)
    for name, array in run(again).items():
        np.testing.assert_array_equal(array, run(graph)[name])


MADE_NOISY = """
graph "noisy" {
  input %x: float32[1,1024]
  %loud: float32[1,1024] = ElementWiseNeg(%x)
  %part: float32[1,1023] = StridedSlice(%loud) ranges=[[0, 1, 1], [1, 1024, 1]] MASKS
  %late: float32[1,1023] = ElementWiseAdd(%part, %part)
  output %late
}
""".replace("MASKS", "begin_mask=0 end_mask=0 shrink_axes=0 new_axes_mask=0")


def test_a_report_tells_the_worst_and_is_a_page_of_its_own() -> None:
    real = prepared_for(converted(), recipe_of(None, {}), HTP)
    report = quant_report(real, quantized(), [sample_inputs(MODEL)])
    assert {o.name for o in report.outputs} == set(reference())
    assert min(o.sqnr for o in report.outputs) == pytest.approx(worst(run(quantized())), abs=0.1)
    assert report.fixed_nodes == report.nodes and len(report.worst) <= 10
    assert all(t.own_sqnr >= t.sqnr - 6 for t in report.tensors)
    page = quant_page(report)
    assert page.startswith("<!doctype html>") and "http" not in page.replace("http-equiv", "")
    assert all(t.name in page for t in report.worst)


def test_a_report_shows_the_range_of_all_samples() -> None:
    """Whichever comes first."""
    real = prepared_for(converted(), recipe_of(None, {}), HTP)
    (name, array), *_ = sample_inputs(MODEL).items()
    data = [{name: array * share} for share in (0.1, 1.0, 0.5)]
    reports = [quant_report(real, quantized(), order) for order in (data, data[::-1])]
    first, second = ({t.name: (t.seen_low, t.seen_high) for t in r.tensors} for r in reports)
    assert first == second and first[name] == (array.min(), array.max())
    (counts,) = (t.counts for t in reports[0].tensors if t.name == name)
    assert sum(counts) == 3 * array.size and max(counts[0], counts[-1]) < max(counts)


def test_a_report_blames_no_weights_that_an_algorithm_has_changed() -> None:
    """They are not near what they were, on purpose; rounded to the nearest step they would be."""
    made = quantized(algorithms=())
    name = next(n.x(1).name for n in made.nodes if n.op == "Conv2d")
    (weight,) = (v for v in made.constants() if v.name == name)
    assert weight.data is not None
    weight.data = np.clip(weight.data.astype(np.int16) + 9, -127, 127).astype(np.int8)
    report = quant_report(prepared_for(converted(), recipe_of(None, {}), HTP), made, [sample_inputs(MODEL)])
    (found,) = (t for t in report.tensors if t.name == name)
    assert found.sqnr < 20 and found.own_sqnr > 30 and not found.advice


@pytest.mark.parametrize(
    ("act", "weight", "remedy"), [(8, 8, "--act_bw 16"), (8, 4, "--weight_bw 8"), (16, 4, "--weight_bw 8")]
)
def test_a_report_says_where_noise_comes_from_and_what_mends_it(act: int, weight: int, remedy: str) -> None:
    made = quantized(act_bw=act, weight_bw=weight, algorithms=())
    report = quant_report(prepared_for(converted(), recipe_of(None, {}), HTP), made, [sample_inputs(MODEL)])
    told = {t.advice for t in report.tensors if t.own_sqnr > 40 and t.sqnr < 30 and not t.is_weight}
    assert told and all(re.match(r"(most of it is lost at|noise of) '", advice) for advice in told)
    named = {name for advice in told for name in re.findall(r"'([^']+)'", advice)}
    assert named <= {t.name for t in report.tensors}
    assert any(remedy in advice for advice in told)


def test_a_report_names_the_tensor_that_makes_the_noise_of_others() -> None:
    """One value of 1000 leaves no steps for the others: what is computed from them has the noise of that."""
    g = parse_graph(MADE_NOISY)
    data = [{"x": np.where(np.arange(1024) == 0, 1e3, np.linspace(-3, 3, 1024)).astype(np.float32)[None]}]
    report = quant_report(g, openqnn.quantize(g, data, backend="cpu", act_bw=8, judge=False), data)
    tensors = {t.name: t for t in report.tensors}
    assert "widths=" in tensors["loud"].advice or "--act_quantizer" in tensors["loud"].advice
    assert "noise of 'loud' before it" in tensors["late"].advice


@pytest.mark.parametrize(
    ("data", "choices", "error", "words"),
    [
        (None, {}, UsageError, "no data to find their ranges"),
        ([], {}, InputError, "no samples"),
        ([{"nope": np.zeros(1, np.float32)}], {}, InputError, "no input 'nope'"),
        ("nowhere.txt", {}, InputError, "nowhere.txt"),
        ([{}], {"act_bw": 12}, UsageError, "act_bw is 12"),
        ([{}], {"colour": 1}, UsageError, "no choice 'colour'"),
        ([{}], {"act": "mse"}, UsageError, "act is 'mse', and must be a Scheme\n  hint: .*Method.MSE"),
        ([{}], {"algorithms": "magic"}, UsageError, "no algorithm 'magic'"),
        ([{}], {"backend": "gpu"}, UsageError, "made for 'htp' or 'cpu', not for 'gpu'"),
        ([{}], {"float_fallback": True}, UsageError, "takes no data"),
        ([{}], {"ignore_encodings": True, "overrides": "x.json"}, UsageError, "contradict"),
    ],
)
def test_bad_input(data: Any, choices: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        openqnn.quantize(converted(), data, **choices)


def test_methods_and_algorithms_may_be_plain_words() -> None:
    by_words = quantized(act=Scheme("mse"), algorithms="bias_correction")  # type: ignore[arg-type]
    assert str(by_words) == str(quantized(act=Scheme(Method.MSE), algorithms=("bias_correction",)))
    with pytest.raises(UsageError, match="there is no method 'best'"):
        Scheme("best")  # type: ignore[arg-type]


@pytest.mark.parametrize("choices", [{}, {"float_fallback": True}, {"act_bw": 16}])
def test_what_is_in_fixed_point_is_not_quantized_again(tmp_path: Path, choices: dict[str, Any]) -> None:
    made = quantized(act_bw=8)
    made.save(tmp_path / "made.oqnn")
    data = None if choices.get("float_fallback") else [sample_inputs(MODEL)]
    for again in (made, tmp_path / "made.oqnn"):
        with pytest.raises(UsageError, match=r"is in fixed point already\n  hint: "):
            openqnn.quantize(again, data, **choices)


def test_a_graph_without_weights_is_not_quantized_again() -> None:
    lines = """
        input %x: float32[1,4]
        %t: float32[1,4] = Tanh(%x)
        %y: float32[1,4] = ElementWiseAdd(%x, %t)
        output %y
    """
    graph = graph_of(lines)
    made = openqnn.quantize(graph, random_inputs(graph))
    with pytest.raises(UsageError, match="in fixed point already"):
        openqnn.quantize(made, random_inputs(graph))


def test_steps_are_those_of_a_width() -> None:
    plain, fewer = (quantized(act_bw=8, algorithms=(), steps=steps) for steps in (None, (-0x40, 0x3F)))
    for a, b in zip(plain.values(), fewer.values(), strict=True):
        if a.encoding is not None and b.encoding is not None and a.dtype.bits == 8 and not a.is_constant:
            assert (
                b.encoding.scale[0] > 1.9 * a.encoding.scale[0] or fewer.provenance[b.name] != "calibration"
            )
    with pytest.warns(openqnn.OpenQnnWarning, match="0x7f7f are those of 16 bits, as no tensor has"):
        quantized(act_bw=8, algorithms=(), steps=(-0x8000, 0x7F7F))
    with pytest.raises(UsageError, match="no steps of a tensor"):
        quantized(steps=(-0x10000, 0x7F7F))


@pytest.mark.parametrize("width", [16, 32])
def test_floats_are_as_wide_as_they_are_given(width: int) -> None:
    (node,) = (n for n in converted().nodes if n.name == "conv2d_9")
    graph = quantized(
        act_bw=8, algorithms=(), given={node.x(1).name: Given("override", width, floating=True)}
    )
    floating = {v.dtype for v in graph.values() if v.dtype.is_float}
    assert floating == {DType.FLOAT_16 if width == 16 else DType.FLOAT_32}
    assert worst(run(graph)) > 20
    assert graph.provenance[node.x(1).name] == "override"


def test_floats_of_two_widths_are_told() -> None:
    first, second = [n for n in converted().nodes if n.op == "Conv2d"][:2]
    given = {n.x(1).name: Given("override", w, floating=True) for n, w in ((first, 16), (second, 32))}
    with pytest.warns(OpenQnnWarning, match=rf"here 32 bits: 1 tensors .* 16 bits .* '{first.x(1).name}'"):
        quantized(act_bw=8, algorithms=(), given=given)


def test_inputs_that_a_fallback_leaves_in_floats_are_as_wide_as_the_others() -> None:
    (node,) = (n for n in converted().nodes if n.name == "conv2d_9")
    given = {node.out.name: Given("override", 16, floating=True)}
    with pytest.warns(OpenQnnWarning, match="stays in floating point"):
        graph = openqnn.quantize(converted(), float_fallback=True, given=given)
    assert {v.dtype for v in graph.values() if v.dtype.is_float} == {DType.FLOAT_16}


@needs_htp
def test_a_dlc_tells_where_encodings_came_from(tmp_path: Path) -> None:
    graph = quantized()
    graph.save(tmp_path / "q.dlc")
    sources = openqnn.load(tmp_path / "q.dlc").provenance
    assert list(sources.values()) == list(graph.provenance.values()) and "calibration" in sources.values()
    assert set(sources) <= {v.name for v in openqnn.load(tmp_path / "q.dlc").values()}


def test_the_report_has_the_range_of_weights_around_any_zero() -> None:
    graph = Graph("g")
    b = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (4, 8))
    gamma = b.const(np.linspace(0.5, 2, 8, dtype=np.float32), name="gamma")
    graph.add_output(b("LayerNorm", x, gamma, axes=(1,)))
    samples = [{"x": np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)}]
    report = quant_report(graph, openqnn.quantize(graph, samples, backend="cpu"), samples)
    (found,) = (t for t in report.tensors if t.name == "gamma")
    assert (found.low, found.high) == pytest.approx((0, 2))
