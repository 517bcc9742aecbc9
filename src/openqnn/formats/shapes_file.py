"""shapes.yaml: the static graphs that are made of one dynamic model, and the tensors that carry state.

graphs:
  prefill: {dims: {tokens: 128, past: 0}}
  decode:  {shapes: {input_ids: [1, 1]}, dims: {past: 127}}
  batch4:  {batch: 4}
state:                      # inputs that take what an output of the step before gave; may be left out
  past.0.key: present.0.key
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import yaml

from openqnn.errors import InputError
from openqnn.formats.yaml_text import parse_yaml

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_KEYS: Final = ("shapes", "dims", "batch")
_FORM: Final = "graphs: {batch1: {batch: 1}, wide: {shapes: {x: [1, 3, 640, 640]}, dims: {symbol: 8}}}"


@dataclass(frozen=True, slots=True)
class GraphShapes:
    """How the dimensions of one graph are settled."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    batch: int | None = None

    def settings(self) -> dict[str, Any]:
        """The keyword arguments of `convert` that it stands for."""
        return {"input_shapes": dict(self.shapes), "dims": dict(self.dims), "batch": self.batch}


@dataclass(frozen=True, slots=True)
class ShapesFile:
    """Graphs by name, and of tensors that carry state the output by its input."""

    graphs: Mapping[str, GraphShapes]
    state: Mapping[str, str]


def read_shapes(path: str | os.PathLike[str]) -> ShapesFile:
    """The file's content; InputError with the place of what is wrong."""
    file = Path(path)
    try:
        content = parse_yaml(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"cannot read {file}: {e}") from e
    except yaml.YAMLError as e:
        raise InputError(f"{file} is not YAML: {' '.join(str(e).split())}", hint=_FORM) from e
    return shapes_of(content, str(file))


def shapes_of(content: Any, place: str = "shapes") -> ShapesFile:
    """Graphs and state from the content of a shapes.yaml; `place` names it in messages."""
    whole = _mapping(content, place)
    _known(whole, ("graphs", "state"), place)
    graphs = _mapping(whole.get("graphs"), f"{place}: graphs")
    if len(graphs) < 1:
        raise InputError(f"{place}: it names no graph", hint=_FORM)
    made = {name: _graph(name, rows, f"{place}: {name}") for name, rows in graphs.items()}
    state = _mapping(whole.get("state") or {}, f"{place}: state")
    wrong = next((v for v in state.values() if not isinstance(v, str)), None)
    if wrong is not None:
        raise InputError(f"{place}: state: {wrong!r} is no name of an output")
    return ShapesFile(made, cast("dict[str, str]", state))


def _graph(name: str, content: Any, place: str) -> GraphShapes:
    if not _NAME.fullmatch(name):
        raise InputError(f"{place}: a graph's name has letters, digits and _ only")
    rows = _mapping(content or {}, place)
    _known(rows, _KEYS, place)
    shapes = _mapping(rows.get("shapes") or {}, f"{place}: shapes")
    dims = _mapping(rows.get("dims") or {}, f"{place}: dims")
    batch = rows.get("batch")
    return GraphShapes(
        {k: tuple(_sizes(v, f"{place}: shapes: {k}")) for k, v in shapes.items()},
        {k: _size(v, f"{place}: dims: {k}") for k, v in dims.items()},
        None if batch is None else _size(batch, f"{place}: batch"),
    )


def _sizes(content: Any, place: str) -> list[int]:
    if not isinstance(content, list):
        raise InputError(f"{place}: a shape is a list of sizes, not {content!r}")
    return [_size(v, place) for v in cast("list[Any]", content)]


def _size(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{place}: {value!r} is no size")
    return value


def _mapping(content: Any, place: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise InputError(f"{place} is not a mapping", hint=_FORM)
    return {str(key): value for key, value in cast("dict[Any, Any]", content).items()}


def _known(content: Mapping[str, Any], keys: tuple[str, ...], place: str) -> None:
    other = next((key for key in content if key not in keys), None)
    if other is not None:
        raise InputError(f"{place}: '{other}' is not known", hint=f"it may have: {', '.join(keys)}")
