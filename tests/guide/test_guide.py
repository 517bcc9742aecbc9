"""The tutorial's classes: every block of docs/guide.md runs, and the arithmetic is that of the tutorial."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import openqnn
from openqnn.errors import BackendError, InputError, ModelError, UsageError
from openqnn.guide import (
    BackendSelector,
    DynamicQuantization,
    QNNDebugger,
    QNNInference,
    QNNProfiler,
    validate_quantization_range,
)
from tests.libraries import need
from tests.models.fetch import model_path
from tests.models.samples import sample_inputs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"
BLOCKS = re.findall(r"^```(\w+)( torch)?\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def simple_model() -> onnx.ModelProto:
    """What PyTorch makes of the page's network."""
    rng = np.random.default_rng(0)
    shapes = {
        "w1": (32, 3, 3, 3),
        "b1": (32,),
        "w2": (64, 32, 3, 3),
        "b2": (64,),
        "w3": (10, 64),
        "b3": (10,),
    }
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.1, s).astype(np.float32), n) for n, s in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["input", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"], axis=1),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["output"], transB=1),
    ]
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch_size", *s])
        for n, s in (("input", (3, 32, 32)), ("output", (10,)))
    ]
    graph = helper.make_graph(nodes, "simple_model", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


def test_every_block_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("libQnnHtp.so")
    need("libQnnCpu.so")
    monkeypatch.chdir(tmp_path)
    tools = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    names: dict[str, Any] = {}
    for language, torch, block in BLOCKS:
        if language == "bash":
            done = subprocess.run(
                ["bash", "-e", "-c", block], env=os.environ | tools, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stderr.decode()
        elif torch and not find_spec("torch"):
            onnx.save(simple_model(), "simple_model.onnx")
        else:
            exec(compile(block, str(PAGE), "exec"), names)
    assert len(BLOCKS) >= 9


@pytest.mark.skipif(not find_spec("torch"), reason="PyTorch is not installed")
def test_the_stand_in_for_torch_is_its_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(next(block for _, torch, block in BLOCKS if torch), {})
    theirs = [node.op_type for node in onnx.load("simple_model.onnx").graph.node]
    assert set(theirs) >= {"Conv", "Relu", "Gemm"}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network in fixed point, as a file."""
    file = tmp_path_factory.mktemp("guide") / "digits.oqnn"
    inputs = sample_inputs("mnist_conv")
    choices = {"backend": "cpu", "algorithms": (), "act_bw": 8, "per_row": False}
    openqnn.quantize(model_path("mnist_conv"), [inputs], **choices).save(file)
    return file


def test_inference_quantizes_as_printed(digits: Path) -> None:
    need("libQnnCpu.so")
    (data,) = sample_inputs("mnist_conv").values()
    with QNNInference(digits, backend="cpu") as engine:
        stored = engine.preprocess_input(data)
        printed = np.clip(np.round(data / engine.input_scale + engine.input_offset), 0, 255).astype(np.uint8)
        assert stored.dtype == np.uint8
        assert np.abs(stored.astype(int) - printed).max() <= 1  # halves go to even there, and up here
        raw = np.arange(10, dtype=np.uint8).reshape(1, 10)
        real = (raw.astype(np.float32) - engine.output_offset) * engine.output_scale
        np.testing.assert_allclose(engine.postprocess_output(raw), real, rtol=1e-6)
        assert engine.inference(data).shape == (1, 10)
        assert engine.inference(data).argmax() == 2
        with pytest.raises(UsageError, match="no input 'y'"):
            engine.inference({"y": data})


def test_a_backend_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="no backend 'npu'"):
        QNNInference(model_path("mnist_conv"), backend="npu")
    need("libQnnGpu.so")
    with QNNInference(model_path("mnist_conv"), backend="gpu") as engine, pytest.raises(BackendError):
        engine.inference(sample_inputs("mnist_conv"))


@pytest.mark.parametrize("face", [QNNInference, QNNDebugger])
def test_a_library_that_is_named_is_run_unless_it_must_not(face: Any, tmp_path: Path) -> None:
    """The tutorial names a model library and nothing else: it is loaded then, and this one cannot be."""
    library = tmp_path / "libmodel.so"
    library.write_bytes(b"no library")
    with pytest.raises(UsageError, match="is code"):
        face(library, trust=False)
    with pytest.raises(ModelError, match=r"libmodel\.so"):
        face(library)


def test_statistics_become_encodings_that_the_quantizer_takes() -> None:
    inputs = sample_inputs("mnist_conv")
    quantizer = DynamicQuantization(model_path("mnist_conv"))
    with pytest.raises(UsageError, match="no statistics"):
        quantizer.compute_quantization_params()
    quantizer.collect_statistics([inputs, next(iter(inputs.values()))])
    params = quantizer.compute_quantization_params()
    assert set(params) >= {"Input3", *quantizer.forward_hooks(inputs)}
    for each in params.values():
        assert each["min"] <= 0 <= each["max"]
        assert 0 <= each["offset"] <= 255
    made = quantizer.quantized(params)
    value = made.inputs[0]
    assert value.encoding is not None
    assert value.encoding.scale[0] == pytest.approx(params["Input3"]["scale"])
    with pytest.raises(InputError, match="NaN"):
        quantizer.collect_statistics([{"Input3": np.full((1, 1, 28, 28), np.nan, np.float32)}])


def test_a_tensor_without_extent_gets_a_range() -> None:
    quantizer = DynamicQuantization(model_path("mnist_conv"))
    quantizer.calibration_data = [("x", np.zeros(2))]
    assert quantizer.compute_quantization_params()["x"]["scale"] > 0


def test_the_profiler_counts_what_it_ran() -> None:
    calls: list[int] = []
    found = QNNProfiler().profile_inference(calls.append, 1, num_runs=7)
    assert len(calls) == 8
    assert found["avg_latency_ms"] <= found["p99_latency_ms"] * 1.0001
    assert found["throughput_fps"] == pytest.approx(1000 / found["avg_latency_ms"])
    with pytest.raises(UsageError, match="nothing to measure"):
        QNNProfiler().profile_inference(calls.append, 1, num_runs=0)


@pytest.mark.parametrize(
    ("operations", "size", "constraints", "best"),
    [
        (["Conv2d", "ReLU", "Dense"], 4 << 20, {"power_critical": True, "performance_critical": True}, "htp"),
        (["Conv2d", "Softmax"], 4 << 20, {}, "gpu"),
        (["Loop"], 4 << 20, {}, "cpu"),
        (["Conv2d"], 32 << 20, {}, "gpu"),
    ],
)
def test_backends_get_points(operations: list[str], size: int, constraints: Any, best: str) -> None:
    selector = BackendSelector()
    info = {"operations": operations, "max_tensor_size": size, "precision": "int8"}
    assert selector.select_optimal_backend(info, constraints) == best
    with pytest.raises(UsageError, match="lacks 'operations'"):
        selector.scores({}, {})


def test_libraries_have_the_last_word_on_a_real_model() -> None:
    need("libQnnHtp.so")
    selector = BackendSelector()
    info = selector.describe(model_path("mnist_conv"))
    assert info["precision"] == "fp32"
    assert not info["refused"]["htp"]
    assert info["refused"]["gpu"] == info["operations"]  # there is no such library on a host
    assert selector.select_optimal_backend(info, {"performance_critical": True}) == "htp"


def test_layers_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    need("libQnnCpu.so")
    debugger = QNNDebugger(model_path("mnist_conv"))
    with pytest.raises(UsageError, match="no layer has been timed"):
        debugger.analyze_bottlenecks()
    timings = debugger.profile_layers(sample_inputs("mnist_conv"))
    assert set(timings) <= set(debugger.get_layer_names())
    assert len(timings) > 5
    debugger.analyze_bottlenecks()
    assert capsys.readouterr().out.startswith("Top 5 slowest layers:\n")
    assert any("depthwise separable" in line for line in debugger.suggest_optimizations(slow=-1))
    assert not debugger.suggest_optimizations(slow=1e9)


@pytest.mark.parametrize(("factor", "fits"), [(1, True), (1.5, False)])
def test_ranges_are_validated(factor: float, fits: bool, capsys: pytest.CaptureFixture[str]) -> None:
    data = np.linspace(-1, 1, 1001) * factor
    assert validate_quantization_range(data, 2 / 255, 127.5) is fits
    assert capsys.readouterr().out.startswith("Quantization MSE: ")
    assert validate_quantization_range(data, 2 / 255, 127.5, threshold=1e9)
    with pytest.raises(UsageError, match="above 0"):
        validate_quantization_range(data, 0, 0)
