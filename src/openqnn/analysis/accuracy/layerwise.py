"""Layer by layer: every layer as a model of its own, on a library, many layers in one context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openqnn.analysis.accuracy.attribution import ErrorBench, Kept
from openqnn.analysis.accuracy.layer_errors import code, decoded
from openqnn.analysis.accuracy.layers import RESULT, Layer, Pairing, cut_out, pair_layers
from openqnn.errors import BackendError, InputError, OpenQnnError
from openqnn.ir import Array, Graph, Value
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.runner import Runner

TOGETHER = 48  # layers that share a context
Open = Callable[[Graph], Runner]


@dataclass(frozen=True, slots=True)
class LayerResult:
    """What a layer makes of the reference's numbers; no array and a status where that failed."""

    layer: Layer
    status: str
    found: Mapping[str, Array]
    why: str = ""


class Layerwise:
    """Two graphs and one sample. `golden` replaces numbers of the reference, where they are given."""

    def __init__(
        self,
        real: Graph,
        fixed: Graph,
        sample: Mapping[str, Array],
        golden: Callable[[str], Array | None] | None = None,
    ) -> None:
        self.real, self.fixed, self.sample = real, fixed, sample
        self.pairing: Pairing = pair_layers(real, fixed)
        self.reference = self._reference(golden)

    def _reference(self, golden: Callable[[str], Array | None] | None) -> dict[str, Array]:
        given = accepted(self.real, self.sample)
        values = list(self.pairing.real.values())
        extra = [v for v in values if v.producer is not None and not self.real.is_output(v)]
        executable = CpuExecutable(self.real, extra=extra)
        found = {**given, **executable.run(given)}
        executable.close()
        for value in values:
            known = golden(value.name) if golden is not None else None
            if known is not None and known.size == value.size:
                found[value.name] = _in_graph_order(known, found[value.name])
        return found

    def between(self, start: str, end: str) -> list[Layer]:
        """The layers from one output to another, both included, in the order of the graph."""
        layers = [layer for layer in self.pairing.layers if not layer.is_input]
        names = [name for layer in layers for name in layer.outputs]
        for name in (start, end):
            if name and name not in names:
                raise InputError(f"no layer gives '{name}'", hint=f"layers give {', '.join(names[:3])}, ...")
        first = next((i for i, y in enumerate(layers) if start in y.outputs), 0)
        last = next((i for i, y in enumerate(layers) if end in y.outputs), len(layers) - 1)
        return layers[first : last + 1]

    def run(self, layers: Sequence[Layer], opened: Open) -> Iterator[LayerResult]:
        """Each layer, fed with the reference; those of a context that fails are tried in smaller ones."""
        for start in range(0, len(layers), TOGETHER):
            yield from self._run(layers[start : start + TOGETHER], opened)

    def _run(self, part: Sequence[Layer], opened: Open) -> Iterator[LayerResult]:
        try:
            yield from self._together(part, opened)
        except OpenQnnError as error:
            if len(part) == 1:
                status = "err_exec" if isinstance(error, BackendError) else "err_cntx"
                yield LayerResult(part[0], status, {}, str(error))
                return
            middle = len(part) // 2
            yield from self._run(part[:middle], opened)
            yield from self._run(part[middle:], opened)

    def _together(self, part: Sequence[Layer], opened: Open) -> list[LayerResult]:
        cut = cut_out("layers", part, "fixed", self.pairing)
        feeds = {v.name: self._stored(v) for v in cut.inputs}
        runner = opened(cut)
        try:
            results = runner.run(feeds)
        finally:
            runner.close()
        fixed = self.pairing.fixed
        return [
            LayerResult(y, "", {n: decoded(fixed[n], results[RESULT + n]) for n in y.outputs}) for y in part
        ]

    def _stored(self, value: Value) -> Array:
        return code(self.pairing.fixed[value.name], self.reference[value.name])[0].astype(value.dtype.numpy)

    def outputs_from(self, results: Sequence[LayerResult]) -> Iterator[tuple[str, Mapping[str, Array]]]:
        """For each layer the outputs of the model where it and all behind it have their errors.

        What comes before has the numbers of the reference, as if the model had been cut in front of it.
        """
        good = [r for r in results if r.found]
        if not good:
            return
        linear = self._linear([r.layer for r in good])
        errors = {
            n: (a.reshape(-1) - linear[n].reshape(-1)).reshape(self.pairing.real[n].shape).astype(np.float32)
            for r in good
            for n, a in r.found.items()
            if self.reference[n].dtype.kind == "f"
        }
        bench = ErrorBench(self.real, [r.layer for r in good], Kept([self.sample], [errors]))
        for index, result in enumerate(good):
            arrays = bench.outputs_with([r.layer for r in good[index:]])[0]
            shown = zip(self.real.outputs, bench.graph.outputs, strict=True)
            yield result.layer.name, {v.name: arrays[copy.name] for v, copy in shown}
        bench.close()

    def _linear(self, layers: Sequence[Layer]) -> dict[str, Array]:
        """What floating point makes of the reference's numbers as they arrive in fixed point."""
        cut = cut_out("linear", layers, "real", self.pairing)
        coded = {v.name: code(self.pairing.fixed[v.name], self.reference[v.name])[1] for v in cut.inputs}
        feeds = {v.name: coded[v.name].astype(v.dtype.numpy) for v in cut.inputs}
        executable = CpuExecutable(cut)
        found = executable.run(feeds)
        executable.close()
        return {name.removeprefix(RESULT): array for name, array in found.items()}


def _in_graph_order(golden: Array, own: Array) -> Array:
    """Golden numbers in the axes of the graph: as they are, or with the channels moved to the end."""
    from openqnn.runtime.metrics import cosine

    flat = golden.reshape(-1).astype(own.dtype)
    if own.ndim < 3:
        return flat.reshape(own.shape)
    first = (own.shape[0], own.shape[-1], *own.shape[1:-1])
    turned = np.moveaxis(flat.reshape(first), 1, -1)
    plain = flat.reshape(own.shape)
    return np.ascontiguousarray(turned) if cosine(own, turned) > cosine(own, plain) else plain
