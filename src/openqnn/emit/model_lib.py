"""Model libraries: model.cpp and model.bin compiled into lib<name>.so, the engine of qnn-model-lib-generator.

The weights never pass through the C++ compiler: the assembler takes them straight out of the archive by
position, in parts, so that no process holds more than one part or the largest tensor.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from openqnn.emit.toolchain import Compiler, find_compiler
from openqnn.emit.weights import check_weights
from openqnn.errors import ModelError, OutputError, UsageError
from openqnn.formats.atomic import partial_folder, replacing_path
from openqnn.formats.tar import Member, tar_members
from openqnn.qnn.net import qnn_name

DEFAULT_TARGETS = ("aarch64-android", "x86_64-linux-clang")
DEFAULT_NAME = "qnn_model"
INCLUDE = Path(__file__).resolve().parent.parent / "qnn" / "include"

_SOURCES = (".cpp", ".cc", ".cxx", ".c")
_PART_BYTES = 64 << 20
_LARGE_BYTES = 1 << 30
_ERROR_LINES = 25
_CXX_FLAGS = (
    # C++11, because generated sources of the SDK mix named and unnamed initialisers, which C++20 forbids.
    # Not optimised: all of it runs once, and optimising takes four times as long.
    "-std=c++11", "-O0", "-fPIC", "-fvisibility=hidden", "-Wno-write-strings",
)  # fmt: skip
_LINK_FLAGS = (
    "-shared", "-Wl,--no-undefined", "-Wl,-z,noexecstack",
    # To number a build, the linker would read all of it back into memory.
    "-Wl,--build-id=none",
    # Without a list, instances of the standard library's templates would be exported as well.
    "-Wl,--version-script,exports",
)  # fmt: skip
_EXPORTS = """{
  global: QNN_SDK_VERSION; *_composeGraphs; *_freeGraphsInfo; _binary_obj_binary_*;
  local: *;
};
"""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LibraryJob:
    """What to build. `core_api_minor` is the application's interface, when it is not that of the headers."""

    cpp: Path
    bin: Path | None = None
    name: str = ""
    core_api_minor: int | None = None
    include: Path | None = None
    """Headers to compile with instead of the package's, such as those of an SDK."""

    @property
    def library(self) -> str:
        return f"lib{self.name or qnn_name(self.cpp.stem) or DEFAULT_NAME}.so"


def build_model_library(
    job: LibraryJob,
    output: str | os.PathLike[str] = "lib",
    targets: Sequence[str] = DEFAULT_TARGETS,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """`<output>/<target>/lib<name>.so` for each target; gives the paths.

    Every target's compiler is found before the first one runs. A library appears when it is whole.
    """
    say = progress or _say_nothing
    if os.sep in job.library:
        raise UsageError(
            f"'{job.name}' is no name for a library: it has a folder in it", hint="-o says where libraries go"
        )
    if not job.cpp.is_file():
        raise ModelError(f"{job.cpp}: no such file")
    if job.cpp.suffix not in _SOURCES:  # the compiler would hand it to the linker
        hint = "qnn-onnx-converter writes model.cpp, and model.bin beside it"
        raise ModelError(f"{job.cpp} is not C++ source by its name", hint=hint)
    if not targets:
        raise UsageError("name at least one target to build for")
    compilers = {target: find_compiler(target) for target in dict.fromkeys(targets)}
    members = tar_members(job.bin) if job.bin is not None else []
    if job.bin is not None and all(map(qnn_name_of, members)):
        check_weights(job.cpp, job.bin, members)
    built: dict[str, Path] = {}
    for target, compiler in compilers.items():
        place = Path(output).resolve() / target / job.library
        say(f"{target}: compiling {job.cpp.name} with {compiler.command[0]}")
        _build(job, compiler, members, place)
        say(f"{target}: wrote {place}")
        built[target] = place
    return built


def _build(job: LibraryJob, compiler: Compiler, members: Sequence[Member], place: Path) -> None:
    try:
        # Beside the library, so that the last step is a rename on one file system.
        with partial_folder(place) as folder, replacing_path(place) as temporary:
            os.replace(_compile(job, compiler, members, folder), temporary)
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror or error}") from error


def _compile(job: LibraryJob, compiler: Compiler, members: Sequence[Member], folder: Path) -> Path:
    version = () if job.core_api_minor is None else (f"-DOPENQNN_CORE_API_MINOR={job.core_api_minor}",)
    source, headers = str(job.cpp.absolute()), ("-I", str(job.include or INCLUDE))
    objects = [folder / "model.o"]
    warnings = ("-Wno-c99-designator",) if compiler.is_clang else ()
    flags = (*_CXX_FLAGS, *warnings, *version, *headers)
    run_compiler(compiler, folder, *flags, "-c", source, "-o", str(objects[0]))
    if job.bin is not None:
        for index, part in enumerate(_parts(members)):
            objects.append(
                _assemble(compiler, folder, index, job.bin.absolute(), part, _section(compiler, members))
            )
    result = folder / job.library
    names = [item.name for item in objects]
    (folder / "exports").write_text(_EXPORTS, encoding="utf-8")
    run_compiler(
        compiler,
        folder,
        *_LINK_FLAGS,
        *compiler.link,
        f"-Wl,-soname,{job.library}",
        *names,
        "-o",
        str(result),
    )
    return result


def _assemble(
    compiler: Compiler, folder: Path, index: int, archive: Path, members: Sequence[Member], section: str
) -> Path:
    listing, result = folder / f"weights_{index}.s", folder / f"weights_{index}.o"
    link = folder / "model.bin"  # a name without anything that the assembler would have to have escaped
    if not link.is_symlink():
        link.symlink_to(archive)
    lines = [f"\t.section {section}", *(line for member in members for line in _symbols(member, link.name))]
    listing.write_text("\n".join([*lines, '\t.section .note.GNU-stack,"",%progbits', ""]), encoding="utf-8")
    run_compiler(compiler, folder, "-c", listing.name, "-o", result.name)
    listing.unlink()
    return result


def _symbols(member: Member, archive: str) -> Iterator[str]:
    stem = f"_binary_obj_binary_{qnn_name_of(member)}_raw"
    yield "\t.balign 64"
    yield f"\t.globl {stem}_start, {stem}_end, {stem}_size"
    yield f"{stem}_start:"
    if member.size:
        yield f'\t.incbin "{archive}", {member.offset}, {member.size}'
    yield f"{stem}_end:"
    yield f"\t.set {stem}_size, {stem}_end - {stem}_start"


def qnn_name_of(member: Member) -> str:
    """The tensor behind a member; refuses an archive that is not one of weights."""
    name = member.name.removesuffix(".raw")
    if name == member.name or not name.isidentifier() or not name.isascii():
        hint = "give the .bin file that the converter wrote beside the .cpp"
        raise ModelError(f"the archive holds '{member.name}', which is no weight (<tensor>.raw)", hint=hint)
    return name


def _parts(members: Sequence[Member]) -> Iterator[list[Member]]:
    """Members in groups for one run of the assembler each, which holds all of its input in memory."""
    part: list[Member] = []
    size = 0
    for member in members:
        if part and size + member.size > _PART_BYTES:
            yield part
            part, size = [], 0
        part.append(member)
        size += member.size
    if part:
        yield part


def _section(compiler: Compiler, members: Sequence[Member]) -> str:
    """Read-only data, or behind everything else when there is more than 32-bit displacements reach across."""
    if sum(member.size for member in members) <= _LARGE_BYTES:
        return ".rodata"
    # Only x86-64 has a place for large read-only data; elsewhere writable data is what the linker puts last.
    return '.lrodata,"al",%progbits' if compiler.machine == "x86_64" else '.ldata,"aw",%progbits'


def run_compiler(compiler: Compiler, folder: Path, *arguments: str) -> None:
    """Run it in a folder; what it said is in the error."""
    command = [*compiler.command, *arguments]
    try:
        # Messages in English, whatever the user's language: the last lines are shown in an error. Its own
        # temporary files go with the folder.
        environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except OSError as error:
        raise ModelError(f"{command[0]} cannot be run: {error.strerror or error}") from error
    if done.returncode == 0:
        return
    lines = (done.stderr + done.stdout).splitlines()
    shown = "".join(f"\n  {line}" for line in lines[-_ERROR_LINES:])
    skipped = f"\n  ... {len(lines) - _ERROR_LINES} lines before" if len(lines) > _ERROR_LINES else ""
    failed = f"{compiler.target}: the compiler failed: {shlex.join(command)}{skipped}{shown}"
    raise ModelError(failed, hint=_advice(folder, done.stderr))


def _advice(folder: Path, output: str) -> str:
    if shutil.disk_usage(folder).free < 1 << 20:
        return "the disk is full"
    if "_binary_obj_binary_" in output:
        return "the source needs weights that are not there: give the .bin file that was written with it"
    return "if the source was edited by hand, convert the model again"


def _say_nothing(message: str) -> None:
    del message
