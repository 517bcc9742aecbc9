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
from openqnn.cli.registry import run_tool
from openqnn.errors import BackendError
from tests.docs.valid import valid_record
from tests.libraries import need
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
            "  delete static_cast<Op*>", f"  {CRASH} delete static_cast<Op*>",
            False, "MyPackage::ScaledTanh", f"crashed.*free context with op package {NAME}",
        ),
        (
            '"ScaledTanh", 1, 1', '"ScaledTanh", 2, 2', True, "MyPackage::ScaledTanh",
            f"MyPackage::ScaledTanh.*VALIDATION_FAILURE.*the package .{NAME}. does not take its inputs",
        ),
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
    told = f"{found.message} {found.hint}".replace("\n", " ")
    assert re.search(message, told), told


@pytest.mark.parametrize(
    ("name", "ok", "message"),
    [
        ("gone", False, "^gone: not in lib.*; QNN .* has 0 of 1"),
        ("QnnInterface_getProviders", True, "QnnInterface_getProviders: not in lib.*; QNN .* has them"),
    ],
)
def test_symbols(folder: Path, tmp_path: Path, name: str, ok: bool, message: str) -> None:
    """Each is looked for in the needed libraries, and in every version of QNN that is installed."""
    start = "namespace {\n\nusing oppackage::CpuNode;"
    given = "const QnnInterface_t***, uint32_t*" if ok else ""
    call = f'extern "C" QNN_API uint64_t {name}({given});\nauto* wanted = &{name};\n{start}'
    report = checked(folder, variant(folder, tmp_path, start, call))
    found = next(f for f in report.findings if f.what == "symbols")
    assert found.ok == ok and re.search(message, found.message), found
    assert any(f.what == "symbols" and f.ok for f in checked(folder, str(folder / LIBRARY)).findings)


def test_a_library_without_the_declared_ops(folder: Path, tmp_path: Path) -> None:
    library = variant(folder, tmp_path, '"MyPackage", names', '"OtherPackage", names')
    report = checked(folder, library)
    assert any(f.message == "ops of MyPackage, and the library is OtherPackage" for f in report.findings)
    openqnn.custom_op("MyPackage", "Another")(lambda x: x)
    report = check_op_package(str(folder / LIBRARY), PROVIDER)
    assert any(f.what == "MyPackage::Another" and f.ok is False for f in report.findings)


@pytest.mark.parametrize(
    ("old", "new", "kernel"),
    [
        ("  const CpuNode& node =", f"  {CRASH} const CpuNode& node =", False),
        ("for (size_t i", f"{CRASH} for (size_t i", True),
        ("for (size_t i", "throw 3; for (size_t i", True),
        ("return 0;", "return 1;", True),
    ],
)
def test_tools_name_package_and_op(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, kernel: bool
) -> None:
    library = variant(folder, tmp_path, old, new, kernel=kernel)
    openqnn.load_custom_ops(folder / "my_ops.py")
    openqnn.convert(model()).save(tmp_path / "m.dlc")
    X.tofile(tmp_path / "x.raw")
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'x.raw'}\n")
    words = ["--dlc_path", str(tmp_path / "m.dlc"), "--backend", "libQnnCpu.so"]
    given = ["--input_list", str(tmp_path / "list.txt"), "--output_dir", str(tmp_path / "out")]
    assert run_tool("qnn-net-run", [*words, *given, "--op_packages", f"{library}:{PROVIDER}"]) == 1
    said = capsys.readouterr().err
    assert "MyPackage::ScaledTanh 'mine'" in said and "`openqnn op-package check" in said
    assert not (tmp_path / "out").exists()


def test_a_package_that_does_not_load(folder: Path, tmp_path: Path) -> None:
    """The loader calls a library of another machine a missing file."""
    data = bytearray((folder / LIBRARY).read_bytes())
    data[18] = 183
    (tmp_path / NAME).write_bytes(data)
    openqnn.load_custom_ops(folder / "my_ops.py")
    package = f"{tmp_path / NAME}:{PROVIDER}"
    with pytest.raises(BackendError, match=f"{NAME}.*it is for aarch64, and this machine is x86_64"):
        openqnn.Session(openqnn.convert(model()), "libQnnCpu.so", op_packages=package).run({"x": X})


def test_a_package_for_cpu_on_htp(folder: Path) -> None:
    need("libQnnHtp.so")
    openqnn.load_custom_ops(folder / "my_ops.py")
    package = f"{folder / LIBRARY}:{PROVIDER}"
    with pytest.raises(BackendError, match="for HTP it has no op_pkg_init") as caught:
        openqnn.Session(openqnn.convert(model()), "libQnnHtp.so", op_packages=package).run({"x": X})
    assert "composite" in caught.value.hint


@pytest.mark.parametrize("library", ["libQnnCpu.so", "libQnnHtp.so"])
def test_a_package_that_is_not_registered(folder: Path, library: str) -> None:
    need(library)
    openqnn.load_custom_ops(folder / "my_ops.py")
    with pytest.raises(BackendError, match="MyPackage::ScaledTanh 'mine'") as caught:
        openqnn.Session(openqnn.convert(model()), library).run({"x": X})
    assert ("composite" if "Htp" in library else "--op_packages") in caught.value.hint


def test_a_context_binary_without_its_package(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """libQnnCpu leaves the nodes out when it loads the binary, and fails when it runs it."""
    openqnn.load_custom_ops(folder / "my_ops.py")
    openqnn.convert(model()).save(tmp_path / "m.dlc")
    X.tofile(tmp_path / "x.raw")
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'x.raw'}\n")
    cpu, package = ["--backend", "libQnnCpu.so"], ["--op_packages", f"{folder / LIBRARY}:{PROVIDER}"]
    made = ["--dlc_path", str(tmp_path / "m.dlc"), "--binary_file", "c", "--output_dir", str(tmp_path)]
    assert run_tool("qnn-context-binary-generator", [*cpu, *package, *made]) == 0
    binary = ["--retrieve_context", str(tmp_path / "c.bin"), "--input_list", str(tmp_path / "list.txt")]
    assert run_tool("qnn-net-run", [*cpu, *binary, "--output_dir", str(tmp_path / "out")]) == 1
    assert "package that is not registered" in capsys.readouterr().err


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
