"""The other quantizers: ONNX Runtime's recipe for QNN and aimet-onnx, simulated as they simulate themselves.

ONNX Runtime's QDQ model runs in ONNX Runtime with all optimisations off: every tensor is rounded where the
model says so and nothing else happens. aimet-onnx runs its own simulation, in a Python of its own.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime as ort
from numpy.typing import NDArray

Inputs = Mapping[str, NDArray[Any]]
Outputs = dict[str, NDArray[Any]]
CHANNELS_SINCE = 13  # the opset whose DequantizeLinear has an axis
AIMET_TIMEOUT = 1800  # seconds


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


def onnx_runtime(
    model: onnx.ModelProto,
    calibration: Sequence[Inputs],
    feeds: Sequence[Inputs],
    bits: int,
    per_channel: bool,
) -> list[Outputs]:
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = qdq_model(model, calibration, bits, per_channel, Path(scratch))
            return run_onnx(found, feeds, literal=True)
        except Exception as e:  # whatever it raises is its result
            raise PeerError(f"{type(e).__name__}: {' '.join(str(e).split())[:200]}") from e


def qdq_model(
    model: onnx.ModelProto, calibration: Sequence[Inputs], bits: int, per_channel: bool, scratch: Path
) -> Path:
    """The QDQ model of ONNX Runtime's recipe for QNN, as its documentation makes it."""
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
        return found


def aimet(
    python: str, model: onnx.ModelProto, calibration: Sequence[Inputs], feeds: Sequence[Inputs]
) -> dict[int, list[Outputs]]:
    """The outputs by the bits of the activations."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        onnx.save(model, folder / "model.onnx")
        for name, samples in (("calibration", calibration), ("evaluation", feeds)):
            arrays: dict[str, Any] = {f"{i}/{k}": a for i, s in enumerate(samples) for k, a in s.items()}
            np.savez(folder / name, **arrays)
        command = [python, str(Path(__file__).with_name("aimet_peer.py")), scratch]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=AIMET_TIMEOUT)
        if not (folder / "outputs-16.npz").exists():  # its exit code says nothing: it may crash at its end
            last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise PeerError(last[:200])
        return {bits: _outputs(folder / f"outputs-{bits}.npz", len(feeds)) for bits in (8, 16)}


def _outputs(path: Path, count: int) -> list[Outputs]:
    found: list[Outputs] = [{} for _ in range(count)]
    with np.load(path) as arrays:
        for key in arrays.files:
            number, name = key.split("/", 1)
            found[int(number)][name] = arrays[key]
    return found
