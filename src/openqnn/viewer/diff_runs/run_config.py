"""Configurations of comparisons: checked field by field, saved and loaded."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from openqnn.analysis.accuracy.verifiers import ChosenVerifier, verifier_named, with_parameters
from openqnn.errors import InputError, OutputError
from openqnn.formats.atomic import replacing
from openqnn.vendor.deploy.devices import ADB, target_of
from openqnn.viewer.diff_runs.run_fields import (
    ANDROID,
    ARCHITECTURES,
    ARM,
    CHOICE,
    DEVICE_RUNTIMES,
    FILE,
    FOLDER,
    HOST,
    HOST_RUNTIMES,
    NUMBER,
    ON_DEVICE,
    PLACE,
    USE_CASES,
    RunField,
    fields_of,
)

FORMAT: Final = "openqnn diff run"
NAME: Final = "run_config.json"
LONGEST: Final = 4096
LARGEST: Final = 1 << 20  # bytes of a configuration
THERE: Final = {FILE: "file", FOLDER: "folder", PLACE: "file or folder"}
NO_ANDROID: Final = "no package has Qualcomm's libraries for Android, so nothing can be sent to it"
WITHOUT: Final = "Golden or Output vs Output takes files that qnn-net-run wrote on the device"


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The values of all fields that are asked for; paths are absolute, and lie below `folder`."""

    folder: Path
    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    @property
    def use_case(self) -> str:
        return self.values["use_case"]

    def verifier(self) -> ChosenVerifier:
        name = self["verifier"]
        start = f"verifier.{name}."
        given = {k.removeprefix(start): v for k, v in self.values.items() if k.startswith(start)}
        return with_parameters(verifier_named(name), given)

    def text(self) -> str:
        return json.dumps({"format": FORMAT, "fields": dict(self.values)}, indent=2)


def read_config(text: str, where: str) -> dict[str, str]:
    """The fields of a saved configuration, unchecked."""
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: no JSON: {error}") from error
    fields = content.get("fields") if isinstance(content, dict) else None
    known = isinstance(fields, dict) and isinstance(content, dict) and content.get("format") == FORMAT
    if not known or not all(isinstance(v, str) for v in (fields or {}).values()):
        hint = "Save Run Configurations writes one"
        raise InputError(f"{where}: it is no configuration of a comparison", hint=hint)
    return dict(fields or {})


def load_config(path: Path) -> dict[str, str]:
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise InputError(f"{path}: no such configuration")
    return read_config(path.read_text(encoding="utf-8", errors="replace"), str(path))


def check_config(given: Mapping[str, str], folder: Path) -> tuple[RunConfig, dict[str, str]]:
    """The configuration, and for each field that cannot stay so one message."""
    if given.get("use_case") not in USE_CASES:
        return RunConfig(folder, {}), {"use_case": f"choose one of {', '.join(USE_CASES)}"}
    values, problems = {"use_case": str(given["use_case"])}, dict[str, str]()
    for field in fields_of(given):
        text = str(given.get(field.id, "") or field.default).strip()
        try:
            values[field.id] = _checked(field, text, folder)
        except ValueError as error:
            problems[field.id], values[field.id] = str(error), text
    config = RunConfig(folder, values)
    for prefix in ("one", "two"):
        if f"{prefix}.target_device" in values:
            problems = _device_problems(config, prefix) | problems
    return config, problems


def _checked(field: RunField, text: str, folder: Path) -> str:
    """The value of a field; ValueError says what is wrong with it."""
    if not text:
        if field.required:
            raise ValueError(f"{field.label} is needed")
        return ""
    if len(text) > LONGEST or "\0" in text or "\n" in text:
        raise ValueError("this is too long, or not one line")
    if field.kind == CHOICE and text not in field.choices:
        raise ValueError(f"{text} is none of {', '.join(field.choices)}")
    if field.kind == NUMBER:
        return _number(text)
    if field.kind in (FILE, FOLDER, PLACE) or field.id == "save":
        return str(_path(field, text, folder))
    return text


def _number(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text} is no number") from None
    if not 0 <= value < float("inf"):
        raise ValueError("this must be 0 or more")
    return text


def _path(field: RunField, text: str, folder: Path) -> Path:
    """A place below the folder, wherever links lead."""
    path = Path(os.path.realpath(folder / Path(text).expanduser()))
    if not path.is_relative_to(folder):
        raise ValueError(f"this is outside of {folder}, the folder that -w gave")
    if field.id == "save":
        return _save_path(path)
    if field.id == "working_directory":
        return _working(path)
    is_there = {FILE: path.is_file, FOLDER: path.is_dir, PLACE: path.exists}[field.kind]
    if not is_there():
        raise ValueError(f"there is no such {THERE[field.kind]}")
    if field.suffixes and not path.name.endswith(field.suffixes):
        raise ValueError(f"the name of this file ends in {' or '.join(field.suffixes)}")
    return path


def _working(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        raise ValueError("this is a file: a folder is needed")
    there = next(p for p in (path, *path.parents) if p.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{there} cannot be written into")
    return path


def _save_path(path: Path) -> Path:
    target = path / NAME if path.is_dir() or not path.suffix else path
    if target.suffix != ".json":
        raise ValueError("the name of this file ends in .json")
    if target.exists():
        try:
            load_config(target)
        except InputError:
            raise ValueError("this file exists, and is no configuration of a comparison") from None
    return target


def _device_problems(config: RunConfig, prefix: str) -> dict[str, str]:
    """What the fields of an inference say together, and cannot be."""
    device, found = config[f"{prefix}.target_device"], dict[str, str]()
    runtime, architecture = config[f"{prefix}.runtime"], config[f"{prefix}.architecture"]
    allowed = HOST_RUNTIMES if device == HOST else DEVICE_RUNTIMES
    if runtime not in allowed:
        found[f"{prefix}.runtime"] = f"on {device} there is {', '.join(allowed)}"
    if architecture not in ARCHITECTURES.get(device, (architecture,)):
        found[f"{prefix}.architecture"] = f"on {device} this is {' or '.join(ARCHITECTURES[device])}"
    if device == ON_DEVICE:
        found |= {f"{prefix}.{name}": text for name, text in device_problems(config, prefix)}
    if config[f"{prefix}.output_data_type"] == "native_only":
        found[f"{prefix}.output_data_type"] = "differences are those of real numbers: float_only has them"
    return found


NO_LIBRARY = {"gpu": "no package has the GPU's library for a device"}


def device_problems(config: RunConfig, prefix: str) -> Iterator[tuple[str, str]]:
    """Fields of a run on a device, and what is missing for it on this machine."""
    device, architecture = config[f"{prefix}.device_id"], config[f"{prefix}.architecture"]
    if device and target_of(device).startswith("adb") and not adb_there():
        yield "device_id", "adb is not on the PATH: install it, or name a device as ssh://user@host"
    if missing := NO_LIBRARY.get(config[f"{prefix}.runtime"]):
        yield "runtime", f"{missing}. {WITHOUT}"
    if architecture == ANDROID:
        yield "architecture", f"{NO_ANDROID}: a device with Linux takes {ARM}. {WITHOUT}"
    if architecture == ARM and not config[f"{prefix}.engine_path"]:
        yield (
            "engine_path",
            (
                "Qualcomm's libraries for arm are needed: pip download --platform manylinux_2_34_aarch64"
                " --only-binary=:all: --no-deps onnxruntime-qnn==2.3.0 fetches a wheel with them"
            ),
        )


def adb_there() -> bool:
    return bool(os.environ.get(ADB)) or shutil.which("adb") is not None


def save_config(config: RunConfig, path: Path) -> None:
    if path.exists():
        load_config(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(config.text().encode())
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from error
