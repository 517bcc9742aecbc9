"""What `openqnn.qnn.isolated` and its worker process say to each other.

A module of its own, since records of the module that Python runs as `__main__` would not unpickle elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from openqnn.errors import OpenQnnError


@dataclass(frozen=True, slots=True)
class Job:
    """A function of `openqnn.qnn.tasks` and its arguments; `subject` is whom a crash is put down to."""

    task: str
    subject: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Step:
    """What the library is about to do."""

    text: str


@dataclass(frozen=True, slots=True)
class Partial:
    """A part of the answer that is worth having even if the rest never comes."""

    value: Any


@dataclass(frozen=True, slots=True)
class Done:
    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """An error to be raised in the parent; its class, message and hint."""

    kind: type[OpenQnnError]
    message: str
    hint: str


Answer: TypeAlias = Step | Partial | Done | Failed
