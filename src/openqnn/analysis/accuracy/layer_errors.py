"""Three errors of every layer: entire, isolated and added, found by running all layers at once.

The *entire* error of a tensor is what all layers before it and its own made of it. *Isolated* is that of the
layer alone, fed with what the reference has there. *Added* is the layer's own share: what it makes of the
reference's numbers as they arrive in fixed point, against what floating point makes of these same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from openqnn.analysis.accuracy.layers import RESULT, Layer, Pairing, cut_out, pair_layers
from openqnn.analysis.accuracy.tally import Tally, power_of_difference, real_of, stored
from openqnn.errors import InputError
from openqnn.ir import Array, Encoding, Graph, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Operand, Role
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.worker.c_function import usable_processors

if TYPE_CHECKING:
    from openqnn.analysis.accuracy.stored_results import ResultStore

MOST_BYTES = 64 << 20  # of the tensors of one sample that are held at a time
Samples = Sequence[Mapping[str, Array]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """The layers of two graphs and what was seen of each of their tensors, by name."""

    pairing: Pairing
    tallies: Mapping[str, Tally]
    samples: int
    errors: Sequence[Mapping[str, Array]] = ()
    complete: bool = True


def measure_layers(
    real: Graph,
    fixed: Graph,
    samples: Samples,
    usual: Mapping[str, Encoding] | None = None,
    progress: Progress | None = None,
    keep: int = 0,
    store: ResultStore | None = None,
) -> Measured:
    """All errors of all layers on the samples. `usual` encodings are those that calibration would choose.

    The errors that layers add are kept for the first samples, as many as `keep`. Ctrl-C ends it early, with
    what was measured until then; with a store it goes on there the next time.
    """
    if not samples:
        raise InputError("there are no samples to compare on", hint="give at least one set of inputs")
    work = _Work(real, fixed, samples, usual or {}, keep, store)
    try:
        for done, total in work.go_on():
            if progress is not None:
                progress(done, total)
    except KeyboardInterrupt:
        return Measured(work.pairing, work.tallies, len(samples), work.errors, complete=False)
    return Measured(work.pairing, work.tallies, len(samples), work.errors)


class _Work:
    """A measurement, batch by batch, and what a store has of it."""

    def __init__(
        self, real: Graph, fixed: Graph, samples: Samples, usual: Mapping[str, Encoding], keep: int,
        store: ResultStore | None,
    ) -> None:  # fmt: skip
        self.real, self.fixed, self.samples, self.usual, self.store = real, fixed, samples, usual, store
        self.pairing = pair_layers(real, fixed)
        self.tallies = {name: Tally() for layer in self.pairing.layers for name in layer.outputs}
        self.errors: list[dict[str, Array]] = [{} for _ in samples[:keep]]
        self.parts = list(_parts(self.pairing))
        self.part = self.done = 0
        self._look_up()

    def _look_up(self) -> None:
        known = self.store.progress() if self.store is not None else None
        if self.store is None or known is None or set(known.tallies) != set(self.tallies):
            return
        self.part, self.done, self.tallies = known.part, known.done, dict(known.tallies)
        self.errors = [self.store.errors(index) for index in range(len(self.errors))]

    def go_on(self) -> Iterator[tuple[int, int]]:
        """Measures what is left; after each batch how many samples of all parts are done."""
        while self.part < len(self.parts):
            rig = _Rig(self.real, self.fixed, self.pairing, self.parts[self.part], self.usual)
            for batch in _batches(self.samples[self.done :], usable_processors()):
                kept: list[dict[str, Array]] = [{} for _ in self.errors[self.done : self.done + len(batch)]]
                rig.run(batch, self.tallies, kept)
                self._keep(kept, self.done + len(batch))
                yield self.part * len(self.samples) + self.done, len(self.parts) * len(self.samples)
            rig.close()
            self.part, self.done = self.part + 1, 0

    def _keep(self, errors: Sequence[dict[str, Array]], done: int) -> None:
        for index, each in enumerate(errors, self.done):
            self.errors[index] |= each
            if self.store is not None:
                self.store.keep_errors(self.part, index, each)
        self.done = done
        if self.store is not None:
            whole = done == len(self.samples)
            self.store.keep_progress(self.part + whole, 0 if whole else done, self.tallies)


def _batches(samples: Samples, size: int) -> Iterator[Samples]:
    source = iter(samples)
    while batch := list(islice(source, size)):
        yield batch


def _parts(pairing: Pairing) -> Iterator[list[Layer]]:
    part: list[Layer] = []
    size = 0
    for layer in pairing.layers:
        own = sum(pairing.real[name].nbytes for name in layer.outputs)
        if part and size + own > MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(layer)
        size += own
    if part:
        yield part


class _Rig:
    """Everything that runs for some layers: both graphs, and the layers cut out in three ways."""

    def __init__(
        self,
        real: Graph,
        fixed: Graph,
        pairing: Pairing,
        part: Sequence[Layer],
        usual: Mapping[str, Encoding],
    ) -> None:
        self.real, self.fixed, self.pairing, self.part, self.usual = real, fixed, pairing, part, usual
        inner = [layer for layer in part if not layer.is_input]
        self.cuts = {
            "isolated": cut_out("isolated", inner, "fixed", pairing),
            "linear": cut_out("linear", inner, "real", pairing),
            "swapped": cut_out("swapped", inner, "real", pairing, swapper(fixed)),
        }
        outputs = [name for layer in part for name in layer.outputs]
        read = [v.name for cut in self.cuts.values() for v in cut.inputs]
        self.outputs, self.read = outputs, list(dict.fromkeys(read))
        self.names = list(dict.fromkeys([*outputs, *read]))
        self.running = {
            "real": _executable(real, [pairing.real[n] for n in self.names]),
            "fixed": _executable(fixed, [pairing.fixed[n] for n in outputs]),
            **{name: CpuExecutable(cut, many=True) for name, cut in self.cuts.items() if cut.nodes},
        }
        self.pool = ThreadPoolExecutor(usable_processors())

    def close(self) -> None:
        for executable in self.running.values():
            executable.close()
        self.pool.shutdown()

    def run(self, batch: Samples, tallies: Mapping[str, Tally], errors: Sequence[dict[str, Array]]) -> None:
        reference = self._whole("real", self.real, batch)
        entire = self._whole("fixed", self.fixed, batch)
        coded = [self._coded(arrays) for arrays in reference]
        integers = [{n: kept for n, (kept, _) in each.items()} for each in coded]
        numbers = [{n: made for n, (_, made) in each.items()} for each in coded]
        isolated = self._cut("isolated", integers)
        linear = self._cut("linear", numbers)
        swapped = self._cut("swapped", numbers)
        for each in zip(reference, entire, numbers, isolated, linear, swapped, strict=True):
            list(self.pool.map(lambda name, each=each: self._add(tallies[name], name, *each), self.outputs))
        for kept, real, alone, plain in zip(errors, reference, isolated, linear, strict=False):
            kept |= {
                name: self._error(name, real, alone, plain) for name in self.outputs if _is_real(real[name])
            }

    def _error(
        self, name: str, real: Mapping[str, Array], alone: Mapping[str, Array], plain: Mapping[str, Array]
    ) -> Array:
        """What a layer adds to a tensor."""
        value, key = self.pairing.fixed[name], RESULT + name
        if key in alone:
            return decoded(value, alone[key]) - plain[key]
        return code(value, real[name])[1] - real[name]

    def _whole(self, name: str, graph: Graph, batch: Samples) -> list[dict[str, Array]]:
        given = [accepted(graph, sample) for sample in batch]
        found = self.running[name].run_many(given)
        return [{**arrays, **results} for arrays, results in zip(given, found, strict=True)]

    def _cut(self, name: str, feeds: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
        if name not in self.running:
            return [{} for _ in feeds]
        wanted = self.cuts[name].inputs
        given = [{v.name: _fitting(v, each[v.name]) for v in wanted} for each in feeds]
        return list(self.running[name].run_many(given))

    def _coded(self, reference: Mapping[str, Array]) -> dict[str, tuple[Array, Array]]:
        """Every tensor of the reference as fixed point stores it, and the numbers that this stands for."""
        made = self.pool.map(lambda name: code(self.pairing.fixed[name], reference[name]), self.names)
        return dict(zip(self.names, made, strict=True))

    def _add(
        self,
        tally: Tally,
        name: str,
        reference: Mapping[str, Array],
        entire: Mapping[str, Array],
        numbers: Mapping[str, Array],
        isolated: Mapping[str, Array],
        linear: Mapping[str, Array],
        swapped: Mapping[str, Array],
    ) -> None:
        value, real = self.pairing.fixed[name], reference[name]
        if real.dtype.kind != "f":
            return
        tally.see(real)
        whole = decoded(value, entire[name])
        tally.entire += power_of_difference(real, whole)
        tally.power += float(np.dot(whole.reshape(-1), whole.reshape(-1)))
        tally.product += float(np.dot(real.reshape(-1), whole.reshape(-1)))
        own = power_of_difference(real, numbers[name])
        tally.own += own
        self._clipped(tally, value, real)
        tally.usual += self._usual(name, value, real, own)
        if RESULT + name not in isolated:
            tally.isolated += own
            tally.added += own
            return
        alone, plain, other = (
            decoded(value, isolated[RESULT + name]),
            linear[RESULT + name],
            swapped[RESULT + name],
        )
        tally.isolated += power_of_difference(real, alone)
        tally.added += power_of_difference(plain, alone)
        tally.weight += power_of_difference(plain, other)
        tally.beyond += power_of_difference(code(value, other)[1], alone)
        tally.lost += int((~np.isfinite(alone)).sum()) if value.encoding is None else 0

    def _usual(self, name: str, value: Value, real: Array, own: float) -> float:
        usual = self.usual.get(name)
        if usual is None or usual == value.encoding or value.encoding is None:
            return own
        if usual.bitwidth != value.encoding.bitwidth:
            return own
        return power_of_difference(real, real_of(stored(real, usual, False, np.dtype(np.uint16)), usual))

    def _clipped(self, tally: Tally, value: Value, real: Array) -> None:
        if value.encoding is None or value.encoding.axis is not None:
            return
        low, high = ends_of(value)
        step = value.encoding.scale[0]
        tally.below += int((real < low - step).sum())
        tally.above += int((real > high + step).sum())


def _is_real(array: Array) -> bool:
    return array.dtype.kind == "f"


def ends_of(value: Value) -> tuple[float, float]:
    """The least and the largest number that a tensor's encoding has."""
    encoding = value.encoding
    assert encoding is not None
    least = -(1 << (encoding.bitwidth - 1)) if value.dtype.signed else 0
    scale, offset = encoding.scale[0], encoding.offset[0]
    return scale * (least + offset), scale * (least + (1 << encoding.bitwidth) - 1 + offset)


def code(value: Value, real: Array) -> tuple[Array, Array]:
    """A tensor of the reference as a graph stores it, and the real numbers that this stands for."""
    if value.encoding is not None and real.dtype.kind == "f":
        kept = stored(real, value.encoding, value.dtype.signed, value.dtype.numpy)
        return kept, real_of(kept, value.encoding)
    if real.dtype.kind == "f" and value.dtype.numpy != real.dtype:
        with np.errstate(over="ignore"):
            kept = real.astype(value.dtype.numpy)
        return kept, kept.astype(real.dtype)
    return real, real


def decoded(value: Value, array: Array) -> Array:
    """The real numbers of what a graph gives."""
    if value.encoding is not None:
        return real_of(array, value.encoding)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _fitting(value: Value, array: Array) -> Array:
    return array.astype(value.dtype.numpy) if array.dtype != value.dtype.numpy else array


def _executable(graph: Graph, values: Sequence[Value]) -> CpuExecutable:
    extra = [v for v in values if v.producer is not None and not graph.is_output(v)]
    return CpuExecutable(graph, extra=extra, many=True)


def swapper(fixed: Graph) -> Callable[[Value], Array | None]:
    """Gives for a constant the numbers that the graph in fixed point has in its place."""
    stand_ins = {v.name: v for v in fixed.constants()}

    def swap(value: Value) -> Array | None:
        other = stand_ins.get(value.name)
        if other is None or other.data is None or other.shape != value.shape or value.dtype.numpy.kind != "f":
            return None
        if other.encoding is not None:
            return other.encoding.dequantize(other.data).astype(value.dtype.numpy)
        return other.data.astype(value.dtype.numpy) if other.data.dtype.kind == "f" else None

    return swap


def constants_of(layer: Layer, role: Role) -> list[tuple[Value, int]]:
    """The constants of a layer's graph in floating point that have a role, each with its place."""
    return [
        (value, index)
        for node in layer.real
        for index, value in enumerate(node.inputs)
        if value is not None and value.is_constant and _role(schema_of(node).operand(index)) is role
    ]


def _role(operand: Operand) -> Role:
    return Role.WEIGHT if operand.channel_axis is not None and operand.role is not Role.BIAS else operand.role
