"""Graphs as QDQ models: ONNX Runtime and its QNN provider compute the same numbers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import openqnn
from openqnn import Graph
from openqnn.errors import UnsupportedError, UsageError
from openqnn.ir.graph_text import parse_graph
from openqnn.ort_qnn import (
    CalibrationDataReader,
    QuantType,
    get_qnn_qdq_config,
    qnn_preprocess_model,
    quantize,
)
from openqnn.runtime.metrics import sqnr
from tests.cli.tool import assert_refused
from tests.cli.tool import openqnn as command
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs
from tests.ort_qnn import provider_runs
from tests.providers import Provider, each_provider

MODELS = ("mnist_conv", "mtcnn_onet")


def fixed(model: str, act_bw: int) -> tuple[Graph, Graph]:
    """A model in floats and in fixed point."""
    graph = openqnn.convert(model_path(model), input_shapes=static_shapes(model))
    samples = varied(model)
    return graph, openqnn.quantize(graph, samples, algorithms=(), act_bw=act_bw)


def varied(model: str, count: int = 8) -> list[dict[str, Any]]:
    """The sample, brighter and darker."""
    inputs = sample_inputs(model)
    factors = np.linspace(0.5, 1, count)
    return [{n: (a * f).astype(a.dtype) for n, a in inputs.items()} for f in factors]


def over_all(wanted: list[Any], found: list[Any]) -> float:
    return sqnr(*(np.concatenate([np.ravel(array) for array in each]) for each in (wanted, found)))


def provided(provider: Provider, model: Path, samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What ONNX Runtime's QNN provider computes on HTP."""
    folder = model.parent
    for number, sample in enumerate(samples):
        np.savez(folder / f"in_{number}.npz", **sample)
    done = subprocess.run(
        [provider.python, provider_runs.__file__, model, folder], capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return [dict(np.load(folder / f"out_{number}.npz")) for number in range(len(samples))]


def cpu_session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(("model", "act_bw"), [("mnist_conv", 8), ("mnist_conv", 16), ("mtcnn_onet", 16)])
def test_onnx_runtime_computes_as_our_simulation(model: str, act_bw: int, tmp_path: Path) -> None:
    graph, made = fixed(model, act_bw)
    made.save(tmp_path / "m.qdq.onnx")
    onnx.checker.check_model(str(tmp_path / "m.qdq.onnx"))
    theirs = cpu_session(tmp_path / "m.qdq.onnx")
    names = [output.name for output in theirs.get_outputs()]
    assert names == [value.name for value in graph.outputs]
    real, ours, found = [], [], []
    with openqnn.Session(graph) as floats, openqnn.Session(made) as simulation:
        for sample in varied(model):
            real += [floats.run(sample)[name] for name in names]
            ours += [simulation.run(sample)[name] for name in names]
            found += theirs.run(names, sample)
    assert over_all(real, found) >= over_all(real, ours) - 1.5


@each_provider()
@pytest.mark.parametrize("model", MODELS)
def test_the_provider_computes_as_our_simulation(model: str, provider: Provider, tmp_path: Path) -> None:
    """To the last bit but one of float32, in which it takes integers times a scale. Inputs are quantized
    outside HTP, as here: there they would go through half precision first."""
    _, made = fixed(model, 8)
    made.save(tmp_path / "m.onnx")
    samples = varied(model, 4)
    theirs = provided(provider, tmp_path / "m.onnx", samples)
    with openqnn.Session(made) as simulation:
        for sample, found in zip(samples, theirs, strict=True):
            for name, wanted in simulation.run(sample).items():
                np.testing.assert_allclose(found[name], wanted, rtol=3e-7, atol=1e-7)


def test_a_model_in_floats_is_written_too(tmp_path: Path) -> None:
    graph = openqnn.convert(model_path("mtcnn_onet"), input_shapes=static_shapes("mtcnn_onet"))
    graph.save(tmp_path / "m.onnx")
    sample = sample_inputs("mtcnn_onet")
    with openqnn.Session(graph) as session:
        wanted = session.run(sample)
    for found, each in zip(cpu_session(tmp_path / "m.onnx").run(None, sample), wanted.values(), strict=True):
        np.testing.assert_allclose(found, each, atol=1e-5)


def test_hard_swish_is_one_node(tmp_path: Path) -> None:
    """The provider computes a node between pairs in fixed point, and what a group has inside in floats."""
    known = "ufixed8[1,4,4,8] <scale=[0.03] offset=[-128] bits=8 symmetric=false>"
    made = parse_graph(f'graph "g" {{\n  input %x: {known}\n  %y: {known} = HardSwish(%x)\n  output %y\n}}')
    made.save(tmp_path / "m.onnx")
    kinds = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert [kind for kind in kinds if kind not in ("QuantizeLinear", "DequantizeLinear", "Identity")] == [
        "HardSwish"
    ]
    x = {"x": np.linspace(-3.8, 3.8, 128, dtype=np.float32).reshape(1, 4, 4, 8)}
    with openqnn.Session(made) as simulation:
        wanted = simulation.run(x)["y"]
    np.testing.assert_allclose(cpu_session(tmp_path / "m.onnx").run(None, x)[0], wanted, atol=0.031)


def test_it_is_read_back_with_its_encodings(tmp_path: Path) -> None:
    graph, made = fixed("mnist_conv", 8)
    made.save(tmp_path / "m.onnx")
    again = openqnn.quantize(tmp_path / "m.onnx", float_fallback=True, algorithms=())
    sample = sample_inputs("mnist_conv")
    with openqnn.Session(made) as first, openqnn.Session(again) as second:
        for wanted, found in zip(first.run(sample).values(), second.run(sample).values(), strict=True):
            assert over_all([wanted], [found]) > 35
    assert [v.name for v in again.inputs] == [v.name for v in graph.inputs]
    first_scales = [graph.inputs[0].encoding.scale for graph in (made, again) if graph.inputs[0].encoding]
    np.testing.assert_allclose(*first_scales, rtol=1e-6)  # float32 in the file


def test_the_command_writes_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", **sample_inputs("mnist_conv"))
    target = tmp_path / "model.qdq.onnx"
    flags = ("--data", tmp_path / "data.npz", "-o", target, "--quiet", "--algorithms", "bias_correction")
    assert command("quantize", model_path("mnist_conv"), *flags).code == 0
    kinds = {node.op_type for node in onnx.load(target).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear", "Conv"} <= kinds
    assert_refused(
        command("quantize", model_path("mnist_conv"), *flags), "exists and is not an OpenQNN graph"
    )


def test_what_onnx_cannot_say_is_named(tmp_path: Path) -> None:
    graph = parse_graph(
        'graph "g" {\n  input %x: float32[1,4]\n  %y: float32[1,4] = Buffer(%x)\n  output %y\n}'
    )
    with pytest.raises(UnsupportedError, match="ONNX has no such operation"):
        graph.save(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


class Reader(CalibrationDataReader):
    """Samples one by one, as ONNX Runtime's own quantizer takes them."""

    def __init__(self, model: str) -> None:
        self._samples = iter(varied(model))

    def get_next(self) -> Any:
        return next(self._samples, None)


@pytest.mark.parametrize(("act", "weight"), [(QuantType.QUInt16, QuantType.QUInt8), ("QUInt8", "QInt8")])
def test_the_steps_of_the_providers_page(act: Any, weight: Any, tmp_path: Path) -> None:
    source, prepared = tmp_path / "model.onnx", tmp_path / "model.preproc.onnx"
    source.write_bytes(model_path("mnist_conv").read_bytes())
    changed = qnn_preprocess_model(source, prepared)
    config = get_qnn_qdq_config(
        prepared if changed else source, Reader("mnist_conv"), activation_type=act, weight_type=weight
    )
    quantize(prepared if changed else source, tmp_path / "model.qdq.onnx", config)
    session = cpu_session(tmp_path / "model.qdq.onnx")
    assert np.argmax(session.run(None, sample_inputs("mnist_conv"))[0]) == 2
    kinds = {i.data_type for i in onnx.load(tmp_path / "model.qdq.onnx").graph.initializer}
    assert (onnx.TensorProto.UINT16 in kinds) == (act is QuantType.QUInt16)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("unsigned activations", {"activation_type": QuantType.QInt8}),
        ("weight_type is Float", {"weight_type": "Float"}),
        ("no calibration 'Guess'", {"calibrate_method": "Guess"}),
        ("no 'stride' here", {"stride": 3}),
    ],
)
def test_configurations_that_make_no_sense(words: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=words):
        get_qnn_qdq_config(model_path("mnist_conv"), None, **arguments)
