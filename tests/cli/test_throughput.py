"""qnn-throughput-net-run on the real libraries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openqnn.analysis.throughput_report import SAMPLE, SCHEMA, shipped_file
from tests.cli.running import Prepared, prepare
from tests.cli.tool import Result, environment, tool

pytest.importorskip("onnxruntime_qnn")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare("mnist_conv", tmp_path_factory.mktemp("mnist"))


def config(prepared: Prepared, **thread: Any) -> dict[str, Any]:
    given = {"threadName": "t", "backend": "cpu", "context": "c", "model": "m", "loop": 3, **thread}
    model = {"modelName": "m", "modelPath": str(prepared.dlc), "inputPath": str(prepared.list)}
    return {
        "backends": [{"backendName": "cpu", "backendPath": "libQnnCpu.so"}],
        "models": [{**model, "inputDataType": "FLOAT"}],
        "contexts": [{"contextName": "c"}],
        "testCase": {"iteration": 2, "threads": [given]},
    }


def run(content: dict[str, Any], folder: Path, *flags: object) -> tuple[Result, dict[str, Any]]:
    (folder / "config.json").write_text(json.dumps(content))
    given = ("--config", folder / "config.json", "--output", folder / "r.json")
    result = tool("qnn-throughput-net-run", *given, *flags)
    output = folder / "r.json"
    return result, json.loads(output.read_text()) if output.exists() else {}


def test_sample_runs_as_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the names that the sample has, on both libraries, with a page that asks for no address."""
    jsonschema = pytest.importorskip("jsonschema")
    made = prepare("mnist_conv", tmp_path)
    monkeypatch.chdir(tmp_path)
    content = json.loads(shipped_file(SAMPLE))
    for number in (1, 2):
        content["models"][number - 1]["modelPath"] = "model.dlc"  # a library takes a compiler
        (tmp_path / f"model_{number}-input_list.txt").write_text(made.list.read_text())
    assert made.run("--dlc_path", made.dlc).code == 0
    golden = [str(next((tmp_path / f"out/Result_{i}").glob("*.raw"))) for i in (0, 1)]
    (tmp_path / "model_1-golden_list.txt").write_text("\n".join(golden))
    result, report = run(content, tmp_path, "--html", tmp_path / "r.html")
    assert result.code == 0, result.err
    jsonschema.validate(report, json.loads(shipped_file(SCHEMA)))
    cpu, htp = report["threads"]
    assert (cpu["executions"], htp["executions"]) == (5 * 2, 5 * 10 * 2)
    assert cpu["errors"][0]["largest"] == 0 and htp["errors"][0]["largest"] == 0
    assert len(list((tmp_path / "model_1-output/cpu_thread_1").glob("Result_*"))) == 10
    saved = np.fromfile(next((tmp_path / "model_2-output/htp_thread_1/Result_0").iterdir()), np.float32)
    np.testing.assert_allclose(saved, np.fromfile(golden[0], np.float32), rtol=0.01)
    assert (tmp_path / "qnn-profiling-data_cpu_backend.log").stat().st_size
    text = (tmp_path / "r.html").read_text()
    assert "<svg" in text and "http" not in text and "simulator" in text


def test_threads_share_a_context(prepared: Prepared, tmp_path: Path) -> None:
    """Eight threads on two contexts: right numbers from each, nothing lost."""
    content = config(prepared)
    content["contexts"].append({"contextName": "d"})
    content["models"][0] |= {"postProcessor": "MSE"}
    first = content["testCase"]["threads"][0] | {"loop": 1, "loopUnit": "second"}
    content["testCase"]["threads"] = [
        {**first, "threadName": f"t{i}", "context": "cd"[i % 2]} for i in range(8)
    ]
    result, report = run(content, tmp_path)
    assert result.code == 0, result.err
    assert all(each["largest"] == 0 for thread in report["threads"] for each in thread["errors"])
    assert report["memory"]["handles_after"] == report["memory"]["handles_before"]
    assert report["models"]["m"]["executions"] == sum(t["executions"] for t in report["threads"])


def test_overhead(prepared: Prepared, tmp_path: Path) -> None:
    result, report = run(config(prepared, loop=1, loopUnit="second"), tmp_path)
    assert result.code == 0, result.err
    thread = report["threads"][0]
    assert (
        thread["overhead_us"] <= max(60, 0.02 * thread["execute_us"]["mean"]) * 5
    )  # on a machine that is busy


def test_model_in_the_loop(prepared: Prepared, tmp_path: Path) -> None:
    content = config(prepared, initModelInLoop=True, loadInputDataInLoop=True, interval=100)
    result, report = run(content, tmp_path)
    assert result.code == 0, result.err
    assert report["threads"][0]["initialisations"] == 3  # once before, and in both iterations


def test_scenarios(prepared: Prepared, tmp_path: Path) -> None:
    flags = ("--duration", 1, "--target_qps", 100, "--latency_bound", 5000)
    result, report = run(config(prepared), tmp_path, "--scenario", "server", *flags)
    outcome = report["scenario"]["outcomes"]["m"]
    assert 60 < outcome["queries"] < 140
    assert result.code == (0 if outcome["valid"] else 1)
    result, report = run(config(prepared), tmp_path, "--scenario", "offline", "--queries", 100)
    assert result.code == 0 and report["threads"][0]["executions"] == 100
    flags = ("--duration", 0.2, "--queries", 70)
    result, report = run(config(prepared), tmp_path, "--scenario", "multi_stream", *flags)
    assert result.code == 1 and "too few" in result.out  # 99 percent cannot be told from so few
    assert report["threads"][0]["executions"] % 8 == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"executeAsynchronous": True}, "testCase.threads[0].executeAsynchronous: libQnnCpu.so takes"),
        ({"backendConfig": "none.json"}, "testCase.threads[0].backendConfig: there is no file none.json"),
    ],
)
def test_refused_threads(change: dict[str, Any], said: str, prepared: Prepared, tmp_path: Path) -> None:
    result, report = run(config(prepared, **change), tmp_path)
    assert result.code == 1 and said in result.err and not report


@pytest.mark.parametrize(
    ("where", "change", "said"),
    [
        ("backends", {"backendPath": "libQnnNo.so"}, "backends[0].backendPath: "),
        ("backends", {"opPackagePath": "x.so:f"}, "backends[0].opPackagePath: "),
        ("models", {"modelPath": "no.so"}, "models[0].modelPath: no.so: no such file"),
        ("models", {"inputPath": "no.txt"}, "models[0].inputPath: input list no.txt"),
        ("models", {"postProcessor": "MSE_INT8"}, "MSE_INT8 compares integers of 8 bits"),
    ],
)
def test_refused_entries(
    where: str, change: dict[str, Any], said: str, prepared: Prepared, tmp_path: Path
) -> None:
    content = config(prepared)
    content[where][0] |= change
    result, report = run(content, tmp_path)
    assert result.code in (1, 2) and said in result.err and not report


def test_until_ctrl_c(prepared: Prepared, tmp_path: Path) -> None:
    content = config(prepared)
    content["testCase"]["iteration"] = -1
    (tmp_path / "c.json").write_text(json.dumps(content))
    code = (
        "import sys; from openqnn.cli.registry import run_tool; sys.exit(run_tool(sys.argv[1], sys.argv[2:]))"
    )
    given = ("qnn-throughput-net-run", "--config", tmp_path / "c.json", "--output", tmp_path / "r.json")
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, given)],
        env=environment(), stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stderr is not None
    while "until Ctrl-C" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(2)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(60) == 0, process.stderr.read()
    process.stderr.close()
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["stopped_by_user"] and report["iterations"] >= 1
