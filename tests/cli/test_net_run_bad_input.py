"""qnn-net-run on bad input: one clear message each, and no results that look finished."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.converting import image_model
from tests.cli.running import Prepared, assert_done, prepare
from tests.cli.tool import assert_refused, environment, tool
from tests.qnn.nets import needs_cpu, needs_htp

pytestmark = needs_cpu


@pytest.fixture
def mnist(tmp_path: Path) -> Prepared:
    return prepare("mnist_conv", tmp_path)


def refused(case: Prepared, *words: str, flags: tuple[object, ...] = (), code: int = 1) -> None:
    assert_refused(case.run("--dlc_path", case.dlc, *flags, to="bad"), *words, code=code)
    assert not (case.folder / "bad").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no files"),
        ("\n\r\n  \n", "names no files"),
        ("missing.raw", "line 1: there is no file missing.raw"),
        ("Input3.raw\nInput3:=", "line 2: 'Input3:=' is not NAME:=PATH"),
        ("Input3.raw Input3.raw", "2 file(s) for 1 input(s)"),
        ("other:=Input3.raw", "has no input 'other'"),
        ("Input3:=Input3.raw Input3:=Input3.raw", "given twice"),
    ],
)
def test_input_lists(mnist: Prepared, text: str, words: str) -> None:
    mnist.list.write_text(text)
    refused(mnist, words)


@pytest.mark.parametrize(
    ("count", "dtype", "words"),
    [
        (784, np.uint8, "1 byte(s) per number: write the file as float32"),
        (784, np.float16, "2 byte(s) per number"),
        (784, np.float64, "8 byte(s) per number"),
        (700, np.float32, "3,136 are needed"),
        (0, np.float32, "the file is empty"),
    ],
)
def test_files_of_the_wrong_size(mnist: Prepared, count: int, dtype: type[np.generic], words: str) -> None:
    np.zeros(count, dtype).tofile(mnist.folder / "Input3.raw")
    refused(mnist, "line 1, input 'Input3'", words)


def test_a_library_that_computes_nothing(mnist: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mnist.folder)
    before = sorted(mnist.folder.iterdir())
    done = mnist.run("--dlc_path", mnist.dlc, backend="ir", to="bad")
    assert_refused(done, "libQnnIr.so writes DLC files and computes nothing", code=2)
    assert sorted(mnist.folder.iterdir()) == before


def test_a_library_that_only_writes_down(mnist: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mnist.folder)
    done = mnist.run("--dlc_path", mnist.dlc, backend="saver")
    assert done.code == 0, done.err
    assert "computes nothing" in done.err
    assert (mnist.folder / "saver_output" / "saver_output.c").is_file()
    measured = mnist.run("--dlc_path", mnist.dlc, "--profiling_level", "basic", backend="saver")
    assert_refused(measured, "libQnnSaver.so computes nothing that could be measured", code=2)


def test_a_list_that_is_no_text(mnist: Prepared) -> None:
    mnist.list.write_bytes(b"\xff\xfe\x00\x80")
    refused(mnist, "is not a text file")


def test_shapes_that_are_open(mnist: Prepared) -> None:
    model = mnist.folder / "open.onnx"
    onnx.save(image_model(dynamic=True), model)
    words = "dynamic dimensions", "hint: convert it first: qairt-converter -i MODEL -d x 1,3,SIDE,6"
    assert_refused(mnist.run("--model", model, to="bad"), *words)


def test_as_many_lists_as_graphs(mnist: Prepared) -> None:
    both = f"{mnist.list},{mnist.list}"
    assert_refused(
        mnist.run("--dlc_path", mnist.dlc, lists=both, to="bad"), "2 input list(s) for 1 graph(s)", code=2
    )
    assert_done(mnist.run("--dlc_path", mnist.dlc, lists="__", to="none"))
    assert not list((mnist.folder / "none").glob("Result*"))


def test_wrong_libraries(mnist: Prepared) -> None:
    for backend, words in (
        ("libQnnNothing.so", "not found"),
        ("system", "is not a QNN backend"),
        (str(mnist.list), "cannot be loaded"),
    ):
        result = mnist.run("--dlc_path", mnist.dlc, backend=backend, to="bad")
        assert_refused(result, words)
    foreign = mnist.folder / "libforeign.so"
    header = bytearray(64)
    header[:20] = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00"  # a library for aarch64
    foreign.write_bytes(header + bytes(4096))
    machine = "cannot be loaded: it is for aarch64, and this machine is "
    assert_refused(mnist.run("--dlc_path", mnist.dlc, backend=str(foreign), to="bad"), machine)
    assert_refused(mnist.run("--model", foreign, to="bad"), machine, "-t x86_64-linux-clang")


@needs_htp
def test_damaged_files(mnist: Prepared) -> None:
    tool("qnn-context-binary-generator", "--dlc_path", mnist.dlc, "--backend", "htp", "--binary_file", "c",
         "--output_dir", mnist.folder)  # fmt: skip
    good = (mnist.folder / "c.bin").read_bytes()
    bad = mnist.folder / "bad.bin"
    for data in (b"", b"abc", good[:20], good[:3000], good[:-5000], b"\0" * 5000):
        bad.write_bytes(data)
        assert_refused(mnist.run("--retrieve_context", bad, to="bad", backend="htp"), "bad.bin", "hint: ")
    cpu = mnist.run("--retrieve_context", mnist.folder / "c.bin", to="bad")
    assert_refused(cpu, "is for HTP, and libQnnCpu.so is not that one", "hint: give the library that made it")
    dlc = mnist.dlc.read_bytes()
    for data in (b"", dlc[:100], dlc[: len(dlc) // 2]):
        (mnist.folder / "bad.dlc").write_bytes(data)
        assert_refused(mnist.run("--dlc_path", mnist.folder / "bad.dlc", to="bad"), "bad.dlc", "hint: ")
    assert not (mnist.folder / "bad").exists()


def test_a_time_limit(mnist: Prepared) -> None:
    refused(mnist, "gave no answer in 0.01 s", flags=("--duration", 60, "--timeout", 10_000))
    assert_done(mnist.run("--dlc_path", mnist.dlc, "--timeout", "9" * 400))


def test_a_full_disk_is_a_word_and_no_result(mnist: Prepared) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)); import signal; "
    script = limit + "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); import sys; "
    script += "from openqnn.cli.registry import run_tool; sys.exit(run_tool('qnn-net-run', sys.argv[1:]))"
    argv = (
        "--dlc_path",
        mnist.dlc,
        "--backend",
        "cpu",
        "--input_list",
        mnist.list,
        "--output_dir",
        mnist.folder / "o",
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, argv)],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("error: ") == 1
    assert not (mnist.folder / "o").exists()


# A test run that a shell put into the background has it ignored, and children inherit that.
AS_IN_A_TERMINAL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


def running(case: Prepared) -> subprocess.Popen[str]:
    """qnn-net-run in a process of its own, in the middle of an hour of inferences."""
    argv = ["--dlc_path", case.dlc, "--backend", "cpu", "--input_list", case.list, "--duration", "3600",
            "--output_dir", case.folder / "out"]  # fmt: skip
    script = (
        f"import sys; {AS_IN_A_TERMINAL}; from openqnn.cli.registry import run_tool;"
        "sys.exit(run_tool('qnn-net-run', sys.argv[1:]))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, argv)],
        env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(case.folder.glob(".out.partial-*/Result_0/*.raw")) and time.monotonic() < deadline:
        time.sleep(0.05)
    return child


def in_session(leader: int) -> list[int]:
    """The processes that a process of `running` has started, and itself."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == leader:
                found.append(int(entry.name))
        except ProcessLookupError:
            continue
    return found


def test_an_interrupt_ends_it_all(mnist: Prepared) -> None:
    """Ctrl-C goes to every process of the terminal."""
    child = running(mnist)
    assert len(in_session(child.pid)) == 2
    os.killpg(child.pid, signal.SIGINT)
    try:
        _, said = child.communicate(timeout=60)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == 130
    assert said.strip().splitlines()[-1] == "error: interrupted [OQ151]"
    assert "Traceback" not in said
    assert not in_session(child.pid)
    assert not (mnist.folder / "out").exists()
    assert not list(mnist.folder.glob(".out.partial-*"))


def test_a_time_limit_of_the_caller_ends_it_all(mnist: Prepared) -> None:
    """As `timeout` has it: only the tool hears of it."""
    child = running(mnist)
    os.kill(child.pid, signal.SIGTERM)
    try:
        _, said = child.communicate(timeout=60)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == 128 + signal.SIGTERM
    assert said.strip().splitlines()[-1] == "error: ended by SIGTERM [OQ151]"
    assert not in_session(child.pid)
    assert not list(mnist.folder.glob("*out*"))


def test_killed_in_the_middle_never_looks_done(mnist: Prepared) -> None:
    child = running(mnist)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert not (mnist.folder / "out").exists()
    time.sleep(1.5)  # the library's process notices that its parent is gone
    assert_done(mnist.run("--dlc_path", mnist.dlc))
    assert not list(mnist.folder.glob(".out.partial-*"))
