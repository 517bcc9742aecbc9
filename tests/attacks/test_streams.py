"""Closed, full and narrow streams, signals at the wrong time, and names that a terminal would act on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from onnx import helper

from tests.cli.tool import environment
from tests.cli.tool import openqnn as command
from tests.onnx_models import model, relu, save, tensor

START = "import sys; sys.argv[0] = 'openqnn'; from openqnn.cli.start import openqnn; sys.exit(openqnn())"


def start(*argv: object, **settings: object) -> subprocess.CompletedProcess[str]:
    shell = f'{sys.executable} -c "{START}" {" ".join(map(str, argv))} {settings.pop("redirect", "")}'
    variables = {**environment(), **settings}  # type: ignore[dict-item]
    return subprocess.run(
        ["bash", "-c", shell], env=variables, capture_output=True, text=True, errors="replace", check=False
    )


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    source = save(relu(), tmp_path / "m.onnx")
    done = start("convert", source, "-o", tmp_path / "m.oqnn", redirect=closed)
    assert done.returncode == 0, done
    assert "Traceback" not in done.stderr
    assert (tmp_path / "m.oqnn").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_stderr_does_not_stop_the_work(tmp_path: Path) -> None:
    source = save(relu(), tmp_path / "m.onnx")
    done = start("convert", source, "-o", tmp_path / "m.oqnn", redirect="2>/dev/full")
    assert done.returncode == 0
    assert (tmp_path / "m.oqnn").exists()


@pytest.mark.parametrize("verb", ["inspect", "check", "run --random"])
def test_names_that_the_encoding_lacks(verb: str, tmp_path: Path) -> None:
    made = model([helper.make_node("Relu", ["größe→"], ["y"])], inputs=[tensor("größe→", (2, 3))])
    source = save(made, tmp_path / "m.onnx")
    done = start(*verb.split(), source, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["inspect", "check", "run --random", "convert"])
def test_escape_sequences_in_names_reach_no_terminal(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "a\x1b[31m\x07b"
    made = model(
        [
            helper.make_node("Relu", [name], ["y"], name=name),
            helper.make_node("Bad\x1b[2J", ["y"], ["z"], name=name),
        ]
        if verb == "check"
        else [helper.make_node("Relu", [name], ["y"], name=name)],
        inputs=[tensor(name, (2, 3))],
    )
    result = command(*verb.split(), save(made, tmp_path / "m.onnx"))
    assert "\x1b" not in result.out + result.err
    assert "\x07" not in result.out + result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.05, 0.12, 0.2, 0.3])
def test_signals_while_modules_are_imported(number: signal.Signals, delay: float, tmp_path: Path) -> None:
    source = save(relu(), tmp_path / "m.onnx")
    with subprocess.Popen(
        [sys.executable, "-c", START, "inspect", str(source)], env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        time.sleep(delay)
        os.kill(process.pid, number)
        _, err = process.communicate()
    assert "bug in openqnn" not in err, err
    assert "ImportError" not in err, err
    assert process.returncode in (0, -number, 128 + number)
