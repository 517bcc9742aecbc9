"""Packages that are wrong or crash: one message each, which names the package and the op."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.analysis.op_package_check import PackageReport, check_op_package
from openqnn.cli.main import main
from openqnn.errors import BackendError
from tests.docs.valid import valid_record
from tests.op_packages.sample import LIBRARY, PROVIDER, X, model, needs_compiler

pytestmark = needs_compiler
CRASH = "*static_cast<volatile int*>(nullptr) = 1;"
NAME = "libQnnMyPackageCpu.so"


def variant(folder: Path, place: Path, old: str, new: str, *, kernel: bool = False) -> str:
    """The package with its source changed."""
    root = folder / "MyPackage"
    sources = [root / "src" / "MyPackageInterface.cpp", root / "src" / "ops" / "ScaledTanh.cpp"]
    changed = place / "changed.cpp"
    text = sources[kernel].read_text()
    assert old in text
    changed.write_text(text.replace(old, new, 1))
    other = sources[not kernel]
    words = ["g++", "-std=c++17", "-fPIC", "-shared", f"-I{root / 'include'}", str(changed), str(other)]
    subprocess.run([*words, "-o", str(place / NAME)], check=True, capture_output=True)
    return str(place / NAME)


def checked(folder: Path, library: str, timeout: float = 30.0) -> PackageReport:
    openqnn.load_custom_ops(folder / "my_ops.py")
    return check_op_package(library, PROVIDER, timeout=timeout)


@pytest.mark.parametrize(
    ("old", "new", "kernel", "what", "message"),
    [
        ("  *given = &info;", f"  {CRASH}", False, "interface", f"{NAME} crashed.*{NAME}: getInfo"),
        ("{ return QNN_SUCCESS; }", f"{{ {CRASH} return 0; }}", False, "interface", f"crashed.*{NAME}: init"),
        ("{1, 4, 0}", "{2, 0, 0}", False, "interface", "version 2.0.0; libQnnCpu takes 1.4"),
        (
            "  const Entry* entry = find(op.typeName);",
            f"  {CRASH} const Entry* entry = find(op.typeName);",
            False, "MyPackage::ScaledTanh", "crashed.*validate.*ScaledTanh",
        ),
        ("for (size_t i", f"{CRASH} for (size_t i", True, "MyPackage::ScaledTanh", "crashed.*execute"),
        ("std::tanh(", "std::sinh(", True, "MyPackage::ScaledTanh", "largest difference from its function"),
        ("return 0;", "return 1;", True, "MyPackage::ScaledTanh", "graphExecute failed"),
        (
            "  interface->interfaceVersion",
            '  extern void gone();\n  gone();\n  interface->interfaceVersion',
            False, "interface", f"{NAME} cannot be loaded: it wants the symbol gone",
        ),
    ],
)  # fmt: skip
def test_wrong_package(
    folder: Path, tmp_path: Path, old: str, new: str, kernel: bool, what: str, message: str
) -> None:
    report = checked(folder, variant(folder, tmp_path, old, new, kernel=kernel))
    assert not report.ok
    found = report.findings[-1]
    assert (found.what, found.ok) == (what, False)
    assert re.search(message, found.message.replace("\n", " ")), found.message


def test_hang(folder: Path, tmp_path: Path) -> None:
    library = variant(
        folder, tmp_path, "for (size_t i", "for (volatile bool on = true; on;) {} for (size_t i", kernel=True
    )
    report = checked(folder, library, timeout=4.0)
    assert "gave no answer in 4 s" in report.findings[-1].message
    assert report.findings[-1].what == "MyPackage::ScaledTanh"


def test_wrong_machine(folder: Path, tmp_path: Path) -> None:
    data = bytearray((folder / LIBRARY).read_bytes())
    data[18] = 183
    (tmp_path / "a.so").write_bytes(data)
    report = checked(folder, str(tmp_path / "a.so"))
    assert not report.ok and "built for aarch64, and this machine is x86_64" in report.findings[0].message
    (tmp_path / "b.so").write_bytes(b"text")
    assert "not a Linux library" in checked(folder, str(tmp_path / "b.so")).findings[0].message
    (tmp_path / "c.so").write_bytes(bytes(data[:3000]))
    assert "damaged or cut off" in checked(folder, str(tmp_path / "c.so")).findings[0].message


def test_a_crash_does_not_take_the_session_down(folder: Path, tmp_path: Path) -> None:
    openqnn.load_custom_ops(folder / "my_ops.py")
    graph = openqnn.convert(model())
    library = variant(folder, tmp_path, "for (size_t i", f"{CRASH} for (size_t i", kernel=True)
    session = openqnn.Session(graph, "libQnnCpu.so", op_packages=f"{library}:{PROVIDER}")
    with pytest.raises(BackendError, match="crashed"):
        session.run({"x": X})
    with openqnn.Session(graph, "libQnnCpu.so", op_packages=f"{folder / LIBRARY}:{PROVIDER}") as session:
        assert np.isfinite(session.run({"x": X})["z"]).all()


def test_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--custom_ops", str(folder / "my_ops.py")]
    assert main(["op-package", "check", str(folder / LIBRARY), *own]) == 0
    said = capsys.readouterr().out
    assert "MyPackage::ScaledTanh: largest difference" in said and said.endswith(f"{NAME}: works\n")
    assert main(["op-package", "check", f"{folder / LIBRARY}:Nope", *own, "--json"]) == 1
    record = valid_record("op-package", capsys.readouterr().out)
    assert any(f"Nope: there is {PROVIDER}" in each["message"] for each in record["findings"])
