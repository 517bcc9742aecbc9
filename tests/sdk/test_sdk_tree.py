"""Scripts that expect the SDK's tree run with one of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from openqnn.cli.registry import tool_names
from tests.cli.tool import assert_refused, openqnn
from tests.libraries import need
from tests.models.fetch import model_path

SCRIPT = """
set -e
source {tree}/bin/envsetup.sh > /dev/null
cd {work}
${{QNN_SDK_ROOT}}/bin/x86_64-linux-clang/qnn-onnx-converter -i {model} -o net.cpp > /dev/null
${{QNN_SDK_ROOT}}/bin/x86_64-linux-clang/qnn-model-lib-generator \\
  -c net.cpp -b net.bin -t x86_64-linux-clang -o lib
head -c 3136 /dev/zero > x.raw; echo x.raw > list.txt
qnn-net-run --backend ${{QNN_SDK_ROOT}}/lib/x86_64-linux-clang/libQnnCpu.so \\
  --model lib/x86_64-linux-clang/libnet.so --input_list list.txt
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    result = openqnn("sdk-tree", tmp_path / "sdk")
    assert result.code == 0, result.err
    return tmp_path / "sdk"


def test_every_tool_and_script_is_there(tree: Path) -> None:
    assert sorted(p.name for p in (tree / "bin" / "x86_64-linux-clang").iterdir()) == sorted(tool_names())
    done = subprocess.run(
        [tree / "bin" / "x86_64-linux-clang" / "qnn-net-run", "--version"], capture_output=True, check=False
    )
    assert done.returncode == 0 and b"qnn-net-run" in done.stdout
    assert (tree / "include" / "QNN" / "QnnInterface.h").is_file()


def test_a_script_that_sources_envsetup_runs(tree: Path, tmp_path: Path) -> None:
    need("libQnnCpu.so")
    script = SCRIPT.format(tree=tree, work=tmp_path, model=model_path("mnist_conv"))
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (result,) = (tmp_path / "output").glob("Result_0/*.raw")
    assert result.stat().st_size == 40


def test_it_can_be_made_again_but_replaces_nothing_else(tree: Path, tmp_path: Path) -> None:
    assert openqnn("sdk-tree", tree).code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me", encoding="utf-8")
    assert_refused(openqnn("sdk-tree", tmp_path / "mine"), "is not empty", "give a new folder")
    assert (tmp_path / "mine" / "notes.txt").is_file()
