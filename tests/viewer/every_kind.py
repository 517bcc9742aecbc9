"""A small network in every kind of file that the viewer opens, written by the tools themselves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import openqnn
from tests.cli.tool import openqnn as command
from tests.cli.tool import tool
from tests.models.fetch import model_path
from tests.models.samples import sample_inputs

MODEL = "mnist_conv"
PROGRAMS = Path(__file__).parents[1] / "frontends" / "torch" / "programs"


def every_kind(folder: Path) -> dict[str, Path]:
    """Files by the kind that their views have."""
    source, data = Path(model_path(MODEL)), _samples(folder)
    graph = openqnn.convert(source)
    graph.save(folder / "m.oqnn")
    graph.save(folder / "m.dlc")
    fixed = openqnn.quantize(graph, data, backend="htp")
    fixed.save(folder / "fixed.oqnn")
    openqnn.compile(fixed, "htp").save(folder / "context.bin")
    _ok(command("wrap", folder / "context.bin", "-o", folder / "epcontext.onnx"))
    _ok(command("encodings", folder / "fixed.oqnn", "--to", "1.0.0", "-o", folder / "m.encodings.json"))
    debugged = (
        "--data",
        folder / "samples",
        "--quantized",
        folder / "fixed.oqnn",
        "--report",
        folder / "debug",
    )
    command("debug", source, *debugged, "--no_attribution", "--quiet")
    _converted(folder, source)
    _profiled(folder)
    return _found(folder, source)


def _found(folder: Path, source: Path) -> dict[str, Path]:
    saved = folder / "saved" / "saved_model.pb"
    saved.parent.mkdir()
    shutil.copyfile(model_path("basic_pitch_saved_model"), saved)
    return {
        "ONNX": source,
        "TFLite": Path(model_path("microwakeword_okay_nabu")),
        "PyTorch program": PROGRAMS / "cnn.pt2",
        "SavedModel": saved.parent,
        "OpenQNN graph": folder / "m.oqnn",
        "DLC": folder / "m.dlc",
        "model_net.json": folder / "model_net.json",
        "model library": folder / "libs" / "x86_64-linux-clang" / "libmodel.so",
        "Saver bundle": folder / "saver",
        "context binary": folder / "context.bin",
        "EPContext": folder / "epcontext.onnx",
        "profiling log": folder / "run" / "qnn-profiling-data.log",
        "encodings file": folder / "m.encodings.json",
        "debugger result": folder / "debug",
    }


def _samples(folder: Path) -> list[dict[str, np.ndarray]]:
    data: list[dict[str, Any]] = [
        dict(each) for _, each in zip(range(2), [sample_inputs(MODEL)] * 2, strict=True)
    ]
    (folder / "samples").mkdir()
    for number, each in enumerate(data):
        np.savez(folder / "samples" / f"{number}.npz", **each)
    raw = next(iter(data[0].values())).astype(np.float32)
    raw.tofile(folder / "x.raw")
    (folder / "list.txt").write_text(f"{folder / 'x.raw'}\n{folder / 'x.raw'}\n")
    return data


def _converted(folder: Path, source: Path) -> None:
    """model.cpp with weights and net.json, the library of them, and what the saver writes."""
    from openqnn.emit import lower
    from openqnn.vendor.remote import save_bundle

    _ok(tool("qnn-onnx-converter", "-i", source, "-o", folder / "model.cpp"))
    words = ("-c", folder / "model.cpp", "-b", folder / "model.bin", "-o", folder / "libs")
    _ok(tool("qnn-model-lib-generator", *words, "-t", "x86_64-linux-clang"))
    save_bundle([lower(openqnn.load(folder / "m.oqnn"))], folder / "saver")


def _profiled(folder: Path) -> None:
    words = ("--model", folder / "m.dlc", "--backend", "libQnnCpu.so", "--input_list", folder / "list.txt")
    _ok(tool("qnn-net-run", *words, "--output_dir", folder / "run", "--profiling_level", "detailed"))


def _ok(done: object) -> None:
    code, err = getattr(done, "code"), getattr(done, "err")  # noqa: B009
    assert code == 0, err


def net_json(folder: Path) -> dict[str, object]:
    return json.loads((folder / "model_net.json").read_text())
