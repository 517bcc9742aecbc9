"""Graphs in one form become another, compiled ones run, and names of other formats are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import openqnn as package
from tests.cli.tool import assert_refused, openqnn
from tests.libraries import need
from tests.onnx_models import relu, save
from tests.qnn.nets import needs_htp


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    package.convert(save(relu(), Path("m.onnx"))).save("m.oqnn")


def test_a_graph_becomes_a_dlc_and_back() -> None:
    need("ir")
    assert openqnn("convert", "m.oqnn", "-o", "m.dlc").code == 0
    assert openqnn("convert", "m.dlc", "-o", "n.oqnn").code == 0
    assert openqnn("diff", "m.oqnn", "n.oqnn").code == 0


@needs_htp
def test_a_compiled_graph_runs_as_the_chip_that_it_is_for() -> None:
    package.compile("m.oqnn", soc="SM8550").save("m.bin")
    result = openqnn("run", "m.bin", "--random", "--timeout", "120")
    assert result.code == 0, result.err
    assert_refused(openqnn("run", "m.bin", "--random", "--soc", "SM8650"), "compiled for SM8550", code=2)
    assert openqnn("run", "m.oqnn", "--random", "--backend", "htp", "--soc", "Snapdragon 8 Gen 2").code == 0


@pytest.mark.parametrize("name", ["m.tflite", "m.pt", "m.onnx2"])
def test_names_of_other_formats(name: str) -> None:
    result = openqnn("convert", "m.onnx", "-o", name)
    if name == "m.onnx2":  # any other name is a graph's
        assert result.code == 0
    else:
        assert_refused(result, "saved as .oqnn", code=2)


def test_an_image_is_no_damaged_model() -> None:
    Path("m.onnx").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    assert_refused(openqnn("check", "m.onnx"), "an image (PNG)")


def test_a_session_says_what_it_is() -> None:
    with package.Session("m.oqnn") as session:
        assert repr(session) == "<Session of m on cpu: x[2, 3] -> y>"
