"""qnn-profile-viewer and `openqnn profile` on logs of real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Prepared, prepare
from tests.cli.tool import assert_refused, openqnn, tool

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
    optrace = ("--reader", "libQnnHtpOptraceProfilingReader.so", "--schematic", log)
    assert_refused(tool("qnn-profile-viewer", *given, *optrace), "only Qualcomm's own library")


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


def test_diff(log: Path) -> None:
    result = openqnn("profile", "diff", log, log)
    assert result.code == 0 and "nothing is slower" in result.out
    assert_refused(openqnn("profile", "diff", log), "takes two logs", code=2)
    assert_refused(openqnn("profile", log, log), "one log at a time", code=2)
