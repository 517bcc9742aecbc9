"""Scripts that expect the SDK's tree run with one of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml

from openqnn.cli.elsewhere import ELSEWHERE
from openqnn.cli.registry import tool_names
from openqnn.formats.json_text import parse_json
from openqnn.sdk.sdk_tree import CONFIGS
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


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree") / "sdk"
    result = openqnn("sdk-tree", root)
    assert result.code == 0, result.err
    return root


def test_every_tool_and_script_is_there(tree: Path) -> None:
    found = sorted(p.name for p in (tree / "bin" / "x86_64-linux-clang").iterdir())
    assert found == sorted([*tool_names(), *ELSEWHERE])
    done = subprocess.run(
        [tree / "bin" / "x86_64-linux-clang" / "qnn-net-run", "--version"], capture_output=True, check=False
    )
    assert done.returncode == 0 and b"qnn-net-run" in done.stdout
    advice = shell(f"{tree}/bin/x86_64-linux-clang/snpe-net-run --container x.dlc")
    assert advice.returncode == 2 and "qnn-net-run --dlc_path" in advice.stderr


def shell(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("envcheck -c", "g++"),
        ("envcheck -n", "Android NDK"),
        ("check-linux-dependency.sh", "objcopy"),
        ("check-python-dependency --json", '"onnxruntime"'),
        ("envsetup.sh", "QNN_SDK_ROOT"),
    ],
)
def test_the_scripts_beside_the_tools(tree: Path, script: str, words: str) -> None:
    done = shell(
        f"unset ANDROID_NDK_ROOT ANDROID_NDK_HOME; set -u; . {tree}/bin/{script}"
        if script == "envsetup.sh"
        else f"unset ANDROID_NDK_ROOT ANDROID_NDK_HOME; {tree}/bin/{script}"
    )
    assert words in done.stdout, done.stderr
    assert done.returncode == (1 if script == "envcheck -n" else 0), done.stdout + done.stderr
    for shell_script in (tree / "bin").glob("*.sh"):
        assert shell(f"bash -n {shell_script}").returncode == 0


def test_the_setup_of_aimet_is_sourced_with_its_options(tree: Path) -> None:
    """What fails leaves the shell that sources it alive."""
    done = shell(
        f"source {tree}/bin/aimet_env_setup.sh --env_path /dev/null/env --aimet_sdk_tar x; echo is $?"
    )
    assert done.stdout.splitlines()[-1] == "is 1"
    assert "no environment for AIMET in /dev/null/env" in done.stderr


def test_envcheck_tells_that_compilers_are_missing(tree: Path) -> None:
    done = shell(f"PATH=/nowhere /bin/sh {tree}/bin/envcheck -a")
    assert "[ERROR] no compiler" in done.stdout
    assert done.returncode == 1


def test_every_header_compiles_alone(tree: Path) -> None:
    include = tree / "include" / "QNN"
    headers = sorted(str(file.relative_to(include)) for file in include.rglob("*.h*"))
    assert {"QnnContext.h", "System/QnnSystemInterface.h", "HTP/QnnHtpDevice.h", "QnnModelDlc.h"} < set(
        headers
    )
    lines = "".join(f'#include "{name}"\n' for name in headers)
    (include / "all.cpp").write_text(lines)
    done = shell(f"g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I {include} {include}/all.cpp")
    assert done.returncode == 0, done.stderr
    plain = "".join(
        f'#include "{name}"\n' for name in headers if name.endswith(".h") and "ModelDlc" not in name
    )
    (include / "all.c").write_text(plain)
    done = shell(f"gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only -I {include} {include}/all.c")
    assert done.returncode == 0, done.stderr


def test_the_sample_configurations_are_read(tree: Path, tmp_path: Path) -> None:
    for place in CONFIGS:
        text = (tree / place).read_text()
        content = yaml.safe_load(text) if place.endswith(".yaml") else parse_json(text)
        assert isinstance(content, dict) and content
    np.zeros(784, np.float32).tofile(tmp_path / "x.raw")
    (tmp_path / "list.txt").write_text("x.raw\n")
    for name in ("htp_backend_extensions.json", "htp_config.json"):
        (tmp_path / name).write_text((tree / "examples/QNN/NetRun" / name).read_text())
    checker = tree / "lib/python/qti/aisw/quantization_checker/configs/sample_config.json"
    need("libQnnHtp.so")
    done = shell(f"""set -e
source {tree}/bin/envsetup.sh; cd {tmp_path}
qairt-converter -i {model_path("mnist_conv")} -o net.dlc
qnn-net-run --dlc_path net.dlc --backend libQnnHtp.so --input_list list.txt \
    --config_file htp_backend_extensions.json
qnn-quantization-checker --config_file {checker} --model {model_path("mnist_conv")} --input_list list.txt \
    --output_dir checked
""")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "checked" / "csv").iterdir())


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
