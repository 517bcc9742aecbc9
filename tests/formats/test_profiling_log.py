"""Profiling logs: written by libQnnSystem and read back, damaged ones, and ONNX Runtime's CSV."""

from __future__ import annotations

import ctypes
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from onnx import TensorProto, helper, save

from openqnn.errors import InputError
from openqnn.formats.profiling_log import CSV_HEADER, EXECUTE, FINALIZE, read_profiling_log
from openqnn.qnn.abi_system import ProfileData
from openqnn.qnn.abi_system import ProfileEvent as ProfileEventStruct
from openqnn.qnn.profile import ProfileEvent, Unit
from openqnn.qnn.profile_log import Author, Measured, Method, ProfileLog
from openqnn.qnn.system_api import SystemApi
from tests.cli.tool import assert_refused, tool
from tests.providers import Provider, each_provider

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


class OpaqueEvent(ctypes.Structure):
    """An event whose value is an object: what `openqnn.qnn.abi_system.ProfileEvent` has room for."""

    _fields_ = [
        ("kind", ctypes.c_uint64), ("version", ctypes.c_uint64), ("type", ctypes.c_uint32),
        ("unit", ctypes.c_uint32), ("data", ctypes.c_void_p), ("length", ctypes.c_uint64),
        ("name", ctypes.c_char_p), ("timestamp", ctypes.c_uint64), ("identifier", ctypes.c_char_p),
        ("children", ctypes.c_void_p), ("count", ctypes.c_uint64),
    ]  # fmt: skip


def test_opaque_objects(tmp_path: Path) -> None:
    """libQnnSystem writes an object, the tool gives it back."""
    system, content = SystemApi(), ctypes.create_string_buffer(b"opaque bytes", 12)
    event = OpaqueEvent(1, 1, 600, 5, ctypes.addressof(content), 12, b"part/1", 99, b"trace")
    assert ctypes.sizeof(event) == ctypes.sizeof(ProfileEventStruct)
    data = ProfileData(version=1, method=1, graph_name=b"g", events=ctypes.addressof(event), event_count=1)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    with ProfileLog(system, tmp_path / "o.log", Author("app", "1", "v")) as log:
        system.call("systemProfileSerializeEventData", log._handle, pointers, 1)  # pyright: ignore[reportPrivateUsage]
    (found,) = read_profiling_log(tmp_path / "o.log").records[0].events
    assert (found.content, found.object_name, found.timestamp) == (b"opaque bytes", "part/1", 99)
    flags = ("--input_log", tmp_path / "o.log", "--extract_opaque_objects", "--output", tmp_path / "o.csv")
    assert tool("qnn-profile-viewer", *flags).code == 0
    assert (tmp_path / "part_1_0.bin").read_bytes() == b"opaque bytes"
    assert_refused(tool("qnn-profile-viewer", *flags), "part_1_0.bin exists")


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


@each_provider()
def test_logs_of_onnx_runtime(provider: Provider, tmp_path: Path) -> None:
    """Its QNN provider writes a CSV, and a log through libQnnSystem, a block for each call."""
    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 8, 8, 32]) for n in "xy")
    graph = helper.make_graph([node], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, tmp_path / "m.onnx")
    (tmp_path / "run.py").write_text(RUN)
    subprocess.run([provider.python, "run.py"], check=True, cwd=tmp_path, capture_output=True, timeout=120)
    for name in ("p.csv", "p_qnn.log"):
        log = read_profiling_log(tmp_path / name)
        assert [record.method for record in log.records] == [FINALIZE, EXECUTE, EXECUTE, EXECUTE], name
        assert all(any(e.identifier == "QNN (execute) time" for e in r.events) for r in log.executions())


RUN = """
import numpy as np, onnxruntime as ort, onnxruntime_qnn as qnn
ort.register_execution_provider_library("QNNExecutionProvider", qnn.get_library_path())
devices = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"][:1]
told = {"backend_path": qnn.get_qnn_htp_path(), "soc_model": "57"}
options = ort.SessionOptions()
options.add_provider_for_devices(
    devices, {**told, "profiling_level": "detailed", "profiling_file_path": "p.csv"}
)
session = ort.InferenceSession("m.onnx", options)
for _ in range(3):
    session.run(None, {"x": np.ones((1, 8, 8, 32), np.float32)})
"""


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
