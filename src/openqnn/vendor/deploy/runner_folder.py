"""Parts of a folder that runs a model without OpenQNN: the libraries, the model library, the runner."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

from openqnn.emit.model_lib import INCLUDE, LibraryJob, build_model_library
from openqnn.emit.model_source import write_model_source
from openqnn.emit.toolchain import find_compiler
from openqnn.errors import LibraryError, UsageError
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Net
from openqnn.qnn.soc import Soc
from openqnn.targets.registry import target_of_library

HOST = "x86_64-linux-clang"
HTP = "libQnnHtp.so"
HERE = Path(__file__).resolve().parent
_RUNNER_FLAGS = ("-std=c++11", "-O1", "-s", "-Wl,--build-id=none", "-ffile-prefix-map={folder}=.")


def put_model(made: Path, nets: Sequence[Net], target: str) -> None:
    """The model library of graphs, built for a target of qnn-model-lib-generator."""
    work = made / "work"
    work.mkdir()
    source = write_model_source(list(nets), work / "model_optimized")
    built = build_model_library(LibraryJob(source.cpp, source.bin), work / "lib", [target])[target]
    shutil.move(built, made / "model_optimized.so")
    shutil.rmtree(work)


def put_runner(made: Path, target: str) -> None:
    """The program that runs a model on raw files, built for the target."""
    compiler = find_compiler(target)
    (made / "bin").mkdir()
    program = made / "bin" / "runner"
    flags = [flag.format(folder=HERE) for flag in _RUNNER_FLAGS]
    static = ("-static-libstdc++", "-static-libgcc")
    command = [*compiler.command, *flags, *static, "-I", str(INCLUDE), "runner.cpp", "-o", str(program)]
    done = subprocess.run([*command, "-ldl"], cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LibraryError(f"{compiler.command[0]} cannot build the runner: {done.stderr.strip()[-500:]}")


def put_libraries(
    made: Path, target: str, chip: Soc, given: str | os.PathLike[str], backend: str = HTP
) -> str:
    """Copies what a backend needs, and gives its place in the folder."""
    (made / "lib").mkdir()
    wanted = _wanted(target, chip, backend)
    source = Path(given) if given else _host_libraries(target)
    copy = _from_wheel if source.suffix == ".whl" else _from_folder
    found = copy(source, made / "lib", wanted)
    missing = [name for name in wanted if name not in found]
    if missing:
        reader = chip.name if target_of_library(backend).compiles else backend
        raise LibraryError(
            f"{source} has no {', '.join(missing)}, which {reader} needs",
            hint="pip download --platform manylinux_2_34_aarch64 --only-binary=:all: --no-deps"
            " onnxruntime-qnn==2.3.0 fetches them for Linux on arm",
        )
    return f"lib/{backend}"


def _wanted(target: str, chip: Soc, backend: str) -> list[str]:
    if not target_of_library(backend).compiles:
        return [backend]
    if target == HOST:
        return [HTP, "libQnnSystem.so"]
    arch = [f"libQnnHtpV{chip.arch}{kind}.so" for kind in ("Stub", "Skel")] if chip.arch else []
    return ["libQnnHtp.so", "libQnnHtpPrepare.so", "libQnnSystem.so", "libQnnSaver.so", "libQnnIr.so", *arch]


def _host_libraries(target: str) -> Path:
    if target != HOST:
        raise UsageError(
            f"{target}: where are Qualcomm's libraries for it?",
            hint="--libraries WHEEL_OR_FOLDER; pip download --platform manylinux_2_34_aarch64"
            " --only-binary=:all: --no-deps onnxruntime-qnn==2.3.0 fetches a wheel for Linux on arm",
        )
    return find_library("htp").parent


def _from_folder(source: Path, lib: Path, wanted: Sequence[str]) -> list[str]:
    """From a wheel that is installed, with what that brings along beside it, or from an SDK."""
    if not source.is_dir():
        raise UsageError(f"{source}: no such folder or wheel")
    files = {name: file for name in wanted if (file := _in_folder(source, name)) is not None}
    along = sorted((source.parent / f"{source.name}.libs").glob("*.so*"))
    for file in (*files.values(), *along):
        shutil.copyfile(file, lib / file.name)
    return list(files)


def _in_folder(source: Path, name: str) -> Path | None:
    """A library in the folder itself, or where an SDK has it: skels by architecture, the rest by system."""
    if (source / name).is_file():
        return source / name
    part = "hexagon-v" if "Skel" in name else "aarch64"
    found = sorted(f for f in source.glob(f"lib/{part}*/**/{name}") if "android" not in str(f))
    return found[0] if found else None


def _from_wheel(source: Path, lib: Path, wanted: Sequence[str]) -> list[str]:
    try:
        with zipfile.ZipFile(source) as wheel:
            members = {Path(name).name: name for name in wheel.namelist() if ".so" in name}
            along = [n for n, member in members.items() if ".libs/" in member]
            found = [name for name in wanted if name in members]
            for name in (*found, *along):
                (lib / name).write_bytes(wheel.read(members[name]))
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"{source} is no wheel: {error}") from error
    return found
