"""inspect, diff and context check on files of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openqnn.api.convert import convert
from openqnn.emit import lower
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor.remote import write_dlc
from tests.cli.tool import assert_refused, openqnn, tool
from tests.models.fetch import model_path
from tests.qnn.contexts import build_context
from tests.qnn.nets import ConvRelu, needs_htp, requires, unary

needs_ir = requires("ir")
MODEL = "mnist_conv"


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def dlc() -> Path:
    convert(model_path(MODEL)).save("m.dlc")
    return Path("m.dlc")


@pytest.fixture
def binary() -> Path:
    build_context([ConvRelu().quantized_net()], "c.bin", device=DeviceOptions(57))
    return Path("c.bin")


# --- diff


@needs_ir
def test_a_model_equals_its_dlc(dlc: Path) -> None:
    result = openqnn("diff", model_path(MODEL), dlc)
    assert (result.code, result.err) == (0, "")
    assert result.out == "equal: 10 nodes matched, 0 of them under another name.\n"


@needs_ir
def test_a_model_equals_its_library() -> None:
    assert tool("qnn-onnx-converter", "-i", model_path(MODEL), "-o", "m.cpp", "--preserve_io").code == 0
    built = tool("qnn-model-lib-generator", "-c", "m.cpp", "-b", "m.bin", "-t", "x86_64-linux-clang")
    assert built.code == 0, built.err
    result = openqnn("diff", model_path(MODEL), "lib/x86_64-linux-clang/libm.so", "--run_code")
    assert (result.code, result.out[:5]) == (0, "equal"), result


@needs_ir
def test_what_differs_is_listed(dlc: Path) -> None:
    graph = convert(model_path(MODEL))
    pool = next(node for node in graph.nodes if node.op == "PoolMax2d")
    pool.params["rounding_mode"] = "CEIL"
    graph.save("other.oqnn")
    result = openqnn("diff", dlc, "other.oqnn", "--json")
    assert result.code == 1
    assert json.loads(result.out)["differences"] == [
        {
            "kind": "node",
            "change": "changed",
            "name": "Pooling66",
            "detail": "rounding_mode 0 -> 1",
            "distance": None,
        }
    ]
    assert "rounding_mode 0 -> 1" in openqnn("diff", dlc, "other.oqnn").out


@needs_ir
def test_bad_files(dlc: Path) -> None:
    content = dlc.read_bytes()
    Path("cut.dlc").write_bytes(content[: len(content) // 2])
    assert_refused(openqnn("diff", dlc, "cut.dlc"), "cut.dlc")
    Path("text.dlc").write_text("no")
    assert_refused(openqnn("inspect", "text.dlc"), "text.dlc")
    assert_refused(openqnn("diff", dlc, "none.dlc"), "there is no file none.dlc")


def test_a_graph_file_whose_text_was_changed() -> None:
    convert(model_path(MODEL)).save("m.oqnn")
    Path("m.oqnn").write_bytes(Path("m.oqnn").read_bytes().replace(b"= PoolMax2d(", b"= PoolMux2d(", 1))
    for command in (
        ["inspect", "m.oqnn"],
        ["diff", "m.oqnn", "m.oqnn"],
        ["check", "m.oqnn", "--backend", "cpu"],
        ["run", "m.oqnn", "--random"],
    ):
        assert_refused(
            openqnn(*command), "m.oqnn: the file is damaged", "its text does not have its checksum"
        )


# --- inspect


@needs_ir
def test_inspect_a_dlc(dlc: Path) -> None:
    result = openqnn("inspect", dlc)
    assert result.code == 0
    assert "  input  Input3: float32[1,1,28,28]\n" in result.out
    assert json.loads(openqnn("inspect", dlc, "--json").out)["macs"] > 0
    assert "Conv2d(" in openqnn("inspect", dlc, "--text").out


@needs_ir
def test_several_graphs_in_a_dlc() -> None:
    write_dlc([lower(convert(model_path(MODEL))), unary("Relu", (1, 4))], "two.dlc")
    result = openqnn("inspect", "two.dlc")
    assert result.out.count("graph ") == 2
    assert "g" in [
        graph["name"] for graph in json.loads(openqnn("inspect", "two.dlc", "--json").out)["graphs"]
    ]
    assert_refused(openqnn("diff", "two.dlc", "two.dlc"), "two.dlc holds several graphs", "--graph", code=2)
    assert openqnn("diff", "two.dlc", "two.dlc", "--graph", "g").code == 0


@needs_htp
def test_inspect_a_context_binary(binary: Path) -> None:
    result = openqnn("inspect", binary)
    assert result.code == 0
    assert result.out.startswith("context binary for HTP by QNN v2.")
    assert ", compiled for SM8650 (SoC 57, HTP v75), " in result.out
    assert "graph conv_relu\n  input  x: ufixed8[1,32,32,16]\n  output y: ufixed8[1,32,32,32]\n" in result.out
    assert json.loads(openqnn("inspect", binary, "--json").out)["graphs"][0]["name"] == "conv_relu"
    assert_refused(openqnn("inspect", binary, "--text"), "a context binary holds compiled code", code=2)


# --- context check


@needs_htp
def test_context_check(binary: Path) -> None:
    good = openqnn("context", "check", binary, "--soc", "SM8650")
    assert (good.code, good.err) == (0, "")
    assert good.out.endswith("\nc.bin: nothing speaks against loading it.\n")
    bad = openqnn("context", "check", binary, "--soc", "SM8550", "--json")
    assert bad.code == 1
    report = json.loads(bad.out)
    assert report["binary"]["target"] == "SM8650 (SoC 57, HTP v75)"
    assert report["findings"][0] == {
        "level": "problem",
        "what": "architecture",
        "detail": "compiled for HTP v75, and SM8550 has v73, which is older",
        "hint": "compile again with --soc SM8550",
    }


@needs_htp
def test_context_check_of_bad_input(binary: Path) -> None:
    unknown = openqnn("context", "check", binary, "--soc", "SM865")
    assert_refused(unknown, "there is no SoC 'SM865'", "did you mean SM8650", code=2)
    Path("cut.bin").write_bytes(binary.read_bytes()[:200])
    assert_refused(openqnn("context", "check", "cut.bin"), "cut.bin")
    assert_refused(openqnn("context", "list", binary), "invalid choice: 'list'", code=2)
