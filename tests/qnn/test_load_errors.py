"""Libraries that cannot be loaded, made for the purpose, and what is said about them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from openqnn.errors import LibraryError
from openqnn.qnn.library import load_library
from openqnn.qnn.load_errors import explain_load, glibc
from openqnn.qnn.probe import probe_library

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


def built(folder: Path, name: str, source: str, *flags: str) -> Path:
    """A library from C source."""
    code = folder / f"{name}.c"
    code.write_text(source)
    library = folder / f"{name}.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, code, *flags], check=True)
    return library


def said(path: Path) -> tuple[str, str]:
    probe = probe_library(path)
    assert probe.error
    return explain_load(str(path), probe.error)


@needs_compiler
def test_a_missing_dependency_is_named(tmp_path: Path) -> None:
    built(tmp_path, "libneeded", "int f(void) { return 1; }")
    user = built(
        tmp_path, "libuser", "int f(void); int g(void) { return f(); }", "-L", str(tmp_path), "-lneeded"
    )
    (tmp_path / "libneeded.so").unlink()
    reason, advice = said(user)
    assert reason == "it depends on libneeded.so, which is not installed"
    assert "LD_LIBRARY_PATH" in advice


@needs_compiler
def test_a_missing_symbol_is_named(tmp_path: Path) -> None:
    user = built(tmp_path, "libuser", "int f(void); int g(void) { return f(); }", "-Wl,-z,now")
    assert said(user)[0] == "it wants the symbol f, which no library here has"


@needs_compiler
def test_a_library_that_ends_the_process(tmp_path: Path) -> None:
    source = "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }"
    probe = probe_library(built(tmp_path, "libabort", source))
    assert probe.error == "the library ended the process (exit code -6)"


@needs_compiler
def test_a_library_that_is_no_backend(tmp_path: Path) -> None:
    probe = probe_library(built(tmp_path, "libplain", "int f(void) { return 1; }"))
    assert (probe.error, probe.provider) == ("", "")


def test_a_library_for_another_machine(tmp_path: Path) -> None:
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    head[18] = 164
    (tmp_path / "libQnnHtpV75Skel.so").write_bytes(head)
    assert said(tmp_path / "libQnnHtpV75Skel.so")[0].startswith("it is for Hexagon, and this machine is ")


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libQnnCpu.so").write_text("nothing")
    assert said(tmp_path / "libQnnCpu.so")[0] == "it is not a Linux library"


def test_a_damaged_library(tmp_path: Path) -> None:
    (tmp_path / "libQnnCpu.so").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e\x00")
    assert said(tmp_path / "libQnnCpu.so")[0] == "the file is damaged or cut off"


@needs_compiler
def test_a_library_that_is_cut_off(tmp_path: Path) -> None:
    """Long enough for the loader to map it, which then dies where the file ends."""
    whole = built(tmp_path, "libdata", "char data[1 << 20] = {1}; int f(void) { return data[5]; }")
    cut = tmp_path / "libcut.so"
    cut.write_bytes(whole.read_bytes()[: 1 << 16])
    assert said(cut)[0] == "the file is damaged or cut off"
    with pytest.raises(LibraryError, match=r"libcut\.so cannot be loaded: the file is damaged or cut off"):
        load_library(cut)
    load_library(whole)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert said(tmp_path / "libQnnCpu.so")[0] == "the file cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.99' not found (required by /x/libQnnHtp.so)",
            f"it needs glibc 2.99, and this machine has {glibc()}",
        ),
        (
            "/lib/libstdc++.so.6: version `GLIBCXX_3.4.99' not found (required by /x/libQnnHtp.so)",
            "it needs a newer libstdc++ (GLIBCXX_3.4.99)",
        ),
        ("something that nobody has seen", "something that nobody has seen"),
    ],
)
def test_messages_that_cannot_be_provoked_here(error: str, reason: str) -> None:
    library = next(Path("/lib").rglob("libc.so.6"), None) or next(Path("/lib64").rglob("libc.so.6"))
    assert explain_load(str(library), error)[0] == reason
