"""TensorFlow models in TensorFlow itself, tensor by tensor, and the accuracy debugger about them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import ModelError, OpenQnnError
from openqnn.frontends.tensorflow.run_tensorflow import PYTHON
from openqnn.frontends.tensorflow.tensorflow_runner import TensorflowRunner
from tests.cli.tool import tool

TENSORFLOW = os.environ.get(PYTHON, "")
needs_tensorflow = [
    pytest.mark.frameworks,
    pytest.mark.skipif(not TENSORFLOW, reason=f"{PYTHON} names no Python with TensorFlow"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tensorflow")
    script = Path(__file__).with_name("make_models.py")
    subprocess.run([TENSORFLOW, "-P", script, folder], check=True, capture_output=True)
    return folder


class TestWithTensorflow:
    pytestmark = needs_tensorflow

    @pytest.mark.parametrize(
        ("model", "names"),
        [("two.keras", ("cls", "box")), ("two.h5", ("cls", "box")), ("two_saved", ("output_0", "output_1"))],
    )
    def test_outputs_are_those_of_the_model(self, models: Path, model: str, names: tuple[str, str]) -> None:
        wanted = np.load(models / "two.npz")
        found = TensorflowRunner(models / model).run({"img": wanted["img"]}, "all")
        for name, own in zip(names, ("cls", "box"), strict=True):
            np.testing.assert_allclose(found[name], wanted[own], atol=1e-6)
        assert any(name.endswith("/Relu") and array.shape == (1, 16, 16, 8) for name, array in found.items())

    @pytest.mark.parametrize("model", ["frozen.pb", "ckpt.meta"])
    def test_graphs(self, models: Path, model: str) -> None:
        wanted = np.load(models / "graph.npz")
        runner = TensorflowRunner(models / model, ["head/out:0"])
        (found,) = runner.run({"input/img:0": wanted["img"]}).values()
        np.testing.assert_allclose(found, wanted["out"], atol=1e-6)
        assert {"Relu", "head/out"} <= set(runner.tensor_names)

    def test_an_input_that_is_not_there(self, models: Path) -> None:
        with pytest.raises(OpenQnnError, match="no input 'image'"):
            TensorflowRunner(models / "frozen.pb").run({"image": np.zeros((1, 8, 8, 3), np.float32)})

    def test_the_documented_commands(self, models: Path, tmp_path: Path) -> None:
        """Diagnosis of a frozen graph, and the whole run on the simulator of a chip."""
        np.load(models / "graph.npz")["img"].astype(np.float32).tofile(tmp_path / "chairs.raw")
        (tmp_path / "image_list.txt").write_text(f"{tmp_path / 'chairs.raw'}\n")
        done = tool(
            "qnn-accuracy-debugger", "--framework", "tensorflow", "--runtime", "dspv73",
            "--model_path", models / "frozen.pb",
            "--input_tensor", "input/img:0", "1,8,8,3", tmp_path / "chairs.raw",
            "--output_tensor", "head/out:0", "--architecture", "x86_64-linux-clang",
            "--debugging_algorithm", "oneshot-layerwise", "--input_list", tmp_path / "image_list.txt",
            "--defaultVerifier", "CosineSimilarity", "-w", tmp_path / "work",
        )  # fmt: skip
        assert done.code == 0, done.err
        golden = tmp_path / "work" / "framework_diagnosis" / "latest"
        assert (golden / "head" / "out.raw").stat().st_size == 16
        engine = tmp_path / "work" / "inference_engine" / "latest"
        assert json.loads((engine / "tensor_mapping.json").read_text())["head_out"] == "head/out"
        summary = tmp_path / "work" / "verification" / "latest" / "summary.csv"
        rows = {row["Name"]: row for row in csv.DictReader(summary.read_text().splitlines())}
        assert set(rows) == {"Relu", "head_out"}
        assert all(float(row["cosinesimilarity"]) > 0.999 for row in rows.values())

    def test_names_that_tflite_joined(self, models: Path, tmp_path: Path) -> None:
        np.load(models / "two.npz")["img"].astype(np.float32).tofile(tmp_path / "img.raw")
        (tmp_path / "list.txt").write_text(f"{tmp_path / 'img.raw'}\n")
        done = tool(
            "qnn-accuracy-debugger", "-f", "tensorflow", "-r", "cpu", "-m", models / "two.keras",
            "-i", "img", "1,16,16,3", tmp_path / "img.raw", "-o", "cls", "-o", "box",
            "-a", "x86_64-linux-clang", "-l", tmp_path / "list.txt", "--default_verifier", "sqnr",
            "-w", tmp_path / "work",
        )  # fmt: skip
        assert done.code == 0, done.err
        engine = tmp_path / "work" / "inference_engine" / "latest"
        mapping = json.loads((engine / "tensor_mapping.json").read_text())
        joined = {name: golden for name, golden in mapping.items() if golden.endswith("/Relu")}
        assert len(joined) == 1
        summary = tmp_path / "work" / "verification" / "latest" / "summary.json"
        rows = {row["Name"]: row for row in json.loads(summary.read_text())}
        assert rows[next(iter(joined))]["sqnr"] > 80


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        TensorflowRunner(tmp_path / "none.pb")
    (tmp_path / "text.pb").write_text("text")
    with pytest.raises(ModelError, match="not a TensorFlow model"):
        TensorflowRunner(tmp_path / "text.pb")
