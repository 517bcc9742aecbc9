"""Trials: one inference over all samples, as work for a process of its own or another machine."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.api.custom_ops import NOTHING_DECLARED, DeclaredOps, declare_again
from openqnn.api.quantize_variants import SharedCalibration, bytes_of_graph, graph_of_bytes
from openqnn.errors import LibraryError, OpenQnnError, OpenQnnWarning
from openqnn.evaluation.inference import FP16, ONNX_RUNTIME, QNN, QUANT, Inference
from openqnn.ir import Array, Graph, Value

TIMEOUT = 600.0  # seconds for one inference on a library


@dataclass(frozen=True, slots=True)
class Trial:
    """What a worker needs: `stored` is the float graph where nothing is quantized, `fitting` are samples for
    algorithms that fit weights. Samples are by input name in the source model's layout."""

    inference: Inference
    source: str
    samples: Sequence[Mapping[str, Array]]
    stored: Array
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, "Sequence[int]"])
    calibration: SharedCalibration | None = None
    fitting: Sequence[Mapping[str, Array]] = ()
    threads: int = 1
    own_ops: DeclaredOps = NOTHING_DECLARED


@dataclass(slots=True)
class TrialResult:
    """What came of a trial: outputs of each sample, the graph that ran, its cost; or why there is none."""

    outputs: list[dict[str, Array]] = field(default_factory=list[dict[str, Array]])
    graph: Array | None = None
    cost: float = float("nan")
    seconds: float = 0.0
    error: str = ""
    notes: list[str] = field(default_factory=list[str])


def run_trial(trial: Trial) -> TrialResult:
    """The outputs, or the reason why there are none: what goes wrong with one option stops no other."""
    result, start = TrialResult(), time.perf_counter()
    try:
        with _quiet():
            declare_again(trial.own_ops)
            _run(trial, result)
    except OpenQnnError as error:
        result.error, result.outputs = str(error), []
    result.seconds = time.perf_counter() - start
    return result


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)
        yield


def _run(trial: Trial, result: TrialResult) -> None:
    if trial.inference.engine != QNN:
        result.outputs = list(_on_source(trial))
        return
    graph = _graph(trial)
    result.graph, result.cost = bytes_of_graph(graph), megabytes_moved(graph)
    with ExitStack() as stack:
        session = stack.enter_context(_session(trial, graph, result))
        result.outputs = list(session.run_many(trial.samples))


def _graph(trial: Trial) -> Graph:
    from openqnn.passes.set_float_width import set_float_width
    from openqnn.targets.registry import HTP, find_target

    inference = trial.inference
    if inference.precision == QUANT:
        assert trial.calibration is not None and inference.variant is not None
        return trial.calibration.make(inference.variant, trial.fitting)
    graph = graph_of_bytes(trial.stored)
    if inference.is_simulated:
        graph = find_target(HTP).adapt_float(graph)
    if inference.precision == FP16:
        set_float_width(graph, 16, 16)
    return graph


def _session(trial: Trial, graph: Graph, result: TrialResult) -> Any:
    """On the library that the backend stands for; on the built-in backend where that is not installed."""
    from openqnn.api.session import Session
    from openqnn.targets.registry import target_of_library

    inference = trial.inference
    if inference.library:
        try:
            has_chips = target_of_library(inference.library).compiles
            soc, settings = (inference.soc, inference.settings or None) if has_chips else (None, None)
            return Session(graph, backend=inference.library, soc=soc, timeout=TIMEOUT, settings=settings)
        except LibraryError as error:
            result.notes.append(f"{inference.library}: {error.message}: the built-in backend computed this")
    return Session(graph, threads=trial.threads)


def _on_source(trial: Trial) -> Iterator[dict[str, Array]]:
    """The source model in its own framework."""
    from openqnn.errors import UnsupportedError
    from openqnn.runtime.onnx_runner import OnnxRuntimeRunner

    if trial.inference.engine == ONNX_RUNTIME:
        if Path(trial.source).suffix != ".onnx":
            raise UnsupportedError(
                f"{trial.source}: ONNX Runtime runs ONNX models", hint="name: qnn, precision: fp32"
            )
        runner = OnnxRuntimeRunner(trial.source, threads=trial.threads, input_shapes=trial.shapes)
        yield from runner.run_many(trial.samples)
        runner.close()
        return
    if trial.inference.engine == "torchscript":
        yield from _on_torch(trial)
        return
    raise UnsupportedError(
        f"name: {trial.inference.engine}: models of TensorFlow are not run in their framework here",
        hint="name: qnn with precision: fp32 computes the converted model in floats",
    )


def _on_torch(trial: Trial) -> Iterator[dict[str, Array]]:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        from openqnn.errors import UnsupportedError

        raise UnsupportedError(
            "name: torchscript needs the package torch", hint="pip install 'openqnn[torch]'"
        ) from None
    names = [value.name for value in graph_of_bytes(trial.stored).outputs]
    module = torch.jit.load(trial.source)
    for sample in trial.samples:
        with torch.no_grad():
            found = module(*(torch.from_numpy(np.ascontiguousarray(array)) for array in sample.values()))
        arrays = found if isinstance(found, tuple | list) else [found]
        yield {name: array.numpy() for name, array in zip(names, arrays, strict=True)}


def _bytes_of_constant(value: Value) -> float:
    """Narrow integers are packed where a device reads them."""
    return value.nbytes if value.encoding is None else value.size * value.encoding.bitwidth / 8


def megabytes_moved(graph: Graph) -> float:
    """What a graph reads and writes in one inference: constants once, every tensor where it is written and
    where it is read. A measure of cost that needs no library."""
    total = sum(_bytes_of_constant(value) for value in graph.constants())
    for value in graph.values():
        if not value.is_constant:
            total += value.nbytes * (1 + len(value.users))
    return total / 1e6
