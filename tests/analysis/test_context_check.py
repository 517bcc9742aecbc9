"""Context binaries against chips and libraries, told before loading."""

from __future__ import annotations

from pathlib import Path

import pytest

from openqnn.analysis.context_check import ContextReport, build_in_file, check_context
from openqnn.analysis.context_summary import summarise_context
from openqnn.errors import LibraryError, ModelError, UsageError
from openqnn.qnn.options import DeviceOptions, GraphOptions
from tests.providers import OURS, Provider
from tests.qnn.contexts import build_context
from tests.qnn.nets import ConvRelu, needs_cpu, needs_htp

pytestmark = needs_htp


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For SM8650 (v75), with 8 MB of VTCM."""
    path = tmp_path_factory.mktemp("context") / "sm8650.bin"
    options = {"conv_relu": GraphOptions(vtcm_mb=8)}
    build_context([ConvRelu().quantized_net()], path, device=DeviceOptions(57), options=options)
    return path


def levels(report: ContextReport) -> dict[str, str]:
    return {finding.what: finding.level for finding in report.findings}


def detail(report: ContextReport, what: str) -> str:
    return next(finding.detail for finding in report.findings if finding.what == what)


def test_the_right_place(binary: Path) -> None:
    report = check_context(binary, "SM8650")
    assert report.ok
    assert set(levels(report).values()) == {"ok"}
    assert detail(report, "architecture") == "HTP v75, as SM8650 has"
    assert detail(report, "loading") == "libQnnHtp.so loads it here"


def test_an_older_chip(binary: Path) -> None:
    report = check_context(binary, "SM8550")
    assert not report.ok
    assert detail(report, "architecture") == "compiled for HTP v75, and SM8550 has v73, which is older"


def test_a_newer_chip_is_a_note(binary: Path) -> None:
    report = check_context(binary, "SM8750")
    assert report.ok
    assert (levels(report)["architecture"], levels(report)["SoC"]) == ("note", "note")


def test_a_chip_with_less_memory(binary: Path) -> None:
    report = check_context(binary, "SM6450")
    assert levels(report)["VTCM"] == "problem"
    assert detail(report, "VTCM") == "graph 'conv_relu' takes 8 MB, SM6450 has 2 MB"


@needs_cpu
def test_another_backend(binary: Path) -> None:
    report = check_context(binary, against="cpu")
    assert [finding.detail for finding in report.findings] == ["compiled for HTP, and libQnnCpu.so is CPU"]


def test_a_library_of_a_device(binary: Path, tmp_path: Path) -> None:
    """It cannot be loaded here, but carries its version as text."""
    head = bytearray(64)
    head[:5], head[18] = b"\x7fELF\x02", 183
    library = tmp_path / "libQnnHtp.so"
    library.write_bytes(bytes(head) + b"\0v2.22.6.240515160000\0")
    report = check_context(binary, against=library)
    assert levels(report) == {"library": "note", "version": "problem"}
    assert "libQnnHtp.so is v2.22.6.240515160000" in detail(report, "version")
    library.write_bytes(bytes(head))
    assert levels(check_context(binary, against=library)) == {"library": "note", "version": "note"}
    assert build_in_file(tmp_path / "none.so") == ""


@pytest.mark.parametrize("newer", [pytest.param(OURS[-1], id=OURS[-1].id, marks=OURS[-1].marks)])
def test_a_binary_of_a_newer_version(newer: Provider, tmp_path: Path) -> None:
    path = tmp_path / "newer.bin"
    build_context([ConvRelu().quantized_net()], path, newer.htp, device=DeviceOptions(57))
    report = check_context(path)
    assert (levels(report)["version"], levels(report)["loading"]) == ("problem", "problem")
    assert "Using newer context binary on old SDK" in detail(report, "loading")


def test_bad_input(binary: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no SoC 'SM865'") as unknown:
        check_context(binary, "SM865")
    assert "SM8650" in unknown.value.hint
    with pytest.raises(LibraryError, match="not found"):
        check_context(binary, against="libQnnNone.so")
    with pytest.raises(ModelError, match="there is no file"):
        check_context(tmp_path / "none.bin")
    damaged = tmp_path / "damaged.bin"
    damaged.write_bytes(binary.read_bytes()[:100])
    with pytest.raises(ModelError):
        check_context(damaged)


def test_the_summary(binary: Path) -> None:
    summary = summarise_context(check_context(binary).info)
    assert (summary.backend, summary.target) == ("HTP", "SM8650 (SoC 57, HTP v75)")
    (graph,) = summary.graphs
    assert graph.inputs == ("x: ufixed8[1,32,32,16]",)
    assert graph.settings["vtcm_mb"] == 8
