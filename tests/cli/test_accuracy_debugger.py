"""qnn-accuracy-debugger on a real network and the real libraries: every mode, its folders and files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.tool import Result, assert_refused, tool
from tests.models.fetch import model_path
from tests.models.sets import data_set

MODEL, INPUT, OUTPUT = "mnist_conv", "Input3", "Plus214_Output_0"
NAME = "qnn-accuracy-debugger"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("debugger")
    files = []
    for number, sample in enumerate(data_set(MODEL).calibration[:2]):
        files.append(made / f"{number}.raw")
        sample[INPUT].astype(np.float32).tofile(files[-1])
    (made / "list.txt").write_text("".join(f"{f}\n" for f in files))
    return made


def debugger(place: Path, *words: str) -> Result:
    return tool(NAME, *words, "-w", str(place / "work"))


def model(place: Path) -> list[str]:
    return [
        "-f", "ONNX", "1.15", "-m", str(model_path(MODEL)), "-i", INPUT, "1,1,28,28", str(place / "0.raw"),
        "-o", OUTPUT,
    ]  # fmt: skip


def engine(place: Path, runtime: str = "htp") -> list[str]:
    return ["-r", runtime, "-a", "x86_64-linux-clang", "-l", str(place / "list.txt")]


@pytest.fixture(scope="module")
def whole(place: Path) -> Path:
    words = [*model(place), *engine(place), "--default_verifier", "mse", "--defaultVerifier", "SQNR"]
    done = debugger(place, *words, "--enable_tensor_inspection", "--engine", "QNN", "--verbose")
    assert done.code == 0, done.err
    return place / "work"


def test_the_folders_of_a_whole_run(whole: Path) -> None:
    found = {p.name for p in (whole / "inference_engine" / "latest").iterdir()}
    assert found >= {
        "output", "qnn_model_binaries", "image_list.txt", "inference_engine_options.json", "log.txt",
        "model_graph_struct.json", "model_net.json", "model.bin", "model.cpp", "tensor_mapping.json",
        "qnn_model_graph_struct.json", "qnn_model_net.json",
    }  # fmt: skip
    assert any(name.startswith("qnn-v") for name in found)
    assert not (whole / "wrapper" / "latest").exists()
    assert {p.name for p in next((whole / "wrapper").iterdir()).iterdir()} == {
        "log.txt",
        "wrapper_options.json",
    }
    latest = whole / "verification" / "latest"
    assert {p.name for p in latest.iterdir()} >= {
        "mse", "sqnr", "tensor_inspection", "summary.csv", "summary.html", "summary.json",
        "verification_options.json",
    }  # fmt: skip
    rows = list(csv.DictReader((latest / "summary.csv").read_text().splitlines()))
    assert rows[-1]["Name"] == OUTPUT
    assert float(rows[-1]["sqnr"]) > 20
    inspected = {p.name for p in (latest / "tensor_inspection" / OUTPUT).iterdir()}
    assert inspected == {
        "CDF_plots.png", "Diff_plots.png", "Histograms.png", "golden_data.csv", "target_data.csv",
    }  # fmt: skip


def test_verification_alone(place: Path, whole: Path) -> None:
    engine_folder = whole / "inference_engine" / "latest"
    done = debugger(
        place, "--verification", "--defaultVerifier", "CosineSimilarity", "param1", "1",
        "--goldenOutputReferenceDirectory", str(whole / "framework_diagnosis" / "latest"),
        "--inferenceResults", str(engine_folder / "output" / "Result_0"),
        "--tensorMapping", str(engine_folder / "tensor_mapping.json"),
        "--graphStruct", str(engine_folder / "qnn_model_graph_struct.json"), "--output_dirname", "mine",
    )  # fmt: skip
    assert done.code == 0, done.err
    summary = json.loads((whole / "verification" / "mine" / "summary.json").read_text())
    assert summary[-1]["cosinesimilarity"] > 0.99


def test_encodings_and_inspection(place: Path, whole: Path) -> None:
    net = str(whole / "inference_engine" / "latest" / "model_net.json")
    first = debugger(
        place, "--compare_encodings", "--input", net, "--aimet_encodings_json", str(_encodings(place, net)),
        "--precision", "6",
    )  # fmt: skip
    assert first.code == 0, first.err
    assert "1 differ" in first.out
    folder = whole / "compare_encodings" / "latest"
    assert {p.name for p in folder.iterdir()} == {
        "compare_encodings_options.json", "encodings_diff.xlsx", "extracted_encodings.json", "log.txt",
    }  # fmt: skip
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(folder / "encodings_diff.xlsx").active
    marked = [cell.value for row in sheet.iter_rows(min_row=2) for cell in row if cell.fill.fill_type]
    assert marked
    second = debugger(
        place, "--tensor_inspection", "--golden_data", str(whole / "framework_diagnosis" / "latest"),
        "--target_data", str(whole / "inference_engine" / "latest" / "output" / "Result_0"),
        "--verifier", "mse", "--verifier", "rtolatol,rtolmargin,0.01,atolmargin,0.01",
        "--target_encodings", str(folder / "extracted_encodings.json"),
    )  # fmt: skip
    assert second.code == 0, second.err
    made = whole / "tensor_inspection" / "latest" / OUTPUT
    assert (made / "Distribution_min-max.png").read_bytes().startswith(b"\x89PNG")


def _encodings(place: Path, net: str) -> Path:
    """The model's own encodings, one of them changed."""
    from openqnn.analysis.sources import read_net
    from openqnn.emit.graph_from_net import graph_of
    from openqnn.formats.encodings import write_encodings
    from openqnn.quant.to_encodings_file import encodings_of

    path = place / "aimet.json"
    write_encodings(path, encodings_of(graph_of(read_net(net)), shared=True), "0.6.1")
    content = json.loads(path.read_text())
    content["activation_encodings"][OUTPUT][0]["scale"] *= 2
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("algorithm", "folder", "report"),
    [
        ("cumulative-layerwise", "cumulative_layerwise_snooping", "cumulative_layerwise.csv"),
        ("layerwise", "layerwise_snooping", "layerwise.csv"),
    ],
)
def test_layer_by_layer(place: Path, algorithm: str, folder: str, report: str) -> None:
    words = [*model(place), *engine(place, "dspv73"), "--default_verifier", "sqnr"]
    words += ["--debugging_algorithm", algorithm, "--end_layer", "ReLU114_Output_0"]
    done = debugger(place, *words, "--skip_layer_types", "PoolMax2d")
    assert done.code == 0, done.err
    rows = list(csv.DictReader((place / "work" / folder / "latest" / report).read_text().splitlines()))
    by_name = {row["O/P Name"]: row for row in rows}
    assert by_name["Pooling66_Output_0"]["Status"] == "skip"
    assert float(by_name["ReLU32_Output_0"]["sqnr"]) > 30
    assert ("Orig Outputs" in rows[0]) == (algorithm == "cumulative-layerwise")
    if algorithm == "cumulative-layerwise":
        assert by_name["ReLU32_Output_0"]["Status"] == "part"
        assert json.loads(by_name["ReLU32_Output_0"]["Orig Outputs"])[OUTPUT]["sqnr"] > 20


def test_options_from_a_file(place: Path) -> None:
    config = place / "args.json"
    row = [INPUT, "1,1,28,28", str(place / "0.raw")]
    config.write_text(
        json.dumps({"model_path": str(model_path(MODEL)), "--input_tensor": [row], "framework": "onnx"})
    )
    done = debugger(place, "--framework_diagnosis", "--args_config", str(config))
    assert done.code == 0, done.err
    assert (place / "work" / "framework_diagnosis" / "latest" / f"{OUTPUT}.raw").stat().st_size == 40
    config.write_text('{"modell": 1}')
    assert_refused(debugger(place, "--framework_diagnosis", "--args_config", str(config)), "modell")


def test_help_of_a_mode() -> None:
    said = tool(NAME, "--compare_encodings", "--help").out
    assert "--aimet_encodings_json" in said
    assert "--runtime" not in said


def test_what_cannot_run_here_is_told_before_anything_is_done(place: Path) -> None:
    start = [*model(place), "--default_verifier", "mse", "-l", str(place / "list.txt")]
    assert_refused(debugger(place, *start, "-r", "gpu"), "device")
    assert_refused(debugger(place, *start, "-r", "dspv66"), "no simulator")
    assert_refused(debugger(place, *start, "-r", "htp", "-a", "aarch64-android"), "run on a device, and none")
    gone = debugger(place, *start, "-r", "htp", "--target", "ssh://nobody@127.0.0.1:9")
    assert_refused(gone, "nobody@127.0.0.1")
    both = debugger(place, *start, "-r", "htp", "--deviceId", "1", "--target", "local")
    assert_refused(both, "both name a device", code=2)
    assert_refused(debugger(place, *start, "-r", "htp", "--start_layer", "a"), "layerwise", code=2)
    assert_refused(debugger(place, *model(place), "-r", "cpu"), "--input_list is required", code=2)
    wrong = [w if w != "1,1,28,28" else "1,1,28,29" for w in start]
    assert_refused(debugger(place, *wrong, "-r", "htp"), "784 numbers")
    bad = [w if w != "mse" else "nonsense" for w in start]
    assert_refused(debugger(place, *bad, "-r", "htp"), "no verifier 'nonsense'", code=2)
    assert_refused(
        debugger(place, "--framework_diagnosis", "-f", "caffe", "-m", "m", "-i", "a", "1", "b"),
        "caffe",
        code=2,
    )
