"""Results are written whole or not at all, and nothing of the user's is replaced unasked."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from tests.cli.tool import Result, assert_refused, openqnn, openqnn_process
from tests.onnx_models import add_weight, relu, save


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def names() -> list[str]:
    return sorted(p.name for p in Path().iterdir())


def test_a_file_of_the_users_is_not_replaced() -> None:
    save(relu(), Path("model.onnx"))
    Path("precious.txt").write_text("mine")
    result = openqnn("convert", "model.onnx", "-o", "precious.txt")
    assert_refused(result, "precious.txt exists and is not an OpenQNN graph", "--overwrite replaces it")
    assert Path("precious.txt").read_text() == "mine"
    assert openqnn("convert", "model.onnx", "-o", "precious.txt", "--overwrite").code == 0
    assert Path("precious.txt").read_bytes().startswith(b"OQNN")


def test_the_model_itself_is_never_replaced() -> None:
    before = save(relu(), Path("model.onnx")).read_bytes()
    Path("link.onnx").symlink_to("model.onnx")
    for target in ("model.onnx", "link.onnx", "../" + Path.cwd().name + "/model.onnx"):
        result = openqnn("convert", "model.onnx", "-o", target, "--overwrite")
        assert_refused(result, "is the source model itself", "-o")
    assert Path("model.onnx").read_bytes() == before


def test_a_graph_of_ours_is_replaced() -> None:
    save(relu(), Path("model.onnx"))
    for _ in range(2):
        assert openqnn("convert", "model.onnx").code == 0
    assert names() == ["model.onnx", "model.oqnn"]


def test_a_failed_run_leaves_the_old_result() -> None:
    save(relu(), Path("model.onnx"))
    openqnn("convert", "model.onnx")
    before = Path("model.oqnn").read_bytes()
    Path("model.onnx").write_bytes(b"broken")
    assert openqnn("convert", "model.onnx").code == 1
    assert Path("model.oqnn").read_bytes() == before


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("folder", "folder is a directory"),
        ("file/x.oqnn", "file/x.oqnn"),
        ("/proc/x.oqnn", "/proc/x.oqnn: cannot be written: "),
        ("n" * 300, "n" * 300),
    ],
)
def test_places_that_cannot_be_written(target: str, words: str) -> None:
    save(relu(), Path("model.onnx"))
    Path("folder").mkdir()
    Path("file").touch()
    assert_refused(openqnn("convert", "model.onnx", "-o", target), words)
    assert names() == ["file", "folder", "model.onnx"]


def test_folders_are_made_on_the_way() -> None:
    save(relu(), Path("model.onnx"))
    assert openqnn("convert", "model.onnx", "-o", "a/b/c.oqnn").code == 0
    assert Path("a/b/c.oqnn").is_file()


LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))"


@pytest.mark.parametrize("command", [("convert",), ("run", "--random")])
def test_no_room_for_the_result(command: tuple[str, ...]) -> None:
    """The limit on the size of files stands in for a full disk: writes fail half-way, just so."""
    save(add_weight(np.zeros((20000, 2, 3), np.float32)), Path("model.onnx"))
    process = openqnn_process(*command, "model.onnx", before=LIMIT)
    out, err = process.communicate(timeout=120)
    target = "model.oqnn" if command[0] == "convert" else "output/y.npy"
    assert_refused(Result(process.returncode, out, err), f"{target}: cannot be written: ")
    assert [p for p in Path().rglob("*") if p.is_file()] == [Path("model.onnx")]


def test_no_room_for_what_is_printed() -> None:
    save(relu(), Path("model.onnx"))
    full = "import sys; sys.stdout = open('/dev/full', 'w')"
    process = openqnn_process("inspect", "model.onnx", before=full)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err == "error: output: No space left on device [OQ151]\n"


# A test run that a shell put into the background has interrupts ignored, and children inherit that.
WAIT = """
import importlib, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
module = importlib.import_module("{module}")
inner = module.{function}
def waits(*arguments, **settings):
    result = inner(*arguments, **settings)
    print("ready", flush=True)
    time.sleep(600)
module.{function} = waits
"""


@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("openqnn.frontends.onnx.importer", "ordered"),
        ("openqnn.passes", "run_passes"),
        ("openqnn.formats.oqnn", "_write_aligned"),
    ],
)
def test_an_interrupt_ends_it_cleanly(module: str, function: str) -> None:
    """Ctrl-C while reading, while optimising, and with the file half written."""
    save(add_weight(np.zeros((200, 2, 3), np.float32)), Path("model.onnx"))
    process = openqnn_process("convert", "model.onnx", before=WAIT.format(module=module, function=function))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "error: interrupted [OQ151]\n")
    assert names() == ["model.onnx"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_ends_are_as_clean(number: signal.Signals) -> None:
    """A time limit of a script, a terminal that is closed."""
    save(add_weight(np.zeros((200, 2, 3), np.float32)), Path("model.onnx"))
    before = WAIT.format(module="openqnn.formats.oqnn", function="_write_aligned")
    before += f"signal.signal({int(number)}, signal.SIG_DFL)\n"
    process = openqnn_process("convert", "model.onnx", before=before)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, f"error: ended by {number.name} [OQ151]\n")
    assert names() == ["model.onnx"]
