"""Fields of comparisons for tests, and a folder with a converted model in it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from openqnn.viewer.diff_runs.diff_run import DiffRun
from openqnn.viewer.diff_runs.run_fields import GOLDEN, INFERENCES, OUTPUTS

MODEL = {"model_json": "model_net.json", "model_cpp": "model.cpp", "model_bin": "model.bin"}
SECONDS = 120


def folder_with_model(kinds: dict[str, Path], folder: Path) -> Path:
    """What the converter wrote, and two samples."""
    source = kinds["model_net.json"].parent
    for name in (*MODEL.values(), "x.raw"):
        shutil.copyfile(source / name, folder / name)
    (folder / "list.txt").write_text(f"{folder / 'x.raw'}\n{folder / 'x.raw'}\n")
    return folder


def inference(prefix: str, runtime: str) -> dict[str, str]:
    fields = {f"{prefix}.{name}": value for name, value in MODEL.items()}
    return fields | {f"{prefix}.input_list": "list.txt", f"{prefix}.runtime": runtime}


def inferences(first: str = "cpu", second: str = "built-in") -> dict[str, str]:
    both = inference("one", first) | inference("two", second)
    return {"use_case": INFERENCES, "working_directory": "work", **both}


def golden(folder: str, runtime: str = "built-in") -> dict[str, str]:
    return {
        "use_case": GOLDEN, "working_directory": "work", "golden.folder": folder, **inference("one", runtime)
    }  # fmt: skip


def outputs(first: str, second: str) -> dict[str, str]:
    return {
        "use_case": OUTPUTS, "working_directory": "work", "output_one.folder": first,
        "output_two.folder": second, "output_two.model_json": "model_net.json",
    }  # fmt: skip


def finished(run: DiffRun) -> DiffRun:
    end = time.monotonic() + SECONDS
    while run.state == "running" and time.monotonic() < end:
        time.sleep(0.05)
    return run
