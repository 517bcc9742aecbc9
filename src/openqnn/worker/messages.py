"""What a process and the child that works for it say to each other.

A module of its own, since records of the module that Python runs as `__main__` would not unpickle elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from openqnn.errors import OpenQnnError


@dataclass(frozen=True, slots=True)
class Task:
    """A function and its arguments; it gets a `Reporter` as `reporter` too."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict[str, Any])


Number: TypeAlias = tuple[int, int]
"""A task's number: the process that gave it, and how many it gave before. An answer carries its task's, so
that the answer to another's is never taken for it."""


@dataclass(frozen=True, slots=True)
class Word:
    """A part of the answer, or a line for the user: worth having even if the rest never comes."""

    value: Any


@dataclass(frozen=True, slots=True)
class Opened:
    """The libraries are ready: what may take long from now on is the user's own work."""


@dataclass(frozen=True, slots=True)
class Done:
    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """An error to be raised in the parent."""

    error: OpenQnnError


Answer: TypeAlias = Word | Opened | Done | Failed
