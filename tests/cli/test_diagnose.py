"""doctor, check --backend and reduce on the real libraries: what they print and how they end."""

from __future__ import annotations

import json
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from openqnn.analysis.doctor import LIBRARIES, PAIRS
from openqnn.analysis.provider_start import provider_error
from openqnn.ir.graph_text import parse_graph
from openqnn.qnn.library import find_library
from tests.analysis.test_shrink import NORMS
from tests.cli.tool import assert_refused, openqnn
from tests.docs.valid import valid_record
from tests.models.fetch import model_path
from tests.onnx_models import relu, save
from tests.providers import OURS, Provider, each_provider
from tests.qnn.nets import needs_cpu, needs_htp

# libQnnCpu has no Relu1; HTP takes Softmax along the last axis only, which our own rules see to.
MIXED = """
graph "mixed" {
  input %x: float32[1,4,8]
  %a: float32[1,4,8] = Softmax(%x) axis=1 beta=1.0 @ "onnx node /soft"
  %z: float32[1,4,8] = Relu1(%a) @ "onnx node /clip"
  output %z
}
"""

# HTP v68 takes every float node, and compiles some.
ELU = """
graph "elu" {
  input %x: float32[1,4,4,8]
  %y: float32[1,4,4,8] = Elu(%x) alpha=1.0 @ "onnx node /elu"
  output %y
}
"""


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def saved(text: str) -> str:
    parse_graph(text).save("graph.oqnn")
    return "graph.oqnn"


# --- doctor


def items(found: str) -> dict[str, dict[str, str]]:
    return {item["name"]: item for item in json.loads(found)["items"]}


def test_doctor_finds_the_built_in_backend() -> None:
    result = openqnn("doctor", "--json")
    assert result.code == 0
    found = items(result.out)
    assert found["built-in"]["status"] == "ok"
    assert found["numpy"]["version"]
    assert json.loads(result.out)["ok"] is True


@needs_cpu
def test_doctor_tells_the_versions_of_libraries() -> None:
    library = items(openqnn("doctor", "--json").out)["libQnnCpu.so"]
    assert library["status"] == "ok"
    assert library["path"] == str(find_library("cpu"))
    assert library["provider"] == "CPU_QTI_AISW"
    assert library["build_id"].startswith("v2.")
    assert library["core_api"].startswith("2.")


def test_doctor_prints_a_table() -> None:
    result = openqnn("doctor")
    assert result.out.splitlines()[0].split() == ["what", "name", "status", "version", "detail"]
    assert "OpenQNN works here; " in result.out


def test_doctor_explains_a_broken_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lib" / "x86_64-linux-clang"
    folder.mkdir(parents=True)
    (folder / "libQnnCpu.so").write_text("not a library")
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path))
    result = openqnn("doctor", "--json")
    library = items(result.out)["libQnnCpu.so"]
    assert result.code == 0  # the built-in backend does not need it
    assert (library["status"], library["detail"]) == ("broken", "it is not a Linux library")
    assert items(result.out)["QNN_SDK_ROOT"]["status"] == "ok"


def test_doctor_tells_of_an_sdk_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path / "none"))
    result = openqnn("doctor", "--json")
    setting = items(result.out)["QNN_SDK_ROOT"]
    assert result.code == 0
    assert (setting["status"], setting["detail"]) == ("broken", "it has no libraries for this machine")
    assert "lib/x86_64-linux-clang" in setting["hint"]
    monkeypatch.delenv("QNN_SDK_ROOT")
    assert "QNN_SDK_ROOT" not in items(openqnn("doctor", "--json").out)


def test_doctor_does_not_call_six_broken_libraries_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lib" / "x86_64-linux-clang"
    folder.mkdir(parents=True)
    for name in LIBRARIES:
        (folder / name).write_text("not a library")
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path))
    result = openqnn("doctor")
    assert result.code == 1
    assert "OpenQNN does not work here; " in result.out
    assert "libQnnHtp.so, libQnnCpu.so, libQnnGpu.so" in " ".join(result.out.split())


def test_doctor_starts_the_provider_of_onnx_runtime() -> None:
    """Versions that do not go together are told, with some that do."""
    versions = {name: version(name) for name in ("onnxruntime", "onnxruntime-qnn")}
    if (versions["onnxruntime-qnn"], versions["onnxruntime"][:5]) != ("2.3.0", "1.31."):
        pytest.skip("versions of which nothing is known here")
    provider = items(openqnn("doctor", "--json").out)["QNNExecutionProvider"]
    assert provider["status"] == "unused"
    assert "0 broken." in openqnn("doctor").out
    assert provider["detail"].startswith("does not start in ONNX Runtime 1.31.")
    assert "onnxruntime==1.24.*" in provider["hint"]
    assert [p.id for p in OURS] == list(PAIRS)  # those that the tests of the provider run with


@each_provider()
def test_a_provider_that_goes_with_onnx_runtime_starts(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("onnx", "ml_dtypes", "google", "typing_extensions"):
        where = find_spec(name)
        assert where is not None
        place = Path(where.origin or "") if where.submodule_search_locations is None else None
        folder = place or Path(next(iter(where.submodule_search_locations or [])))
        (tmp_path / folder.name).symlink_to(folder)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("openqnn.worker.interpreter.sys.executable", str(provider.python))
    assert provider_error() == ""


def test_doctor_says_how_to_get_missing_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openqnn.qnn.library.importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    library = items(openqnn("doctor", "--json").out)["libQnnCpu.so"]
    assert library["status"] == "missing"
    assert library["hint"].startswith("pip install onnxruntime-qnn==2.3.0")


# --- check --backend


@needs_htp
def test_check_asks_the_library() -> None:
    result = openqnn("check", model_path("mnist_conv"), "--backend", "htp", "--soc", "SM8550")
    assert (result.code, result.err) == (0, "")
    assert result.out == "libQnnHtp.so for SM8550 (SoC 43, HTP v73): 10 of 10 nodes taken, 0 refused.\n"


@needs_htp
def test_check_warns_of_floats_for_a_chip_without() -> None:
    graph, wanted = saved(ELU), "quantize the model, or choose a chip of HTP v69 or later"
    found = json.loads(openqnn("check", graph, "--backend", "htp", "--soc", "SM8350", "--json").out)
    assert found["ok"] and found["warning"].startswith("a node in floating point may fail")
    assert wanted in found["warning"]
    assert not json.loads(openqnn("check", graph, "--backend", "htp", "--json").out)["warning"]
    assert_refused(
        openqnn("compile", graph, "--soc", "SM8350", "-o", "x.bin"), "graphFinalize failed", wanted
    )
    assert openqnn("compile", graph, "--soc", "SM8450", "-o", "x.bin").code == 0


@needs_cpu
def test_check_tells_what_is_refused_and_what_to_do() -> None:
    result = openqnn("check", saved(MIXED), "--backend", "cpu", "--json")
    assert result.code == 1
    report = json.loads(result.out)
    assert (report["ok"], report["library"], report["nodes"]) == (False, "libQnnCpu.so", 2)
    assert report["refused"] == [
        {
            "node": "z",
            "op": "Relu1",
            "source": "onnx node /clip",
            "reason": "QNN_BACKEND_ERROR_OP_PACKAGE_NOT_FOUND (4005): Could not find specified op package",
            "hint": "the backend has no such operation: run the model on another backend, or supply an op "
            "package",
        }
    ]


@needs_cpu
def test_check_prints_what_is_refused() -> None:
    result = openqnn("check", saved(MIXED), "--backend", "cpu")
    assert result.out.splitlines()[0].split() == ["node", "op", "source", "reason", "what", "to", "do"]
    assert result.out.endswith("\nlibQnnCpu.so: 1 of 2 nodes taken, 1 refused.\n")


@needs_cpu
@needs_htp
def test_the_matrix_has_every_architecture() -> None:
    result = openqnn("check", saved(MIXED), "--matrix")
    lines = result.out.splitlines()
    assert result.code == 1
    assert lines[0].split() == ["op", "cpu", "v68", "v69", "v73", "v75", "v79", "v81"]
    assert "0/1 refused" in next(line for line in lines if line.startswith("Relu1"))
    assert next(line for line in lines if line.startswith("Transpose")).split() == [
        "Transpose",
        "-",
        *"222222",
    ]


@needs_htp
def test_a_model_that_cannot_be_converted_is_reported_first() -> None:
    unknown = relu()
    unknown.graph.node[0].op_type = "Nonsense"
    result = openqnn("check", save(unknown, Path("m.onnx")), "--backend", "htp")
    assert result.code == 1
    assert "not supported" in result.out


def test_bad_choices_of_a_backend() -> None:
    graph = saved(MIXED)
    assert_refused(openqnn("check", graph, "--soc", "SM8650"), "--soc needs --backend", code=2)
    both = openqnn("check", graph, "--matrix", "--soc", "SM8650")
    assert_refused(both, "--soc and --matrix exclude each other", code=2)
    named = openqnn("check", graph, "--matrix", "--backend", "htp")
    assert_refused(named, "--backend and --matrix exclude each other", code=2)
    assert_refused(
        openqnn("check", graph, "--backend", "/no/libQnnNone.so"), "there is no file /no/libQnnNone.so"
    )


@needs_htp
def test_an_unknown_chip_has_suggestions() -> None:
    result = openqnn("check", saved(MIXED), "--backend", "htp", "--soc", "SM865")
    assert_refused(result, "there is no SoC 'SM865'", "did you mean SM8650", code=2)


# --- reduce


@needs_htp
def test_reduce_says_what_is_left() -> None:
    result = openqnn("reduce", saved(NORMS), "--as_is", "-o", "out")
    assert (result.code, result.err) == (0, "")
    assert "1 of 5 nodes still fail in the same way" in result.out
    assert "graphFinalize failed with QNN_COMMON_ERROR_MEM_ALLOC (1002)" in result.out
    report = valid_record("reduce", Path("out/report.json").read_text())
    assert report["target"] == "SM8650 (SoC 57, HTP v75)"
    assert report["nodes"] == [{"name": "c", "op": "RmsNorm", "source": "onnx node /norm"}]
    assert report["missing"] == {}


@needs_htp
def test_reduce_has_nothing_to_do_on_a_graph_that_works() -> None:
    result = openqnn("reduce", model_path("mnist_conv"), "-o", "out")
    assert_refused(result, "libQnnHtp.so compiles and runs 'mnist_conv", "nothing to reduce")
    assert not Path("out").exists()


@needs_cpu
def test_reduce_takes_a_chip_for_htp_only() -> None:
    result = openqnn("reduce", saved(NORMS), "--backend", "cpu", "--soc", "SM8650")
    assert_refused(result, "--soc: a chip can be chosen for HTP only, not for libQnnCpu.so", code=2)
