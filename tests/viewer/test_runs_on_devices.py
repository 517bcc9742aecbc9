"""Comparisons with an inference on a device: this machine, behind the real adb and behind a real sshd."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from openqnn.cli.tools.qnn_netron import tool_command
from openqnn.errors import UsageError
from openqnn.vendor.deploy.devices import ADB, find_device
from openqnn.viewer.diff_runs.diff_run import DiffRun, start_run
from openqnn.viewer.diff_runs.job_pool import DONE, FAILED, JobPool
from openqnn.viewer.diff_runs.run_config import check_config
from openqnn.viewer.diff_runs.run_fields import ANDROID, ARM, ON_DEVICE, PC
from tests.vendor.deploy.conftest import adb_device, sshd  # fixtures
from tests.viewer.diff_forms import finished, folder_with_model, inferences

__all__ = ["adb_device", "sshd"]
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")


@pytest.fixture
def folder(kinds: dict[str, Path], tmp_path: Path) -> Path:
    return folder_with_model(kinds, tmp_path)


def on_device(device: str, architecture: str = PC, runtime: str = "cpu") -> dict[str, str]:
    fields = {"target_device": ON_DEVICE, "device_id": device, "architecture": architecture}
    return {f"two.{name}": value for name, value in (fields | {"runtime": runtime}).items()}


def run(fields: dict[str, str], folder: Path) -> DiffRun:
    config, problems = check_config(fields, folder)
    assert not problems
    return finished(start_run(0, config, JobPool(), tool_command))


@pytest.mark.parametrize("kind", ["adb", "ssh"])
def test_a_device_computes_what_this_machine_does(
    folder: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    device: str = (
        request.getfixturevalue("sshd") if kind == "ssh" else request.getfixturevalue("adb_device")()
    )
    done = run(inferences("cpu", "cpu") | on_device(device), folder)
    assert done.state == DONE, [job.record() for job in done.jobs]
    found = json.loads(done.result.read_text())
    assert len(found["nodes"]) > 5 and not any(node["kinds"] for node in found["nodes"])
    assert found["notes"] == ["no times of nodes were measured in run 2: performance is not compared"]
    log = (done.place("intermediate_files") / "inference_two.log").read_text()
    assert f"--target {device if kind == 'ssh' else f'adb:{device}'}" in log


def test_a_device_that_is_not_there_fails_its_job_alone(folder: Path, adb_device: Callable[..., str]) -> None:
    adb_device()
    done = run(inferences("built-in", "cpu") | on_device("no-such"), folder)
    assert [job.state for job in done.jobs[:2]] == [DONE, FAILED]
    assert any("no-such" in line for line in done.jobs[1].record()["tail"])


@pytest.mark.parametrize(
    ("fields", "name", "message"),
    [
        (on_device("", PC), "device_id", "Device ID is needed"),
        (on_device("1234", ANDROID), "architecture", "no package has Qualcomm's libraries for Android"),
        (on_device("1234", ARM), "engine_path", "pip download --platform"),
        (on_device("1234", PC, "gpu"), "runtime", "no package has the GPU's library"),
        (on_device("1234", PC, "htp"), "runtime", "on on-device there is cpu, gpu, dspv68"),
        (on_device("1234", PC) | {"two.engine_path": "/etc"}, "engine_path", "is outside of"),
        (on_device("1234", PC) | {"two.engine_path": "none.whl"}, "engine_path", "no such file or folder"),
    ],
)
def test_what_a_device_lacks_is_told_beside_its_field(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], name: str, message: str
) -> None:
    monkeypatch.setenv(ADB, "adb")
    _, problems = check_config(inferences() | fields, folder)
    assert message in problems[f"two.{name}"]


def test_adb_is_needed_for_serial_numbers_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADB, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    _, problems = check_config(inferences() | on_device("1234"), folder)
    assert "adb is not on the PATH" in problems["two.device_id"]
    assert not check_config(inferences() | on_device("ssh://user@board"), folder)[1]


@pytest.mark.parametrize("address", ["ssh://-oProxyCommand=touch", "ssh://-oProxyCommand=touch@host"])
def test_an_address_is_no_option_of_ssh(address: str) -> None:
    with pytest.raises(UsageError, match="there is no host in it"):
        find_device(address)
