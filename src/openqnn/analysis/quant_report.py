"""What quantization cost a graph: outputs, tensors, weights, the worst of them, and what would mend those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from openqnn.ir import Array, Encoding, Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Role
from openqnn.quant.encode import limits
from openqnn.quant.plan import CUT, SHARED
from openqnn.runtime.compare import Noise, measure_noise
from openqnn.runtime.metrics import decibels

WORST = 10
GOOD_SQNR = 30.0  # dB above which a tensor is no cause for concern
MUCH_CLIPPED = 1e-3  # of the values
NARROW = 8  # bits
WORTH_TELLING = 0.5  # dB that a layer loses
OWN_SHARE = 3.0  # dB: a tensor whose own rounding is no farther from all of its noise makes most of it
WIDER = "--act_bw 16, or --target_sqnr 30"
MORE_FOR_WEIGHTS = "more bits for the weights, --weight_bw 8, or 16 with --act_bw 16"
CUT_ON_PURPOSE = "nothing: what reads it clips there"
MUCH_UNUSED = 0.25  # of the range: two bits of eight


@dataclass(frozen=True, slots=True)
class TensorReport:
    """One tensor. `own_sqnr` is what its encoding alone allows, `sqnr` what is left in the whole graph."""

    name: str
    op: str
    dtype: str
    bits: int
    source: str
    low: float
    high: float
    seen_low: float
    seen_high: float
    clipped: float
    own_sqnr: float
    sqnr: float
    counts: tuple[int, ...]
    is_weight: bool = False
    advice: str = ""


@dataclass(frozen=True, slots=True)
class OutputReport:
    """An output, or the part of it that comes from another tensor."""

    name: str
    sqnr: float
    cosine: float
    part: str = ""


@dataclass(frozen=True, slots=True)
class QuantReport:
    """All tensors in the order of the graph; `worst` are those where most is lost.

    `on` says what kind of samples it was measured on, `facts` what else there is to know of the run.
    """

    name: str
    nodes: int
    fixed_nodes: int
    outputs: tuple[OutputReport, ...]
    tensors: tuple[TensorReport, ...]
    worst: tuple[TensorReport, ...]
    on: str = ""
    verdict: str = ""
    facts: tuple[tuple[str, str], ...] = ()


def quant_report(real: Graph, fixed: Graph, samples: Iterable[Mapping[str, Array]]) -> QuantReport:
    """Runs both graphs on the samples and compares all that they share."""
    held = list(samples)
    noise = measure_noise(real, fixed, held)
    borders = measure_noise(real, fixed, held, [v.name for v in fixed.outputs])
    outputs = tuple(OutputReport(name, n.sqnr, n.cosine) for name, n in borders.items())
    constants = {v.name: v.data for v in real.values() if v.data is not None}
    tensors: list[TensorReport] = []
    for value in fixed.values():
        if value.is_constant:
            tensors += _weights(fixed, value, constants.get(value.name))
        elif value.name in noise and not _is_shared(fixed, value):
            tensors.append(_activation(fixed, value, noise[value.name]))
    computing = [n for n in fixed.nodes if not schema_of(n).on_stored]
    tensors = _with_sources(fixed, tensors)
    in_fixed = sum(any(v.dtype.is_fixed for v in n.outputs) for n in computing)
    return QuantReport(fixed.name, len(computing), in_fixed, outputs, tuple(tensors), _worst(tensors))


def _worst(tensors: Iterable[TensorReport]) -> tuple[TensorReport, ...]:
    return tuple(sorted((t for t in tensors if t.advice or _is_poor(t)), key=lambda t: t.sqnr)[:WORST])


def _is_poor(tensor: TensorReport) -> bool:
    return not tensor.is_weight and tensor.sqnr < GOOD_SQNR


def _is_shared(graph: Graph, value: Value) -> bool:
    shared = graph.provenance.get(value.name, "").startswith(SHARED)
    return shared and not graph.is_output(value)


def _with_sources(graph: Graph, tensors: Iterable[TensorReport]) -> list[TensorReport]:
    """The reports, where those whose noise is not of their own encoding say where it comes from."""
    known = {t.name: t for t in tensors}
    values = {v.name: v for v in graph.values()}
    of_others = lambda t: _is_poor(t) and not _is_own(t) and t.advice != CUT_ON_PURPOSE
    return [
        replace(t, advice=_noise_before(values[t.name], known)) if of_others(t) else t for t in known.values()
    ]


def _is_own(tensor: TensorReport) -> bool:
    """Whether most of a tensor's noise is what its own encoding makes."""
    return tensor.own_sqnr < min(GOOD_SQNR, tensor.sqnr + OWN_SHARE)


@dataclass(frozen=True, slots=True)
class _Loss:
    """What a layer on the way of noise loses against its noisiest input, in dB."""

    name: str
    lost: float
    narrow: bool
    weak_weights: bool


def _noise_before(value: Value, known: Mapping[str, TensorReport]) -> str:
    """Where the noise of a tensor comes from: the noisiest input is followed back to where little is lost."""
    way = list(_way_of_noise(value, known))
    if way and isinstance(way[-1], TensorReport):
        return f"noise of '{way[-1].name}' before it, {way[-1].own_sqnr:.1f} dB alone: mend that"
    layers = [each for each in way if isinstance(each, _Loss)]
    most = sorted((loss for loss in layers if loss.lost >= WORTH_TELLING), key=lambda loss: -loss.lost)[:2]
    where = " and ".join(f"'{loss.name}' ({loss.lost:.1f} dB)" for loss in most) or "the layer itself"
    wider = any(loss.narrow for loss in layers) and not any(loss.weak_weights for loss in most)
    return f"most of it is lost at {where}: {WIDER if wider else MORE_FOR_WEIGHTS}"


def _way_of_noise(value: Value, known: Mapping[str, TensorReport]) -> Iterator[_Loss | TensorReport]:
    """The layers that noise went through, the last one first; then the tensor that makes it, if one does."""
    while known[value.name].sqnr < GOOD_SQNR:
        behind = list(_behind(value, known))
        data = [v for v in behind if not v.is_constant]
        if not data:
            return
        report, noisiest = known[value.name], min(data, key=lambda v: known[v.name].sqnr)
        source = known[noisiest.name]
        if _is_own(source) and source.advice != CUT_ON_PURPOSE:
            yield source
            return
        weak = any(v.is_constant and known[v.name].own_sqnr < GOOD_SQNR for v in behind)
        yield _Loss(report.name, source.sqnr - report.sqnr, report.bits <= NARROW, weak)
        value = noisiest


def _behind(value: Value, known: Mapping[str, TensorReport]) -> Iterator[Value]:
    """What a value is computed of, of the tensors in the report: past those that share an encoding."""
    for each in value.producer.inputs if value.producer else ():
        if each is not None and each.name in known:
            yield each
        elif each is not None:
            yield from _behind(each, known)


def _activation(graph: Graph, value: Value, noise: Noise) -> TensorReport:
    assert value.encoding is not None
    low, high = limits(value.encoding, value.dtype.signed)
    clipped = noise.clipped / max(noise.count, 1)
    source = graph.provenance.get(value.name, "")
    return TensorReport(
        value.name, value.producer.op if value.producer else "input", value.dtype.label,
        value.encoding.bitwidth, source, low, high, noise.low, noise.high,
        clipped, noise.own_sqnr, noise.sqnr, tuple(int(c) for c in noise.counts),
        advice=_advice(value, value.encoding, noise, clipped, source),
    )  # fmt: skip


def _advice(value: Value, found: Encoding, noise: Noise, clipped: float, source: str) -> str:
    """What would mend the tensor's own encoding, with the option that says it; "" where nothing needs to."""
    if noise.own_sqnr >= GOOD_SQNR:
        return ""
    if source.startswith(CUT):
        return CUT_ON_PURPOSE
    if clipped > MUCH_CLIPPED:
        return "values beyond the range: more calibration data, or --act_quantizer tf"
    if found.bitwidth > NARROW:
        return ""
    joined = _joined(value)
    if joined is not None and _used(value, found, noise) < MUCH_UNUSED:
        why = f"it has the range of '{joined.out.name}', which joins it with larger values"
        return f"{why}: in Python widths={{{joined.name!r}: 16}}"
    wider = f"in Python widths={{{value.producer.name!r}: 16}}" if value.producer else "--act_bw 16"
    if _has_tails(noise):
        return f"few values need most of the range: --act_quantizer enhanced, or {wider}"
    return f"the range is too wide for 8 bits: {wider}"


def _joined(value: Value) -> Node | None:
    """The node that puts a tensor and others of the same range together."""
    for user in value.users:
        if not schema_of(user).hands_on(user) or user.out.encoding != value.encoding:
            continue
        found = (
            user if sum(v is not None and not v.is_constant for v in user.inputs) > 1 else _joined(user.out)
        )
        if found is not None:
            return found
    return None


def _used(value: Value, found: Encoding, noise: Noise) -> float:
    """How much of the range of a tensor its values need."""
    low, high = limits(found, value.dtype.signed)
    return (max(noise.high, 0.0) - min(noise.low, 0.0)) / (high - low)


def _has_tails(noise: Noise) -> bool:
    """Whether nearly all values lie in a small part of the range."""
    counts = np.sort(noise.counts)[::-1]
    return bool(counts[: max(len(counts) // 16, 1)].sum() > 0.9 * counts.sum())


def _weights(graph: Graph, value: Value, data: Array | None) -> list[TensorReport]:
    """Weights only: biases have steps so small that nothing is lost.

    Alone they lose what rounding to the nearest step does. What algorithms change so that the results of a
    layer stay is no loss, and nothing to mend.
    """
    owner = next((n for n in value.users if _is_weight(n, value)), None)
    if owner is None or value.encoding is None or value.data is None or data is None:
        return []
    if data.shape != value.shape:
        return []
    real = data.astype(np.float64)
    nearest = value.encoding.quantize(data, value.dtype.signed)
    ratios = (
        decibels(float(np.square(real).sum()), float(np.square(real - value.encoding.dequantize(q)).sum()))
        for q in (nearest, value.data)
    )
    own, now = ratios
    low, high = _weight_range(value, value.encoding)
    counts = np.histogram(real, bins=64)[0]
    return [
        TensorReport(
            value.name, owner.op, value.dtype.label, value.encoding.bitwidth,
            graph.provenance.get(value.name, ""), low, high, float(real.min()), float(real.max()),
            0.0, own, now, tuple(int(c) for c in counts), True, _weight_advice(value.encoding, own),
        )
    ]  # fmt: skip


def _weight_range(value: Value, found: Encoding) -> tuple[float, float]:
    """Around any zero where the storage is unsigned, else as far as the largest channel reaches."""
    if not value.dtype.signed and found.axis is None:
        return limits(found)
    largest = float(found.steps(value.shape).max()) * ((1 << (found.bitwidth - 1)) - 1)
    return -largest, largest


def _is_weight(node: Node, value: Value) -> bool:
    declared = [schema_of(node).operand(i) for i, v in enumerate(node.inputs) if v is value]
    return any(o.role is Role.WEIGHT or o.channel_axis is not None for o in declared)


def _weight_advice(found: Encoding, own: float) -> str:
    if own >= GOOD_SQNR or not isfinite(own):
        return ""
    if found.axis is None:
        return (
            "channels of different size share one scale: --use_per_channel_quantization, or --algorithms cle"
        )
    tails = "long tails in the weights: --algorithms cle"
    return "too few steps for the weights: --weight_bw 8" if found.bitwidth < NARROW else tails
