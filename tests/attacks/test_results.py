"""Folders of results: what is the user's stays, two runs go together, and Saver has no results."""

from __future__ import annotations

import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import OpenQnnWarning
from openqnn.formats.encodings import read_encodings
from openqnn.vendor.net_run.results import unfinished
from openqnn.worker.child import Child
from openqnn.worker.messages import Done, Task
from openqnn.worker.serve import Reporter
from tests.cli.tool import tool
from tests.libraries import need
from tests.onnx_models import relu, save


def results(target: Path, count: int) -> None:
    with unfinished(target) as folder:
        for number in range(count):
            (folder / f"Result_{number}").mkdir()
            (folder / f"Result_{number}" / "y.raw").write_bytes(b"new")


def test_files_of_the_user_among_results_stay(tmp_path: Path) -> None:
    target = tmp_path / "out"
    results(target, 3)
    (target / "Result_0" / "notes.txt").write_text("mine")
    (target / "Result_9").mkdir()
    (target / "Result_9" / "plot.png").write_text("mine")
    results(target, 1)
    found = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert found == ["Result_0/notes.txt", "Result_0/y.raw", "Result_9/plot.png"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_several_runs_into_one_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: results(tmp_path / "out", 5), range(8)))
    assert len(list((tmp_path / "out").glob("Result_*/y.raw"))) == 5


def test_the_saver_library_writes_no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("saver")
    monkeypatch.chdir(tmp_path)
    openqnn.convert(save(relu(), Path("m.onnx"))).save("m.oqnn")
    np.ones((2, 3), np.float32).tofile("x.raw")
    Path("list.txt").write_text("x.raw\n")
    done = tool("qnn-net-run", "--model", "m.oqnn", "--backend", "saver", "--input_list", "list.txt")
    assert done.code == 0, done.err
    assert "nothing was computed" in done.out
    assert "result(s)" not in done.out
    assert not list(Path("output").rglob("*.raw"))


def limit(reporter: Reporter) -> int:
    del reporter
    return resource.getrlimit(resource.RLIMIT_CORE)[0]


def test_children_leave_no_core_file() -> None:
    child = Child(Task(limit))
    try:
        assert child.answer("libX.so", 30) == Done(0)
    finally:
        child.end()


def test_widths_at_the_top_of_an_encodings_file(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_text('{"activation_encodings": {}, "param_encodings": {}, "bias_bitwidth": 32}')
    with pytest.warns(OpenQnnWarning, match="bias_bitwidth: no effect .*--bias_bw"):
        read_encodings(path)
