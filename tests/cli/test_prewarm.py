"""Tools that open HTP's library while they import the rest: nothing but the time tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Prepared, assert_done, prepare
from tests.cli.tool import environment, tool
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

START = "import sys; from openqnn.cli import start; sys.argv = sys.argv[1:]; sys.exit(start.tool())"


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare("mnist_conv", tmp_path_factory.mktemp("mnist"))


def started(entry: str, *flags: object) -> subprocess.CompletedProcess[str]:
    """The installed command's own entry, in a process of its own."""
    command = [sys.executable, "-c", START, entry, *map(str, flags)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("soc", [(), ("--soc", "SM8750")])
def test_context_binaries_are_the_same_to_the_byte(
    mnist: Prepared, tmp_path: Path, soc: tuple[str, ...]
) -> None:
    flags = ("--dlc_path", mnist.dlc, "--backend", "htp", "--output_dir", tmp_path, *soc)
    done = started("qnn-context-binary-generator", *flags, "--binary_file", "ahead")
    assert done.returncode == 0, done.stderr
    assert_done(tool("qnn-context-binary-generator", *flags, "--binary_file", "plain"))
    assert (tmp_path / "ahead.bin").read_bytes() == (tmp_path / "plain.bin").read_bytes()


def test_no_warnings_where_errors_are_asked_for(mnist: Prepared, tmp_path: Path) -> None:
    flags = ("--dlc_path", mnist.dlc, "--backend", "htp", "--output_dir", tmp_path, "--binary_file", "c")
    done = started("qnn-context-binary-generator", *flags, "--log_level", "error")
    assert done.returncode == 0 and "<W>" not in done.stderr
    assert "<W>" in started("qnn-context-binary-generator", *flags, "--log_level", "warn").stderr


def test_results_are_the_same(mnist: Prepared) -> None:
    flags = ("--dlc_path", mnist.dlc, "--backend=libQnnHtp.so", "--input_list", mnist.list)
    done = started("qnn-net-run", *flags, "--output_dir", mnist.folder / "ahead")
    assert done.returncode == 0, done.stderr
    assert_done(mnist.run("--dlc_path", mnist.dlc, to="plain", backend="htp"))
    assert mnist.results("ahead") == mnist.results("plain")


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--backend", "htp"), 2, "one of --model and --dlc_path"),
        (("--backend", "htp", "--dlc_path", "none.dlc"), 1, "none.dlc: no such file"),
        (("--backend", "libQnnNone.so", "--dlc_path", "none.dlc"), 1, "libQnnNone.so not found"),
        (("--backend", "htp", "--backend"), 2, "expected one argument"),
    ],
)
def test_mistakes_are_told_as_ever(flags: tuple[str, ...], code: int, words: str, tmp_path: Path) -> None:
    done = started("qnn-context-binary-generator", *flags, "--output_dir", tmp_path)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr


WAIT = """
import sys
from openqnn import load
from openqnn.vendor.remote import compile_source
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import resolved
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor import standby
from openqnn.vendor.target_setup import Target

path, file = sys.argv[1:]
library = resolved("htp")
standby.get_ready(library)
waiting = standby._waiting[library]
asked = []
waiting.ask, ask = lambda *a: asked.append(a) or ask(*a), waiting.ask
source = Source(files=(path,)) if path.endswith(".dlc") else Source((load(path),))
made = compile_source(source, Target(library, DeviceOptions(57)), file=file)
try:
    waiting.log
except OSError:
    print(len(asked), made.size, "ended")
"""


@pytest.mark.parametrize(("name", "asked"), [("model.dlc", 1), ("model.oqnn", 0)])
def test_who_waits_does_the_task_unless_it_cannot_travel(
    name: str, asked: int, mnist: Prepared, tmp_path: Path
) -> None:
    """In a process of its own, which has no other threads; a graph is only in the memory of that."""
    file = tmp_path / "c.bin"
    command = [sys.executable, "-c", WAIT, str(mnist.folder / name), str(file)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(asked), str(file.stat().st_size), "ended"], done.stderr


def test_a_library_that_does_not_open_is_named(tmp_path: Path, mnist: Prepared) -> None:
    fake = tmp_path / "libQnnHtp.so"
    fake.write_bytes(b"no library")
    done = started(
        "qnn-context-binary-generator", "--backend", fake, "--dlc_path", mnist.dlc, "--output_dir", tmp_path
    )
    assert done.returncode == 1
    assert f"{fake} cannot be loaded" in done.stderr


READ = """
import os, sys
from pathlib import Path
from openqnn.vendor import source
from openqnn.worker.serve import Reporter

path, touch = sys.argv[1:]
steps = []
reporter = Reporter()
reporter.step = steps.append
source.read_ahead([path, "none.dlc"], "libQnnHtp.so", reporter)
before = len(steps)
if touch:
    os.utime(path, ns=(0, 1))
nets = source.nets_of(source.Source(files=(path,)), "libQnnHtp.so", reporter)
print(before > 0, len(steps) > before, [net.name for net in nets])
"""


@pytest.mark.parametrize("touch", ["", "touch"])
def test_a_file_that_was_read_ahead_is_read_again_only_when_it_changed(
    touch: str, mnist: Prepared, tmp_path: Path
) -> None:
    file = tmp_path / "model.dlc"
    file.write_bytes(mnist.dlc.read_bytes())
    command = [sys.executable, "-c", READ, str(file), touch]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == ["True", str(bool(touch))], done.stderr
    assert "mnist_conv" in done.stdout


@pytest.mark.parametrize("kept", [0, 100, 5000, -1])
def test_damaged_files_are_told_as_without(kept: int, mnist: Prepared, tmp_path: Path) -> None:
    file = tmp_path / "cut.dlc"
    file.write_bytes(mnist.dlc.read_bytes()[:kept])
    flags = ("--dlc_path", file, "--backend", "htp", "--output_dir", tmp_path / "out", "--binary_file", "x")
    done = started("qnn-context-binary-generator", *flags)
    plain = tool("qnn-context-binary-generator", *flags)
    assert (done.returncode, done.stderr) == (plain.code, plain.err)
    assert not list(tmp_path.rglob("x.bin"))


DIE = """
import os
from openqnn.vendor.remote import compile_source
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import resolved
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor import standby
from openqnn.vendor.target_setup import Target

def crash(reporter):
    reporter.step("read broken.dlc")
    os.abort()

library = resolved("htp")
standby.get_ready(library, crash)
compile_source(Source(files=("broken.dlc",)), Target(library, DeviceOptions(57)))
"""


def test_a_crash_while_a_file_is_read_ahead_names_the_step(mnist: Prepared) -> None:
    command = [sys.executable, "-c", DIE]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert "crashed (SIGABRT); last step: read broken.dlc" in done.stderr
