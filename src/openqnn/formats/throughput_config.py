"""The JSON file of qnn-throughput-net-run: backends, models, contexts, and the threads of a test case.

Each problem is told with the path of its key, such as testCase.threads[1].model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, cast

from openqnn.formats.config_reader import ConfigReader

Record = TypeVar("Record")

PROFILING_LEVELS = ("OFF", "BASIC", "DETAILED")
PERF_PROFILES = (
    "default", "low_balanced", "balanced", "high_performance", "sustained_high_performance", "burst",
    "low_power_saver", "power_saver", "high_power_saver", "extreme_power_saver", "system_settings",
    "no_user_input", "custom",
)  # fmt: skip
INPUT_TYPES = ("NATIVE", "FLOAT")
OUTPUT_TYPES = ("NATIVE_ONLY", "FLOAT_ONLY", "FLOAT_AND_NATIVE")
POST_PROCESSORS = ("NONE", "MSE", "MSE_INT8", "MSE_INT16")
SAVES = ("NONE", "NATIVE_LAST", "NATIVE_ALL")
PRIORITIES = ("DEFAULT", "LOW", "NORMAL", "HIGH")
COMPATIBILITY_MODES = ("permissive", "strict")
LOG_LEVELS = ("error", "warn", "info", "debug", "verbose")
LOOP_UNITS = ("count", "second", "seconds")


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """A library, and how it is set up."""

    name: str
    path: str
    profiling: str = "OFF"
    extensions: str = ""
    perf_profile: str = "default"
    op_package: str = ""
    platform_option: str = ""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model, its input files and what becomes of its outputs."""

    name: str
    path: str
    is_binary: bool = False
    input_path: str = ""
    input_type: str = "NATIVE"
    post_processor: str = "NONE"
    output_path: str = ""
    output_type: str = "NATIVE_ONLY"
    save: str = "NONE"
    ground_truth: str = ""


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A context, which threads share by its name."""

    name: str
    priority: str = "DEFAULT"
    queue_depth: int | None = None
    compatibility: str = ""


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A thread: where it runs what, and how often."""

    name: str
    backend: str
    context: str
    model: str
    init_in_loop: bool = False
    load_in_loop: bool = False
    random: bool = False
    interval: int = 0
    unit: str = "count"
    loop: int = 1
    asynchronous: bool = False
    config: str = ""

    @property
    def by_time(self) -> bool:
        return self.unit != "count"


@dataclass(frozen=True, slots=True)
class ThroughputConfig:
    """The file's content, every name in it resolved. A negative `iteration` means until Ctrl-C."""

    file: str
    backends: Mapping[str, BackendEntry]
    models: Mapping[str, ModelEntry]
    contexts: Mapping[str, ContextEntry]
    threads: tuple[ThreadEntry, ...]
    iteration: int
    log_level: str = ""


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of the file: the field that it fills, the type, and what is allowed."""

    field: str
    kind: type = str
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int | None = None


_BACKEND = {
    "backendName": _Key("name", required=True),
    "backendPath": _Key("path", required=True),
    "profilingLevel": _Key("profiling", choices=PROFILING_LEVELS),
    "backendExtensions": _Key("extensions"),
    "perfProfile": _Key("perf_profile", choices=PERF_PROFILES),
    "opPackagePath": _Key("op_package"),
    "platformOption": _Key("platform_option"),
}
_MODEL = {
    "modelName": _Key("name", required=True),
    "modelPath": _Key("path", required=True),
    "loadFromCachedBinary": _Key("is_binary", bool),
    "inputPath": _Key("input_path"),
    "inputDataType": _Key("input_type", choices=INPUT_TYPES),
    "postProcessor": _Key("post_processor", choices=POST_PROCESSORS),
    "outputPath": _Key("output_path"),
    "outputDataType": _Key("output_type", choices=OUTPUT_TYPES),
    "saveOutput": _Key("save", choices=SAVES),
    "groundTruthPath": _Key("ground_truth"),
}
_CONTEXT = {
    "contextName": _Key("name", required=True),
    "priority": _Key("priority", choices=PRIORITIES),
    "executeAsyncQueueDepth": _Key("queue_depth", int, least=1),
    "cacheCompatibilityMode": _Key("compatibility", choices=COMPATIBILITY_MODES),
}
_THREAD = {
    "threadName": _Key("name", required=True),
    "backend": _Key("backend", required=True),
    "context": _Key("context", required=True),
    "model": _Key("model", required=True),
    "initModelInLoop": _Key("init_in_loop", bool),
    "loadInputDataInLoop": _Key("load_in_loop", bool),
    "useRandomData": _Key("random", bool),
    "interval": _Key("interval", int, least=0),
    "loopUnit": _Key("unit", choices=LOOP_UNITS),
    "loop": _Key("loop", int, least=1),
    "executeAsynchronous": _Key("asynchronous", bool),
    "backendConfig": _Key("config"),
}
_OUTER = ("backends", "models", "contexts", "testCase")
_CASE = ("iteration", "logLevel", "threads")
_WORDS = {str: "a text", bool: "true or false", int: "a whole number"}


def read_throughput_config(path: str | PathLike[str]) -> ThroughputConfig:
    """Read and check the whole file before anything is run."""
    return _Reader(Path(path)).config()


class _Reader(ConfigReader):
    def config(self) -> ThroughputConfig:
        content = self._load()
        self._known(content, _OUTER, "")
        for key in _OUTER:
            if key not in content:
                raise self._error(key, "is missing", f"the file has the keys {', '.join(_OUTER)}")
        backends = self._named(content, "backends", _BACKEND, BackendEntry)
        models = self._named(content, "models", _MODEL, ModelEntry)
        contexts = self._named(content, "contexts", _CONTEXT, ContextEntry)
        case = self._object(content["testCase"], "testCase")
        self._known(case, _CASE, "testCase.")
        iteration = self._value(case, "iteration", "testCase.", _Key("", int, required=True))
        if iteration == 0:
            raise self._error("testCase.iteration", "must be at least 1, or below 0: until Ctrl-C")
        level = self._value(case, "logLevel", "testCase.", _Key("", choices=LOG_LEVELS))
        threads = self._named(case, "threads", _THREAD, ThreadEntry, "testCase.")
        made = ThroughputConfig(
            str(self._file), backends, models, contexts, tuple(threads.values()), iteration, level or ""
        )
        self._check(made)
        return made

    def _named(
        self,
        content: Mapping[str, Any],
        key: str,
        keys: Mapping[str, _Key],
        record: type[Record],
        where: str = "",
    ) -> dict[str, Record]:
        """The entries of a list, by their names."""
        path = f"{where}{key}"
        if key not in content:
            raise self._error(path, "is missing")
        entries = content[key]
        if not isinstance(entries, list) or not entries:
            raise self._error(path, "must be a list with at least one entry")
        found: dict[str, Record] = {}
        first: dict[str, int] = {}
        for index, entry in enumerate(cast("list[Any]", entries)):
            made = self._record(entry, f"{path}[{index}]", keys, record)
            name = cast(str, getattr(made, "name"))  # noqa: B009  the records share no class
            if name in found:
                name_key = next(iter(keys))
                raise self._error(
                    f"{path}[{index}].{name_key}", f"'{name}' is the name of {path}[{first[name]}] already"
                )
            found[name], first[name] = made, index
        return found

    def _record(self, entry: Any, path: str, keys: Mapping[str, _Key], record: type[Record]) -> Record:
        given = self._object(entry, path)
        self._known(given, tuple(keys), f"{path}.")
        values: dict[str, Any] = {}
        for key, rule in keys.items():
            value = self._value(given, key, f"{path}.", rule)
            if value is not None:
                values[rule.field] = value
        return record(**values)

    def _value(self, entry: Mapping[str, Any], key: str, where: str, rule: _Key) -> Any:
        if entry.get(key) is None:
            if rule.required:
                raise self._error(f"{where}{key}", "is missing, and required")
            return None
        value = entry[key]
        if not isinstance(value, rule.kind) or (rule.kind is int and isinstance(value, bool)):
            raise self._error(f"{where}{key}", f"must be {_WORDS[rule.kind]}, not {value!r}")
        if rule.required and value == "":
            raise self._error(f"{where}{key}", "must not be empty")
        if rule.choices:
            return self._choice(str(value), f"{where}{key}", rule.choices)
        if rule.least is not None and value < rule.least:
            raise self._error(f"{where}{key}", f"must be at least {rule.least}, not {value}")
        return value

    def _choice(self, value: str, path: str, choices: Sequence[str]) -> str:
        for choice in choices:
            if value.lower() == choice.lower():
                return choice
        raise self._error(path, f"is one of {', '.join(choices)}, not '{value}'")

    def _check(self, made: ThroughputConfig) -> None:
        """Names that must be there, and combinations that cannot be."""
        at: dict[str, tuple[ThreadEntry, str]] = {}
        configs: dict[str, tuple[str, str]] = {}
        for index, thread in enumerate(made.threads):
            path = f"testCase.threads[{index}]"
            for key, name, known in (
                ("backend", thread.backend, made.backends),
                ("context", thread.context, made.contexts),
                ("model", thread.model, made.models),
            ):
                if name not in known:
                    hint = f"{key}s of the file: {', '.join(known)}"
                    raise self._error(f"{path}.{key}", f"'{name}' is not among the {key}s", hint)
            self._check_thread(path, thread, made.models[thread.model])
            first, where = at.setdefault(thread.context, (thread, path))
            if first is not thread:
                self._check_shared(path, thread, where, first, made)
            config, where = configs.setdefault(thread.backend, (thread.config, path))
            if config != thread.config:
                reason = f"backend '{thread.backend}' is set up once, and {where} has another file"
                raise self._error(f"{path}.backendConfig", reason)
        self._check_models(made)

    def _check_thread(self, path: str, thread: ThreadEntry, model: ModelEntry) -> None:
        if thread.init_in_loop and model.is_binary:
            reason = f"cannot be true: model '{model.name}' has loadFromCachedBinary true"
            raise self._error(f"{path}.initModelInLoop", reason)
        if not model.input_path and not thread.random:
            reason = f"nothing goes into model '{model.name}': it has no inputPath"
            raise self._error(
                f"{path}.useRandomData", reason, "set it to true, or give the model an inputPath"
            )
        if thread.load_in_loop and thread.random:
            raise self._error(f"{path}.loadInputDataInLoop", "there are no files: useRandomData is true")

    def _check_shared(
        self, path: str, thread: ThreadEntry, where: str, first: ThreadEntry, made: ThroughputConfig
    ) -> None:
        """A second thread in a context."""
        context = f"context '{thread.context}'"
        if thread.backend != first.backend:
            reason = f"{context} is on backend '{first.backend}' ({where}), and cannot be on two"
            raise self._error(f"{path}.context", reason, "give each backend a context of its own")
        if thread.init_in_loop or first.init_in_loop:
            reason = f"{context} is shared with {where}, and one thread would free it under the other"
            raise self._error(f"{path}.initModelInLoop", reason, "give the thread a context of its own")
        binaries = [n for n in (first.model, thread.model) if made.models[n].is_binary]
        if thread.model != first.model and binaries:
            reason = (
                f"{context} is the one that the binary of model '{binaries[0]}' holds, and no more fits in"
            )
            raise self._error(f"{path}.context", reason, "give each context binary a context of its own")

    def _check_models(self, made: ThroughputConfig) -> None:
        for index, model in enumerate(made.models.values()):
            path = f"models[{index}]"
            if model.save != "NONE" and not model.output_path:
                raise self._error(f"{path}.outputPath", f"is required: saveOutput is {model.save}")
            if model.ground_truth and model.post_processor == "NONE":
                raise self._error(f"{path}.groundTruthPath", "goes with a postProcessor")

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._error(path, "must be an object")
        return cast("dict[str, Any]", value)
