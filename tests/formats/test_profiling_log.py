"""Profiling logs: written by libQnnSystem and read back, damaged ones, and ONNX Runtime's CSV."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from openqnn.errors import InputError
from openqnn.formats.profiling_log import CSV_HEADER, EXECUTE, FINALIZE, read_profiling_log
from openqnn.qnn.profile import ProfileEvent, Unit
from openqnn.qnn.profile_log import Author, Measured, Method, ProfileLog
from openqnn.qnn.system_api import SystemApi

pytest.importorskip("onnxruntime_qnn")
NODE = ProfileEvent(404, Unit.CYCLES, 77, "conv:OpId_3 (cycles)")
ROOT = ProfileEvent(400, Unit.MICROSECONDS, 1234, "QNN (execute) time", (NODE,))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "x.log"
    with ProfileLog(SystemApi(), path, Author("app", "1.2", "v9")) as log:
        log.add(Measured(Method.FINALIZE, (), "g", 5, 9))
        log.add(Measured(Method.EXECUTE, (ROOT,), "g", 10, 2000))
    return path


def test_as_written(written: Path) -> None:
    log = read_profiling_log(written)
    assert (log.app, log.app_version, log.backend_version) == ("app", "1.2", "v9")
    assert [(r.method, r.graph, r.start, r.stop) for r in log.records] == [
        (FINALIZE, "g", 5, 9), (EXECUTE, "g", 10, 2000),
    ]  # fmt: skip
    (event,) = log.records[1].events
    assert (event.type, event.unit, event.value, event.identifier) == (400, 1, 1234, "QNN (execute) time")
    assert (event.children[0].value, event.children[0].unit) == (77, 3)


def test_two_logs_in_one_file(written: Path, tmp_path: Path) -> None:
    (tmp_path / "two.log").write_bytes(written.read_bytes() * 2)
    assert len(read_profiling_log(tmp_path / "two.log").records) == 4


@pytest.mark.parametrize("keep", range(0, 100, 7))
def test_truncated(written: Path, tmp_path: Path, keep: int) -> None:
    data = written.read_bytes()
    (tmp_path / "cut.log").write_bytes(data[: len(data) * keep // 100])
    with pytest.raises(InputError, match=r"is damaged|is empty"):
        read_profiling_log(tmp_path / "cut.log")


def test_every_byte_may_be_wrong(written: Path, tmp_path: Path) -> None:
    """Never anything but a log or one clear error."""
    data, file = written.read_bytes(), tmp_path / "bad.log"
    for at in range(len(data)):
        for value in (0x00, 0xFF):
            file.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            with suppress(InputError):
                read_profiling_log(file)


def test_onnx_runtime_csv(tmp_path: Path) -> None:
    rows = [
        ",".join(CSV_HEADER),
        "10,FINALIZE,500,US,BACKEND,ROOT,QNN (finalize) time",
        "20,EXECUTE,90,US,BACKEND,ROOT,QNN accelerator (execute) time",
        "20,NODE,40,CYCLES,BACKEND,SUB-EVENT,conv:OpId_3 (cycles)",
        "20,EXECUTE,99,US,BACKEND,ROOT,QNN (execute) time",
        ",".join(CSV_HEADER),
        "30,EXECUTE,91,US,BACKEND,ROOT,QNN accelerator (execute) time",
        "30,EXECUTE,98,US,BACKEND,ROOT,QNN (execute) time",
    ]
    (tmp_path / "o.csv").write_text("\n".join(rows) + "\n")
    log = read_profiling_log(tmp_path / "o.csv")
    assert [record.method for record in log.records] == [FINALIZE, EXECUTE, EXECUTE]
    assert log.records[1].events[0].children[0].value == 40
    (tmp_path / "bad.csv").write_text(f"{rows[0]}\n1,2\n")
    with pytest.raises(InputError, match="line 2: 2 columns"):
        read_profiling_log(tmp_path / "bad.csv")
