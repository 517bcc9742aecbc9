"""Operations of the user's with every command and tool that converts, computes or shows a model."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.api import custom_ops
from openqnn.cli.main import main
from openqnn.cli.registry import command_named, command_names, run_tool, tool_named, tool_names
from openqnn.frontends.custom_ops import forget_composites
from openqnn.ops.custom import forget_custom_ops
from openqnn.options.field import options_of
from openqnn.qnn.op_package_library import OpPackageLibrary, forget_op_packages, packages_for
from tests.libraries import need
from tests.op_packages.sample import EXPECTED, LIBRARY, PROVIDER, X, model, needs_compiler

pytestmark = needs_compiler
WITHOUT = {
    "commands": {  # they read no model of the user's, or only what is compiled or measured already
        "completion", "context", "demo", "doctor", "explain", "extract", "models", "profile", "sdk-tree",
        "wrap",
    },
    "tools": {
        "qairt-dlc-diff", "qairt-dlc-info", "qairt-dlc-prepare", "qairt-dlc-to-json", "snpe-dlc-info",
        "qnn-context-binary-utility", "qnn-model-lib-generator", "qnn-op-package-generator",
        "qnn-platform-validator", "qnn-profile-viewer",
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setattr(custom_ops, "_FILES", [])
    yield
    forget_op_packages()


@pytest.fixture
def place(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model in two forms, its samples, and the op's declaration."""
    monkeypatch.chdir(tmp_path)
    model(tmp_path / "m.onnx")
    (tmp_path / "ops.py").write_text((folder / "my_ops.py").read_text())
    openqnn.load_custom_ops("ops.py")
    openqnn.convert("m.onnx").save("m.dlc")
    _new_process()
    np.save("x.npy", X)
    X.tofile("x.raw")
    Path("list.txt").write_text("x.raw\n")
    return tmp_path


def _new_process() -> None:
    forget_custom_ops()
    forget_composites()
    forget_op_packages()
    custom_ops._FILES.clear()


def _package(folder: Path) -> str:
    return f"{folder / LIBRARY}:{PROVIDER}"


def test_every_command_and_tool_that_reads_models_takes_them() -> None:
    commands = {name: command_named(name).groups for name in command_names()}
    tools = {name: tool_named(name).groups for name in tool_names()}
    for kind, found in (("commands", commands), ("tools", tools)):
        flags = {name: {f for g in groups for _, o in options_of(g) for f in o.names}
                 for name, groups in found.items()}  # fmt: skip
        assert {name for name, own in flags.items() if "--custom_ops" not in own} == WITHOUT[kind]


@pytest.mark.parametrize(
    "words",
    [
        ["check", "m.onnx"], ["convert", "m.onnx", "-o", "again.oqnn"], ["inspect", "m.onnx"],
        ["view", "m.onnx", "--converted", "--html", "v.html"], ["diff", "m.onnx", "m.dlc"],
        ["quantize", "m.onnx", "--data", "x.npy", "-o", "q.dlc"], ["encodings", "m.onnx"],
        ["evaluate", "m.onnx", "--data", "x.npy", "--jobs", "2"], ["run", "m.onnx", "--input", "x=x.npy"],
        ["run", "m.dlc", "--input", "x=x.npy"], ["bench", "m.onnx", "--against", "libQnnCpu", "--runs", "1"],
        ["compare", "m.onnx", "--data", "x.npy", "--backend", "libQnnCpu.so"],
        ["run", "m.dlc", "--input", "x=x.npy", "--backend", "libQnnCpu.so"], ["lint", "m.onnx"],
        ["check", "m.dlc", "--backend", "libQnnCpu.so"], ["partition", "m.onnx"],
        ["run", "m.onnx", "--input", "x=x.npy", "--backend", "auto"],
        ["compile", "m.dlc", "--backend", "libQnnCpu.so", "-o", "c.bin"],
    ],
)  # fmt: skip
def test_commands(folder: Path, place: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--custom_ops", "ops.py", "--op_packages", _package(folder)]
    code = main([*words, *own])
    said = capsys.readouterr()
    assert code == 0, said.err
    if words[0] == "run":
        np.testing.assert_allclose(np.load("output/z.npy"), EXPECTED, atol=1e-5)
    if words[0] == "view":
        assert "MyPackage::ScaledTanh" in Path("v.html").read_text()


def test_a_package_computes_what_has_no_function(folder: Path, place: Path) -> None:
    """On the built-in backend, in ranges that are measured, and by a declaration in XML."""
    xml = str(folder / "MyPackage" / "config" / "MyPackage.xml")
    own = ["-opc", xml, "-opl", _package(folder)]
    assert main(["run", "m.dlc", "--input", "x=x.npy"]) == 1
    assert main(["run", "m.dlc", "--input", "x=x.npy", *own]) == 0
    np.testing.assert_allclose(np.load("output/z.npy"), EXPECTED, atol=1e-5)
    _new_process()
    assert main(["quantize", "m.dlc", "--data", "x.npy", "-o", "q.dlc", *own]) == 0
    with openqnn.Session("q.dlc", "libQnnCpu.so", op_packages=_package(folder)) as session:
        np.testing.assert_allclose(session.run({"x": X})["z"].reshape(EXPECTED.shape), EXPECTED, atol=0.06)


def test_tools(folder: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, packages = ["--custom_ops", "ops.py"], ["--op_packages", _package(folder)]
    inputs = ["--input_list", "list.txt"]
    quantizer = ["--input_dlc", "m.dlc", "--output_dlc", "q.dlc", *inputs]
    assert run_tool("qairt-quantizer", quantizer) == 1
    assert "--custom_ops" in capsys.readouterr().err
    assert run_tool("qairt-quantizer", [*quantizer, *own]) == 0
    given = ["--model", "m.onnx", "--backend", "libQnnCpu.so", *inputs, "--output_dir", "out"]
    _new_process()
    assert run_tool("qnn-net-run", [*given, *own, *packages]) == 0
    found = np.fromfile("out/Result_0/z.raw", np.float32).reshape(EXPECTED.shape)
    np.testing.assert_allclose(found, EXPECTED, atol=1e-6)
    Path("qc.json").write_text(
        json.dumps({"WEIGHT_COMPARISON_ALGORITHMS": [{"algo_name": "minmax", "threshold": "10"}]})
    )
    _new_process()
    checker = ["--config_file", "qc.json", "--model", "m.onnx", *inputs, *own]
    assert run_tool("qnn-quantization-checker", checker) == 0


def test_the_accuracy_debugger(folder: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What ONNX Runtime does not know is computed by the converted model."""
    words = [
        "-f", "onnx", "-m", "m.onnx", "-i", "x", "1,3,4,4", "x.raw", "-o", "z", "-r", "cpu",
        "-a", "x86_64-linux-clang", "-l", "list.txt", "--default_verifier", "mse",
        "--custom_ops", "ops.py", "--op_packages", _package(folder),
    ]  # fmt: skip
    assert run_tool("qnn-accuracy-debugger", words) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "which ONNX Runtime does not know" in said and "3 tensors; 0 have no golden one" in said


def test_packages_go_to_the_library_that_they_are_for(folder: Path) -> None:
    cpu = OpPackageLibrary("/a.so", "ACpuInterfaceProvider")
    other = OpPackageLibrary("/b.so", "anything")
    assert cpu.is_for("/x/libQnnCpu.so") and not cpu.is_for("libQnnHtp.so")
    assert other.is_for("libQnnCpu.so") and other.is_for("libQnnHtp.so")
    openqnn.use_op_packages(_package(folder))
    assert len(packages_for("libQnnCpu.so")) == 1 and not packages_for("libQnnHtp.so")


def test_htp_beside_a_package_for_cpu(folder: Path, place: Path) -> None:
    """A composite runs on libQnnHtp, which is not given the package for libQnnCpu."""
    need("libQnnHtp.so")
    Path("composite.py").write_text(
        "import openqnn\n\n@openqnn.composite('my.domain', 'ScaledTanh')\n"
        "def scaled(q, x, *, factor=1.0, shift=(0.0, 0.0)):\n"
        "    return q.add(q.mul(q.tanh(x), factor), shift[1])\n"
    )
    words = ["run", "m.onnx", "--input", "x=x.npy", "--backend", "htp", "--custom_ops", "composite.py"]
    assert main([*words, "--op_packages", _package(folder)]) == 0
    np.testing.assert_allclose(np.load("output/z.npy"), EXPECTED, atol=0.01)
