"""The sample application and libQnnModelDlc.so give the numbers of qnn-net-run, bit by bit.

Built from the tree's own headers with g++ and clang++, without a warning.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.cli.tool import openqnn, tool
from tests.libraries import need
from tests.models.fetch import model_path
from tests.providers import Provider, each_provider

COMPILERS = ("g++", "clang++")
OUTPUT = "Plus214_Output_0"


@dataclass(frozen=True)
class Place:
    """A tree, what was built in it, and a small network in every form."""

    work: Path
    tree: Path
    apps: dict[str, Path]

    @property
    def libraries(self) -> Path:
        return self.tree / "lib" / "x86_64-linux-clang"

    def app(self, *arguments: object, compiler: str = "g++") -> subprocess.CompletedProcess[str]:
        given = [self.apps[compiler], "--system_library", self.libraries / "libQnnSystem.so", *arguments]
        return subprocess.run(
            [str(each) for each in given], cwd=self.work, capture_output=True, text=True, check=False
        )

    def reference(self, to: str, *arguments: object) -> Path:
        """Results of qnn-net-run on the same inputs."""
        given = ("--input_list", self.work / "list.txt", "--output_dir", self.work / to, *arguments)
        done = tool("qnn-net-run", *given)
        assert done.code == 0, done.err
        return self.work / to


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    for name in ("libQnnCpu.so", "libQnnHtp.so", "libQnnIr.so"):
        need(name)
    work = tmp_path_factory.mktemp("native")
    assert openqnn("sdk-tree", work / "sdk").code == 0
    apps: dict[str, Path] = {}
    for compiler in filter(shutil.which, COMPILERS):
        source = work / "sdk" / "examples" / "QNN" / "SampleApp"
        build = ["make", "-s", "-B", f"CXX={compiler}", "CXXFLAGS=-O0 -Werror"]
        done = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        apps[compiler] = Path(shutil.move(source / "qnn-sample-app", work / f"app-{compiler}"))
    _prepare(work)
    return Place(work, work / "sdk", apps)


def _prepare(work: Path) -> None:
    images = np.random.default_rng(0).random((2, 784), np.float32) * 255
    for index, image in enumerate(images):
        image.tofile(work / f"{index}.raw")
    (work / "list.txt").write_text("".join(f"{work}/{i}.raw\n" for i in range(2)))
    model = model_path("mnist_conv")
    steps = (
        tool("qairt-converter", "-i", model, "-o", work / "net.dlc"),
        tool(
            "qairt-quantizer", "--input_dlc", work / "net.dlc", "--input_list", work / "list.txt",
            "--output_dlc", work / "fixed.dlc",
        ),
        tool("qnn-onnx-converter", "-i", model, "-o", work / "net.cpp"),
        tool(
            "qnn-model-lib-generator", "-c", work / "net.cpp", "-b", work / "net.bin",
            "-t", "x86_64-linux-clang", "-o", work,
        ),
    )  # fmt: skip
    for step in steps:
        assert step.code == 0, step.err


def assert_same(found: Path, wanted: Path, count: int = 2) -> None:
    for index in range(count):
        results = sorted((wanted / f"Result_{index}").glob("*.raw"))
        assert results
        for result in results:
            mine = found / f"Result_{index}" / result.name
            assert mine.read_bytes() == result.read_bytes(), mine


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("backend", ["libQnnCpu.so", "libQnnHtp.so"])
@pytest.mark.parametrize("file", ["net.dlc", "fixed.dlc"])
def test_a_dlc_composed_by_our_library(file: str, backend: str, compiler: str, place: Place) -> None:
    if compiler not in place.apps:
        pytest.skip(f"{compiler} is not installed")
    to = f"{file}-{backend}-{compiler}"
    chip = ("--soc_model", 57) if "Htp" in backend else ()
    done = place.app(
        "--backend", place.libraries / backend, "--model", place.libraries / "libQnnModelDlc.so",
        "--dlc_path", file, "--input_list", "list.txt", "--output_dir", to, *chip, compiler=compiler,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "net: 2 inference(s)" in done.stdout
    wanted = place.reference(f"{to}-ref", "--backend", backend, "--dlc_path", place.work / file)
    assert_same(place.work / to, wanted)


@pytest.mark.parametrize("backend", ["libQnnCpu.so", "libQnnHtp.so"])
def test_a_model_library_its_context_and_its_profile(backend: str, place: Place) -> None:
    library = place.work / "x86_64-linux-clang" / "libnet.so"
    chip = ("--soc_model", 57) if "Htp" in backend else ()
    there = ("--backend", place.libraries / backend, "--output_dir", f"{backend}-out")
    saved = place.app(*there, "--model", library, "--save_context", "net", *chip)
    assert saved.returncode == 0, saved.stderr
    binary = place.work / f"{backend}-out" / "net.bin"
    done = place.app(
        *there,
        "--retrieve_context",
        binary,
        "--input_list",
        "list.txt",
        "--profiling_level",
        "detailed",
        *chip,
    )
    assert done.returncode == 0, done.stderr
    assert "execute net" in done.stdout
    nodes = [line for line in done.stdout.splitlines() if "Plus30" in line or "Pooling66" in line]
    assert nodes, done.stdout
    wanted = place.reference(f"{backend}-ref", "--backend", backend, "--model", library)
    assert_same(place.work / f"{backend}-out", wanted)


def test_every_tensor_with_debug(place: Place) -> None:
    done = place.app(
        "--backend", place.libraries / "libQnnCpu.so", "--model", place.libraries / "libQnnModelDlc.so",
        "--dlc_path", "net.dlc", "--input_list", "list.txt", "--output_dir", "debug", "--debug",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {file.stem: np.fromfile(file, np.float32) for file in (place.work / "debug/Result_0").iterdir()}
    assert {OUTPUT, "ReLU32_Output_0", "Pooling160_Output_0"} <= set(found)
    assert (found["ReLU32_Output_0"] >= 0).all() and found["ReLU32_Output_0"].any()


def test_native_types(place: Place) -> None:
    """A network in fixed point, with its own types at its border: bytes in, bytes and reals out."""
    library, to = place.libraries / "libQnnModelDlc.so", "native"
    done = place.app(
        "--backend", place.libraries / "libQnnCpu.so", "--model", library, "--dlc_path", "fixed.dlc",
        "--input_list", "list.txt", "--output_dir", to, "--output_data_type", "float_and_native",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    wanted = place.reference(
        "native-ref", "--backend", "libQnnCpu.so", "--dlc_path", place.work / "fixed.dlc",
        "--use_native_output_files",
    )  # fmt: skip
    assert_same(place.work / to, wanted)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "--backend is missing"),
        (("--backend", "none.so", "--model", "x.so"), 1, "none.so"),
        (("--backend", "CPU", "--model", "DLC", "--dlc_path", "none.dlc"), 1, "is no DLC that can be read"),
        (("--backend", "CPU", "--model", "CPU"), 1, "has no QnnModel_freeGraphsInfo"),
        (("--backend", "CPU", "--model", "x", "--colour", "red"), 2, "unknown option --colour"),
    ],
)
def test_what_cannot_be_done(arguments: tuple[str, ...], code: int, words: str, place: Place) -> None:
    files = {"CPU": place.libraries / "libQnnCpu.so", "DLC": place.libraries / "libQnnModelDlc.so"}
    done = place.app(*(files.get(each, each) for each in arguments))
    assert done.returncode == code, done.stderr
    assert words in done.stderr


@each_provider()
def test_libraries_of_other_versions(provider: Provider, place: Place) -> None:
    """Interfaces are passed by value, and are longer in later versions."""
    done = place.app(
        "--backend", provider.htp, "--model", place.libraries / "libQnnModelDlc.so", "--dlc_path",
        "fixed.dlc", "--input_list", "list.txt", "--output_dir", f"out-{provider.id}", "--soc_model", 57,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    wanted = place.reference(
        f"ref-{provider.id}", "--backend", provider.htp, "--dlc_path", place.work / "fixed.dlc"
    )
    assert_same(place.work / f"out-{provider.id}", wanted)
