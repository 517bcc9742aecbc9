"""Libraries in place of Python functions: shapes for converters, numbers for the quantizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import openqnn
from openqnn.cli.registry import run_tool
from openqnn.ops.custom import forget_custom_ops
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


@pytest.fixture
def converter(tmp_path: Path) -> Path:
    place = generated(tmp_path, FILE, "-cop")
    built(place / "ConverterOpPackage")
    return place / "ConverterOpPackage" / "libMyPackageConverter.so"


def test_shapes_and_numbers_without_python(folder: Path, converter: Path, tmp_path: Path) -> None:
    """-opc declares the op, -cpl knows its shape, -opl computes it while ranges are measured."""
    made = model()
    del made.graph.value_info[:]
    onnx.save(made, tmp_path / "m.onnx")
    X.tofile(tmp_path / "x.raw")
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'x.raw'}\n")
    words = [
        "-i", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.cpp"),
        "-opc", str(folder / "MyPackage" / "config" / "MyPackage.xml"),
        "--input_list", str(tmp_path / "list.txt"),
    ]  # fmt: skip
    package = f"{folder / LIBRARY}:{PROVIDER}"
    assert run_tool("qnn-onnx-converter", [*words, "-opl", package]) == 1  # nobody knows the shape
    forget_custom_ops()
    assert run_tool("qnn-onnx-converter", [*words, "-cpl", str(converter)]) == 1  # nobody computes it
    forget_custom_ops()
    assert run_tool("qnn-onnx-converter", [*words, "-cpl", str(converter), "-opl", package]) == 0
    text = (tmp_path / "m.cpp").read_text()
    assert '"MyPackage"' in text and "UFIXED_POINT_8" in text


def test_quantizing_a_dlc(folder: Path, tmp_path: Path) -> None:
    openqnn.load_custom_ops(folder / "my_ops.py")
    openqnn.convert(model()).save(tmp_path / "m.dlc")
    forget_custom_ops()
    X.tofile(tmp_path / "x.raw")
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'x.raw'}\n")
    package = f"{folder / LIBRARY}:{PROVIDER}"
    words = ["--input_dlc", str(tmp_path / "m.dlc"), "--output_dlc", str(tmp_path / "q.dlc")]
    given = ["--input_list", str(tmp_path / "list.txt"), "--op_package_lib", package]
    assert run_tool("qairt-quantizer", [*words, *given]) == 0
    with openqnn.Session(tmp_path / "q.dlc", "libQnnCpu.so", op_packages=package) as session:
        found = session.run({"x": X})["z"]
    np.testing.assert_allclose(found.reshape(EXPECTED.shape), EXPECTED, atol=0.06)


def test_no_such_library(tmp_path: Path, converter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model(tmp_path / "m.onnx")
    xml = str(converter.parents[1] / "config" / "MyPackage.xml")
    words = ["-i", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.dlc"), "-opc", xml, "-cpl"]
    assert run_tool("qairt-converter", [*words, "/nowhere.so"]) == 1
    assert "/nowhere.so: no such file" in capsys.readouterr().err
    (tmp_path / "text.so").write_text("text")
    assert run_tool("qairt-converter", [*words, str(tmp_path / "text.so")]) == 1
    assert "cannot be loaded" in capsys.readouterr().err
