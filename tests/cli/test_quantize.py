"""openqnn quantize: algorithms and targets on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import openqnn as package
from tests.cli.tool import assert_refused, openqnn
from tests.models.fetch import model_path
from tests.models.sets import data_set

MODEL = "mnist_conv"
METRIC = """
import numpy as np
sample = np.load("data/0.npy")
target = {target}

def metric(run):
    return {score}
"""


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    for index, sample in enumerate(data_set(MODEL).calibration[:2]):
        np.save(f"data/{index}.npy", *sample.values())


def quantize(*words: object) -> list[object]:
    return ["quantize", model_path(MODEL), "--data", "data", "-o", "q.oqnn", *words]


def test_a_target_prints_what_it_took() -> None:
    done = openqnn(*quantize("--act_bw", 8, "--target_sqnr", 45))
    assert done.code == 0, done.err
    assert "target reached" in done.out and " %" in done.out
    nodes = package.load("q.oqnn").nodes
    assert {n.out.encoding.bitwidth for n in nodes if n.out.encoding} > {16}
    wide = [n for n in nodes if n.out.encoding and n.out.encoding.bitwidth == 16 and n.op != "Convert"]
    assert all(n.op in done.out and n.name in done.out for n in wide)


def test_a_target_out_of_reach_is_said_and_the_best_is_written() -> None:
    Path("m.py").write_text(METRIC.format(target=2, score="float(len(run({'Input3': sample})))"))
    done = openqnn(*quantize("--target_metric", "m.py", "--no_report"))
    assert done.code == 1 and "target not reached" in done.out
    assert "error: the target is not reached" in done.err and "q.oqnn" in done.err
    assert package.load("q.oqnn").nodes


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, ["m.py: No such file"]),
        ("target = 1\ndef metric(run:\n", ["m.py, line 2: "]),
        ("x = 1\n1 / 0\n", ["m.py, line 2: ZeroDivisionError"]),
        ("target = 1\n", ["no function 'metric'", "hint: "]),
        ("def metric(run):\n    return 1\n", ["no number 'target'"]),
        ("target = 'high'\ndef metric(run):\n    return 1\n", ["target = 'high'"]),
        (METRIC.format(target=1, score="run({'nope': sample})"), ["m.py, line 7: InputError", "'nope'"]),
        (METRIC.format(target=1, score="'good'"), ["m.py: metric() gave 'good'"]),
        (METRIC.format(target=1, score="float('nan')"), ["m.py: metric() gave nan"]),
    ],
)
def test_a_bad_script_is_told_by_its_line(script: str | None, words: list[str]) -> None:
    if script is not None:
        Path("m.py").write_text(script)
    assert_refused(openqnn(*quantize("--target_metric", "m.py", "--no_report")), *words)
    assert not Path("q.oqnn").exists()


def test_contradictions_are_refused() -> None:
    both = openqnn(*quantize("--target_sqnr", 30, "--target_metric", "m.py"))
    assert_refused(both, "not allowed with", code=2)
    assert_refused(openqnn(*quantize("--target_sqnr", "much")), "invalid float value", code=2)
    assert_refused(openqnn(*quantize("--algorithms", "magic")), "invalid choice: 'magic'", code=2)
    alone = openqnn("quantize", model_path(MODEL), "--float_fallback", "--target_sqnr", 30)
    assert_refused(alone, "a target needs data", code=2)
    assert_refused(openqnn(*quantize("--input_list", "none.txt")), "--data and --input_list", code=2)
    assert_refused(openqnn(*quantize("--float_fallback")), "cannot be given with --data", code=2)
    assert_refused(openqnn(*quantize("--report", "r.html", "--no_report")), "not allowed with", code=2)
    alone = openqnn("quantize", model_path(MODEL), "--float_fallback", "--report", "r.html")
    assert_refused(alone, "--report compares results on data", code=2)


def test_files_that_cannot_be_written_are_told_before_the_work() -> None:
    """Nothing is there yet then, and nobody has waited for it."""
    Path("file").touch()
    assert_refused(openqnn(*quantize("--report", "data")), "data: cannot be written: it is a directory")
    assert_refused(openqnn(*quantize("--report", "file/r.html")), "file is no directory")
    named = openqnn("quantize", model_path(MODEL), "--data", "none", "-o", "q.bin")
    assert_refused(named, "q.bin: a graph is saved as .oqnn, .dlc or .onnx", code=2)
    assert not Path("q.oqnn").exists()


def test_encodings_are_written_beside_the_result_and_named() -> None:
    done = openqnn(*quantize("--dump_encoding_json", "--no_report"))
    assert done.out.splitlines()[1:] == ["q_encodings.json"] and Path("q_encodings.json").exists()
    values, found = package.load("q.oqnn").values(), json.loads(Path("q_encodings.json").read_text())
    names = {v.name for v in values if v.encoding is not None}
    assert found["activation_encodings"].keys() | found["param_encodings"].keys() == names


def test_algorithms_tell_what_they_did() -> None:
    done = openqnn(*quantize("--algorithms", "cle", "smoothquant"))
    assert done.code == 0, done.err
    assert "cle: " in done.err and "smoothquant: " in done.err and "SQNR" in done.out
    quiet = openqnn(*quantize("--algorithms", "cle", "--quiet"))
    assert quiet.code == 0 and not quiet.out and not quiet.err


def test_weights_are_rounded_by_the_data_unless_others_are_asked_for() -> None:
    found = []
    for words in ((), ("--algorithms", "adaround"), ("--algorithms", "bias_correction")):
        assert openqnn(*quantize("--quiet", *words)).code == 0
        weights = [n.x(1).data for n in package.load("q.oqnn").nodes if n.op == "Conv2d"]
        found.append(np.concatenate([w.reshape(-1) for w in weights if w is not None]))
    assert np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])


def test_samples_with_nan_are_told_once_and_left_out() -> None:
    """They count for ranges; weights are not fitted to them, and the report is not made from them."""
    broken = np.load("data/0.npy")
    broken.flat[5] = np.nan
    np.save("data/0.npy", broken)
    for algorithms in ("adaround", "smoothquant"):
        done = openqnn(*quantize("--algorithms", algorithms))
        assert done.code == 0 and "SQNR" in done.out, done.err
        assert done.err.count("'Input3' has NaN or infinity in sample 1 of 2") == 1
    np.save("data/1.npy", broken)
    done = openqnn(*quantize())
    assert done.code == 0 and "no report: all samples have NaN" in done.err
    assert_refused(openqnn(*quantize("--target_sqnr", 30)), "all of these have NaN")


def test_the_report_has_the_verdict_and_the_facts_of_the_run() -> None:
    done = openqnn(*quantize("--act_bw", 8, "--report", "facts.html"))
    assert done.code == 0 and "quantization is " in done.out, done.err
    page = Path("facts.html").read_text(encoding="utf-8")
    assert 'class="verdict">quantization is ' in page and "on the calibration samples" in page
    assert "bytes in floating point" in page and "order of the graph" in page
    assert '<a href="#t0">' in page and '<tr id="t0">' in page


def test_a_report_replaces_nothing_but_reports() -> None:
    Path("mine.html").write_text("<!doctype html><title>mine</title>")
    Path("list.txt").write_text("data/0.npy\n")
    for name, words in (
        ("mine.html", "mine.html exists and is no report"),
        ("list.txt", "list.txt exists and is no report"),
        ("q.oqnn", "--report q.oqnn is the result itself"),
        (model_path(MODEL), "is the source model itself"),
    ):
        assert_refused(openqnn(*quantize("--report", name)), words)
        assert not Path("q.oqnn").exists()
    assert "mine" in Path("mine.html").read_text()
    assert openqnn(*quantize("--report", "mine.html", "--overwrite")).code == 0
    assert openqnn(*quantize("--report", "mine.html", "--quiet")).code == 0, "it is a report now"


def test_dumped_encodings_replace_nothing_but_encodings() -> None:
    Path("q_encodings.json").write_text('{"mine": 1}')
    argv = quantize("--dump_encoding_json", "--no_report")
    assert_refused(openqnn(*argv), "q_encodings.json exists and is no encodings file")
    assert not Path("q.oqnn").exists()
    assert openqnn(*argv, "--overwrite").code == 0
    assert openqnn(*argv).code == 0, "encodings they are now"
