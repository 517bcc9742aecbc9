"""Integer forms of single-operator models: encodings from the ranges that LiteRT finds in floating point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tests.frontends.tflite.build import Array, Quant, T, single
from tests.frontends.tflite.cases import Case

LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")


@dataclass(frozen=True)
class Form:
    """Types of activations, weights and biases."""

    activations: str = "int8"
    weights: str = "int8"
    biases: str = "int32"
    per_axis: bool = True


INT8 = Form()
UINT8 = Form("uint8", "uint8", per_axis=False)
INT16X8 = Form("int16", "int8", "int64")
INT4 = Form("int8", "int4")


def of_range(low: float, high: float, dtype: str) -> Quant:
    low, high = min(low, 0.0), max(high, 0.0)
    info = np.iinfo(dtype)
    if dtype == "int16":
        return Quant([max(-low, high, 1e-6) / info.max], [0])
    scale = max(high - low, 1e-6) / (int(info.max) - int(info.min))
    return Quant([scale], [round(info.min - low / scale)])


def stored(real: Array, quant: Quant, dtype: str) -> Array:
    info = np.iinfo("int8" if dtype == "int4" else dtype)
    low, high = (-7, 7) if dtype == "int4" else (info.min, info.max)
    shape = [-1 if i == quant.axis and len(quant.scale) > 1 else 1 for i in range(real.ndim)]
    scale, zero = (np.asarray(v, np.float64).reshape(shape) for v in (quant.scale, quant.zero))
    return np.clip(np.round(real / scale) + zero, low, high).astype(info.dtype)


def weight(t: T, axis: int, form: Form) -> T:
    assert t.data is not None
    if form.weights == "uint8":
        quant = of_range(float(t.data.min()), float(t.data.max()), "uint8")
    else:
        others = tuple(i for i in range(t.data.ndim) if i != axis)
        most = np.abs(t.data).max(axis=others if form.per_axis else None)
        top = 7 if form.weights == "int4" else 127
        scales = [float(s) for s in np.atleast_1d(most) / top]
        quant = Quant(scales, [0] * len(scales), axis)
    return replace(t, data=stored(t.data, quant, form.weights), dtype=form.weights, quant=quant)


def bias(t: T, scale: float, weights: Quant, form: Form) -> T:
    assert t.data is not None
    scales = [scale * s for s in weights.scale]
    scales = scales * t.shape[0] if form.per_axis and len(scales) == 1 else scales
    quant = Quant(scales, [0] * len(scales))
    data = np.round(t.data / np.asarray(scales)).astype(form.biases)
    return replace(t, data=data, dtype=form.biases, quant=quant)


def quantized_model(case: Case, results: Mapping[str, Array], form: Form = INT8) -> bytes:
    """The model in integers; `results` are what the one in floating point gives on its inputs."""
    range_of_input = of_range(case.low, case.high, form.activations)
    inputs: list[T | None] = []
    weights: Quant | None = None
    for i, t in enumerate(case.inputs):
        if t is None or t.dtype != "float32":
            inputs.append(t)
        elif i == case.weights[0] and t.data is not None:
            made = weight(t, case.weights[1], form)
            weights = made.quant
            inputs.append(made)
        elif weights is not None and t.data is not None and case.op in LAYERS:
            inputs.append(bias(t, range_of_input.scale[0], weights, form))
        elif t.data is not None:
            quant = of_range(float(t.data.min()), float(t.data.max()), form.activations)
            inputs.append(
                replace(t, data=stored(t.data, quant, form.activations), dtype=form.activations, quant=quant)
            )
        else:
            inputs.append(replace(t, dtype=form.activations, quant=range_of_input))
    outputs = [_output(case, array, range_of_input, form) for array in results.values()]
    return single(case.op, inputs, outputs, case.kind, **case.options)


def _output(case: Case, array: Array, same: Quant, form: Form) -> T:
    if array.dtype != np.float32:
        return T((), array.dtype.name)
    if case.quantized == "same":
        return T((), form.activations, quant=same)
    if isinstance(case.quantized, tuple):
        scale, zero = case.quantized
        if form.activations == "int16":
            scale, zero = 1 / 32768, 0
        elif form.activations == "uint8":
            zero += 128
        return T((), form.activations, quant=Quant([scale], [zero]))
    return T((), form.activations, quant=of_range(float(array.min()), float(array.max()), form.activations))
