"""The folder of a generated op package: what stands where, and its Makefile."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from openqnn.emit.op_package.converter_source import converter_makefile, converter_source
from openqnn.emit.op_package.cpu_source import interface_source, kernel_source
from openqnn.emit.op_package.skeletons import (
    NEEDS,
    interface_skeleton,
    kernel_skeleton,
    skeleton_makefile,
)
from openqnn.errors import OutputError
from openqnn.formats.op_package import OpPackage
from openqnn.formats.op_package_xml import print_op_package
from openqnn.ops.custom import CustomOp

INCLUDE: Final = Path(__file__).parents[2] / "qnn" / "include"
HEADERS: Final = (
    "QnnTypes.h",
    "QnnLayout.h",
    "QnnInterface.h",
    "QnnRecords.h",
    "QnnOpPackage.h",
    "CpuOpPackage.hpp",
)


@dataclass(frozen=True)
class GeneratedPackage:
    """A folder that was written, and kernels that are left to the user: operation and reason."""

    folder: Path
    backend: str
    library: str = ""
    provider: str = ""
    needs: str = ""
    open_kernels: dict[str, str] = field(default_factory=dict[str, str])


def provider_name(package: str, backend: str) -> str:
    return f"{package.replace('.', '_')}{backend.capitalize()}InterfaceProvider"


def library_name(package: str, backend: str) -> str:
    return f"libQnn{package.replace('.', '_')}{backend.capitalize()}.so"


def write_package(
    package: OpPackage,
    ops: Sequence[CustomOp],
    folder: Path,
    *,
    force: bool = False,
    converter: bool = False,
    sources: Sequence[Path] = (),
) -> list[GeneratedPackage]:
    """Writes `<folder>/<package>`, with a folder for each backend where there are several.

    `sources` are the files that declare it. OutputError where the folder exists, unless `force` replaces it.
    """
    root = folder / package.name
    if root.exists():
        if not force:
            raise OutputError(f"{root} exists", hint="-f replaces it")
        shutil.rmtree(root) if root.is_dir() else root.unlink()
    made = _Folder(root, package, {op.declared.name: op for op in ops}, sources)
    backends = package.backends
    places = {b: root / b if len(backends) > 1 else root for b in backends}
    found = [made.write(backend, place) for backend, place in places.items()]
    if converter:
        found.append(made.write_converter(root / "ConverterOpPackage"))
    return found


class _Folder:
    def __init__(
        self, root: Path, package: OpPackage, ops: dict[str, CustomOp], sources: Sequence[Path]
    ) -> None:
        self._root, self._package, self._ops, self._sources = root, package, ops, sources

    def write(self, backend: str, place: Path) -> GeneratedPackage:
        package = replace(self._package, ops=self._package.ops_on(backend))
        provider, library = provider_name(package.name, backend), library_name(package.name, backend)
        _put(place / "config" / f"{package.name}.xml", print_op_package(self._package))
        for source in self._sources:
            if source.suffix == ".py":
                _put(place / "config" / source.name, source.read_text())
        stem = package.name.replace(".", "_")
        interface = place / "src" / f"{stem}Interface.cpp"
        open_kernels: dict[str, str] = {}
        if backend not in NEEDS:
            _put(interface, interface_source(package, provider))
            for op in package.ops:
                text, reason = kernel_source(self._ops[op.name])
                _put(place / "src" / "ops" / f"{op.name}.cpp", text)
                open_kernels |= {op.name: reason} if reason else {}
            for name in HEADERS:
                _put(place / "include" / name, (INCLUDE / name).read_text())
            _put(place / "Makefile", self._makefile(library, provider))
            return GeneratedPackage(place, backend, library, provider, "", open_kernels)
        _put(interface, interface_skeleton(package, backend, provider))
        for op in package.ops:
            _put(place / "src" / "ops" / f"{op.name}.cpp", kernel_skeleton(package, op, backend))
        _put(place / "Makefile", skeleton_makefile(package, backend, library))
        return GeneratedPackage(place, backend, library, provider, NEEDS[backend])

    def write_converter(self, place: Path) -> GeneratedPackage:
        library = f"lib{self._package.name.replace('.', '_')}Converter.so"
        _put(place / "ConverterOpPackage.cpp", converter_source(self._package))
        _put(place / "Makefile", converter_makefile(library))
        return GeneratedPackage(place, "converter", library)

    def _makefile(self, library: str, provider: str) -> str:
        python = next((s.name for s in self._sources if s.suffix == ".py"), "")
        given = f" --custom_ops config/{python}" if python else ""
        return _MAKEFILE % {
            "package": self._package.name, "library": library, "provider": provider, "given": given,
        }  # fmt: skip


def _put(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise OutputError(f"cannot write {path}: {e.strerror}") from e


_MAKEFILE = """\
# Op package %(package)s for libQnnCpu: `make` builds it, `make test` runs it against its reference.

CXX ?= g++
CXXFLAGS ?= -O2 -Wall
FLAGS := -std=c++17 -fPIC -fvisibility=hidden -Iinclude
LIBRARY := %(library)s
PROVIDER := %(provider)s
SOURCES := $(wildcard src/*.cpp src/ops/*.cpp)
HEADERS := $(wildcard include/*)

all: all_x86

all_x86: libs/x86_64-linux-clang/$(LIBRARY)

all_android: libs/aarch64-android/$(LIBRARY)

libs/x86_64-linux-clang/$(LIBRARY): $(SOURCES) $(HEADERS)
	@mkdir -p $(@D)
	$(CXX) $(FLAGS) $(CXXFLAGS) -shared $(SOURCES) -o $@

NDK_CXX = $(ANDROID_NDK_ROOT)/toolchains/llvm/prebuilt/linux-x86_64/bin/aarch64-linux-android26-clang++

libs/aarch64-android/$(LIBRARY): $(SOURCES) $(HEADERS)
	@test -n "$(ANDROID_NDK_ROOT)" || (echo "ANDROID_NDK_ROOT is not set" && false)
	@mkdir -p $(@D)
	$(NDK_CXX) $(FLAGS) $(CXXFLAGS) -static-libstdc++ -shared $(SOURCES) -o $@

test: all_x86
	openqnn op-package check libs/x86_64-linux-clang/$(LIBRARY):$(PROVIDER)%(given)s

clean:
	rm -rf libs

.PHONY: all all_x86 all_android test clean
"""
