"""qnn-net-run, the validator, the debugger and bundles on devices: this machine, behind sshd, behind adb."""

from __future__ import annotations

import csv
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import BackendError, UsageError
from openqnn.vendor.deploy.devices import AdbDevice, LocalDevice, find_device, system_of
from tests.cli.tool import Result, assert_refused, tool
from tests.libraries import need
from tests.models.fetch import model_path
from tests.models.samples import sample_inputs

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="no g++")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network in fixed point as DLC and context binary, three inputs, and their results on this machine."""
    need("libQnnHtp.so")
    place = tmp_path_factory.mktemp("device_runs")
    inputs = sample_inputs("mnist_conv")
    graph = openqnn.quantize(model_path("mnist_conv"), [inputs], algorithms=(), act_bw=8)
    graph.save(place / "digits.dlc")
    digit = np.asarray(next(iter(inputs.values())), np.float32)
    for number in range(3):
        (digit * (number + 1) / 3).tofile(place / f"{number}.raw")
    (place / "list.txt").write_text("".join(f"{place}/{number}.raw\n" for number in range(3)))
    words = ["--backend", "libQnnHtp.so", "--binary_file", "digits", "--output_dir", place]
    assert tool("qnn-context-binary-generator", "--dlc_path", place / "digits.dlc", *words).code == 0
    assert run(place, "here").code == 0
    return place


def run(place: Path, folder: str, *words: str, binary: bool = False, backend: str = "libQnnHtp.so") -> Result:
    model = ["--retrieve_context", place / "digits.bin"] if binary else ["--dlc_path", place / "digits.dlc"]
    lists = ["--input_list", place / "list.txt", "--output_dir", place / folder]
    return tool("qnn-net-run", *model, "--backend", backend, *lists, *words)


def content(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_net_run_behind_ssh(prepared: Path, sshd: str, tmp_path: Path) -> None:
    done = run(prepared, "ssh", "--target", sshd, "--place", str(tmp_path / "device"), binary=True)
    assert done.code == 0, done.err
    assert content(prepared / "ssh") == content(prepared / "here")
    assert not list((tmp_path / "device").iterdir())


def test_net_run_behind_adb(prepared: Path, adb_device: Callable[..., str], tmp_path: Path) -> None:
    words = ["--target", f"adb:{adb_device()}", "--place", str(tmp_path / "device")]
    done = run(prepared, "adb", *words)
    assert done.code == 0, done.err
    assert "3 inference(s)" in done.out
    assert content(prepared / "adb") == content(prepared / "here")
    assert not list((tmp_path / "device").iterdir())


def test_what_net_run_is_asked_for(prepared: Path) -> None:
    """More inferences than inputs, few results, native files, tensors inside, another library."""
    words = ["--num_inferences", "5", "--keep_num_outputs", "4", "--use_native_output_files", "--debug"]
    for folder, more in (("many", ()), ("many_there", ("--target", "local"))):
        done = run(prepared, folder, *words, *more, backend="libQnnCpu.so")
        assert done.code == 0, done.err
        assert "5 inference(s)" in done.out
    assert content(prepared / "many_there") == content(prepared / "many")
    assert len(list((prepared / "many").glob("Result_*"))) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--duration", "1"], "--duration goes by the clock of this machine"),
        (["--profiling_level", "basic"], "--profiling_level measures in this process"),
        (["--batch_multiplier", "2"], "--batch_multiplier composes another graph"),
    ],
)
def test_what_a_device_cannot(prepared: Path, words: list[str], said: str) -> None:
    assert_refused(run(prepared, "never", "--target", "local", *words), said, code=2)
    assert not (prepared / "never").exists()


def test_a_full_device(prepared: Path, adb_device: Callable[..., str], tmp_path: Path) -> None:
    words = ["--target", f"adb:{adb_device(1 << 20)}", "--place", str(tmp_path)]
    assert_refused(run(prepared, "never", *words), "No space left on device", "--place")
    assert not (prepared / "never").exists()
    assert not list(tmp_path.iterdir())


def test_a_connection_that_is_lost(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of what is sent: the far end reads a little and is gone."""
    far = tmp_path / "ssh"
    uname = 'case "$*" in *uname*) echo x86_64; exit;; esac'
    far.write_text(
        f"#!/bin/sh\n{uname}\nhead -c 100000 > /dev/null\necho Connection reset by peer >&2\nexit 255\n"
    )
    far.chmod(0o755)
    monkeypatch.setenv("OPENQNN_SSH", shlex.quote(str(far)))
    refused = run(prepared, "never", "--target", "ssh://board")
    assert_refused(refused, "board: Connection reset by peer")
    assert not (prepared / "never").exists()


def test_another_architecture(prepared: Path) -> None:
    words = ["--target", "local", "--target_os", "aarch64-linux"]
    assert_refused(run(prepared, "never", *words), "where are Qualcomm's libraries", code=2)


def test_what_runs_on_a_device() -> None:
    assert system_of(LocalDevice()) == "x86_64-linux-clang"

    class Phone:
        def run(self, command: str) -> str:
            return "aarch64\n14\n"

        def push(self, folder: Path, place: str) -> None: ...

        def pull(self, place: str, folder: Path) -> None: ...

    with pytest.raises(UsageError, match="runs Android 14"):
        system_of(Phone())


def test_the_validator(prepared: Path, adb_device: Callable[..., str], tmp_path: Path) -> None:
    serial = adb_device()
    words = ["--deviceId", serial, "--targetPath", tmp_path / "there", "--output_dir", tmp_path]
    done = tool("qnn-platform-validator", "--backend", "htp", "--libVersion", "--coreVersion", *words)
    assert done.code == 0, done.err
    (row,) = csv.DictReader((tmp_path / "platform_validator.csv").read_text().splitlines())
    assert (row["Hardware"], row["Unit Test"]) == (f"adb:{serial}", "passed")
    assert row["Library Version"].startswith("v2.") and row["Core Version"].startswith("2.")
    gpu = tool("qnn-platform-validator", "--backend", "gpu", "--target", "local", "--output_dir", tmp_path)
    assert gpu.code == 1, "the GPU's library runs on a device only"
    assert "backendCreate" in gpu.out


def test_a_server_of_adb_elsewhere(adb_device: Callable[..., str], tmp_path: Path) -> None:
    serial = adb_device()
    assert AdbDevice(serial, "127.0.0.1").run("echo there") == "there\n"
    words = [
        "--backend",
        "cpu",
        "--remoteHost",
        "127.0.0.1",
        "--deviceId",
        "no-such",
        "--output_dir",
        tmp_path,
    ]
    done = tool("qnn-platform-validator", *words)
    assert done.code == 1
    assert "adb device no-such at 127.0.0.1" in done.out


def test_the_debugger(prepared: Path, sshd: str, tmp_path: Path) -> None:
    """Its inference engine runs on the device, and verification finds the tensors inside."""
    model = str(model_path("mnist_conv"))
    words = [
        "-f", "onnx", "-m", model, "-i", "Input3", "1,1,28,28", str(prepared / "0.raw"),
        "-o", "Plus214_Output_0", "-r", "htp", "-l", str(prepared / "list.txt"), "-w", str(tmp_path / "work"),
        "--default_verifier", "sqnr", "--target", sshd, "--place", str(tmp_path / "device"),
    ]  # fmt: skip
    done = tool("qnn-accuracy-debugger", *words)
    assert done.code == 0, done.err
    summary = tmp_path / "work" / "verification" / "latest" / "summary.csv"
    assert float(list(csv.DictReader(summary.read_text().splitlines()))[-1]["sqnr"]) > 20
    layerwise = tool("qnn-accuracy-debugger", *words, "--debugging_algorithm", "layerwise")
    assert_refused_last(layerwise, "runs layers on this machine")


def assert_refused_last(done: Result, words: str) -> None:
    """The message comes after a step that prints what it does."""
    assert done.code == 1
    assert words in done.err


def test_adb_has_no_such_device(adb_device: Callable[..., str]) -> None:
    adb_device()
    with pytest.raises(BackendError, match="adb device no-such"):
        find_device("adb:no-such").run("true")
