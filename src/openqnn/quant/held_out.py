"""Samples that neither calibration nor fitting sees: figures of quantization are measured on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import Any

from openqnn.ir import Array, Graph
from openqnn.quant.calibration import batches
from openqnn.quant.samples import is_whole

FEWEST = 8  # samples of which some can be spared
MOST = 8  # samples that are held back
EVERY = 4  # one of so many is held back


@dataclass(frozen=True, slots=True)
class TestSet:
    """What figures are measured on, and what kind of samples that are."""

    samples: tuple[Mapping[str, Array], ...]
    words: str

    __test__ = False  # pytest takes the name for a test


class HeldOut:
    """Hands samples on, but for one in four, spread over all of them, eight at most.

    With fewer than eight samples none is held back. `samples` has them when all have come.
    """

    def __init__(self, graph: Graph, source: Iterable[Mapping[str, Any]]) -> None:
        self._graph, self._source = graph, source
        self._every = max(EVERY, len(source) // MOST) if isinstance(source, Sized) else EVERY
        self.samples: tuple[Mapping[str, Array], ...] = ()

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        self.samples, held, count = (), [], 0
        for count, sample in enumerate(self._parts(), 1):
            if count % self._every == 0 and len(held) < MOST and is_whole(sample):
                held.append(sample)
            else:
                yield sample
        if count < FEWEST:
            yield from held
        else:
            self.samples = tuple(held)

    def _parts(self) -> Iterator[Mapping[str, Any]]:
        return (part for sample in self._source for part in batches(self._graph, sample))


class CountedHeldOut(HeldOut):
    """A source that knows its length, which is told less what is held back."""

    def __len__(self) -> int:
        assert isinstance(self._source, Sized)
        count = len(self._source)
        return count - min(count // self._every, MOST) if count >= FEWEST else count


def holding_back(graph: Graph, source: Iterable[Mapping[str, Any]]) -> HeldOut:
    return (CountedHeldOut if isinstance(source, Sized) else HeldOut)(graph, source)


def counted_words(count: int, kind: str) -> str:
    return f"on {count} {kind} sample{'s' if count != 1 else ''}"
