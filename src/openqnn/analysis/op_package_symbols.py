"""What an op package wants of other libraries: which symbols are found, and in which version of QNN."""

from __future__ import annotations

from pathlib import Path

from openqnn.errors import LibraryError
from openqnn.formats.elf import ElfLibrary, read_elf
from openqnn.qnn.library import can_fork, installed_folders
from openqnn.qnn.op_package_probe import missing_symbols
from openqnn.qnn.probe import probe_library
from openqnn.worker.run_once import run_once

_NAMED = 3


def told_symbols(path: str, found: ElfLibrary, timeout: float) -> tuple[bool, str, str]:
    """Whether all symbols are found, a sentence about them, and what to do."""
    lost: list[str] = run_once(
        missing_symbols, found.needed, found.wanted, name=Path(path).name, fork=can_fork(), timeout=timeout
    )
    needed = ", ".join(found.needed) or "no library"
    if not lost:
        return True, f"all {len(found.wanted)} of other libraries are found (it needs {needed})", ""
    listed = ", ".join(lost[:_NAMED]) + (f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else "")
    versions = [_told_version(folder, lost) for folder in installed_folders()]
    whole = any(rest == 0 for rest, _ in versions)
    told = "; ".join(text for _, text in versions) or "no libraries of QNN are installed"
    hint = "" if whole else "link the library that has them, or build it for the version that is installed"
    return whole, f"{listed}: not in {needed}; {told}", hint


def _told_version(folder: Path, lost: list[str]) -> tuple[int, str]:
    """How many of the symbols the libraries of a folder lack, and that in words, with their build."""
    given: set[str] = set()
    libraries = sorted(folder.glob("libQnn*.so"))
    for library in libraries:
        try:
            given.update(read_elf(library).given)
        except LibraryError:
            continue
    by_name = {library.name: library for library in libraries}
    build = probe_library(by_name.get("libQnnCpu.so", libraries[0])).build_id
    rest = [name for name in lost if name not in given]
    has = "has them" if not rest else f"has {len(lost) - len(rest)} of {len(lost)}"
    return len(rest), f"QNN {build or 'of unknown build'} in {folder} {has}"
