"""PyTorch models on the command line: qnn-pytorch-converter, qairt-converter, and the commands of openqnn."""

from __future__ import annotations

import json
import shutil
import warnings
import zipfile
from pathlib import Path

import pytest

from tests.cli.tool import assert_refused, tool
from tests.cli.tool import openqnn as command_line
from tests.frontends.torch.test_read_pt2 import PROGRAMS

CNN = str(PROGRAMS / "cnn.pt2")
pytestmark = pytest.mark.usefixtures("in_tmp_path")


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_exported_program_becomes_source() -> None:
    done = tool(
        "qnn-pytorch-converter", "-i", CNN, "-d", "data", "1,3,8,8", "-o", "cnn.cpp", "--dump_out_names"
    )
    assert done.code == 0, done.err
    assert "data" in Path("cnn.cpp").read_text() and Path("cnn.bin").exists()
    assert json.loads(Path("model_output_names.json").read_text()) == {"output_0": "softmax"}


def test_content_decides_and_not_the_suffix() -> None:
    shutil.copy(CNN, "model.bin")
    done = tool("qairt-converter", "-i", "model.bin", "-o", "m.dlc")
    assert done.code == 0, done.err
    assert command_line("inspect", "m.dlc").code == 0


def test_check_shows_the_names_of_torch() -> None:
    done = command_line("check", CNN)
    assert done.code == 0 and "aten.conv2d" in done.out


def test_the_graph_ends_where_it_is_told() -> None:
    done = tool("qnn-pytorch-converter", "-i", CNN, "--out_node", "mean", "-o", "m.cpp")
    assert done.code == 0 and "softmax" not in Path("m.cpp").read_text().lower().replace("qnn", "")
    done = tool("qnn-pytorch-converter", "-i", CNN, "--out_node", "maen")
    assert done.code == 2 and "no tensor 'maen'" in done.err and "did you mean mean" in done.err


def test_relay_is_answered_with_what_to_use() -> None:
    done = tool("qnn-pytorch-converter", "-i", CNN, "--dump_relay", "d")
    assert done.code == 2 and "openqnn inspect" in done.err


def _archive(path: str, names: dict[str, bytes]) -> str:
    with zipfile.ZipFile(path, "w") as zipped:
        for name, data in names.items():
            zipped.writestr(name, data)
    return path


def test_a_pickle_is_refused_with_the_lines_that_export_it() -> None:
    weights = _archive("weights.pt", {"weights/data.pkl": b"\x80\x02}q\x00.", "weights/version": b"3"})
    done = tool("qnn-pytorch-converter", "-i", weights, "-d", "x", "1,3,8,8")
    assert_refused(done, "pickle", "not opened", "torch.export.export", "torch.export.save")


def test_torchscript_without_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openqnn.frontends.torch.torchscript.has_torch", lambda: False)
    script = _archive("m.pt", {"m/data.pkl": b"", "m/code/__torch__.py": b"", "m/version": b"3"})
    assert_refused(
        tool("qnn-pytorch-converter", "-i", script, "-d", "x", "1"), "TorchScript", "openqnn[torch]"
    )


def test_torchscript_takes_names_in_order() -> None:
    torch = pytest.importorskip("torch", reason="TorchScript needs torch")
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would have others use torch.export, too
        torch.jit.trace(module, torch.randn(1, 3, 8, 8)).save("script.pt")
    done = tool("qnn-pytorch-converter", "-i", "script.pt", "-d", "picture", "1,3,8,8", "-o", "s.cpp")
    assert done.code == 0, done.err
    assert "picture" in Path("s.cpp").read_text()
    assert_refused(tool("qnn-pytorch-converter", "-i", "script.pt"), "does not say the shapes")
