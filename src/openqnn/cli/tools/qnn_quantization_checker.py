"""qnn-quantization-checker: weights, biases and activations of all quantization options against floats."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from openqnn.cli.command import Tool
from openqnn.errors import InputError, OpenQnnError, UsageError
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.quantization_checker import CheckerOptions

KEYS = (
    "RUN_IN_REPAIR_MODE", "MODEL_PATH", "INPUT_LIST_PATH", "ACTIVATION_WIDTH", "BIAS_WIDTH", "WEIGHT_WIDTH",
    "INPUT_LAYOUT", "OUTPUT_DIR_PATH", "CLANG_PATH", "BASH_PATH", "BIN_PATH", "PY3_PATH", "TENSORFLOW_HOME",
    "TFLITE_HOME", "ONNX_HOME", "QUANTIZATION_OVERRIDES", "WEIGHT_COMPARISON_ALGORITHMS",
    "BIAS_COMPARISON_ALGORITHMS", "ACT_COMPARISON_ALGORITHMS", "INPUT_DATA_ANALYSIS_ALGORITHMS", "OUTPUT_CSV",
    "GENERATE_HISTOGRAM", "QUANTIZATION_VARIATIONS", "QUANTIZATION_ALGORITHMS",
)  # fmt: skip
OLD_PATHS = tuple(k for k in KEYS if k.endswith("_HOME") or k in KEYS[8:12])
MODELS = (".onnx", ".tflite", ".pt2", ".pb")
LOGS = "qnn-quantization-checker-log"


@dataclass(frozen=True, slots=True)
class CheckerConfig:
    """All choices: those of the file, overruled by the command line."""

    values: Mapping[str, Any]
    options: CheckerOptions

    def text(self, key: str, given: str = "", usual: str = "") -> str:
        return given or str(self.values.get(key, "") or usual)

    def flag(self, key: str, given: bool = False) -> bool:
        return given or str(self.values.get(key, "")).lower() == "true"

    def listed(self, key: str, usual: list[Any]) -> list[Any]:
        found = self.values.get(key, usual)
        if not isinstance(found, list):
            raise InputError(f"{self.options.config_file}: {key} is no list")
        return found or usual

    def width(self, key: str, given: str, allowed: tuple[int, ...]) -> int:
        text = self.text(key, given, "8")
        if not text.isdigit() or int(text) not in allowed:
            raise UsageError(f"{key} is {text}, and must be one of {', '.join(map(str, allowed))}")
        return int(text)


def run_quantization_checker(arguments: Namespace, command: str) -> int:
    """0 where all models were checked, whatever was found; 1 where one of a folder could not be."""
    options = read_options(arguments, CheckerOptions)
    config = CheckerConfig(_read_config(options.config_file), options)
    model = Path(config.text("MODEL_PATH", options.model))
    if not str(model) or str(model) == ".":
        raise UsageError("there is no model to check", hint="--model, or MODEL_PATH in the config file")
    failed = 0
    for source, inputs in _models(model, config):
        place = Path(
            config.text("OUTPUT_DIR_PATH", options.output_dir, str(source.parent / "quantization_check"))
        )
        place = place / source.stem if model.is_dir() else place
        try:
            _check_model(source, inputs, place, config, command)
        except OpenQnnError as error:
            if not model.is_dir():
                raise
            print(f"{source}: {error}")
            failed += 1
    return 1 if failed else 0


def _read_config(path: str) -> dict[str, Any]:
    """A JSON file; as in the documented samples it may have comments and commas too many."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    plain = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda m: m.group(1) or "", text)
    plain = re.sub(r",(\s*[}\]])", r"\1", plain)
    try:
        content = json.loads(plain)
    except ValueError as error:
        raise InputError(f"{path}: no JSON ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: no JSON object")
    unknown = [key for key in content if key not in KEYS]
    if unknown:
        raise InputError(f"{path}: unknown keys: {', '.join(unknown)}", hint=f"known: {', '.join(KEYS)}")
    for key in OLD_PATHS:
        if content.get(key):
            print(f"note: {key} has no effect: nothing of the kind is needed here")
    return content


def _models(model: Path, config: CheckerConfig) -> Iterator[tuple[Path, str]]:
    given = config.text("INPUT_LIST_PATH", config.options.input_list)
    if not model.exists():
        raise InputError(f"{model}: no such file or folder")
    if not model.is_dir():
        if not given:
            raise UsageError(
                "a model needs inputs", hint="--input_list, or INPUT_LIST_PATH in the config file"
            )
        yield model, given
        return
    found = sorted(p for p in model.rglob("*") if p.suffix in MODELS)
    if not found:
        raise InputError(f"{model} holds no model", hint=f"files ending in {', '.join(MODELS)}")
    for path in found:
        beside = path.with_name("input_list.txt")
        yield path, str(beside) if beside.is_file() else given


def _check_model(source: Path, inputs: str, place: Path, config: CheckerConfig, command: str) -> None:
    """Checks one model with all options."""
    from openqnn.cli.shared.checker_files import CheckerFiles
    from openqnn.cli.shared.checking import Checking

    if not inputs:
        raise InputError(f"{source} has no input_list.txt beside it")
    files = CheckerFiles(place, LOGS, datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
    checking = Checking(source, inputs, config, files)
    files.note(f"$ {command}")
    found = checking.run()
    best = min(found, key=lambda option: found[option])
    files.say(f"{source.name}: {len(found)} options, fewest failures with {best}: {found[best]}")
    if config.flag("RUN_IN_REPAIR_MODE"):
        checking.repair()
    files.close()


TOOL = Tool(
    "qnn-quantization-checker",
    "Tell which weights, biases and activations suffer from each way to quantize a model, and repair them.",
    "--config_file JSON [--model PATH] [--input_list FILE] [options]",
    (CheckerOptions, OwnOps),
    run_quantization_checker,
    examples=(
        "qnn-quantization-checker --config_file checker.json --model model.onnx --input_list inputs.txt",
    ),
)
