"""The code of the provider's page as it is printed, with our face in place of ONNX Runtime."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import openqnn
from openqnn import ort_qnn
from tests.docs.blocks import blocks_of
from tests.libraries import need
from tests.models.fetch import model_path

HERE = Path(__file__).parent / "printed"
BLOCKS = blocks_of(HERE / "page.txt")
CPP = [block.text for block in BLOCKS if block.language == "cpp"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, and the model that they make."""
    made = tmp_path_factory.mktemp("page")
    (made / "model.onnx").write_bytes(model_path("mnist_conv").read_bytes())
    return made


@pytest.fixture
def as_onnxruntime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's imports find ours; its own name for the prepared file is misspelt in one place."""
    for name in ("", ".execution_providers.qnn"):
        monkeypatch.setitem(sys.modules, f"onnxruntime.quantization{name}", ort_qnn)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for block in BLOCKS:
        named = re.match(r"\n?# (\w+\.py)", block.text)
        if named:
            (folder / named[1]).write_text(block.text.replace("prepoc_", "preproc_"), encoding="utf-8")


def test_it_quantizes(folder: Path, as_onnxruntime: None) -> None:
    np.random.seed(0)
    source = (folder / "quantize_model.py").read_text(encoding="utf-8")
    exec(compile(source, "quantize_model.py", "exec"), {"__name__": "__main__"})
    sys.modules.pop("data_reader", None)
    kinds = {i.data_type for i in onnx.load(folder / "model.qdq.onnx").graph.initializer}
    assert {onnx.TensorProto.UINT16, onnx.TensorProto.UINT8} <= kinds


def test_it_opens_a_session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data are noise from 0 to 1, and so is this: a digit would be far outside of the ranges."""
    need("libQnnHtp.so")
    monkeypatch.setitem(sys.modules, "onnxruntime", openqnn)
    (text,) = (block.text for block in BLOCKS if "import onnxruntime as ort" in block.text)
    names: dict[str, Any] = {"model_path": folder / "model.qdq.onnx"}
    exec(compile(text.replace("}])`", "}])"), "page.txt", "exec"), names)  # a stray mark stands at its end
    sample = {"Input3": np.random.default_rng(3).random((1, 1, 28, 28)).astype(np.float32)}
    with names["sess"] as session, openqnn.InferenceSession(folder / "model.qdq.onnx") as ours:
        found, wanted = session.run(None, sample)[0], ours.run(None, sample)[0]
    assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.99


@pytest.mark.skipif(not shutil.which("g++"), reason="no compiler")
def test_its_c_and_cpp_say_what_our_face_takes(folder: Path, tmp_path: Path) -> None:
    """Each call tells its key and value; the same entries and options open a session here."""
    need("libQnnHtp.so")
    told = _told(tmp_path)
    entries = [(key, value) for kind, key, value in told if kind == "entry"]
    assert entries == [
        ("ep.context_enable", "1"), ("ep.context_enable", "1"),
        ("ep.context_file_path", "./model_a_ctx.onnx"), ("ep.context_file_path", "./model_a_ctx.onnx"),
        ("ep.context_embed_mode", "0"), ("ep.context_embed_mode", "0"),
    ]  # fmt: skip
    options = ort_qnn.SessionOptions()
    for key, value in entries:
        options.add_session_config_entry(key, value.replace("./", f"{tmp_path}/"))
    given = {key: value for kind, key, value in told if kind == "QNN"}
    source = folder / "model.qdq.onnx"
    with openqnn.InferenceSession(source, options, ["QNNExecutionProvider"], [given]):
        pass
    assert {path.name for path in tmp_path.glob("model_a_ctx*")} == {
        "model_a_ctx.onnx",
        "model_a_ctx_qnn.bin",
    }


def _told(folder: Path) -> list[list[str]]:
    """What the page's blocks call, in order: those about contexts follow one another in one function."""
    *contexts, usage = ["\n".join(line for line in b.splitlines() if line[:1] != "#") for b in CPP]
    source, program = folder / "page.cpp", folder / "page"
    source.write_text(
        '#include "onnxruntime_session_options_config_keys.h"\n'
        f"void contexts() {{\n{''.join(contexts)}\n}}\n"
        f"void usage(const char* model_path) {{\n{usage}\n}}\n"
        'int main() {\n  contexts();\n  usage("model.qdq.onnx");\n}\n',
        encoding="utf-8",
    )
    command = ["g++", "-std=c++17", f"-I{HERE / 'declared'}", str(source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in said.splitlines()]
