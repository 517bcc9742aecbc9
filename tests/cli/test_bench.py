"""`openqnn bench` and qnn-bench: the figures are there, in the form that was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Prepared, prepare
from tests.cli.tool import assert_refused, openqnn, tool
from tests.docs.valid import valid_record
from tests.models.fetch import model_path
from tests.onnx_models import save_with_open_batch

pytest.importorskip("onnxruntime_qnn")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare("mnist_conv", tmp_path_factory.mktemp("mnist"))


def test_against(tmp_path: Path) -> None:
    model = model_path("mnist_conv")
    flags = ("--against", "ort,libQnnCpu", "--runs", 10, "--output", tmp_path / "b.json")
    result = openqnn("bench", model, *flags)
    assert result.code == 0, result.err
    times = json.loads((tmp_path / "b.json").read_text())["models"][str(model)]
    assert [each["contender"] for each in times] == ["openqnn", "ort", "libQnnCpu.so"]
    assert all(each["runs"] == 10 and 0 < each["least"] <= each["median"] <= each["p90"] for each in times)


def test_open_dimensions_are_given(tmp_path: Path) -> None:
    """A model of the user's own, as exporters write it: with a batch that is open."""
    save_with_open_batch(tmp_path / "m.onnx")
    assert_refused(openqnn("bench", tmp_path / "m.onnx"), "dynamic dimensions")
    flags = ("--dim", "n=1", "--runs", 5, "--output", tmp_path / "b.json")
    result = openqnn("bench", tmp_path / "m.onnx", *flags)
    assert result.code == 0, result.err
    (times,) = json.loads((tmp_path / "b.json").read_text())["models"].values()
    assert [each["contender"] for each in times] == ["openqnn", "ort"]


def test_without_ort_where_it_cannot_read(prepared: Prepared) -> None:
    result = openqnn("bench", prepared.folder / "model.oqnn", "--runs", 5, "--json")
    assert result.code == 0, result.err
    (times,) = json.loads(result.out)["models"].values()
    assert [each["contender"] for each in times] == ["openqnn"]


def config(prepared: Prepared, **changes: Any) -> Path:
    content = {
        "Name": "mnist",
        "HostRootPath": ".",
        "HostResultsDir": "results",
        "DevicePath": "/data/local/tmp",
        "Devices": [],
        "Runs": 3,
        "Model": {"Name": "m", "qnn_model": "model.dlc", "InputList": "list.txt", "Data": ["x"]},
        "Backends": ["CPU"],
        "Measurements": ["timing"],
        **changes,
    }
    path = prepared.folder / "bench.json"
    path.write_text(json.dumps(content))
    return path


def test_configuration(prepared: Prepared) -> None:
    result = tool("qnn-bench", "-c", config(prepared))
    assert result.code == 0, result.err
    assert "DevicePath: the run is on this machine" in result.err
    record = valid_record("bench", (prepared.folder / "results" / "mnist.json").read_text())
    assert record["Name"] == "mnist"
    assert [(each["contender"], each["runs"]) for each in record["Results"]] == [("CPU", 6)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Backends": ["NPU"]}, "Backends[0]: is one of CPU, HTP, DSP, not 'NPU'"),
        ({"Runs": 0}, "Runs: must be a whole number of at least 1"),
        ({"Model": {"qnn_model": "no.so"}}, "Model.qnn_model: there is no file"),
        ({"Model": {}}, "Model.qnn_model: is missing"),
        ({"runs": 3}, "runs: there is no such key"),
    ],
)
def test_bad_configuration(change: dict[str, Any], said: str, prepared: Prepared) -> None:
    assert_refused(tool("qnn-bench", "-c", config(prepared, **change)), said)


def test_wrong_usage(prepared: Prepared) -> None:
    assert_refused(openqnn("bench"), "give models, or a configuration", code=2)
    assert_refused(openqnn("bench", "m.onnx", "--against", "tensorrt"), "known are openqnn, ort", code=2)
    words = (prepared.folder / "model.oqnn", "--against", "ort")
    assert_refused(openqnn("bench", *words), "ONNX Runtime runs .onnx files", code=2)
    refused = openqnn("bench", "--config", config(prepared), "--batch", 2)
    assert_refused(refused, "--batch go with models", code=2)
