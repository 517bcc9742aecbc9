"""What the passes did and what they left alone, with the reasons."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from openqnn.ir import Graph, Node, Value


@dataclass(frozen=True, slots=True)
class Event:
    """One decision: a rewrite that was applied, or one that was declined for a reason. `name` is that of the
    node or the tensor, for those who look it up."""

    pass_name: str
    where: str
    applied: bool
    reason: str = ""
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        verdict = "applied" if self.applied else "declined"
        return f"{self.pass_name}: {verdict} at {self.where}" + (f": {self.reason}" if self.reason else "")


Place: TypeAlias = Node | Value | str


class Explain:
    """Collects decisions; `print(log)` is what `--explain` shows. A decision that repeats is kept once."""

    def __init__(self) -> None:
        self._events: dict[Event, None] = {}
        self.applied: Counter[str] = Counter()

    @property
    def events(self) -> list[Event]:
        return list(self._events)

    @property
    def declined(self) -> list[Event]:
        return [e for e in self._events if not e.applied]

    def apply(self, pass_name: str, place: Place, what: str = "") -> None:
        self.applied[pass_name] += 1
        self._events[Event(pass_name, _where(place), True, what, _name(place))] = None

    def decline(self, pass_name: str, place: Place, reason: str) -> None:
        self._events[Event(pass_name, _where(place), False, reason, _name(place))] = None

    def begun(self, graph: Graph) -> None:
        """Called with the graph before the first pass; who wants to see it at each step overrides this."""

    def finished(self, pass_name: str, why: str, graph: Graph) -> None:
        """Called with the graph after each pass."""

    def __str__(self) -> str:
        return "\n".join(str(e) for e in self._events)


def _name(place: Place) -> str:
    return "" if isinstance(place, str) else place.name


def _where(place: Place) -> str:
    if isinstance(place, Node):
        return place.where
    return f"'{place.name}'" if isinstance(place, Value) else place
