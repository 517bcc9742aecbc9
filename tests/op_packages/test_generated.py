"""From a Python function to a model on libQnnCpu with a generated, compiled and registered package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import openqnn
from openqnn.cli.registry import run_tool
from openqnn.errors import BackendError, LibraryError, UsageError
from openqnn.formats.op_package_xml import read_op_package
from openqnn.ops.custom import custom_ops
from openqnn.ops.kernel_trace import kernel_body
from tests.op_packages.sample import (
    EXPECTED,
    FILE,
    LIBRARY,
    PROVIDER,
    X,
    built,
    generated,
    model,
    needs_compiler,
)

pytestmark = needs_compiler


def _package(folder: Path) -> str:
    return f"{folder / LIBRARY}:{PROVIDER}"


def test_layout(folder: Path) -> None:
    root = folder / "MyPackage"
    for name in ("Makefile", "config/MyPackage.xml", "src/MyPackageInterface.cpp", "src/ops/ScaledTanh.cpp"):
        assert (root / name).is_file()
    assert read_op_package(root / "config" / "MyPackage.xml").name == "MyPackage"


def test_session(folder: Path) -> None:
    openqnn.load_custom_ops(folder / "my_ops.py")
    graph = openqnn.convert(model())
    with openqnn.Session(graph, "libQnnCpu.so", op_packages=_package(folder)) as session:
        np.testing.assert_allclose(session.run({"x": X})["z"], EXPECTED, atol=1e-6)
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run({"x": X})["z"], EXPECTED, atol=1e-6)


def test_tools(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Model library, context binary and DLC keep the op and its package."""
    model(tmp_path / "m.onnx")
    X.tofile(tmp_path / "x.raw")
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'x.raw'}\n")
    own, given = ["--custom_ops", str(folder / "my_ops.py")], ["--op_packages", _package(folder)]
    source = ["-i", str(tmp_path / "m.onnx")]
    assert run_tool("qnn-onnx-converter", [*source, "-o", str(tmp_path / "m.cpp"), *own]) == 0
    where = ["-o", str(tmp_path), "-t", "x86_64-linux-clang"]
    assert run_tool("qnn-model-lib-generator", ["-c", str(tmp_path / "m.cpp"), *where]) == 0
    library = ["--model", str(tmp_path / "x86_64-linux-clang" / "libm.so")]
    cpu = ["--backend", "libQnnCpu.so", *given]
    binary = ["--binary_file", "ctx", "--output_dir", str(tmp_path)]
    assert run_tool("qnn-context-binary-generator", [*library, *cpu, *binary]) == 0
    assert run_tool("qairt-converter", [*source, "-o", str(tmp_path / "m.dlc"), *own]) == 0
    assert run_tool("qairt-dlc-info", ["-i", str(tmp_path / "m.dlc")]) == 0
    assert "MyPackage::ScaledTanh" in capsys.readouterr().out
    for kind in (library, ["--retrieve_context", f"{tmp_path}/ctx.bin"], ["--dlc_path", f"{tmp_path}/m.dlc"]):
        out = ["--input_list", str(tmp_path / "list.txt"), "--output_dir", str(tmp_path / "out")]
        assert run_tool("qnn-net-run", [*kind, *cpu, *out]) == 0
        found = np.fromfile(tmp_path / "out" / "Result_0" / "z.raw", np.float32).reshape(EXPECTED.shape)
        np.testing.assert_allclose(found, EXPECTED, atol=1e-6)


@pytest.mark.parametrize("types", ["fixed", "float"])
def test_quantized(folder: Path, tmp_path: Path, types: str) -> None:
    """With a fixed-point implementation its boundary is in fixed point, else converts stand around it."""
    text = FILE if types == "fixed" else FILE.replace(', types=("float32", "ufixed8")', "")
    (tmp_path / "ops.py").write_text(text)
    openqnn.load_custom_ops(tmp_path / "ops.py")
    fixed = openqnn.quantize(openqnn.convert(model()), [{"x": X}])
    mine = next(n for n in fixed.nodes if n.op_name == "ScaledTanh")
    assert (mine.out.dtype.label, mine.x(0).dtype.label) == (
        ("ufixed8", "ufixed8") if types == "fixed" else ("float32", "float32")
    )
    assert (mine.out.encoding is not None) == (types == "fixed")
    results = []
    for backend, packages in (("cpu", None), ("libQnnCpu.so", _package(folder))):
        with openqnn.Session(fixed, backend, op_packages=packages) as session:
            results.append(session.run({"x": X})["z"])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], EXPECTED, atol=0.06)


@pytest.mark.parametrize(
    ("packages", "error", "message"),
    [
        (None, BackendError, "OP_PACKAGE_NOT_FOUND.*--op_packages"),
        ("{0}:Nope", BackendError, r"libQnnMyPackageCpu.so \(Nope\): it has no such interface provider"),
        ("{0}:{1},{0}:{1}", BackendError, "it is registered already"),
        ("{0}", UsageError, "path and interface provider are needed"),
        ("{0}:{1}:TPU", UsageError, "the target is CPU or HTP"),
        ("/nowhere.so:f", LibraryError, "/nowhere.so: no such file"),
        ("/etc/passwd:f", BackendError, "the library cannot be loaded"),
    ],
)
def test_wrong_words(folder: Path, packages: str | None, error: type[Exception], message: str) -> None:
    openqnn.load_custom_ops(folder / "my_ops.py")
    given = packages.format(folder / LIBRARY, PROVIDER) if packages else None
    with pytest.raises(error, match=f"(?s){message}"):
        openqnn.Session(openqnn.convert(model()), "libQnnCpu.so", op_packages=given).run({"x": X})


def test_the_built_in_backend_takes_no_package(folder: Path) -> None:
    openqnn.load_custom_ops(folder / "my_ops.py")
    with pytest.raises(UsageError, match="op packages are for the vendor's libraries"):
        openqnn.Session(openqnn.convert(model()), op_packages=_package(folder))


def test_kernel_of_the_user(tmp_path: Path) -> None:
    """What is not computed element by element is written in C++, in the declaration."""
    text = '''
import numpy as np, openqnn
@openqnn.custom_op("MyPackage", "RowSum", shape=lambda x, **_: (*x[:-1], 1), cpp="""
const size_t width = x.dim(x.rank() - 1);
for (size_t i = 0; i < out.size(); ++i) {
  out[i] = 0;
  for (size_t k = 0; k < width; ++k) out[i] += scale * x[i * width + k];
}
""")
def row_sum(x, *, scale: float = 1.0):
    return scale * x.sum(-1, keepdims=True)
'''
    built(generated(tmp_path, text))
    openqnn.load_custom_ops(tmp_path / "my_ops.py")
    made = model(scale=0.5)
    made.graph.node[1].op_type = "RowSum"
    made.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("z", 1, [1, 3, 4, 1]))
    with openqnn.Session(openqnn.convert(made), "libQnnCpu.so", op_packages=_package(tmp_path)) as session:
        expected = 0.5 * np.maximum(X, 0).sum(-1, keepdims=True)
        np.testing.assert_allclose(session.run({"x": X})["z"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x.sum(-1), "cannot be followed: AttributeError"),
        (lambda x: np.add.reduce(x), "np.add.reduce"),
        (lambda x: x if x > 0 else -x, "a decision by data"),
        (lambda x: np.sort(x), "np.sort"),
        (lambda *xs: xs[0], "inputs that are repeated"),
    ],
)
def test_functions_that_make_no_kernel(function: Any, reason: str) -> None:
    openqnn.custom_op("P", "Op")(function)
    body, why = kernel_body(custom_ops()[0])
    assert body == "" and reason in why


def test_skeletons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FILE.replace('domain="my.domain"', 'backends=("CPU", "HTP", "GPU", "DSP")')
    root = generated(tmp_path, text, "-cop", "--debug")
    said = capsys.readouterr().out
    assert "Hexagon SDK" in said and "OpenCL" in said and "--converter_op_package_lib" in said
    for backend in ("CPU", "HTP", "GPU", "DSP"):
        source = (root / backend / "src" / "MyPackageInterface.cpp").read_text()
        assert f"MyPackage{backend.capitalize()}InterfaceProvider" in source
        assert (root / backend / "src" / "ops" / "ScaledTanh.cpp").is_file()
    built(root / "ConverterOpPackage")


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generated(tmp_path)
    words = ["-p", str(tmp_path / "my_ops.py"), "-o", str(tmp_path)]
    assert run_tool("qnn-op-package-generator", words) == 1
    assert "MyPackage exists" in capsys.readouterr().err
    (tmp_path / "MyPackage" / "mine.txt").write_text("")
    assert run_tool("qnn-op-package-generator", [*words, "-f"]) == 0
    assert not (tmp_path / "MyPackage" / "mine.txt").exists()
