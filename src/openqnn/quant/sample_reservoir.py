"""Samples on their way through calibration, some of which are kept for the algorithms that come after it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import chain, islice
from typing import Any

from openqnn.ir import Array, Graph
from openqnn.quant.calibration import batches
from openqnn.quant.samples import is_whole


class SampleReservoir:
    """Hands samples on. `samples` are those that it kept: each had the same chance, however many came.

    It keeps none with NaN in it.
    """

    def __init__(self, graph: Graph, source: Iterable[Mapping[str, Any]], most: int) -> None:
        self._graph, self._source, self._most = graph, source, most
        self._places: list[tuple[int, Mapping[str, Array]]] = []

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        chance, seen = random.Random(0), 0
        self._places = []
        for given in self._source:
            for sample in filter(is_whole, batches(self._graph, given)):
                if seen < self._most:
                    self._places.append((seen, sample))
                elif (place := chance.randrange(seen + 1)) < self._most:
                    self._places[place] = seen, sample
                seen += 1
            yield given

    @property
    def samples(self) -> list[Mapping[str, Array]]:
        """In the order in which they came."""
        return [sample for _, sample in sorted(self._places, key=lambda p: p[0])]


class CountedReservoir(SampleReservoir):
    """A reservoir over a source that knows its length."""

    def __init__(self, graph: Graph, source: Iterable[Mapping[str, Any]], most: int, count: int) -> None:
        super().__init__(graph, source, most)
        self._count = count

    def __len__(self) -> int:
        return self._count


def keeping(graph: Graph, source: Iterable[Mapping[str, Any]], most: int) -> SampleReservoir:
    """What hands on the samples of a source and keeps at most so many."""
    if isinstance(source, Sized):
        return CountedReservoir(graph, source, most, len(source))
    return SampleReservoir(graph, source, most)


def peeked(
    source: Iterable[Mapping[str, Any]], most: int
) -> tuple[list[Mapping[str, Any]], Iterable[Mapping[str, Any]]]:
    """The first samples, and what goes through all of them: a source of unknown length may give them once."""
    if isinstance(source, Sized):
        return list(filter(is_whole, islice(source, most))), source
    rest = iter(source)
    first = list(islice(rest, most))
    return list(filter(is_whole, first)), chain(first, rest)
