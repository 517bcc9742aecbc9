"""What a user decides about a partition: partition.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from openqnn.errors import UsageError
from openqnn.ir import Graph, Node
from openqnn.vendor.partition.costs import BACKENDS

CONSTRAINTS = ("power_critical", "performance_critical", "memory_mb")


@dataclass(frozen=True, slots=True)
class Choices:
    """`backends` that may be used; `pins` by the name of a node (with * and ?) or by op:NAME.

    With `power_critical` energy counts instead of time, and parts on HTP have `memory_mb` at most.
    """

    backends: tuple[str, ...] = BACKENDS
    pins: Mapping[str, str] = field(default_factory=dict[str, str])
    power_critical: bool = False
    memory_mb: float | None = None

    def pin_of(self, node: Node) -> str:
        """The backend that a node is pinned to, or nothing; the last pin that fits counts."""
        fits = [to for pattern, to in self.pins.items() if _fits(pattern, node)]
        return fits[-1] if fits else ""

    def check(self, graph: Graph) -> None:
        """UsageError for a pin that no node answers to."""
        for pattern in self.pins:
            if not any(_fits(pattern, node) for node in graph.nodes):
                hint = "`openqnn inspect --text` lists them"
                raise UsageError(f"pins: no node is called '{pattern}'", hint=hint)


def _fits(pattern: str, node: Node) -> bool:
    if pattern.startswith("op:"):
        return node.op == pattern[3:]
    return pattern == node.name or fnmatchcase(node.name, pattern)


def read_choices(path: str | os.PathLike[str]) -> Choices:
    """From a file; each mistake is named with its place."""
    import yaml

    from openqnn.formats.yaml_text import parse_yaml

    try:
        content = parse_yaml(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    try:
        return choices_of(content)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from error


def choices_of(content: Any) -> Choices:
    """From what a file, or a program, says."""
    known = ("backends", "pins", "constraints", "parts", "cost")
    fields = _mapping("the file", content or {}, known)
    limits = _mapping("constraints", fields.get("constraints") or {}, CONSTRAINTS)
    if limits.get("power_critical") and limits.get("performance_critical"):
        raise UsageError("constraints: power_critical and performance_critical exclude each other")
    backends = fields.get("backends") or list(BACKENDS)
    if not isinstance(backends, list):
        raise UsageError("backends: expected a list")
    pins = _mapping("pins", fields.get("pins") or {}, None)
    _check_names([("backends", b) for b in backends] + [(f"pins.{k}", v) for k, v in pins.items()])
    memory = _megabytes(limits.get("memory_mb"))
    return Choices(tuple(backends), pins, bool(limits.get("power_critical")), memory)


def _check_names(named: list[tuple[str, Any]]) -> None:
    for place, name in named:
        if name not in BACKENDS:
            hint = f"there are {', '.join(BACKENDS)}"
            raise UsageError(f"{place}: there is no backend {name!r}", hint=hint)


def _megabytes(memory: Any) -> float | None:
    if memory is not None and not (type(memory) in (int, float) and memory > 0):
        raise UsageError(f"constraints.memory_mb is {memory!r}: a number of megabytes above 0")
    return memory


def _mapping(place: str, content: Any, known: tuple[str, ...] | None) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise UsageError(f"{place}: expected names with values, found {content!r}")
    for key in content:
        if known is not None and key not in known:
            raise UsageError(f"{place}: there is no key {key!r}", hint=f"there are {', '.join(known)}")
    return cast("dict[str, Any]", content)
