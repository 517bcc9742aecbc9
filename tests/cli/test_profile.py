"""qnn-profile-viewer and `openqnn profile` on logs of real runs."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from openqnn import quantize
from openqnn.runtime.boundary import random_inputs
from tests.cli.running import Prepared, converted, prepare
from tests.cli.tool import assert_refused, openqnn, tool
from tests.onnx_models import save_with_open_batch

pytest.importorskip("onnxruntime_qnn")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    made = prepare("mnist_conv", tmp_path_factory.mktemp("mnist"), lines=6)
    flags = ("--dlc_path", made.dlc, "--profiling_level", "detailed")
    assert made.run(*flags).code == 0
    return made


@pytest.fixture(scope="module")
def log(prepared: Prepared) -> Path:
    return prepared.folder / "out" / "qnn-profiling-data.log"


def test_text_and_csv(log: Path, tmp_path: Path) -> None:
    result = tool("qnn-profile-viewer", "--input_log", log, "--output", tmp_path / "p.csv")
    assert result.code == 0, result.err
    title = "Qnn Init/Prepare/Finalize/De-Init/Execute/Lib-Load Statistics:\n"
    for words in (title, "Finalize Stats:\n", "Execute Stats (Average):\n", "Execute Stats (Overall):\n"):
        assert words in result.out
    assert "    NetRun:  " in result.out and "    Backend (GRAPH_EXECUTE): " in result.out
    assert "    NetRun IPS:  " in result.out and " inf/sec" in result.out
    head, *rows = (tmp_path / "p.csv").read_text().splitlines()
    assert head.startswith("Msg Timestamp,Message,Time,Unit of Measurement")
    assert sum(",EXECUTE," in row and ",NETRUN,ROOT," in row for row in rows) == 6
    assert openqnn("profile", tmp_path / "p.csv").code == 0  # what it writes, it reads


def test_readers(log: Path, tmp_path: Path) -> None:
    given = ("--input_log", log, "--output", tmp_path / "t.json")
    assert tool("qnn-profile-viewer", *given, "--reader", "x/libQnnChrometraceProfilingReader.so").code == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert tool("qnn-profile-viewer", *given, "--reader", "libQnnJsonProfilingReader.so").code == 0
    assert len(json.loads((tmp_path / "t.json").read_text())["records"]) >= 6
    assert_refused(tool("qnn-profile-viewer", *given, "--reader", "libMine.so"), "not known", code=2)
    assert_refused(tool("qnn-profile-viewer", *given, "--schematic", log), "optrace reader", code=2)
    assert_refused(tool("qnn-profile-viewer", *given, "--config", log), "optrace reader", code=2)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log of a compilation for a chip of the cost model, and the schematic beside it."""
    folder = tmp_path_factory.mktemp("optrace")
    graph = converted("mnist_conv")
    quantize(graph, [random_inputs(graph)], algorithms=()).save(folder / "mnist.dlc")
    with contextlib.chdir(folder):
        result = tool(
            "qnn-context-binary-generator", "--dlc_path", "mnist.dlc", "--backend", "libQnnHtp.so",
            "--binary_file", "ctx", "--output_dir", "out", "--soc", "QCS9100",
            "--profiling_level", "detailed", "--profiling_option", "optrace",
        )  # fmt: skip
    assert result.code == 0, result.err
    return folder


OPTRACE = ("--reader", "libQnnHtpOptraceProfilingReader.so")


def test_optrace(traced: Path) -> None:
    (schematic,) = traced.glob("*_schematic.bin")
    (traced / "conf.json").write_text(
        '{"features": {"enable_input_output_flow_events": true, "qhas_json": true, "htp_json": true}}'
    )
    given = ("--input_log", "out/qnn-profiling-data.log", *OPTRACE, "--schematic", schematic.name)
    with contextlib.chdir(traced):
        result = tool("qnn-profile-viewer", *given, "--output", "t.json", "--config", "conf.json")
    assert result.code == 0, result.err
    assert "cycles of a log that was made on a PC" not in result.out  # a cost model's are no such cycles
    events = json.loads((traced / "t.json").read_text())["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    names = {event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    assert {"HVX 1", "DMA"} <= names
    assert any(event["args"]["qnn_op"].startswith("ReLU32") for event in bars)
    starts, ends = ([event["id"] for event in events if event["ph"] == kind] for kind in "sf")
    assert starts and sorted(starts) == sorted(ends)
    summary = json.loads((traced / "t_qnn_htp_analysis_summary.json").read_text())["data"]
    whole = summary["htp_overall_summary"]["data"][0]
    said = next(line for line in result.out.splitlines() if "Simulated (Accelerator exec cycles):" in line)
    assert whole["timeline_cycles"] == pytest.approx(int(said.split()[-2]), rel=0.01)
    assert whole["time_us"] == pytest.approx(max(e["ts"] + e["dur"] for e in bars), rel=0.01)
    assert {"Reshape", "PoolMax2d"} <= {row["op"] for row in summary["qnn_op_types"]["data"]}
    steps = json.loads((traced / "t_htp.json").read_text())["steps"]
    assert len(steps) == len(bars)


def test_optrace_refusals(traced: Path, log: Path) -> None:
    (schematic,) = traced.glob("*_schematic.bin")
    to = ("--output", traced / "no.json")
    mine = ("--input_log", traced / "out" / "qnn-profiling-data.log", *OPTRACE, *to)
    assert_refused(tool("qnn-profile-viewer", *mine), "needs --schematic", code=2)
    of_a_run = ("--input_log", log, *OPTRACE, *to, "--schematic", schematic)
    no_timeline = tool("qnn-profile-viewer", *of_a_run)
    assert_refused(no_timeline, "no timeline of HTP is in this log", "--soc QCS9100")
    assert_refused(tool("qnn-profile-viewer", *mine, "--schematic", log), "no schematic of HTP")
    cut, other = traced / "cut.bin", traced / "other.bin"
    cut.write_bytes(schematic.read_bytes()[:5000])
    assert_refused(tool("qnn-profile-viewer", *mine, "--schematic", cut), "cut short")
    other.write_text(schematic.read_text().replace('qnn_graph_name = "', 'qnn_graph_name = "not_'))
    assert_refused(tool("qnn-profile-viewer", *mine, "--schematic", other), "the schematic is of graph 'not_")
    broken = {'{"features": {"flows": true}}': "features.flows is not known", "[]": "expected an object"}
    for text, words in broken.items():
        (traced / "bad.json").write_text(text)
        given = (*mine, "--schematic", schematic, "--config", traced / "bad.json")
        assert_refused(tool("qnn-profile-viewer", *given), words)
    assert not (traced / "no.json").exists()


def test_expected_timeline_of_an_estimate(traced: Path) -> None:
    with contextlib.chdir(traced):
        result = openqnn("estimate", "mnist.dlc", "--whole", "--json", "--trace", "e.json")
    assert result.code == 0, result.err
    trace = json.loads((traced / "e.json").read_text())
    assert max(e["ts"] + e["dur"] for e in trace["traceEvents"] if e["ph"] == "X") > 0
    chip = next(iter(trace["otherData"]["cost_model"].values()))
    assert chip["soc_type"] == "QCS9100"
    assert not list(traced.glob("tmp*")) and len(list(traced.glob("*_schematic.bin"))) == 1


def test_opaque_objects(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = tool("qnn-profile-viewer", "--input_log", log, "--extract_opaque_objects")
    assert result.code == 0 and "no opaque object" in result.out


def test_bad_logs(log: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.log").write_bytes(log.read_bytes()[:200])
    result = tool("qnn-profile-viewer", "--input_log", tmp_path / "cut.log", "--output", tmp_path / "p.csv")
    assert_refused(result, "cut.log is no profiling log, or is damaged")
    assert not (tmp_path / "p.csv").exists()
    assert_refused(tool("qnn-profile-viewer"), "--input_log is required", code=2)


def test_by_the_source_model(log: Path, prepared: Prepared, tmp_path: Path) -> None:
    model = prepared.folder / "model.oqnn"
    files = {flag: tmp_path / flag.strip("-") for flag in ("--html", "--trace", "--perfetto")}
    words = [word for pair in files.items() for word in pair]
    result = openqnn("profile", log, "--model", model, "--json", *words)
    assert result.code == 0, result.err
    nodes = json.loads(result.out)["nodes"]
    assert any(node["source"].startswith("onnx node") for node in nodes)
    assert all(file.stat().st_size for file in files.values())
    text = files["--html"].read_text()
    assert "<svg" in text and "http" not in text


def test_a_source_model_whose_dimensions_are_open(log: Path, tmp_path: Path) -> None:
    save_with_open_batch(tmp_path / "m.onnx")
    flags = ("--model", tmp_path / "m.onnx", "--html", tmp_path / "p.html", "--json")
    assert_refused(openqnn("profile", log, *flags), "dynamic dimensions")
    result = openqnn("profile", log, *flags, "--dim", "n=1")
    assert result.code == 0, result.err
    assert any(node["source"].startswith("onnx node") for node in json.loads(result.out)["nodes"])
    assert_refused(openqnn("profile", log, "--batch", 1), "go with --model", code=2)


def test_diff(log: Path) -> None:
    result = openqnn("profile", "diff", log, log)
    assert result.code == 0 and "nothing is slower" in result.out
    assert_refused(openqnn("profile", "diff", log), "takes two logs", code=2)
    assert_refused(openqnn("profile", log, log), "one log at a time", code=2)
