"""Outputs replace no device, no pipe, and no file of another kind; what a killed process left is removed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import openqnn
from openqnn.errors import OutputError
from openqnn.formats.atomic import PARTIAL, partial_folder, replacing, replacing_any_kind, together
from tests.cli.tool import assert_refused, environment, tool
from tests.cli.tool import openqnn as command
from tests.onnx_models import relu, save
from tests.qnn.nets import needs_htp


def write(path: Path, data: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(data)


def null(folder: Path) -> Path:
    """A device like /dev/null, which the test may lose."""
    device = folder / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.open("wb").close()
    except OSError:
        pytest.skip("only root can make devices, and not everywhere")
    return device


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    device = null(tmp_path)
    write(device)
    with together():
        write(device)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert [p.name for p in tmp_path.iterdir()] == ["null"]


@needs_htp
def test_compiling_to_a_device(tmp_path: Path) -> None:
    device = null(tmp_path)
    save(relu(), tmp_path / "m.onnx")
    result = command("compile", tmp_path / "m.onnx", "-o", device)
    assert result.code == 0, result.err
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_pipe_gets_what_is_written(tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join(10)
    assert heard == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("redirected", [True, False])
def test_standard_output_by_its_name(redirected: bool, tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from tests.attacks.test_outputs import write; write(Path('/dev/stdout'))"
    )
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment(), check=True,
            stdout=out if redirected else subprocess.PIPE,
        )  # fmt: skip
    assert ((tmp_path / "out").read_bytes() if redirected else done.stdout) == b"new"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_file_of_another_kind_stays(tmp_path: Path) -> None:
    model = save(relu(), tmp_path / "m.onnx")
    before = model.read_bytes()
    with pytest.raises(OutputError, match="is an ONNX model, and text would take its place"):
        write(model)
    assert model.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    with replacing_any_kind():
        write(model)
    assert model.read_bytes() == b"new"


def test_a_template_does_not_replace_the_model(tmp_path: Path) -> None:
    model = save(relu(), tmp_path / "m.onnx")
    before = model.read_bytes()
    for name in ("qnn-onnx-converter", "qairt-converter"):
        flag = (
            "--dump_custom_io_config_template"
            if name == "qnn-onnx-converter"
            else "--dump_io_config_template"
        )
        assert_refused(tool(name, "-i", model, flag, model), "is an ONNX model")
        assert model.read_bytes() == before


@needs_htp
def test_a_compiled_model_does_not_replace_the_source(tmp_path: Path) -> None:
    model = save(relu(), tmp_path / "m.onnx")
    openqnn.convert(model).save(tmp_path / "m.oqnn")
    before = model.read_bytes()
    assert_refused(command("compile", tmp_path / "m.oqnn", "-o", model), "is an ONNX model")
    (tmp_path / "x_qnn.bin").write_text("mine")
    result = command("compile", tmp_path / "m.oqnn", "-o", tmp_path / "x.onnx", "--external")
    assert_refused(result, "x_qnn.bin is text")
    assert not (tmp_path / "x.onnx").exists()
    assert model.read_bytes() == before


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    ours, theirs = tmp_path / f".x.bin.abc{PARTIAL}", tmp_path / f".x.bin.def{PARTIAL}"
    script = (
        "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, theirs], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        ours.write_bytes(b"half")
        for path in (ours, theirs):
            os.utime(path, (1, 1))
        write(tmp_path / "x.bin")
        assert sorted(p.name for p in tmp_path.iterdir()) == [theirs.name, "x.bin"]
        other.kill()
    with partial_folder(tmp_path / "x.bin") as folder:
        assert folder.is_dir()
    assert [p.name for p in tmp_path.iterdir()] == ["x.bin"]
