"""The other quantizers: ONNX Runtime's recipe for QNN and aimet-onnx.

What they make of a model is kept in a folder: ONNX Runtime's QDQ model, and the model and the encodings that
aimet-onnx exports, which runs in a Python of its own. Both are judged as graphs of ours with their encodings,
and as they simulate themselves: the QDQ model in ONNX Runtime with all optimisations off, where every tensor
is rounded where the model says so and nothing else happens, and aimet-onnx in its own session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime as ort
from numpy.typing import NDArray

import openqnn
from openqnn.api.quantize import quantize
from openqnn.ir import Graph

Inputs = Mapping[str, NDArray[Any]]
Outputs = dict[str, NDArray[Any]]
Shapes = Mapping[str, tuple[int, ...]]
CHANNELS_SINCE = 13  # the opset whose DequantizeLinear has an axis
AIMET_TIMEOUT = 1800  # seconds
CLIPPED, MOST_CLIPPED = 1.5, 0.01  # steps that clipped weights are off by, and the share that may be


class PeerError(RuntimeError):
    """A peer did not get through, and what it said."""


def run_onnx(model: bytes | Path, feeds: Sequence[Inputs], *, literal: bool = False) -> list[Outputs]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if literal:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model if isinstance(model, bytes) else str(model)
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    found: list[list[Any]] = [list(session.run(names, dict(f))) for f in feeds]
    return [dict(zip(names, outputs, strict=True)) for outputs in found]


def recipe_model(
    models: Sequence[onnx.ModelProto], calibration: Sequence[Inputs], bits: int, per_channel: bool, to: Path
) -> None:
    """The QDQ model of ONNX Runtime's recipe for QNN: of the first of the models that it gets through."""
    said: list[str] = []
    for model in models:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                made = _qdq_model(model, calibration, bits, per_channel, Path(scratch))
                ort.InferenceSession(made, providers=["CPUExecutionProvider"])
                shutil.copyfile(made, to)
                return
            except Exception as e:  # whatever it raises is its result
                said.append(f"{type(e).__name__}: {' '.join(str(e).split())[:200]}")
    raise PeerError(said[0])


def _qdq_model(
    model: onnx.ModelProto, calibration: Sequence[Inputs], bits: int, per_channel: bool, scratch: Path
) -> Path:
    """As its documentation makes it."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config, qnn_preprocess_model

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(calibration)

        def get_next(self) -> Any:
            return next(self.rest, None)

    float_model, ready, quantized = (scratch / n for n in ("float.onnx", "ready.onnx", "qdq.onnx"))
    onnx.save(model, float_model)
    changed = qnn_preprocess_model(float_model, ready)
    source = ready if changed else float_model
    config = get_qnn_qdq_config(
        source,
        Reader(),
        activation_type=QuantType.QUInt16 if bits == 16 else QuantType.QUInt8,
        weight_type=QuantType.QInt8 if per_channel else QuantType.QUInt8,
        per_channel=per_channel,
    )
    quantize(source, quantized, config)
    return quantized


def _with_channels(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in an opset that has scales per channel: the recipe writes them whatever the opset."""
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    if opset >= CHANNELS_SINCE:
        return model
    weights = {i.name for i in model.graph.initializer}  # the converter wants inputs to be inputs
    data = [i for i in model.graph.input if i.name not in weights]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = max(copy.ir_version, 7)
    del copy.graph.input[:]
    copy.graph.input.extend(data)
    return onnx.version_converter.convert_version(copy, CHANNELS_SINCE)


def simplified(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with constants folded and static shapes, as ONNX Runtime's own preparation leaves it.

    Without it the peers quantize the arithmetic of shapes, and fail.
    """
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "simple.onnx"
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(target)
        source = _with_channels(model).SerializeToString()
        ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        found = onnx.load(target)
        del found.metadata_props[:]  # the recipe trips over them
        _flatten_biases(found)
        return found


def _flatten_biases(model: onnx.ModelProto) -> None:
    """A Gemm whose bias is a row of one becomes one with a vector: the recipe fails on rows per channel."""
    biases = {n.input[2] for n in model.graph.node if n.op_type == "Gemm" and len(n.input) > 2}
    for constant in model.graph.initializer:
        if constant.name in biases and len(constant.dims) == 2 and constant.dims[0] == 1:
            del constant.dims[0]


def aimet(
    python: str, model: onnx.ModelProto, calibration: Sequence[Inputs], feeds: Sequence[Inputs], to: Path
) -> None:
    """Leaves outputs-8.npz, 8.onnx and 8.encodings in a folder, and the same for 16 bits of activations."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        onnx.save(model, folder / "model.onnx")
        for name, samples in (("calibration", calibration), ("evaluation", feeds)):
            arrays: dict[str, Any] = {f"{i}/{k}": a for i, s in enumerate(samples) for k, a in s.items()}
            np.savez(folder / name, **arrays)
        command = [python, str(Path(__file__).with_name("aimet_peer.py")), scratch]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=AIMET_TIMEOUT, env=clean
        )
        if not (folder / "outputs-16.npz").exists():  # its exit code says nothing: it may crash at its end
            last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise PeerError(last[:200])
        for bits in (8, 16):
            onnx.save(onnx.load(folder / f"{bits}.onnx"), to / f"{bits}.onnx")  # its data is in another file
            for name in (f"outputs-{bits}.npz", f"{bits}.encodings"):
                shutil.copyfile(folder / name, to / name)


def imported(model: Path, shapes: Shapes, encodings: Path | None = None) -> Graph:
    """A graph of ours with the encodings of a peer, and nothing else in fixed point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = openqnn.convert(model, input_shapes=dict(shapes))
        made = quantize(graph, overrides=encodings, float_fallback=True, algorithms=())
    _check_weights(graph, made)
    return made


def _check_weights(real: Graph, fixed: Graph) -> None:
    """Conversion folds factors into weights: an encoding of the weight before that clips it."""
    known = {v.name: v.data for v in real.constants()}
    for value in fixed.constants():
        data = known.get(value.name)
        if value.encoding is None or value.data is None or data is None or data.shape != value.data.shape:
            continue
        lost = np.abs(value.encoding.dequantize(value.data) - data)
        if np.mean(lost > CLIPPED * max(value.encoding.scale)) > MOST_CLIPPED:
            raise PeerError(f"'{value.name}' was changed by conversion, and its encoding is for what it was")


def outputs_in(path: Path, count: int) -> list[Outputs]:
    found: list[Outputs] = [{} for _ in range(count)]
    with np.load(path) as arrays:
        for key in arrays.files:
            number, name = key.split("/", 1)
            found[int(number)][name] = arrays[key]
    return found
