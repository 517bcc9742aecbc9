"""Minimal mode on real digits: all 32 options, their files, resuming, and bad input."""

from __future__ import annotations

import csv
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openqnn.api.files import load, open_graph
from openqnn.api.quantize import quantize
from openqnn.api.quantize_variants import Variant, calibrate_variants, digest_of_graph
from openqnn.evaluation.comparators import COMPARATORS
from openqnn.evaluation.evaluate_model import Judging, Means, Subject, evaluate_model, reference_inference
from openqnn.evaluation.inference import all_options
from openqnn.evaluation.results_table import COLUMNS
from openqnn.runtime.compare import output_noise
from openqnn.runtime.onnx_runner import OnnxRuntimeRunner
from tests.cli.tool import assert_refused, openqnn, tool
from tests.evaluation.data import MODEL, write_digits
from tests.models.fetch import model_path
from tests.models.sets import data_set

NAME, OUTPUT = "qnn-accuracy-evaluator", "Plus214_Output_0"
SAMPLES = 6


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one run."""
    folder = tmp_path_factory.mktemp("minimal")
    write_digits(folder, SAMPLES)
    result = tool(
        NAME, "-model", model_path(MODEL), "-preproc_file", folder / "raw.txt", "-comparator", "snr",
        "-work_dir", folder / "work", "-backend", "htp", "-target_arch", "x86_64-linux-clang",
    )  # fmt: skip
    assert result.code == 0, result.err
    (folder / "out.txt").write_text(result.out)
    return folder


def rows_of(place: Path) -> list[dict[str, str]]:
    with (place / "work" / "metrics-info.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_all_options_are_ranked(place: Path) -> None:
    rows = rows_of(place)
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 33
    assert rows[-1]["Comparator"] == "reference"
    values = [float(row["Comparator"].split()[4]) for row in rows[:-1]]
    assert values == sorted(values, reverse=True)
    assert {row["Status"] for row in rows} == {"Success"}
    names = {row["Inference schema"] for row in rows[:-1]}
    quantizers, flags = ("tf", "symmetric", "enhanced", "adjusted"), ("", "_pcq", "_pqr", "_pcq_pqr")
    assert names == {f"schema1_qnn_{q}{c}{f}" for q in quantizers for c in ("", "_cle") for f in flags}


def test_a_row_has_the_documented_words(place: Path) -> None:
    row = next(r for r in rows_of(place) if r["Inference schema"] == "schema1_qnn_enhanced_cle_pcq")
    assert row["CLI Params"] == (
        "Converter params: algorithms:cle param_quantizer:enhanced use_per_channel_quantization:True"
        " use_per_row_quantization:False"
    )
    assert row["Backend"] == "htp x86_64-linux-clang"
    assert row["Backend extensions"] == "rpc_control_latency:100\nvtcm_mb:4"
    assert row["Comparator"].splitlines()[1].startswith(f"(avg) {OUTPUT}: ")


def test_outputs_are_files_and_the_values_follow_from_them(place: Path) -> None:
    folder = place / "work" / "infer" / "schema1_qnn_tf"
    golden = OnnxRuntimeRunner(model_path(MODEL))
    values = []
    for i in range(SAMPLES):
        sample = np.fromfile(place / f"d{i}.raw", np.float32).reshape(1, 1, 28, 28)
        x = golden.run({"Input3": sample})[OUTPUT].astype(np.float64).ravel()
        y = np.fromfile(folder / f"Result_{i}" / f"{OUTPUT}.raw", np.float32).astype(np.float64)
        values.append(10 * np.log10((x @ x) / ((x - y) @ (x - y))))
    golden.close()
    row = next(r for r in rows_of(place) if r["Inference schema"] == "schema1_qnn_tf")
    assert float(row["Comparator"].split()[4]) == pytest.approx(np.mean(values), rel=1e-5)


def test_the_graph_of_an_option_is_what_the_quantizer_makes(place: Path) -> None:
    samples = [np.fromfile(place / f"d{i}.raw", np.float32).reshape(1, 1, 28, 28) for i in range(SAMPLES)]
    for option in all_options("htp", "x86_64-linux-clang", 8, 8)[3::7]:
        assert option.variant is not None
        made = quantize(
            model_path(MODEL), samples, recipe=option.variant.recipe, algorithms=option.variant.algorithms,
            hold_back=False, judge=False,
        )  # fmt: skip
        stored = load(place / "work" / "infer" / option.label / "qnn_ir" / "model.oqnn")
        assert digest_of_graph(stored) == digest_of_graph(made), option.label


def test_a_second_run_computes_nothing(place: Path) -> None:
    before = (place / "work" / "metrics-info.csv").read_bytes()
    marks = {p: p.stat().st_mtime_ns for p in (place / "work").rglob("trial.json")}
    result = tool(
        NAME, "-model", model_path(MODEL), "-preproc_file", place / "raw.txt", "-comparator", "snr",
        "-work_dir", place / "work",
    )  # fmt: skip
    assert "33 of 33 inferences were there from an earlier run" in result.out
    assert (place / "work" / "metrics-info.csv").read_bytes() == before
    assert {p: p.stat().st_mtime_ns for p in (place / "work").rglob("trial.json")} == marks


def test_an_interrupted_run_goes_on(place: Path) -> None:
    """Half of a result counts as none: only that one is computed again."""
    before = (place / "work" / "metrics-info.csv").read_bytes()
    folder = place / "work" / "infer" / "schema1_qnn_adjusted"
    (folder / "trial.json").unlink()
    (folder / "Result_3" / f"{OUTPUT}.raw").unlink()
    result = openqnn(
        "evaluate", model_path(MODEL), "--data", place / "raw.txt", "--comparator", "snr",
        "--work_dir", place / "work",
    )  # fmt: skip
    assert "32 of 33 inferences were there" in result.out
    assert (place / "work" / "metrics-info.csv").read_bytes() == before


def test_json_has_numbers(place: Path) -> None:
    result = openqnn(
        "evaluate", model_path(MODEL), "--data", place / "raw.txt", "--comparator", "cos", "--json",
        "--work_dir", place / "work",
    )  # fmt: skip
    record = json.loads(result.out)[0]
    assert record["comparator"] == "cos"
    assert record["rows"][0]["overall"] > 99
    assert record["rows"][0]["megabytes_moved"] > 0


def test_calibration_is_shared_without_changing_a_graph() -> None:
    """On a network with equalisation, pairs of layers and both kinds of scales."""
    data = data_set("mtcnn_onet")
    graph = open_graph(model_path("mtcnn_onet"), input_shapes=data.shapes)
    samples = data.calibration[:4]
    options = [o.variant for o in all_options("htp", "x86_64-linux-clang", 8, 8) if o.variant is not None]
    for group in ((), ("cle",)):
        members = [v for v in options if v.algorithms == group]
        shared = calibrate_variants(graph, samples, members)
        for variant in members[::5]:
            alone = quantize(
                graph,
                samples,
                recipe=variant.recipe,
                algorithms=variant.algorithms,
                hold_back=False,
                judge=False,
            )
            assert digest_of_graph(shared.make(variant)) == digest_of_graph(alone)


def test_widths_reach_the_graphs() -> None:
    option = all_options("htp", "x86_64-linux-clang", 16, 32)[0].variant
    assert option is not None
    assert (option.recipe.act_bw, option.recipe.bias_bw) == (16, 32)
    graph, samples = open_graph(model_path(MODEL)), data_set(MODEL).calibration[:4]
    wide = calibrate_variants(graph, samples, [option]).make(option)
    narrow: Variant = replace(option, recipe=replace(option.recipe, act_bw=8))
    other = calibrate_variants(graph, samples, [narrow]).make(narrow)
    widths = [{v.encoding.bitwidth for v in g.outputs if v.encoding is not None} for g in (wide, other)]
    assert widths == [{16}, {8}]
    found = [min(n.sqnr for n in output_noise(graph, g, samples).values()) for g in (wide, other)]
    assert found[0] > found[1]


def test_pictures_of_the_difference(place: Path) -> None:
    result = tool(
        NAME, "-model", model_path(MODEL), "-preproc_file", place / "raw.txt", "-comparator", "pixelbypixel",
        "-work_dir", place / "work", "-silent",
    )  # fmt: skip
    assert result.code == 0
    assert not result.out
    picture = place / "work" / "infer" / "schema1_qnn_tf" / "Result_0" / f"{OUTPUT}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_directory_of_models(tmp_path: Path) -> None:
    """One that does not convert is told, and the others have their results."""
    for name in ("first", "second"):
        (tmp_path / "models" / name / "Source_model").mkdir(parents=True)
        write_digits(tmp_path / "models" / name / "inputs", 2)
        (tmp_path / "models" / name / "inputs" / "raw.txt").rename(
            tmp_path / "models" / name / "inputs" / "input_list.txt"
        )
    source = model_path(MODEL).read_bytes()
    (tmp_path / "models" / "first" / "Source_model" / "model.onnx").write_bytes(source)
    (tmp_path / "models" / "second" / "Source_model" / "model.onnx").write_bytes(b"no model")
    result = tool(NAME, "-model", tmp_path / "models", "-work_dir", tmp_path / "work")
    assert result.code == 1
    assert "second/Source_model/model.onnx" in result.err
    assert (tmp_path / "work" / "first" / "metrics-info.csv").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-model", "none.onnx", "-preproc_file", "{raw}"], "none.onnx"),
        (["-model", "{model}"], "there are no samples"),
        (["-model", "{model}", "-preproc_file", "none.txt"], "none.txt: no such file"),
        (["-model", "{model}", "-preproc_file", "{empty}"], "names no files"),
        (["-model", "{model}", "-preproc_file", "{raw}", "-comparator", "cosine"], "no comparator 'cosine'"),
        (["-model", "{model}", "-preproc_file", "{raw}", "-comparator", "box"], "which outputs are boxes"),
        (["-model", "{model}", "-preproc_file", "{raw}", "-backend", "gpu"], "the GPU's library"),
        (["-model", "{model}", "-preproc_file", "{raw}", "-backend", "htpp"], "there is no backend 'htpp'"),
        (["-model", "{model}", "-config", "c.yaml"], "give one"),
        (["-model", "{model}", "-preproc_file", "{raw}", "-on", "spark://x"], "names no cluster"),
        ([], "there is nothing to evaluate"),
    ],
)
def test_bad_input_is_one_message(words: list[str], said: str, tmp_path: Path) -> None:
    write_digits(tmp_path / "data", 1)
    (tmp_path / "empty.txt").write_text("\n")
    known = {
        "model": model_path(MODEL),
        "raw": tmp_path / "data" / "raw.txt",
        "empty": tmp_path / "empty.txt",
    }
    result = tool(NAME, *(w.format(**known) for w in words), "-work_dir", tmp_path / "work")
    assert_refused(result, said, code=result.code)
    assert result.code in (1, 2)


def test_a_folder_of_the_users_is_left_alone(tmp_path: Path) -> None:
    write_digits(tmp_path / "data", 1)
    mine = tmp_path / "work" / "infer" / "schema0_onnxrt_fp32"
    mine.mkdir(parents=True)
    (mine / "thesis.txt").write_text("mine")
    result = tool(
        NAME, "-model", model_path(MODEL), "-preproc_file", tmp_path / "data" / "raw.txt",
        "-work_dir", tmp_path / "work",
    )  # fmt: skip
    assert_refused(result, "is not of an evaluation", code=1)
    assert (mine / "thesis.txt").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppocr_cls", "mtcnn_onet"])
def test_all_options_cost_at_most_eight_quantizations(name: str, tmp_path: Path) -> None:
    """By the processor's time, in this process: on one core, with nothing but the model and data shared."""
    data = data_set(name)
    graph = open_graph(model_path(name), input_shapes=data.shapes)
    samples = [dict(sample) for sample in data.calibration[:16]]
    quantize(graph, samples)  # what is slow the first time
    start = time.process_time()
    quantize(graph, samples)
    one = time.process_time() - start
    subject = Subject(str(model_path(name)), graph, samples, samples, data.shapes)
    judging = Judging(COMPARATORS["snr"])
    options = [reference_inference(subject.source), *all_options("htp", "x86_64-linux-clang", 8, 8)]
    start = time.process_time()
    evaluate_model(subject, options, 0, judging, Means(tmp_path, jobs=1))
    assert time.process_time() - start <= 8 * one
