"""The JSON file of QNN's benchmark script: a model, its data, the backends and how often each is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from openqnn.formats.config_reader import ConfigReader

_OUTER = (
    "Name", "HostRootPath", "HostResultsDir", "DevicePath", "Devices", "Runs", "Model", "Backends",
    "Measurements",
)  # fmt: skip
_MODEL = ("Name", "qnn_model", "InputList", "Data")
MEASUREMENTS = ("timing", "mem")
LIBRARIES = {"CPU": "libQnnCpu.so", "HTP": "libQnnHtp.so", "DSP": "libQnnHtp.so"}


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """What the file says, with paths from its root folder on. `remarks` are keys that do nothing here."""

    name: str
    model: Path
    input_list: Path | None
    backends: tuple[str, ...]
    runs: int
    results: Path
    measurements: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def read_bench_config(path: str | PathLike[str]) -> BenchConfig:
    """Read and check the file."""
    return _Reader(Path(path)).config()


class _Reader(ConfigReader):
    def config(self) -> BenchConfig:
        content = self._load()
        self._known(content, _OUTER, "")
        model = content.get("Model")
        if not isinstance(model, dict):
            raise self._error("Model", "must be an object")
        given = cast("dict[str, Any]", model)
        self._known(given, _MODEL, "Model.")
        root = self._file.parent / self._text(content, "HostRootPath", ".")
        listed = self._text(given, "InputList", "", "Model.")
        remarks = [
            f"{key}: the run is on this machine" for key in ("DevicePath", "Devices") if content.get(key)
        ]
        if given.get("Data"):
            remarks.append("Model.Data: files are found where they are")
        return BenchConfig(
            self._text(content, "Name", self._file.stem),
            self._found(root, self._text(given, "qnn_model", None, "Model."), "Model.qnn_model"),
            self._found(root, listed, "Model.InputList") if listed else None,
            self._words(content, "Backends", tuple(LIBRARIES)),
            self._runs(content),
            root / self._text(content, "HostResultsDir", "results"),
            self._words(content, "Measurements", MEASUREMENTS, MEASUREMENTS),
            tuple(remarks),
        )

    def _runs(self, content: Mapping[str, Any]) -> int:
        value = content.get("Runs", 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._error("Runs", f"must be a whole number of at least 1, not {value!r}")
        return value

    def _text(self, entry: Mapping[str, Any], key: str, default: str | None, where: str = "") -> str:
        value = entry.get(key, default)
        if value is None:
            raise self._error(f"{where}{key}", "is missing, and required")
        if not isinstance(value, str):
            raise self._error(f"{where}{key}", f"must be a text, not {value!r}")
        return value

    def _words(
        self, content: Mapping[str, Any], key: str, known: tuple[str, ...], default: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        value: Any = content.get(key, list(default))
        if not isinstance(value, list) or not value:
            raise self._error(key, "must be a list with at least one entry")
        for index, word in enumerate(cast("list[Any]", value)):
            if word not in known:
                raise self._error(f"{key}[{index}]", f"is one of {', '.join(known)}, not {word!r}")
        return tuple(cast("list[str]", value))

    def _found(self, root: Path, name: str, key: str) -> Path:
        path = root / name
        if not path.is_file():
            raise self._error(key, f"there is no file {path}")
        return path
