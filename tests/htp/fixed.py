"""Fixed-point forms of float cases: operands by their roles, outputs calibrated on the float result."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from openqnn.ir import Array, DType, Encoding, Graph, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Role
from openqnn.runtime.cpu.executable import CpuExecutable
from tests.ops.database import Case, Given
from tests.ops.harness import build

SAMPLES = 6
# Operands that mean something together (boxes, grids, anchors): random numbers would not.
STRUCTURED = ("RoiAlign", "GridSample", "NonMaxSuppression", "MultiClassNms", "DetectionOutput", "Convert")
# libQnnHtp takes these only with the zero in the middle.
CENTRED = {("Tanh", 16), ("ElementWiseNeuron-tanh", 16)}


@dataclass(frozen=True)
class Fixed:
    """A fixed-point graph of one node, and what goes in."""

    graph: Graph
    feeds: list[dict[str, Array]]


def spread(low: float, high: float, bits: int, centred: bool = False) -> Encoding:
    """An unsigned encoding of a range, with an exact zero."""
    low, high = min(low, 0.0), max(high, 0.0)
    if centred:
        high = max(-low, high)
        low = -high
    steps = (1 << bits) - 1
    scale = max(high - low, 1e-4) / steps
    return Encoding.per_tensor(scale, int(np.clip(np.rint(low / scale), -steps, 0)), bits)


def symmetric(data: Array, bits: int, axis: int | None) -> Encoding:
    """A signed encoding with zero offset, of the whole tensor or per channel."""
    axis = None if axis is None else axis % data.ndim
    over = tuple(i for i in range(data.ndim) if i != axis)
    largest = np.abs(data).max(axis=over) if axis is not None else np.abs(data).max()
    scale = np.atleast_1d(np.maximum(largest, 1e-4) / ((1 << (bits - 1)) - 1))
    return Encoding(tuple(scale.tolist()), (0,) * scale.size, bits, axis, symmetric=True)


def is_real(given: Given | None) -> bool:
    return given is not None and given.dtype is None and given.data.dtype == np.float32


def fixed_case(case: Case, bits: int, per_channel: bool = True) -> Fixed | None:
    """The case in fixed point; None where it has no real data."""
    if not is_real(next((g for g in case.operands if g is not None and is_real(g)), None)):
        return None
    graph, arrays = build(case)
    node = graph.nodes[-1]
    samples = [arrays] + [_sampled(case, arrays, seed) for seed in range(SAMPLES - 1)]
    activation = DType.UFIXED_8 if bits == 8 else DType.UFIXED_16
    _encode_inputs(graph, samples, activation)
    shared = schema_of(node).keeps_values
    if shared:
        _share(graph)
    for index, value in enumerate(node.inputs):
        if value is not None and value.data is not None and value.dtype is DType.FLOAT_32:
            _encode_constant(graph, index, activation, per_channel, shared)
    feeds = [_stored(graph, s) for s in samples]
    _encode_outputs(case, graph, feeds, activation)
    return Fixed(graph, feeds)


def _sampled(case: Case, arrays: dict[str, Array], seed: int) -> dict[str, Array]:
    """Other data of the same kind: uniform in the range of the case's own, or bell-shaped in it."""
    if case.op in STRUCTURED:
        return arrays
    rng = np.random.default_rng(seed)

    def other(array: Array) -> Array:
        if array.dtype != np.float32 or not array.size:
            return array
        low, high = float(array.min()), float(array.max())
        if seed % 2:
            drawn = rng.uniform(low, high, array.shape)
        else:
            drawn = np.clip(rng.normal((low + high) / 2, (high - low) / 6, array.shape), low, high)
        return drawn.astype(np.float32)

    return {name: other(a) for name, a in arrays.items()}


def _encode_inputs(graph: Graph, samples: list[dict[str, Array]], dtype: DType) -> None:
    node = graph.nodes[-1]
    for value in graph.inputs:
        if value.dtype is not DType.FLOAT_32:
            continue
        low = min(float(s[value.name].min(initial=0)) for s in samples)
        high = max(float(s[value.name].max(initial=0)) for s in samples)
        second = node.op == "MatMul" and node.inputs[1] is value
        value.encoding = spread(low, high, dtype.bits, centred=second and dtype.bits == 16)
        value.dtype = dtype


def _share(graph: Graph) -> None:
    """One encoding for all data of an op that only moves it."""
    data = [v for v in graph.inputs if v.encoding is not None]
    ends = [e.dequantize(np.array([0, (1 << e.bitwidth) - 1])) for v in data if (e := v.encoding)]
    if data:
        encoding = spread(min(e[0] for e in ends), max(e[1] for e in ends), data[0].dtype.bits)
        for value in data:
            value.encoding = encoding


def _encode_constant(graph: Graph, index: int, dtype: DType, per_channel: bool, shared: bool) -> None:
    node = graph.nodes[-1]
    value, declared = node.inputs[index], schema_of(node).operand(index)
    assert value is not None and value.data is not None
    axis = declared.channel_axis
    if node.op == "MatMul" and index == 1 and node.flag("transpose_in1"):
        axis = -2
    if axis is not None and index == 1:
        if per_channel:
            value.dtype, value.encoding = DType.SFIXED_8, symmetric(value.data, 8, axis)
        else:
            value.dtype, value.encoding = DType.UFIXED_8, _range_of(value.data, 8)
    elif declared.role is Role.BIAS and _weight_encoding(node.inputs[1]) is not None:
        value.dtype, value.encoding = DType.SFIXED_32, _bias_encoding(node.inputs[0], node.inputs[1])
    elif declared.role in (Role.WEIGHT, Role.BIAS):
        value.dtype, value.encoding = DType.UFIXED_8, _range_of(value.data, 8)
    else:
        value.dtype = dtype
        same = next((v.encoding for v in graph.inputs if v.encoding), None) if shared else None
        value.encoding = same or _range_of(value.data, dtype.bits)
    stored = value.encoding.quantize(value.data, value.dtype.signed).astype(value.dtype.numpy)
    graph.set_input(node, index, Value(value.name, value.dtype, value.shape, value.encoding, stored))


def _range_of(data: Array, bits: int) -> Encoding:
    return spread(float(data.min(initial=0)), float(data.max(initial=0)), bits)


def _weight_encoding(weight: Value | None) -> Encoding | None:
    if weight is None or weight.encoding is None or (weight.data is not None and weight.rank < 2):
        return None
    return weight.encoding


def _bias_encoding(x: Value | None, weight: Value | None) -> Encoding:
    assert x is not None and weight is not None and x.encoding is not None and weight.encoding is not None
    scales = tuple(x.encoding.scale[0] * s for s in weight.encoding.scale)
    axis = 0 if weight.encoding.axis is not None else None
    return Encoding(scales, (0,) * len(scales), 32, axis, symmetric=True)


def _stored(graph: Graph, sample: dict[str, Array]) -> dict[str, Array]:
    return {
        v.name: v.encoding.quantize(sample[v.name], v.dtype.signed).astype(v.dtype.numpy)
        if v.encoding is not None
        else sample[v.name]
        for v in graph.inputs
    }


def _encode_outputs(case: Case, graph: Graph, feeds: list[dict[str, Array]], dtype: DType) -> None:
    node = graph.nodes[-1]
    real = [v for v in node.outputs if v.dtype is DType.FLOAT_32 or v.dtype.is_fixed]
    results = float_results(case, graph, feeds)
    for value in real:
        low = min(float(r[value.name].min(initial=0)) for r in results)
        high = max(float(r[value.name].max(initial=0)) for r in results)
        limits = schema_of(node).output_range
        if limits is not None:
            low, high = limits
        value.dtype = dtype
        value.encoding = spread(low, high, dtype.bits, (case.id, dtype.bits) in CENTRED)
        if schema_of(node).keeps_values and node.inputs[0] is not None and node.inputs[0].encoding:
            value.encoding = node.inputs[0].encoding


def float_results(case: Case, graph: Graph, feeds: list[dict[str, Array]]) -> list[dict[str, Array]]:
    """The op in float on what the stored integers stand for."""
    encodings = {v.name: v.encoding for v in graph.inputs}
    constants = {v.name: v for v in graph.nodes[-1].inputs if v is not None and v.data is not None}
    operands = list(case.operands)
    for index, given in enumerate(operands):
        value = constants.get(f"in{index}")
        if given is not None and value is not None and value.encoding is not None and value.data is not None:
            operands[index] = replace(given, data=value.encoding.dequantize(value.data))
    executable = CpuExecutable(build(replace(case, operands=tuple(operands)))[0], threads=1)
    reals = [
        {k: e.dequantize(a) if (e := encodings[k]) is not None else a for k, a in feed.items()}
        for feed in feeds
    ]
    return [executable.run(r) for r in reals]
