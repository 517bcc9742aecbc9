"""The JSON file of --config_file: settings of contexts, graphs execution, and the way to HTP's own file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from openqnn.errors import InputError
from openqnn.formats.json_text import parse_json
from openqnn.formats.profiling_window import Window
from openqnn.qnn.abi import PRIORITIES
from openqnn.qnn.htp_config import HTP_KEYS, HtpConfig, name_list, read_htp_config

_REFUSED = "the libraries for this machine do not support it; a device may"
_OUTER = (
    "backend_extensions", "context_configs", "graph_configs", "profile_configs",
    "async_graph_execution_config",
)  # fmt: skip
_CONTEXT = (
    "context_priority", "async_execute_queue_depth", "enable_graphs", "memory_limit_hint",
    "is_persistent_binary",
    "cache_compatibility_mode",
)  # fmt: skip
_GRAPH = ("graph_name", "graph_priority", "graph_profiling_start_delay", "graph_profiling_num_executions")
_ASYNC = ("input_tensors_creation_tasks_limit", "execute_enqueue_tasks_limit")


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What the file says. `remarks` are settings that have no effect on this machine, with the reason."""

    htp: HtpConfig = field(default_factory=HtpConfig)
    queue_depth: int | None = None
    enabled: tuple[str, ...] = ()
    windows: Mapping[str, Window] = field(default_factory=dict[str, Window])
    """By graph: which executions are profiled."""
    graph_names: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    priority: int | None = None
    """The context's, as the C interface has it."""


def read_config(path: str | PathLike[str]) -> RunConfig:
    """Read the file, and HTP's own file where it names one; HTP's own file is taken by itself too."""
    file = Path(path)
    content = _load(file)
    if not any(key in content for key in _OUTER) and any(key in content for key in HTP_KEYS):
        return RunConfig(htp=(htp := read_htp_config(file, parse_json)), remarks=htp.ignored)
    return _Reader(file).config(content)


class _Reader:
    def __init__(self, file: Path) -> None:
        self._file, self._remarks = file, list[str]()

    def config(self, content: Mapping[str, Any]) -> RunConfig:
        self._known(content, _OUTER, "", f"; in HTP's own file: {', '.join(HTP_KEYS)}")
        htp = self._extensions(self._object(content, "backend_extensions"))
        context = self._object(content, "context_configs")
        self._known(context, _CONTEXT, "context_configs.")
        self._context(context)
        names, windows = self._graphs(content.get("graph_configs", []))
        profile = self._object(content, "profile_configs")
        self._known(profile, ("num_max_events",), "profile_configs.")
        if "num_max_events" in profile:
            self._number(profile, "num_max_events", "profile_configs.", whole=True)
            self._remarks.append("profile_configs.num_max_events: all events are kept")
        depth = self._depth(context, self._object(content, "async_graph_execution_config"))
        enabled = name_list(context, "enable_graphs", self._file, "context_configs.")
        remarks = (*self._remarks, *htp.ignored)
        said = context.get("context_priority")
        priority = None if said is None else PRIORITIES[said]
        return RunConfig(htp, depth, enabled, windows, names, remarks, priority)

    def _extensions(self, entry: Mapping[str, Any]) -> HtpConfig:
        self._known(entry, ("shared_library_path", "config_file_path"), "backend_extensions.")
        inner = str(entry.get("config_file_path") or "")
        if not inner:
            return HtpConfig()
        beside = self._file.parent / inner
        return read_htp_config(beside if beside.exists() else inner, parse_json)

    def _context(self, entry: Mapping[str, Any]) -> None:
        if entry.get("context_priority", "normal") not in tuple(PRIORITIES):
            known = f"one of {', '.join(PRIORITIES)}, not {entry['context_priority']!r}"
            raise InputError(f"{self._file}: context_configs.context_priority is {known}")
        if entry.get("is_persistent_binary") is True:
            self._remarks.append(f"context_configs.is_persistent_binary: {_REFUSED}")
        if not isinstance(entry.get("is_persistent_binary", False), bool):
            raise InputError(f"{self._file}: context_configs.is_persistent_binary is true or false")
        if "memory_limit_hint" in entry:
            self._number(entry, "memory_limit_hint", "context_configs.", whole=True)
            self._remarks.append(f"context_configs.memory_limit_hint: {_REFUSED}")
        mode = entry.get("cache_compatibility_mode", "permissive")
        if mode not in ("permissive", "strict"):
            raise InputError(f"{self._file}: cache_compatibility_mode is permissive or strict, not {mode!r}")
        if mode == "strict":
            raise InputError(
                f"{self._file}: cache_compatibility_mode strict is not supported by the libraries here",
                hint="leave it out here; a device judges it when it loads the binary",
            )

    def _priority(self, entry: Mapping[str, Any], key: str, where: str) -> None:
        value = entry.get(key, "normal")
        if value not in tuple(PRIORITIES):
            raise InputError(f"{self._file}: {where}.{key} is one of {', '.join(PRIORITIES)}, not {value!r}")
        if value != "normal":
            self._remarks.append(f"{where}.{key}: it orders the work on a device, and does nothing here")

    def _graphs(self, entries: Any) -> tuple[tuple[str, ...], dict[str, Window]]:
        names: list[str] = []
        windows: dict[str, Window] = {}
        for entry in entries if isinstance(entries, list) else [entries]:
            self._known(entry, _GRAPH, "graph_configs.")
            if not isinstance(entry.get("graph_name"), str):
                raise InputError(f"{self._file}: an entry of graph_configs has no graph_name")
            names.append(entry["graph_name"])
            self._priority(entry, "graph_priority", "graph_configs")
            window = self._window(entry)
            if window != Window():
                windows[entry["graph_name"]] = window
        return tuple(names), windows

    def _window(self, entry: Mapping[str, Any]) -> Window:
        delay, executions = 0.0, None
        if "graph_profiling_start_delay" in entry:
            delay = self._number(entry, "graph_profiling_start_delay", "graph_configs.")
        if "graph_profiling_num_executions" in entry:
            found = self._number(entry, "graph_profiling_num_executions", "graph_configs.", whole=True)
            executions = int(found)
        return Window(delay, executions)

    def _number(self, entry: Mapping[str, Any], key: str, where: str, *, whole: bool = False) -> float:
        value = entry[key]
        if isinstance(value, int | float) and 0 <= value < math.inf and not (whole and value % 1):
            return value
        kind = "whole number" if whole else "number"
        raise InputError(f"{self._file}: {where}{key} must be a {kind} of 0 or more, not {value!r}")

    def _depth(self, context: Mapping[str, Any], tasks: Mapping[str, Any]) -> int | None:
        """How many inferences may be under way: the smallest of the limits that are set."""
        self._known(tasks, _ASYNC, "async_graph_execution_config.")
        limits = [context.get("async_execute_queue_depth"), *tasks.values()]
        given = [limit for limit in limits if limit is not None]
        for limit in given:
            if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
                raise InputError(f"{self._file}: a queue is at least 1 deep, not {limit!r}")
        return min(given, default=None)

    def _object(self, content: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = content.get(key, {})
        if not isinstance(value, dict):
            raise InputError(f"{self._file}: {key} must be an object")
        return value  # pyright: ignore[reportUnknownVariableType]

    def _known(self, entry: Any, keys: Sequence[str], where: str, others: str = "") -> None:
        if not isinstance(entry, Mapping):
            raise InputError(f"{self._file}: {where.rstrip('.') or 'the whole'} must be an object")
        for key in entry:
            if key not in keys:
                hint = f"known: {', '.join(keys)}{others}"
                raise InputError(f"{self._file}: there is no setting '{where}{key}'", hint=hint)


def _load(file: Path) -> dict[str, Any]:
    try:
        content = parse_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{file} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{file}: the whole must be an object")
    return content  # pyright: ignore[reportUnknownVariableType]
