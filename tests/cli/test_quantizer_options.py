"""Options of the quantizer that have no effect, for the tools with QNN's names: they say so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import openqnn as package
from tests.cli.tool import Result, openqnn, tool

SHAPE = (1, 16)


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """m.onnx is a layer of 16 channels, q.onnx is it with encodings, and inputs.txt lists two samples."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    constants = {"w": rng.normal(size=(16, 8)), "b": rng.normal(size=8), "s": np.float32(0.05)}
    weights = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in constants.items()]
    layer = [helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
    pair = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Gemm", ["d", "w", "b"], ["y"]),
    ]
    zero = numpy_helper.from_array(np.asarray(128, np.uint8), "z")
    for name, nodes in (("m", layer), ("q", pair)):
        infos = [helper.make_tensor_value_info(n, 1, (1, size)) for n, size in (("x", 16), ("y", 8))]
        graph = helper.make_graph(nodes, name, infos[:1], infos[1:], [*weights, zero])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), f"{name}.onnx")
    for i in range(2):
        rng.normal(size=SHAPE).astype(np.float32).tofile(f"{i}.raw")
    Path("inputs.txt").write_text("0.raw\n1.raw\n")
    said = [{"bitwidth": 8, "min": -4.0, "max": 4.0}]
    Path("o.json").write_text(json.dumps({"activation_encodings": {"x": said}, "param_encodings": {}}))


def test_net_json_tells_which_tensors_are_overridden() -> None:
    said = [{"bitwidth": 8, "min": -4.0, "max": 4.0}]
    both = {"activation_encodings": {"x": said}, "param_encodings": {"w": said}}
    Path("both.json").write_text(json.dumps(both))
    for words in ((), ("--exclude_named_tensors",)):
        done = convert("--input_list", "inputs.txt", "--quantization_overrides", "both.json", *words)
        assert done.code == 0, done.err
        tensors = json.loads(Path("out_net.json").read_text())["graph"]["tensors"].values()
        assert [t["dims"] for t in tensors if t["quant_params"]["is_overridden"]] == [[1, 16], [8, 16]]


def convert(*words: object, model: str = "m.onnx") -> Result:
    return tool("qnn-onnx-converter", "-i", model, "-o", "out.cpp", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--quantization_overrides", "o.json"],
            "--quantization_overrides: no effect without --input_list or",
        ),
        (["--use_native_input_files"], "--use_native_input_files: no effect without --input_list"),
        (["--act_bw", "16", "--algorithms", "cle"], "--algorithms, --act_bw: no effect without --input_list"),
    ],
)
def test_without_data_nothing_is_quantized(words: list[str], said: str) -> None:
    done = convert(*words)
    assert done.code == 0 and f"warning: {said}" in done.err and "float32" in done.out


def test_encodings_of_a_model_that_stays_in_floats() -> None:
    done = convert(model="q.onnx")
    assert done.code == 0 and "the model's own encodings, of 1 tensors, have no effect" in done.err
    assert not convert("--ignore_encodings", model="q.onnx").err
    assert not convert("--input_list", "inputs.txt", model="q.onnx").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--act_quantizer enhanced --act_quantizer_calibration mse", "--act_quantizer enhanced: no effect"),
        (
            "--param_quantizer symmetric --param_quantizer_schema asymmetric",
            "--param_quantizer symmetric: no effect beside --param_quantizer_schema asymmetric",
        ),
        ("--percentile_calibration_value 95", "--percentile_calibration_value: no effect"),
        ("--bias_bw 8 --use_per_row_quantization", "1 biases have 32 bits, not 8"),
        (
            "--param_quantizer_schema asymmetric --use_per_row_quantization",
            "--param_quantizer_schema asymmetric: no effect on weights with a scale for each row",
        ),
    ],
)
def test_what_another_option_takes_back(words: str, said: str) -> None:
    done = convert("--input_list", "inputs.txt", *words.split())
    assert done.code == 0 and f"warning: {said}" in done.err


@pytest.mark.parametrize(
    "words",
    [
        "--act_quantizer enhanced --act_quantizer_calibration sqnr",
        "--act_quantizer symmetric --act_quantizer_calibration mse",
        "--act_quantizer tf --act_quantizer_calibration percentile --percentile_calibration_value 95",
        "--bias_bw 8",
        "--use_per_row_quantization",
        "--param_quantizer_schema asymmetric",
    ],
)
def test_what_goes_together_is_not_talked_about(words: str) -> None:
    done = convert("--input_list", "inputs.txt", *words.split())
    assert (done.code, done.err) == (0, "")


def test_there_may_be_no_nodes_to_keep() -> None:
    assert "warning: --keep_quant_nodes: no effect, the model has none" in convert("--keep_quant_nodes").err
    assert not convert("--keep_quant_nodes", model="q.onnx").err


@pytest.mark.parametrize("model", ["m.onnx", "q.onnx"])
def test_a_fallback_with_nothing_to_fall_from(model: str) -> None:
    """Of the second, an input alone has an encoding."""
    done = openqnn("quantize", model, "--float_fallback", "-o", "m.oqnn")
    assert done.code == 0 and "the graph stays in floating point" in done.err


@pytest.mark.parametrize(("words", "scales"), [((), 1), (("--use_per_channel_quantization",), 4)])
def test_scales_by_channel_replace_one_of_the_model(words: tuple[str, ...], scales: int) -> None:
    weights = {
        "w": np.random.default_rng(0).integers(-127, 128, (4, 16, 1, 1)).astype(np.int8),
        "b": np.asarray([1, 2, 3, 4], np.int32), "s": np.float32(0.01), "z": np.int8(0), "zb": np.int32(0),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"]),
        helper.make_node("DequantizeLinear", ["b", "s", "zb"], ["bd"]),
        helper.make_node("Conv", ["x", "wd", "bd"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(n, 1, (1, size, 1, 1)) for n, size in (("x", 16), ("y", 4))]
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "c", infos[:1], infos[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "c.onnx")
    done = openqnn("quantize", "c.onnx", "--input_list", "inputs.txt", "-o", "c.oqnn", *words)
    assert done.code == 0, done.err
    made = package.load("c.oqnn")
    for name in ("w", "b"):
        (value,) = (v for v in made.constants() if v.name == name)
        assert value.encoding is not None and len(value.encoding.scale) == scales
        assert (made.provenance[name] == "model") == (scales == 1)
