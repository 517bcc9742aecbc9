"""qnn-quantization-checker on a real network: its pages, tables, log, histograms, repair, and bad input."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from openqnn.analysis.accuracy.quantization_checks import CheckedTensor, check_tensor, chosen_checks
from openqnn.errors import UsageError
from openqnn.ir import Encoding
from tests.cli.tool import assert_refused, tool
from tests.models.fetch import model_path
from tests.models.sets import data_set

MODEL, INPUT = "mnist_conv", "Input3"
NAME = "qnn-quantization-checker"
CONFIG = """{
    // as in the documented sample: a comment, and a comma too many
    "CLANG_PATH": "/usr/bin",
    "QUANTIZATION_VARIATIONS": ["tf"],
    "QUANTIZATION_ALGORITHMS": ["pcq"],
    "WEIGHT_COMPARISON_ALGORITHMS": [{"algo_name": "minmax", "threshold": "10"}, {"algo_name": "sqnr"}],
    "ACT_COMPARISON_ALGORITHMS": [{"algo_name": "act_minmax", "threshold": "0.0001"}],
    "RUN_IN_REPAIR_MODE": "True",
    "OUTPUT_CSV": "True",
}"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    data_set(MODEL).calibration[0][INPUT].astype(np.float32).tofile(tmp_path / "0.raw")
    (tmp_path / "list.txt").write_text(f"{tmp_path / '0.raw'}\n")
    (tmp_path / "config.json").write_text(CONFIG)
    return tmp_path


def test_the_files_of_a_check(place: Path) -> None:
    done = tool(
        NAME, "--config_file", place / "config.json", "--model", model_path(MODEL), "--input_list",
        place / "list.txt", "--output_dir", place / "out", "--generate_histogram",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "CLANG_PATH has no effect" in done.out
    assert "MINMAX: Percentage of Failed Nodes" in done.out
    assert "help" in done.out
    rows = list(csv.reader((place / "out" / "csv" / "tf_weights.csv").read_text().splitlines()))
    assert rows[0][1:3] == ["Parameter5", "TRUE"]
    assert rows[0][3].startswith("min: ")
    assert rows[0][5] == "minmax"
    page = (place / "out" / "html" / "tf_pcq_0_0.html").read_text()
    assert "Results for quantizer: tf_pcq using input file: 0_0 on model:" in page
    assert "Signal to Quantization Noise Ratio" in page
    log = next((place / "out" / "qnn-quantization-checker-log").iterdir()).read_text()
    assert "<====ACTIVATIONS ANALYSIS FAILURES=====>" in log
    assert list((place / "out" / "hist_analysis_weights").glob("*.png"))
    assert list((place / "out" / "hist_analysis_biases").glob("*.png"))


def test_result_texts() -> None:
    real = np.array([0.0, 1.0, 2.0, 4.0], np.float32)
    tensor = CheckedTensor("op", "x", "Weight", real, real + 0.5, Encoding.per_tensor(0.1))
    said = [{"algo_name": n} for n in ("minmax", "maxdiff", "sqnr", "data_range", "stats")]
    found = {r.algorithm: r for r in check_tensor(tensor, chosen_checks(said))}
    assert found["minmax"].text == "min: 0.5 max: 0.5"
    assert found["maxdiff"].text == "0.5"
    assert float(found["sqnr"].text) == pytest.approx(10 * np.log10(21 / 1))
    assert found["data_range_analyzer"].text.endswith("data range : 4.0")
    assert found["stats"].text.startswith("skew: 0.43")
    with pytest.raises(UsageError, match="no algorithm 'nonsense'"):
        chosen_checks([{"algo_name": "nonsense"}])


def test_bad_input(place: Path) -> None:
    config = place / "bad.json"
    config.write_text('{"MODEL_PATHS": "x"}')
    assert_refused(tool(NAME, "--config_file", config), "unknown keys: MODEL_PATHS")
    config.write_text("{")
    assert_refused(tool(NAME, "--config_file", config), "no JSON")
    config.write_text("{}")
    assert_refused(tool(NAME, "--config_file", config), "no model to check", code=2)
    assert_refused(tool(NAME, "--config_file", config, "--model", place / "no.onnx"), "no such file")
    wide = tool(
        NAME, "--config_file", config, "--model", model_path(MODEL), "--input_list", place / "list.txt",
        "--activation_width", "7", "--output_dir", place / "o",
    )  # fmt: skip
    assert_refused(wide, "ACTIVATION_WIDTH is 7", code=2)
    (place / "models").mkdir()
    assert_refused(tool(NAME, "--config_file", config, "--model", place / "models"), "holds no model")
