"""qnn-platform-validator on this machine."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.tool import Result, assert_refused, tool
from tests.qnn.nets import needs_cpu, needs_htp, requires

FILE = Path("output/platform_validator.csv")


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def validate(*argv: object) -> tuple[Result, list[dict[str, str]]]:
    result = tool("qnn-platform-validator", *argv)
    rows = list(csv.DictReader(FILE.read_text().splitlines())) if FILE.is_file() else []
    return result, rows


@needs_cpu
def test_a_backend_that_works() -> None:
    result, rows = validate("--backend", "cpu", "--testBackend", "--coreVersion", "--libVersion")
    assert result.code == 0
    assert result.out == FILE.read_text()
    assert "is validated there: --target, --deviceId" in result.err
    (row,) = rows
    assert (row["Backend"], row["Library"], row["Unit Test"]) == ("cpu", "libQnnCpu.so", "passed")
    assert row["Core Version"].startswith("2.")
    assert row["Library Version"].startswith("v2.")


@needs_htp
def test_versions_are_told_on_request_only() -> None:
    _, (row,) = validate("--backend", "dsp", "--dsp_type", "v73", "--testBackend")
    assert (row["Core Version"], row["Library Version"], row["Unit Test"]) == ("", "", "passed")


@requires("gpu")
def test_a_backend_without_its_hardware() -> None:
    result, (row,) = validate("--backend", "gpu", "--testBackend", "--debug")
    assert result.code == 1
    assert row["Unit Test"] == "failed"
    assert "backendCreate failed with QNN_BACKEND_ERROR_CANNOT_INITIALIZE (4000)" in row["Reason"]
    assert "debug: gpu: " in result.err


def test_libraries_of_a_folder(tmp_path: Path) -> None:
    result, (row,) = validate("--backend", "cpu", "--directory", tmp_path)
    assert result.code == 1
    assert (row["Unit Test"], "libQnnCpu.so not found" in row["Reason"]) == ("not run", True)
    folder = tmp_path / "lib" / "x86_64-linux-clang"
    folder.mkdir(parents=True)
    (folder / "libQnnCpu.so").write_text("nothing")
    _, (row,) = validate("--backend", "cpu", "--directory", tmp_path)
    assert row["Reason"] == "it is not a Linux library"


def test_what_needs_a_device() -> None:
    android, _ = validate("--backend", "dsp", "--buildVariant", "aarch64-android")
    assert_refused(android, "such libraries run on a device only", code=2)
    device, _ = validate("--backend", "dsp", "--deviceId", "emulator-5554", "--target", "local")
    assert_refused(device, "--target names a device, as --deviceId", code=2)
    assert not FILE.exists()


def test_bad_choices() -> None:
    arch, _ = validate("--backend", "dsp", "--dsp_type", "v99", "--testBackend")
    assert_refused(arch, "there is no HTP architecture 'v99'", code=2)
    assert_refused(validate("--backend", "npu")[0], "invalid choice: 'npu'", code=2)
