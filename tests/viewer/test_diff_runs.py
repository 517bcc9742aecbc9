"""Comparisons of runs: every use case on real libraries, what their forms refuse, jobs that are ended."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from openqnn.analysis.accuracy.run_differences import NodeDifference, Thresholds, error_of, error_words
from openqnn.cli.tools.qnn_netron import tool_command
from openqnn.errors import InputError
from openqnn.viewer.diff_runs.diff_run import FOLDERS, DiffRun, start_run
from openqnn.viewer.diff_runs.files_to_open import files_to_open
from openqnn.viewer.diff_runs.job_pool import CANCELLED, DONE, FAILED, RUNNING, Job, JobPool
from openqnn.viewer.diff_runs.result_views import result_views
from openqnn.viewer.diff_runs.run_config import check_config, load_config, read_config, save_config
from openqnn.viewer.diff_runs.run_fields import INFERENCES, OFFERED
from openqnn.viewer.open_views import open_views
from tests.viewer.diff_forms import finished, folder_with_model, golden, inferences, outputs

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")


@pytest.fixture
def folder(kinds: dict[str, Path], tmp_path: Path) -> Path:
    return folder_with_model(kinds, tmp_path)


def run(fields: dict[str, str], folder: Path) -> DiffRun:
    config, problems = check_config(fields, folder)
    assert not problems
    pool = JobPool()
    done = finished(start_run(0, config, pool, tool_command))
    assert done.state == DONE, [job.record() for job in done.jobs]
    return done


def test_two_inferences_differ_where_they_do(folder: Path) -> None:
    done = run(inferences("cpu", "htp"), folder)
    found = json.loads(done.result.read_text())
    assert [job.title for job in done.jobs] == ["Inference One", "Inference Two", "Comparison"]
    assert found["notes"] == ["times are in us and in cycles: performance is not compared"]
    differ = [node for node in found["nodes"] if node["kinds"] == ["accuracy"]]
    assert differ and all(len(errors) == 2 for node in found["nodes"] for errors in node["errors"].values())
    assert all(max(e for each in node["errors"].values() for e in each) > 0.01 for node in differ)
    assert set(FOLDERS) == {path.name for path in (folder / "work").iterdir()}
    rows = list(csv.DictReader((done.place("csv_outputs") / "accuracy.csv").read_text().splitlines()))
    assert {row["node"] for row in rows} == {node["node"] for node in found["nodes"]}
    assert (done.place("verification") / "Run_2" / "summary.csv").is_file()
    (view,) = result_views(done.result)
    assert {name for name, mark in view.marks.items() if mark.kinds} == {node["node"] for node in differ}
    assert open_views(done.result)[0].marks == view.marks


def test_the_same_library_twice_differs_in_time_alone(folder: Path) -> None:
    done = run(inferences("cpu", "cpu") | {"perf_threshold": "0"}, folder)
    found = json.loads(done.result.read_text())
    assert not found["notes"]
    kinds = {kind for node in found["nodes"] for kind in node["kinds"]}
    assert kinds == {"performance"}
    assert any(line.startswith("execute performance: ") for node in found["nodes"] for line in node["lines"])
    assert (done.place("csv_outputs") / "performance.csv").read_text().count("\n") > 5


def test_golden_tensors_and_outputs_that_are_there(folder: Path) -> None:
    first = run(inferences("built-in", "built-in") | {"save": "mine.json"}, folder)
    given = str(first.outputs("one").relative_to(folder))
    again = run(golden(given), folder)
    assert all(not node["kinds"] for node in json.loads(again.result.read_text())["nodes"])
    assert load_config(folder / "mine.json")["use_case"] == INFERENCES
    shutil.copytree(folder / given, folder / "changed")
    broken = folder / "changed" / "Result_1" / "Plus214_Output_0.raw"
    np.fromfile(broken, np.float32)[::-1].copy().tofile(broken)
    done = run(outputs(given, "changed"), folder)
    found = {node["node"]: node for node in json.loads(done.result.read_text())["nodes"]}
    assert [name for name, node in found.items() if node["kinds"]] == ["Plus214"]
    first_run, second_run = found["Plus214"]["errors"]["Plus214_Output_0"]
    assert first_run == 0 and second_run > 0.5


def test_boxes_are_held_against_each_other_with_their_classes(folder: Path) -> None:
    boxes, classes = "Plus30_Output_0", "Plus214_Output_0"
    for name, corner in (("right", 2.0), ("wrong", 1.0)):
        made = folder / name / "Result_0"
        made.mkdir(parents=True)
        np.array([0, 0, 2, 2, 0, 0, 2, corner], np.float32).tofile(made / f"{boxes}.raw")
        np.array([3, 4], np.float32).tofile(made / f"{classes}.raw")
    shutil.copytree(folder / "right" / "Result_0", folder / "right" / "Result_1")
    given = outputs("right", "wrong") | {"verifier": "MeanIOU"}
    assert "Boxes Tensor is needed" in check_config(given, folder)[1]["boxes_tensor"]
    done = run(given | {"boxes_tensor": boxes, "classes_tensor": classes}, folder)
    found = json.loads(done.result.read_text())
    assert [node["errors"] for node in found["nodes"]] == [{boxes: [0.25]}]
    assert found["notes"][0] == "there are 2 samples and 1: the first 1 of both are compared"
    config, _ = check_config(given | {"boxes_tensor": "nothing", "classes_tensor": classes}, folder)
    failed = finished(start_run(0, config, JobPool(), tool_command))
    assert "there is no tensor nothing in both runs" in "".join(failed.jobs[0].said)


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"use_case": "x"}, "use_case", "choose one of"),
        ({"one.model_json": ""}, "one.model_json", "Model json is needed"),
        ({"one.model_json": "no_net.json"}, "one.model_json", "no such file"),
        ({"one.model_json": "list.txt"}, "one.model_json", "_net.json"),
        ({"one.model_cpp": "../model.cpp"}, "one.model_cpp", "is outside of"),
        ({"two.input_list": "/etc/passwd"}, "two.input_list", "is outside of"),
        ({"working_directory": "/"}, "working_directory", "is outside of"),
        ({"working_directory": "list.txt"}, "working_directory", "is a file"),
        ({"one.runtime": "gpu"}, "one.runtime", "on host there is cpu, htp"),
        ({"one.architecture": "aarch64-android"}, "one.architecture", "on host this is"),
        ({"one.output_data_type": "native_only"}, "one.output_data_type", "float_only"),
        ({"accuracy_threshold": "much"}, "accuracy_threshold", "is no number"),
        ({"perf_threshold": "-1"}, "perf_threshold", "0 or more"),
        ({"verifier": "Best"}, "verifier", "is none of RtolAtol"),
        ({"verifier.RtolAtol.rtolmargin": "nan"}, "verifier.RtolAtol.rtolmargin", "0 or more"),
        ({"save": "model.cpp"}, "save", "ends in .json"),
        ({"save": "model_net.json"}, "save", "is no configuration"),
    ],
)
def test_a_field_that_cannot_stay_so_has_one_message(
    folder: Path, changed: dict[str, str], field: str, message: str
) -> None:
    _, problems = check_config(inferences() | changed, folder)
    assert message in problems[field]
    assert len(problems) == 1


@pytest.mark.parametrize("verifier", [name for name in OFFERED if name != "MeanIOU"])
def test_every_verifier_tells_a_wrong_tensor_from_right_ones(folder: Path, verifier: str) -> None:
    """What is no number, too: it is above every threshold."""
    right, wrong = folder / "right" / "Result_0", folder / "wrong" / "Result_0"
    rng = np.random.default_rng(0)
    names = [t for node in json.loads((folder / "model_net.json").read_text())["graph"]["nodes"].values()
             for t in node["output_names"]]  # fmt: skip
    for each in (right, wrong):
        each.mkdir(parents=True)
    for name in names:
        tensor = rng.random((1, 8)).astype(np.float32)
        tensor.tofile(right / f"{name}.raw")
        tensor.tofile(wrong / f"{name}.raw")
    np.full((1, 8), np.nan, np.float32).tofile(wrong / f"{names[-1]}.raw")
    np.eye(8, dtype=np.float32)[:1].tofile(right / f"{names[-2]}.raw")
    np.eye(8, dtype=np.float32)[1:2].tofile(wrong / f"{names[-2]}.raw")
    done = run(outputs("right", "wrong") | {"verifier": verifier}, folder)
    found = json.loads(done.result.read_text())["nodes"]
    assert [node["kinds"] for node in found] == [[]] * (len(names) - 2) + [["accuracy"]] * 2


def test_a_link_does_not_lead_out_of_the_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "secret_net.json"
    other.write_text("{}")
    os.symlink(other, folder / "in_net.json")
    _, problems = check_config(inferences() | {"one.model_json": "in_net.json"}, folder)
    assert "is outside of" in problems["one.model_json"]
    assert folder / "in_net.json" not in files_to_open(folder)


def test_parameters_of_other_verifiers_are_not_asked_for(folder: Path) -> None:
    config, problems = check_config(inferences() | {"verifier": "TopK", "verifier.TopK.k": "3"}, folder)
    assert not problems
    assert config.verifier().parameters == {"k": 3.0, "ordered": 0.0}
    assert not any("RtolAtol" in name for name in config.values)


def test_a_configuration_is_saved_and_loaded(folder: Path) -> None:
    config, _ = check_config(inferences() | {"save": "runs.json"}, folder)
    save_config(config, Path(config["save"]))
    again, problems = check_config(load_config(folder / "runs.json"), folder)
    assert again == config and not problems


@pytest.mark.parametrize(
    "text", ["", "[]", '{"fields": {}}', '{"format": "openqnn diff run", "fields": [1]}'][:4]
)
def test_what_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="file"):
        read_config(text, "the file")


def test_a_job_that_fails_says_why(folder: Path) -> None:
    (folder / "model.cpp").write_text("this is no source")
    config, problems = check_config(inferences("cpu", "built-in"), folder)
    assert not problems
    run = finished(start_run(0, config, JobPool(), tool_command))
    assert run.state == FAILED
    assert [job.state for job in run.jobs] == [FAILED, DONE, "waiting"]
    assert any("error" in line for line in run.jobs[0].record()["tail"])


def test_simulating_floats_is_refused(folder: Path) -> None:
    config, _ = check_config(inferences("built-in", "simulation"), folder)
    run = finished(start_run(0, config, JobPool(), tool_command))
    assert "there is nothing to simulate" in "\n".join(run.jobs[1].record()["tail"])


def test_two_jobs_at_a_time_and_none_after_it_was_cancelled(tmp_path: Path) -> None:
    script = "import subprocess, sys; print('started', flush=True); subprocess.run(['sleep', '60'])"
    jobs = [Job(f"{n}", [sys.executable, "-c", script], tmp_path / f"{n}.log") for n in range(3)]
    pool = JobPool()
    pool.start(jobs)
    end = time.monotonic() + 30
    while sum(bool(job.said) for job in jobs) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert sorted(job.state for job in jobs) == [RUNNING, RUNNING, "waiting"]
    waits = next(job for job in jobs if job.state == "waiting")
    pool.cancel(waits)
    pool.close()
    assert [job.state for job in jobs] == [CANCELLED] * 3
    assert waits.process is None
    for job in jobs:
        if job.process is not None:
            assert job.process.wait(10) != 0


def test_errors_have_one_measure() -> None:
    assert error_of(6.25, "RtolAtol") == 0.0625 and error_words(0.0625, "RtolAtol") == "6.25% Error"
    assert error_of(0.75, "CosineSimilarity") == 0.25 and error_of(300.0, "SQNR") == 0.0
    assert error_of(40.0, "SQNR") == pytest.approx(0.01) and error_words(0.5, "MSE") == "0.5 MSE"


def test_times_differ_as_a_share_of_the_first() -> None:
    node = NodeDifference("PReLU_add", "Prelu", {"y": (0.0, 0.0625, 0.0)}, 7.0, 10.0, "us", Thresholds())
    assert node.kinds == ("accuracy", "performance")
    assert node.lines("RtolAtol")[0] == "execute performance: 42.857 %"
    assert node.lines("RtolAtol")[2:] == [
        "y Run 1: 0.0% Error",
        "y Run 2: 6.25% Error",
        "y Run 3: 0.0% Error",
    ]
