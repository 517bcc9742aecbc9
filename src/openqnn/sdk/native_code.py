"""Native code of our own in the tree: libQnnModelDlc.so, and the sources of the sample application."""

from __future__ import annotations

from pathlib import Path

from openqnn.emit.model_lib import INCLUDE, run_compiler
from openqnn.emit.toolchain import find_compiler
from openqnn.formats.atomic import partial_folder, replacing_path

NATIVE = Path(__file__).parent / "native"
SAMPLE_APP = NATIVE / "SampleApp"
MODEL_DLC = "libQnnModelDlc.so"
_FLAGS = (
    "-std=c++11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-s", "-Wl,-z,noexecstack",
    "-static-libstdc++", "-static-libgcc", "-Wl,--version-script,exports", "-Wl,--build-id=none",
    f"-Wl,-soname,{MODEL_DLC}",
)  # fmt: skip


def build_model_dlc(target: str, folder: Path) -> Path:
    """libQnnModelDlc.so for a target, in a folder; LibraryError where there is no compiler for it."""
    compiler = find_compiler(target)
    place = (folder / MODEL_DLC).absolute()
    with partial_folder(place) as work, replacing_path(place) as made:
        (work / "exports").write_text("{ global: QnnModel_*; local: *; };\n", encoding="utf-8")
        source = str(NATIVE / "model_dlc.cpp")
        run_compiler(compiler, work, *_FLAGS, "-I", str(INCLUDE), source, "-o", str(made), "-ldl")
    return place
