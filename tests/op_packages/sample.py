"""A package that several tests use: declared in Python, generated, and compiled once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from openqnn.cli.registry import run_tool
from openqnn.ops.custom import forget_custom_ops

X = np.random.default_rng(0).normal(size=(1, 3, 4, 4)).astype(np.float32)
EXPECTED = np.maximum(2.5 * np.tanh(np.maximum(X, 0)) - 0.5, 0).astype(np.float32)
FILE = """
import numpy as np
import openqnn

@openqnn.custom_op("MyPackage", "ScaledTanh", domain="my.domain", types=("float32", "ufixed8"))
def scaled_tanh(x, *, factor: float = 1.0, shift: list[float] = (0.0, 0.0)):
    return factor * np.tanh(x) + shift[1]
"""
PROVIDER = "MyPackageCpuInterfaceProvider"
LIBRARY = "MyPackage/libs/x86_64-linux-clang/libQnnMyPackageCpu.so"
has_tools = shutil.which("g++") and shutil.which("make")
needs_compiler = pytest.mark.skipif(not has_tools, reason="no g++ or make")


def model(path: Path | None = None, **attributes: Any) -> onnx.ModelProto:
    given = attributes or {"factor": 2.5, "shift": [0.0, -0.5]}
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, X.shape) for n in ("x", "z")]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("ScaledTanh", ["r"], ["y"], domain="my.domain", name="mine", **given),
        helper.make_node("Relu", ["y"], ["z"], name="last"),
    ]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]
    made = helper.make_model(graph, opset_imports=sets)
    if path is not None:
        onnx.save(made, path)
    return made


def generated(folder: Path, text: str = FILE, *more: str) -> Path:
    (folder / "my_ops.py").write_text(text)
    forget_custom_ops()
    assert (
        run_tool("qnn-op-package-generator", ["-p", str(folder / "my_ops.py"), "-o", str(folder), *more]) == 0
    )
    forget_custom_ops()
    return folder / "MyPackage"


def built(folder: Path, **variables: str) -> None:
    words = ["make", "-s", "-C", str(folder), *(f"{k}={v}" for k, v in variables.items())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr  # no warnings
