"""The registry of plugins: found by name and stage, parameters checked, and read from folders of users."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from openqnn.errors import InputError, OpenQnnError, UsageError
from openqnn.evaluation.plugins.plugin import FILE, MEMORY, MISSING, PLUGINS, Parameter, Plugin

OWN = (
    "dataset_lists", "image_sizes", "image_numbers", "batches", "tokens", "squad", "translation",
    "detections", "faces", "plates", "class_metrics", "text_metrics", "box_metrics", "face_metrics",
    "image_transformers",
)  # fmt: skip
CUSTOM = "CUSTOM_PLUGIN_PATH"
_read: set[Path] = set()


def load_plugins() -> None:
    """All of ours, and those of the folders in CUSTOM_PLUGIN_PATH."""
    for name in OWN:
        importlib.import_module(f"openqnn.evaluation.plugins.{name}")
    for folder in filter(None, os.environ.get(CUSTOM, "").split(os.pathsep)):
        _load_folder(Path(folder))


def _load_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(f"{CUSTOM}: {folder} is no folder")
    for path in sorted(folder.rglob("*.py")):
        if path.resolve() in _read or path.name.startswith("_"):
            continue
        spec = importlib.util.spec_from_file_location(f"openqnn_plugin_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except OpenQnnError:
            raise
        except Exception as error:
            raise InputError(f"{CUSTOM}: {path}: {type(error).__name__}: {error}") from error
        _read.add(path.resolve())


def make_plugin(stage: str, name: str, params: Mapping[str, Any], where: str, *, memory: bool) -> Plugin:
    """The plugin with its parameters; `where` is the place in the config for messages."""
    load_plugins()
    variant = MEMORY if memory else FILE
    found = PLUGINS.get((stage, name), [])
    chosen = next((c for c in found if c.variants in ("", variant)), None)
    if chosen is None:
        raise UsageError(
            f"{where}: there is no {stage} plugin '{name}'{_other(found, memory)}", hint=_near(stage, name)
        )
    known = {n: p for n, p in chosen.parameters().items() if p.only in ("", variant)}
    spelled = {key.replace("-", "_"): value for key, value in params.items()}
    for key in spelled:
        if key not in known:
            near = get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known) or 'none'}"
            raise UsageError(f"{where}.params.{key}: plugin {name} has no such parameter", hint=hint)
    values = {n: _value(p, n, spelled, where, name, memory) for n, p in known.items()}
    return chosen(**values)


def _other(found: list[type[Plugin]], memory: bool) -> str:
    if not found:
        return ""
    return f" among the {'memory' if memory else 'file'} plugins" + (
        ": leave out -use_memory_plugins" if memory else ": it needs -use_memory_plugins"
    )


def _near(stage: str, name: str) -> str:
    names = [n for s, n in PLUGINS if s == stage]
    near = get_close_matches(name, names, 2)
    elsewhere = [s for s, n in PLUGINS if n == name and s != stage]
    if elsewhere:
        return f"it is a {elsewhere[0]} plugin"
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(names))}"


def _value(
    declared: Parameter, name: str, params: Mapping[str, Any], where: str, plugin: str, memory: bool
) -> Any:
    if name not in params:
        if isinstance(declared.default, str) and declared.default == MISSING:
            raise UsageError(f"{where}.params: plugin {plugin} needs the parameter {name}")
        return declared.in_memory if memory and declared.in_memory is not None else declared.default
    said = params[name]
    if said is None and declared.default is None:
        return None
    try:
        value = declared.kind(said)
    except ValueError as error:
        raise UsageError(f"{where}.params.{name}: {said!r} is not {error}") from None
    if declared.choices and value not in declared.choices:
        allowed = ", ".join(map(str, declared.choices))
        raise UsageError(f"{where}.params.{name}: {said!r} is none of {allowed}")
    return value
