"""State that several graphs share, such as a cache: one writes what another reads, so all store it alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from openqnn.errors import UsageError
from openqnn.qnn import abi
from openqnn.qnn.net import Net

# What exporters call the output that becomes this input in the next step.
STEPS: Final = (
    ("past_key_values", "present"), ("past_key_values", "present_key_values"), ("past", "present"),
    ("past", "new"), ("_in", "_out"), ("", "_out"), ("", "_new"),
)  # fmt: skip
CACHES: Final = tuple(step for step in STEPS if "past" in step[0])
"""Names that say by themselves that it is a cache, where nothing says that the graphs are of one model."""
_SHOWN = 3  # scales


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a graph's border, as it is stored."""

    graph: str
    name: str
    dtype: str
    scales: tuple[float, ...] = ()
    offsets: tuple[int, ...] = ()

    @property
    def form(self) -> tuple[object, ...]:
        return self.dtype, self.scales, self.offsets

    def __str__(self) -> str:
        said = f"{self.graph}: '{self.name}' {self.dtype}"
        if not self.scales:
            return said
        more = ", ..." if len(self.scales) > _SHOWN else ""
        scales = ", ".join(f"{s:.6g}" for s in self.scales[:_SHOWN])
        return f"{said} (scale {scales}{more}, offset {', '.join(map(str, self.offsets[:_SHOWN]))}{more})"


def state_names(
    inputs: Sequence[Collection[str]],
    outputs: Sequence[Collection[str]],
    steps: Iterable[tuple[str, str]] = STEPS,
) -> dict[str, str]:
    """Pairs of input and output that every graph has, by the names that exporters give them."""
    shared = set.intersection(*map(set, outputs))
    found: dict[str, str] = {}
    for name in sorted(set.intersection(*map(set, inputs))):
        named = (name.replace(old, new) if old else name + new for old, new in steps if old in name)
        match = next((other for other in named if other != name and other in shared), None)
        if match is not None:
            found[name] = match
    return found


def check_alike(states: Mapping[str, Sequence[Stored]]) -> None:
    """UsageError where the tensors of a state have one encoding here and another one there."""
    for name, places in states.items():
        if len({place.form for place in places}) > 1:
            told = "; ".join(map(str, places))
            raise UsageError(
                f"the graphs share the state '{name}', and store it differently: {told}",
                hint="quantize the others with the encodings of the first: `openqnn encodings` writes them,"
                " --quantization_overrides reads them",
            )


def check_caches(nets: Sequence[Net]) -> None:
    """UsageError where graphs of any files store a cache differently, as far as names and shapes tell.

    Its shapes differ in one axis at most, the length.
    """
    if len(nets) < 2:
        return
    named = state_names([n.inputs for n in nets], [n.outputs for n in nets], CACHES)
    states: dict[str, list[Stored]] = {}
    for into, out in named.items():
        shapes = {net.tensors[name].dims for net in nets for name in (into, out)}
        if _of_one_cache(shapes):
            states[into] = [_stored(net, name) for net in nets for name in (into, out)]
    check_alike(states)


def _of_one_cache(shapes: Collection[tuple[int, ...]]) -> bool:
    first, *others = shapes
    if any(len(shape) != len(first) for shape in others):
        return False
    return sum(len(set(sizes)) > 1 for sizes in zip(*shapes, strict=True)) <= 1


def _stored(net: Net, name: str) -> Stored:
    tensor = net.tensors[name]
    found = Stored(net.name, name, abi.dtype_name(tensor.dtype))
    quant = tensor.quant
    return found if quant is None else replace(found, scales=quant.scales, offsets=quant.offsets)
