"""Model libraries read back: a compiled C file plays the one that a converter would have generated."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import BackendError, ModelError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.library import find_library
from openqnn.qnn.model_library import compose_model_library, read_model_library
from openqnn.qnn.net import Net, TensorKind
from openqnn.qnn.recorder import Recorder
from openqnn.vendor import remote
from openqnn.vendor.library_worker import LibraryWorker
from tests.qnn.nets import each_version, needs_cpu

SOURCE = Path(__file__).with_name("model_lib.c")
COMPILER = shutil.which("gcc") or shutil.which("clang")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


def build_library(folder: Path, entries: int) -> Path:
    path = folder / f"libmodel{entries}.so"
    assert COMPILER is not None
    flags = ["-shared", "-fPIC", "-O1", "-w", f"-DENTRIES={entries}", "-o", str(path)]
    subprocess.run([COMPILER, *flags, str(SOURCE)], check=True)
    return path


@each_version("ir")
@pytest.mark.parametrize("entries", [56, 71, 72, 75])
def test_a_library_of_any_sdk_is_read(folder: Path, tmp_path: Path, entries: int) -> None:
    with Backend(folder / "libQnnIr.so") as ir:
        check(*read_model_library(ir, build_library(tmp_path, entries)))


def check(net: Net) -> None:
    assert (net.name, net.inputs, net.outputs) == ("by_hand", ("x",), ("y",))
    assert [(n.op, n.inputs, n.outputs) for n in net.nodes] == [
        ("ElementWiseAdd", ("x", "bias"), ("sum",)),
        ("Relu", ("sum",), ("y",)),
    ]
    bias = net.tensors["bias"]
    assert bias.kind is TensorKind.STATIC
    assert bias.dtype == abi.FLOAT_32
    np.testing.assert_array_equal(np.asarray(bias.data), np.array([1, 2, 3], np.float32))


@needs_cpu
def test_a_library_runs_where_it_was_composed(tmp_path: Path) -> None:
    x = np.array([[-3, 0, 1], [-1, -5, 2]], np.float32)
    with Backend("cpu") as cpu, Context(cpu) as context:
        recorder = Recorder(cpu.api)
        order = compose_model_library(context, cpu, build_library(tmp_path, 72), recorder)
        (net,) = recorder.nets(order)
        graph = context.adopt(net, recorder.handle(net.name), recorder.tensor_ids(net.name))
        graph.finalize()
        result = graph.execute({"x": x})["y"]
    np.testing.assert_array_equal(result, np.maximum(x + np.float32([1, 2, 3]), 0))


@each_version("ir")
def test_what_is_no_model_library(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "libbad.so").write_bytes(b"\x7fELF nonsense")
    with Backend(folder / "libQnnIr.so") as ir:
        with pytest.raises(ModelError, match="cannot be loaded"):
            read_model_library(ir, tmp_path / "libbad.so")
        with pytest.raises(ModelError, match="no QnnModel_composeGraphs"):
            read_model_library(ir, find_library(folder / "libQnnIr.so"))
        with pytest.raises(ModelError, match="there is no model library"):
            read_model_library(ir, tmp_path / "none.so")


@each_version("ir")
def test_a_library_that_crashes(
    folder: Path, tmp_path: Path, worker: LibraryWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ir = build_library(tmp_path, 72), folder / "libQnnIr.so"
    check(*remote.read_model_library(path, library=ir, worker=worker))
    worker.close()
    monkeypatch.setenv("MODEL_LIB_CRASHES", "1")
    with pytest.raises(BackendError, match=r"SIGSEGV.*last step: compose the graphs of libmodel72\.so"):
        remote.read_model_library(path, library=ir, worker=worker)
    worker.close()
