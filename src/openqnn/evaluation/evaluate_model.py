"""Evaluation of one model: inferences over samples, held against a reference, one row of results each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.api.custom_ops import declared_ops
from openqnn.api.quantize_variants import (
    SharedCalibration,
    bytes_of_graph,
    calibrate_variants,
    digest_of_arrays,
    digest_of_graph,
)
from openqnn.errors import InputError, OpenQnnError, OpenQnnWarning
from openqnn.evaluation.comparators import BOX, PIXELS, Comparator
from openqnn.evaluation.inference import FP32, QNN, QUANT, Inference
from openqnn.evaluation.match_boxes import BoxOutputs, match_boxes
from openqnn.evaluation.run_trials import run_trials
from openqnn.evaluation.trial import Trial, TrialResult
from openqnn.evaluation.trial_store import TrialStore
from openqnn.frontends.onnx.open_onnx import has_declared_ops
from openqnn.ir import Array, Graph
from openqnn.quant.algorithms import wants_samples_before

Samples = Sequence[Mapping[str, Array]]
SUCCESS, FAILED = "Success", "Failed"
Score = Callable[[Inference, Sequence[Mapping[str, Array]]], dict[str, float]]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the results. `outputs` are the comparator's means by output, `overall` that of all."""

    inference: Inference
    status: str
    outputs: Mapping[str, float] = field(default_factory=dict[str, float])
    overall: float = float("nan")
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    cost: float = float("nan")
    seconds: float = 0.0
    message: str = ""
    is_reference: bool = False
    is_stored: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """The model and its data: samples to run, samples to calibrate with."""

    source: str
    graph: Graph
    samples: Samples
    calibration: Samples
    shapes: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Judging:
    """How results are judged: by a comparator against the reference, by metrics, or both."""

    comparator: Comparator | None = None
    tolerance: float = 0.001
    boxes: BoxOutputs | None = None
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """Where and how the work is done."""

    folder: Path
    jobs: int = 0
    on: str = ""
    progress: Progress | None = None


def evaluate_model(
    subject: Subject, inferences: Sequence[Inference], reference: int, judging: Judging, means: Means
) -> list[Row]:
    """A row for each inference, in their order; what failed has its reason. `reference` is the place of the
    inference that others are held against, or -1."""
    if not subject.samples:
        raise InputError("there are no samples to evaluate on", hint="give at least one input set")
    store = TrialStore(means.folder / "infer", _digest(subject))
    found = {i: result for i, each in enumerate(inferences) if (result := store.load(each)) is not None}
    stored = set(found)
    golden = _golden(subject, inferences, reference, found, store)
    started = time.perf_counter()
    left = [i for i in range(len(inferences)) if i not in found]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)
        trials = _trials(subject, inferences, left, found)
    seconds = _seconds(found.get(reference), len(trials)) + (time.perf_counter() - started)
    rows = {i: _row(inferences, i, result, golden, reference, judging, store) for i, result in found.items()}
    for place, result in run_trials([t for _, t in trials], jobs=means.jobs, on=means.on, seconds=seconds):
        index = trials[place][0]
        if not result.error:
            store.save(inferences[index], result)
        rows[index] = _row(inferences, index, result, golden, reference, judging, store)
        if means.progress is not None:
            means.progress("evaluate", len(rows), len(inferences))
    return [replace(rows[i], is_stored=i in stored) for i in range(len(inferences))]


def _digest(subject: Subject) -> str:
    parts = (digest_of_graph(subject.graph), *map(digest_of_arrays, (subject.samples, subject.calibration)))
    return " ".join(parts)


def _seconds(reference: TrialResult | None, count: int) -> float:
    """What so many trials take on one core: fixed point costs a few times as much as floats."""
    return 4 * reference.seconds * count if reference is not None else 0.0


def _golden(
    subject: Subject, inferences: Sequence[Inference], reference: int, found: dict[int, TrialResult],
    store: TrialStore,
) -> list[dict[str, Array]]:  # fmt: skip
    """The reference's outputs, which come before all others; an error where they cannot be had."""
    if reference < 0:
        return []
    if reference not in found:
        trials = _trials(subject, inferences, [reference], found)
        if found.get(reference) is None:
            result = next(run_trials([trials[0][1]], jobs=1))[1]
            if result.error:
                raise InputError(f"reference {inferences[reference].label}: {result.error}")
            store.save(inferences[reference], result)
            found[reference] = result
    if found[reference].error:
        raise InputError(f"reference {inferences[reference].label}: {found[reference].error}")
    return found[reference].outputs


def _trials(
    subject: Subject, inferences: Sequence[Inference], left: Sequence[int], found: dict[int, TrialResult]
) -> list[tuple[int, Trial]]:
    """The work that is left. What cannot be calibrated has its result already: the reason."""
    groups: dict[object, SharedCalibration | OpenQnnError] = {}
    stored = bytes_of_graph(subject.graph) if left else np.zeros(0, np.uint8)
    made: list[tuple[int, Trial]] = []
    for index in left:
        inference = inferences[index]
        calibration = None
        if inference.precision == QUANT and inference.engine == QNN:
            calibration = _calibrated(subject, inferences, inference, groups)
        if isinstance(calibration, OpenQnnError):
            found[index] = TrialResult(error=str(calibration))
            continue
        fitting = _fitting(subject, inference)
        trial = Trial(
            inference, subject.source, subject.samples, stored, subject.shapes, calibration, fitting,
            own_ops=declared_ops(),
        )  # fmt: skip
        made.append((index, trial))
    return made


def _fitting(subject: Subject, inference: Inference) -> Samples:
    """Samples for algorithms that fit weights to them; others need none."""
    names = inference.variant.algorithms if inference.variant is not None else ()
    needed = [name for name in names if not wants_samples_before([name])]
    return subject.calibration if needed else ()


def _calibrated(
    subject: Subject, inferences: Sequence[Inference], inference: Inference, groups: dict[object, Any]
) -> Any:
    """The calibration of the inference's group, which the first that asks for it pays."""
    assert inference.variant is not None
    group = inference.variant.group
    if group not in groups:
        members = [i.variant for i in inferences if i.variant is not None and i.variant.group == group]
        try:
            groups[group] = calibrate_variants(subject.graph, subject.calibration, members)
        except OpenQnnError as error:
            groups[group] = error
    return groups[group]


def _row(
    inferences: Sequence[Inference], index: int, result: TrialResult, golden: Sequence[Mapping[str, Array]],
    reference: int, judging: Judging, store: TrialStore,
) -> Row:  # fmt: skip
    inference = inferences[index]
    if result.error:
        return Row(inference, FAILED, message=result.error, seconds=result.seconds)
    values: dict[str, float] = {}
    message = "; ".join(result.notes)
    if judging.comparator is not None and golden and index != reference:
        values = _compared(golden, result.outputs, judging, store.place(inference))
    scores: dict[str, float] = {}
    status = SUCCESS
    if judging.score is not None:
        try:
            scores = judging.score(inference, result.outputs)
        except OpenQnnError as error:
            status, message = FAILED, str(error)
    overall = float(np.mean(list(values.values()))) if values else float("nan")
    return Row(
        inference, status, values, overall, scores, result.cost, result.seconds, message, index == reference
    )


def _compared(
    golden: Sequence[Mapping[str, Array]],
    outputs: Sequence[Mapping[str, Array]],
    judging: Judging,
    place: Path,
) -> dict[str, float]:
    """The mean over all samples, by output; boxes are compared as a whole."""
    comparator = judging.comparator
    assert comparator is not None
    if comparator.name == BOX and judging.boxes is not None:
        shares = [
            match_boxes(x, y, judging.boxes, judging.tolerance) for x, y in zip(golden, outputs, strict=True)
        ]
        return {judging.boxes.box: float(np.mean(shares))}
    names = [name for name in golden[0] if name in outputs[0]]
    if comparator.name == PIXELS:
        _draw_differences(golden, outputs, names, place)
    return {
        name: float(np.mean([
            comparator.measure(x[name], y[name].reshape(x[name].shape), judging.tolerance)
            for x, y in zip(golden, outputs, strict=True)
        ]))
        for name in names
    }  # fmt: skip


def _draw_differences(
    golden: Sequence[Mapping[str, Array]],
    outputs: Sequence[Mapping[str, Array]],
    names: Sequence[str],
    place: Path,
) -> None:
    from openqnn.evaluation.difference_pictures import difference_picture
    from openqnn.evaluation.trial_store import raw_file

    for index, (x, y) in enumerate(zip(golden, outputs, strict=True)):
        for name in names:
            picture = difference_picture(x[name], y[name].reshape(x[name].shape), name)
            raw_file(place, index, name).with_suffix(".png").write_bytes(picture)


def reference_inference(source: str) -> Inference:
    """What minimal mode holds its options against: the source model in ONNX Runtime, or the converted one in
    floats where that is no ONNX model, or has operations that only the user's declarations know."""
    if Path(source).suffix == ".onnx" and not has_declared_ops(source):
        return Inference("schema0_onnxrt_fp32", "onnxrt", FP32)
    return Inference("schema0_qnn_fp32", QNN, FP32, "built-in")


def ranked(rows: Sequence[Row], comparator: Comparator) -> list[Row]:
    """The best first; behind them what failed, and the reference last."""
    return sorted(rows, key=lambda r: (r.is_reference, r.status != SUCCESS, comparator.rank(r.overall)))
