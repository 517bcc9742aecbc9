"""From the errors of layers to findings: what is broken, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from openqnn.analysis.accuracy.causes import CAUSES, Finding
from openqnn.analysis.accuracy.layer_errors import Measured, constants_of, ends_of
from openqnn.analysis.accuracy.layers import Layer
from openqnn.analysis.accuracy.tally import HALF_LARGEST, Tally
from openqnn.analysis.accuracy.usual import by_name
from openqnn.ir import Array, DType, Encoding, Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Role
from openqnn.quant.plan import CUT
from openqnn.runtime.metrics import decibels
from openqnn.targets.registry import HTP, find_target

WORSE = 8.0  # dB above the usual noise that tell a fault from another choice of ranges
FINE = 60.0  # dB that nothing behind an encoding can miss: wide ranges of 16 bits are no fault
WRONG = 22.0  # dB below which what a layer computes is not what its numbers say
FEW = 30.0  # dB below which a tensor is worth a word though nothing is broken
CLIPPED = 2e-4  # of the values
BEYOND = 0.1  # of a range
SAME_STEP = 1.25  # ratio of steps that are the same but for another choice of ranges, or room at their ends
TAILS = 40.0  # kurtosis
SPREAD = 8.0  # times the median channel
FITTED = 3.0  # dB by which weights that were fitted to data are better in the result than by themselves
HEARD = 45.0  # dB of a result below which the error of weights can be heard in it
QUIET = 30.0  # dB above which the error of a bias cannot be
CORRECTED = 20.0  # dB above which another bias may make up for what weights and inputs have lost
TOP = 200.0  # dB that stand for exact


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known of one layer: the worst tensor's errors in dB, its findings, and whether it is broken."""

    layer: Layer
    tensor: str
    tally: Tally
    findings: tuple[Finding, ...]
    broken: bool

    @property
    def score(self) -> float:
        """What layers are ranked by: broken ones by how far they are from usual, others by added error."""
        strength = max((f.strength for f in self.findings if f.cause.severe), default=0.0)
        if self.broken:
            return 1e6 + min(strength, TOP)
        return -_bounded(self.tally.decibels(self.tally.added))


def diagnose_layers(measured: Measured, fixed: Graph, usual: Graph | None) -> list[Diagnosis]:
    """All layers, the most suspicious first."""
    doctor = _Doctor(measured, fixed, by_name(usual))
    found = [doctor.look(layer) for layer in measured.pairing.layers]
    return sorted((d for d in found if d.tally.count), key=lambda d: d.score, reverse=True)


def _bounded(db: float) -> float:
    return max(-TOP, min(TOP, db))


class _Doctor:
    def __init__(self, measured: Measured, fixed: Graph, usual: Mapping[str, Value]) -> None:
        self.measured, self.usual = measured, usual
        self.constants = {v.name: v for v in fixed.constants()}
        self.fixed = measured.pairing.fixed
        self.owners: dict[Encoding, list[str]] = {}
        for name, value in self.fixed.items():
            if value.encoding is not None:
                self.owners.setdefault(value.encoding, []).append(name)
        self.faults: dict[Node, str] = dict(find_target(HTP).known_faults(fixed))
        self.cut = {name for name, said in fixed.provenance.items() if CUT in said}

    def look(self, layer: Layer) -> Diagnosis:
        tallies = {name: self.measured.tallies[name] for name in layer.outputs}
        worst = max(tallies, key=lambda n: -_bounded(tallies[n].decibels(tallies[n].added)))
        findings = [
            f for name, tally in tallies.items() if tally.count for f in self._tensor(layer, name, tally)
        ]
        findings += [f for tally in [tallies[worst]] if tally.count for f in self._parameters(layer, tally)]
        findings += list(self._function(layer, tallies[worst]))
        findings += [
            Finding(CAUSES["library-fault"], layer.name, self.faults[n], 0.0)
            for n in layer.fixed
            if n in self.faults
        ]
        findings.sort(key=lambda f: (f.cause.severe, f.strength), reverse=True)
        broken = any(f.cause.severe for f in findings)
        return Diagnosis(layer, worst, tallies[worst], tuple(findings), broken)

    # -- encodings -------------------------------------------------------------------------------------------

    def _tensor(self, layer: Layer, name: str, tally: Tally) -> Iterator[Finding]:
        value = self.fixed[name]
        if value.encoding is None:
            yield from self._half(layer, name, tally)
            yield from self._island(layer, name, value)
            return
        if self._is_inherited(layer, name):
            return
        calibrated = self.usual[name].encoding if name in self.usual else None
        own = _bounded(tally.decibels(max(tally.own, _rounding(tally, value.encoding))))
        usual = _bounded(tally.decibels(max(tally.usual, _rounding(tally, calibrated))))
        worse = usual - own >= WORSE and own < FINE and name not in self.cut
        if worse or self._is_moved(name, value, tally):
            yield self._encoding(layer, name, value, tally, usual - own)
        elif own < FEW:
            tails = tally.kurtosis > TAILS
            detail = f"{own:.1f} dB with {value.encoding.bitwidth} bits, kurtosis {tally.kurtosis:.0f}"
            yield Finding(CAUSES["outliers" if tails else "few-steps"], name, detail, FEW - own)

    def _is_moved(self, name: str, value: Value, tally: Tally) -> bool:
        """Whether the range is as wide as that of calibration and lies where values leave it by far: few
        values may, so that the noise alone does not tell."""
        low, high = ends_of(value)
        beyond = max(low - tally.low, tally.high - high) > BEYOND * (high - low)
        return beyond and _shifted(self.usual.get(name), value)

    def _is_inherited(self, layer: Layer, name: str) -> bool:
        """Whether a layer hands on what it reads, with the same encoding: the fault is further up."""
        inputs = (
            [v for v in layer.fixed[0].inputs if v is not None and not v.is_constant] if layer.fixed else []
        )
        tally = self.measured.tallies[name]
        same = any(v.encoding == self.fixed[name].encoding for v in inputs)
        return same and tally.added <= 0.01 * tally.own

    def _encoding(self, layer: Layer, name: str, value: Value, tally: Tally, excess: float) -> Finding:
        assert value.encoding is not None
        low, high = ends_of(value)
        clipped = (tally.below + tally.above) / max(tally.count, 1)
        detail = (
            f"range {low:.4g} to {high:.4g}, values {tally.low:.4g} to {tally.high:.4g},"
            f" {clipped:.2%} beyond; {excess:.1f} dB worse than calibration"
        )
        return Finding(CAUSES[self._encoding_cause(layer, name, value, tally, clipped)], name, detail, excess)

    def _encoding_cause(self, layer: Layer, name: str, value: Value, tally: Tally, clipped: float) -> str:
        assert value.encoding is not None
        low, high = ends_of(value)
        cut_off = "wrong-offset" if _shifted(self.usual.get(name), value) else "saturation"
        if layer.is_input and _other_scale(max(-low, high), max(-tally.low, tally.high)):
            return "input-normalisation"
        if self._is_borrowed(name, value.encoding):
            return "shared-encoding"
        if low > 0 or high < 0:
            return cut_off if cut_off == "wrong-offset" else "zero-not-exact"
        if (
            clipped > CLIPPED
            or tally.low < low - value.encoding.scale[0]
            or tally.high > high + value.encoding.scale[0]
        ):
            return cut_off
        return "range-too-wide"

    def _is_borrowed(self, name: str, encoding: Encoding) -> bool:
        """Whether another tensor has the same encoding, though calibration would give them different ones."""
        others = (n for n in self.owners.get(encoding, ()) if n != name)
        mine = self.usual.get(name)
        return any(
            mine is not None and o in self.usual and not _same_step(self.usual[o].encoding, mine.encoding)
            and _same_step(self.usual[o].encoding, encoding)
            for o in others
        )  # fmt: skip

    def _island(self, layer: Layer, name: str, value: Value) -> Iterator[Finding]:
        """A layer that leaves fixed point, though what reads it goes on there."""
        read = any(
            v is not None and not v.is_constant and v.dtype.is_fixed for n in layer.fixed for v in n.inputs
        )
        behind = [v for user in value.users for v in user.outputs]
        if read and value.dtype.is_float and behind and all(v.dtype.is_fixed for v in behind):
            detail = f"{value.dtype.label} between tensors in fixed point"
            yield Finding(CAUSES["missing-encoding"], name, detail, 0.0)

    def _half(self, layer: Layer, name: str, tally: Tally) -> Iterator[Finding]:
        if self.fixed[name].dtype is not DType.FLOAT_16:
            return
        most = max(-tally.low, tally.high)
        inherited = any(
            self.measured.tallies[v.name].lost
            for node in layer.fixed
            for v in node.inputs
            if v is not None and v.name in self.measured.tallies
        )
        if (tally.lost or most > HALF_LARGEST) and not inherited:
            detail = f"values reach {most:.4g}; {tally.lost} became infinite or NaN"
            yield Finding(CAUSES["half-overflow"], name, detail, TOP)
        elif 0 < most < 6e-5 and _bounded(tally.decibels(tally.added)) < FEW:
            yield Finding(CAUSES["half-underflow"], name, f"values reach {most:.4g}", TOP / 2)

    # -- weights and biases ----------------------------------------------------------------------------------

    def _parameters(self, layer: Layer, tally: Tally) -> Iterator[Finding]:
        for value, _ in constants_of(layer, Role.WEIGHT):
            yield from self._weight(value, tally)
        for value, _ in constants_of(layer, Role.BIAS):
            yield from self._bias(layer, value, tally)

    def _weight(self, value: Value, tally: Tally) -> Iterator[Finding]:
        other = self.constants.get(value.name)
        if other is None or other.data is None or value.data is None or value.dtype.numpy.kind != "f":
            return
        if other.shape != value.shape:
            detail = f"shape {list(other.shape)}, in the source {list(value.shape)}"
            yield Finding(CAUSES["axis-order"], value.name, detail, TOP)
            return
        real = value.data.astype(np.float32)
        found, expected = _sqnr(real, _numbers(other)), self._usual_weight(value, real)
        if expected - found >= WORSE and tally.decibels(tally.weight) < HEARD:
            name, detail = self._weight_cause(real, other, found, expected)
            if not _is_fitted(name, tally, found):
                yield Finding(CAUSES[name], value.name, detail, expected - found)
        elif found < FEW and value.rank > 1 and (spread := _spread(real, other.encoding)) > SPREAD:
            detail = f"{found:.1f} dB with one scale; the largest channel is {spread:.0f} times the median"
            yield Finding(CAUSES["channel-spread"], value.name, detail, FEW - found)

    def _usual_weight(self, value: Value, real: Array) -> float:
        usual = self.usual.get(value.name)
        if usual is None or usual.shape != value.shape or usual.data is None:
            return 30.0
        return _bounded(_sqnr(real, _numbers(usual)))

    def _weight_cause(self, real: Array, other: Value, found: float, expected: float) -> tuple[str, str]:
        numbers = _numbers(other)
        said = f"{found:.1f} dB from the source's weights, {expected:.1f} dB are usual"
        order = _turned(real, numbers, found)
        if order:
            return "axis-order", f"{said}; {order} they agree"
        usual = self.usual.get(other.name)
        bits = _used_bits(other)
        usual_bits = usual.encoding.bitwidth if usual is not None and usual.encoding is not None else 8
        if bits < usual_bits - 1 and found > 3:  # few numbers may leave out half of all levels by chance
            return "few-weight-bits", f"{bits} bits; {said}"
        return "weights-differ", said

    def _bias(self, layer: Layer, value: Value, tally: Tally) -> Iterator[Finding]:
        other = self.constants.get(value.name)
        if value.data is None or value.dtype.numpy.kind != "f" or not np.any(value.data):
            return
        real = value.data.astype(np.float32).reshape(-1)
        found = np.zeros_like(real) if other is None else _numbers(other).reshape(-1)
        if found.shape != real.shape or (other is None and self._reads(layer)):
            return
        gap = float(np.square(real - found).sum()) * tally.count / max(real.size, 1)
        effect = _bounded(decibels(tally.signal, gap))
        alone = _bounded(tally.decibels(tally.own + 1e-30))
        cause = _bias_cause(found, other)
        if effect < min(QUIET, alone - WORSE) and not _is_corrected(cause, tally, effect):
            detail = f"its effect on the result is {effect:.1f} dB"
            yield Finding(CAUSES[cause], value.name, detail, alone - effect)

    def _reads(self, layer: Layer) -> bool:
        """Whether the bias may hide under another name: the layer's nodes still read one."""
        return any(len([v for v in n.inputs if v is not None]) > 2 for n in layer.fixed)

    # -- what the nodes compute ------------------------------------------------------------------------------

    def _function(self, layer: Layer, tally: Tally) -> Iterator[Finding]:
        if layer.is_input or not tally.count:
            return
        beyond, own = _bounded(tally.decibels(tally.beyond)), _bounded(tally.decibels(tally.own))
        if self.fixed[layer.name].encoding is None and tally.lost:
            return
        said = _other_node(layer)
        if beyond < WRONG and own - beyond > WORSE:
            name = said[0] if said else "arithmetic"
            detail = f"{beyond:.1f} dB from what its weights and encodings say"
            yield Finding(CAUSES[name], layer.name, f"{said[1]}; {detail}" if said else detail, own - beyond)


def _other_node(layer: Layer) -> tuple[str, str] | None:
    """How the node of a layer differs from the source's: operands in another order, other parameters."""
    theirs = {node.name: node for node in layer.real}
    for mine in layer.fixed:
        other = theirs.get(mine.name)
        if other is not None and other.op == mine.op:
            found = _other_order(mine, other, theirs) or _other_parameters(mine, other)
            if found is not None:
                return found
    return None


def _other_order(mine: Node, other: Node, known: Mapping[str, Node]) -> tuple[str, str] | None:
    first, second = _data(mine, known), _data(other, known)
    if first == second or sorted(first) != sorted(second):
        return None
    return "axis-order", "operands are " + ", ".join(first) + " instead of " + ", ".join(second)


def _other_parameters(mine: Node, other: Node) -> tuple[str, str] | None:
    differing = [k for k, v in mine.params.items() if other.params.get(k, v) != v]
    if not differing:
        return None
    order = any(word in k for k in differing for word in ("axis", "axes", "perm"))
    detail = ", ".join(f"{k} {mine.params[k]} instead of {other.params[k]}" for k in differing)
    return ("axis-order" if order else "parameters-differ"), detail


def _data(node: Node, known: Mapping[str, Node]) -> list[str]:
    """The operands by the name that they have before conversions that the source does not have."""
    found: list[str] = []
    for value in node.inputs:
        while value is not None and value.producer is not None and _converts(value.producer, known):
            value = value.producer.inputs[0]
        if value is not None and not value.is_constant:
            found.append(value.name)
    return found


def _converts(node: Node, known: Mapping[str, Node]) -> bool:
    return len(node.inputs) == 1 and node.name not in known and schema_of(node).on_stored


def _other_scale(reach: float, seen: float) -> bool:
    return min(reach, seen) > 0 and max(reach / seen, seen / reach) > 16


def _rounding(tally: Tally, encoding: Encoding | None) -> float:
    """The power of rounding to steps, which few values may escape by luck."""
    if encoding is None or encoding.axis is not None:
        return 0.0
    return encoding.scale[0] ** 2 / 12 * tally.count


def _same_step(first: Encoding | None, second: Encoding | None) -> bool:
    if first is None or second is None or first.axis is not None or second.axis is not None:
        return False
    a, b = first.scale[0] * (1 << first.bitwidth), second.scale[0] * (1 << second.bitwidth)
    return max(a, b) < SAME_STEP * min(a, b)


def _shifted(usual: Value | None, value: Value) -> bool:
    """Whether a range is as wide as the usual one, and both of its ends lie further up, or further down."""
    if usual is None or not _same_step(usual.encoding, value.encoding):
        return False
    low, high = ends_of(value)
    first, second = (mine - theirs for mine, theirs in zip((low, high), ends_of(usual), strict=True))
    return first * second > 0 and min(abs(first), abs(second)) > BEYOND * (high - low)


def _numbers(value: Value) -> Array:
    assert value.data is not None
    if value.encoding is not None:
        return value.encoding.dequantize(value.data)
    return value.data.astype(np.float32)


def _sqnr(real: Array, found: Array) -> float:
    gap = real - found
    return decibels(
        float(np.square(real, dtype=np.float64).sum()), float(np.square(gap, dtype=np.float64).sum())
    )


def _is_fitted(cause: str, tally: Tally, found: float) -> bool:
    """Whether an algorithm may have moved weights, so that the result is closer than they are."""
    closer = found >= FEW or tally.decibels(tally.weight) >= max(found + FITTED, WRONG)
    return cause == "weights-differ" and closer


def _is_corrected(cause: str, tally: Tally, effect: float) -> bool:
    """Whether a bias may have been moved, so that the result is closer."""
    makes_up = effect >= CORRECTED or tally.decibels(tally.weight) >= effect + FITTED
    return cause == "bias-differs" and makes_up


def _bias_cause(found: Array, other: Value | None) -> str:
    if not np.any(found):
        return "missing-bias"
    if other is None or other.encoding is None or other.data is None:
        return "bias-differs"
    most = (1 << (other.encoding.bitwidth - 1)) - 1
    return "bias-overflow" if int(np.abs(other.data.astype(np.int64)).max()) >= most else "bias-differs"


def _spread(real: Array, encoding: Encoding | None) -> float:
    """How much larger the largest channel is than the median one, along the axis where that is most; 0 where
    channels have scales of their own."""
    if encoding is None or encoding.axis is not None:
        return 0.0
    ratios: list[float] = []
    for axis in (0, real.ndim - 1):
        size = np.abs(real).max(axis=tuple(i for i in range(real.ndim) if i != axis))
        ratios.append(float(size.max() / max(float(np.median(size)), 1e-12)))
    return max(ratios)


def _used_bits(value: Value) -> int:
    """How many bits the stored weights really use: their steps may be there and stay empty."""
    if value.encoding is None or value.data is None:
        return 32
    levels = len(np.unique(value.data))
    return (
        min(value.encoding.bitwidth, max(1, (levels - 1).bit_length()))
        if value.size > 64
        else value.encoding.bitwidth
    )


def _turned(real: Array, found: Array, direct: float) -> str:
    """In which order of axes two arrays agree, where they do not as they are."""
    for perm in permutations(range(real.ndim)):
        turned = real.transpose(perm)
        if perm == tuple(range(real.ndim)):
            continue
        if turned.shape == found.shape and _sqnr(turned, found) > max(direct + 10, 8):
            return f"with axes {perm}"
    for axis in range(real.ndim):
        if real.shape[axis] > 1 and _sqnr(np.flip(real, axis), found) > max(direct + 10, 8):
            return f"with axis {axis} reversed"
    return ""
