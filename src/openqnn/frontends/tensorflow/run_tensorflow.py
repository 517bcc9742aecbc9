"""Runs TensorFlow in a process of its own, which alone imports it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from openqnn.errors import ModelError, Problem, UnsupportedError, UsageError
from openqnn.frontends.tensorflow.convert_to_tflite import ANSWER, MODEL, REFERENCE
from openqnn.ir import Array

PYTHON: Final = "OPENQNN_TENSORFLOW_PYTHON"  # the Python that has TensorFlow, if it is another one
TIMEOUT = 3600.0  # seconds
SCRIPT = Path(__file__).with_name("convert_to_tflite.py")
_INSTALL = f"pip install 'openqnn[tensorflow]', or set {PYTHON} to a Python that has it"
_USAGE = ("has no tag", "has no signature", "has no input", "has no node")


@dataclass(frozen=True)
class TensorflowRequest:
    """A model and what is asked of it."""

    model: str
    kind: str
    tag: str = "serve"
    signature: str = ""
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    validate: bool = False
    custom: Sequence[str] = ()
    """Ops that the user declared, which TensorFlow lets through."""


@dataclass(frozen=True)
class TensorflowAnswer:
    """A TFLite model, the user's names of its tensors where they differ, and what else was found out."""

    content: bytes
    names: Mapping[str, str]
    inputs: Mapping[str, Sequence[int | None]]
    outputs: Sequence[str]
    unconsumed: Sequence[str]
    reference: Mapping[str, Array]


def run_tensorflow(request: TensorflowRequest) -> TensorflowAnswer:
    with tempfile.TemporaryDirectory(prefix="openqnn-tensorflow-") as folder:
        answer = ask(request, Path(folder))
        check_answer(answer, request)
        return TensorflowAnswer(
            Path(folder, MODEL).read_bytes(),
            answer.get("names", {}),
            answer.get("inputs", {}),
            answer.get("outputs", []),
            answer.get("unconsumed", []),
            dict(_reference(Path(folder, REFERENCE))),
        )


def ask(
    request: TensorflowRequest, folder: Path, script: Path = SCRIPT, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a script says to a request; what it writes is in the folder."""
    shapes = {name: [int(d) for d in shape] for name, shape in request.shapes.items()}
    words = {
        "model": request.model, "kind": request.kind, "tag": request.tag, "signature": request.signature,
        "shapes": shapes, "outputs": list(request.outputs), "validate": request.validate,
        "folder": str(folder), "custom": list(request.custom), **(more or {}),
    }  # fmt: skip
    file = folder / "request.json"
    file.write_text(json.dumps(words), encoding="utf-8")
    python = os.environ.get(PYTHON) or sys.executable
    command = [python, "-P", str(script), str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise ModelError(f"{request.model}: TensorFlow did not finish in {TIMEOUT:.0f} s") from None
    except OSError as e:
        raise UsageError(f"{PYTHON}: {python} cannot be run: {e.strerror}") from e
    try:
        return json.loads((folder / ANSWER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ModelError(f"{request.model}: TensorFlow ended with code {done.returncode}: {last}") from None


def check_answer(answer: Mapping[str, Any], request: TensorflowRequest) -> None:
    problem = str(answer.get("problem", ""))
    if "No module named 'tensorflow'" in problem:
        raise UsageError(f"{request.model}: TensorFlow is needed for this model", hint=_INSTALL)
    if problem:
        kind = UsageError if any(words in problem for words in _USAGE) else ModelError
        raise kind(f"{request.model}: {problem}", hint=str(answer.get("hint", "")))
    ops = answer.get("ops", [])
    if ops:
        problems = [Problem(op, "", "TFLite has no such operator") for op in ops]
        raise UnsupportedError(
            f"{request.model}: {len(ops)} op(s) of TensorFlow cannot be converted: {', '.join(ops)}",
            hint="end the graph before them with --out_node, or declare them (--custom_ops)",
            problems=problems,
        )  # fmt: skip


def _reference(path: Path) -> Iterator[tuple[str, Array]]:
    if path.is_file():
        with np.load(path) as found:
            yield from ((name, found[name]) for name in found.files)


@contextmanager
def saved_object(model: Any) -> Iterator[str]:
    """A Keras model of this process as a file."""
    with tempfile.TemporaryDirectory(prefix="openqnn-keras-") as folder:
        path = str(Path(folder, "model.keras"))
        model.save(path)
        yield path
