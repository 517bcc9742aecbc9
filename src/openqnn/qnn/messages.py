"""What `openqnn.qnn.isolated` and its worker process say to each other.

A module of its own, since records of the module that Python runs as `__main__` would not unpickle elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from openqnn.errors import OpenQnnError
from openqnn.qnn.net import Array, Net


@dataclass(frozen=True, slots=True)
class Job:
    """Run a graph; `repeat` above zero measures instead, over so many inferences."""

    net: Net
    inputs: dict[str, Array]
    library: str
    soc: int | None = None
    validate: bool = True
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What the library is about to do."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    outputs: dict[str, Array]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failed:
    """An error to be raised in the parent; its class, message and hint."""

    kind: type[OpenQnnError]
    message: str
    hint: str


Answer: TypeAlias = Step | Done | Failed
