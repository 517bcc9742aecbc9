"""Models that hold encodings, in fixed point by these alone: the numbers are those that the model means."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize,
    quantize_static,
)
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config
from onnxruntime.quantization.shape_inference import quant_pre_process

import openqnn
from openqnn.ir import Encoding, Given, Graph
from openqnn.ir.verify import verify
from openqnn.ops import infer_outputs
from openqnn.quant.apply_recipe import Calibrated, apply_recipe, float_where_unknown
from openqnn.quant.recipe import Recipe
from openqnn.runtime.metrics import sqnr
from tests.frontends.onnx.against_ort import model_of, node, rand, typed
from tests.models.fetch import model_path, static_shapes
from tests.models.reference import static_model
from tests.models.samples import log_mel, sample_inputs, speech
from tests.passes.harness import graph_of
from tests.qnn.nets import needs_htp
from tests.quant.literal import literal

Arrays = dict[str, Any]


def fixed(graph: Graph) -> Graph:
    """In fixed point where the model says how, in floating point elsewhere."""
    recipe, given = float_where_unknown(graph, Recipe(), graph.given)
    made = apply_recipe(Calibrated(graph, {}), recipe, given).graph
    verify(made, infer_outputs)
    return made


def meant(model: bytes, inputs: Arrays) -> Arrays:
    """The model word by word: ONNX Runtime's integer kernels saturate on processors without VNNI."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


# -- models that came so -------------------------------------------------------------------------------------


@cache
def hot_word() -> tuple[Graph, Graph]:
    graph = openqnn.convert(model_path("effword_qdq"), input_shapes=static_shapes("effword_qdq"))
    return graph, fixed(graph)


def test_the_hot_word_network_computes_what_its_nodes_mean() -> None:
    inputs = sample_inputs("effword_fp32")
    (wanted,) = meant(static_model("effword_qdq"), inputs).values()
    with openqnn.Session(literal(hot_word()[1])) as session:
        (found,) = session.run(inputs).values()
    assert sqnr(wanted, found) > 80


def test_its_weights_are_the_same_integers() -> None:
    stored = {
        i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(model_path("effword_qdq")).graph.initializer
    }
    weights = [v for v in hot_word()[1].constants() if v.dtype.is_fixed]
    assert len(weights) == 107
    for weight in weights:
        assert weight.data is not None
        shift = 128 if not weight.dtype.signed else 0
        ours = np.sort(weight.data.astype(np.int64), axis=None) - shift
        assert np.array_equal(ours, np.sort(stored[weight.name].astype(np.int64), axis=None)), weight.name


def test_only_its_ends_stay_in_floats() -> None:
    graph = hot_word()[1]
    layers = [n for n in graph.nodes if n.op == "Conv2d"]
    assert len(layers) == 53 and all(n.out.dtype.is_fixed for n in layers)


@needs_htp
def test_it_runs_on_htp() -> None:
    inputs = sample_inputs("effword_fp32")
    (wanted,) = meant(static_model("effword_qdq"), inputs).values()
    with openqnn.Session(hot_word()[1], "htp", timeout=600) as session:
        (found,) = session.run(inputs).values()
    assert sqnr(wanted, found) > 20


def whisper_features() -> Arrays:
    decades = log_mel(speech(), 800, 80, 400, 160).T / np.log(10)
    return {"input_features": ((np.maximum(decades, decades.max() - 8) + 4) / 4)[None].astype(np.float32)}


def test_a_transformer_keeps_its_kept_nodes_and_its_encodings() -> None:
    path, shapes = model_path("smart_turn_qdq"), static_shapes("smart_turn_qdq")
    graph = openqnn.convert(path, input_shapes=shapes)
    made = fixed(graph)
    assert sum(n.op == "MatMul" and n.out.dtype.is_fixed for n in made.nodes) >= 20
    with openqnn.Session(made) as session:
        (found,) = session.run(whisper_features()).values()
    (wanted,) = meant(static_model("smart_turn_qdq"), whisper_features()).values()
    # One number out of 400 frames: ONNX Runtime itself differs by 0.13 with its optimisations.
    np.testing.assert_allclose(found, wanted, atol=0.25)


# -- models that ONNX Runtime's quantizer makes --------------------------------------------------------------


class Samples(CalibrationDataReader):
    def __init__(self, model: str) -> None:
        rng = np.random.default_rng(0)
        noisy = lambda v: (v * 0.95 + 0.02 * rng.standard_normal(v.shape)).astype(v.dtype)
        first = sample_inputs(model)
        self.waiting = [first, {k: noisy(v) for k, v in first.items()}]

    def get_next(self) -> Arrays | None:  # type: ignore[override]
        return self.waiting.pop() if self.waiting else None


def prepared(model: str, folder: Path) -> Path:
    """The source model as ONNX Runtime's quantizer wants it: a new opset, weights that are no inputs."""
    proto = onnx.load_from_string(static_model(model))
    if proto.opset_import[0].version < 13:
        proto = onnx.version_converter.convert_version(proto, 13)
    proto.ir_version = max(proto.ir_version, 8)
    weights = {i.name for i in proto.graph.initializer}
    inputs = [i for i in proto.graph.input if i.name not in weights]
    del proto.graph.input[:]
    proto.graph.input.extend(inputs)
    onnx.save(proto, folder / "float.onnx")
    quant_pre_process(folder / "float.onnx", folder / "ready.onnx", skip_symbolic_shape=True)
    return folder / "ready.onnx"


RECIPES = [
    ("mnist_conv", QuantType.QUInt8, QuantType.QUInt8, False),
    ("mnist_conv", QuantType.QUInt16, QuantType.QUInt8, False),
    ("mtcnn_onet", QuantType.QUInt8, QuantType.QInt8, True),
    ("mtcnn_onet", QuantType.QUInt16, QuantType.QInt8, True),
    ("ppocr_cls", QuantType.QUInt8, QuantType.QInt8, True),
    ("ppocr_cls", QuantType.QUInt16, QuantType.QUInt8, False),
]


def check(path: Path, model: str, share: float = 0.99, steps: float = 1.0) -> Graph:
    graph = openqnn.convert(path)
    made = fixed(graph)
    inputs = sample_inputs(model)
    wanted = meant(path.read_bytes(), inputs)
    with openqnn.Session(literal(made)) as session:
        found = session.run(inputs)
    for value in made.outputs:
        assert value.encoding is not None, value.name
        apart = np.abs(found[value.name] - wanted[value.name]) / value.encoding.scale[0]
        assert np.mean(apart <= steps + 0.01) >= share, f"{value.name}: {apart.max():.1f} steps"
    return made


@pytest.mark.parametrize(("model", "act", "weight", "per_channel"), RECIPES)
def test_the_recipe_for_qnn(
    model: str, act: QuantType, weight: QuantType, per_channel: bool, tmp_path: Path
) -> None:
    ready, path = prepared(model, tmp_path), tmp_path / "quantized.onnx"
    config = get_qnn_qdq_config(
        ready, Samples(model), activation_type=act, weight_type=weight, per_channel=per_channel
    )
    quantize(ready, path, config)
    # In 16 bits the order of a float32 sum shows: it may move a value by a few of 65536 steps.
    made = check(path, model, steps=1.0 if act is QuantType.QUInt8 else 8.0)
    assert all(n.out.dtype.is_fixed for n in made.nodes)


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_signed_activations_and_ops_on_integers(form: QuantFormat, tmp_path: Path) -> None:
    ready, path = prepared("mtcnn_onet", tmp_path), tmp_path / "quantized.onnx"
    signed = QuantType.QInt8
    quantize_static(
        ready, path, Samples("mtcnn_onet"), form, activation_type=signed, weight_type=signed, per_channel=True
    )
    made = check(path, "mtcnn_onet")
    slopes = [n for n in made.nodes if n.op == "Prelu"]
    assert slopes and not any(n.out.dtype.is_fixed for n in slopes), "their slopes have no encoding"


# -- borders and widths --------------------------------------------------------------------------------------


def integer_model(kind: str) -> onnx.ModelProto:
    rng, low = np.random.default_rng(0), np.iinfo(kind).min
    constants = {
        "s": np.float32(0.02), "z": np.asarray(low + 100, kind), "ys": np.float32(0.05),
        "yz": np.asarray(low, kind),
        "w": rng.integers(-127, 127, (8, 3, 3, 3)).astype(np.int8), "ws": np.float32(0.01), "wz": np.int8(0),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", "x s z", "d"), node("DequantizeLinear", "w ws wz", "f"),
        node("Conv", "d f", "c"), node("QuantizeLinear", "c ys yz"),
    ]  # fmt: skip
    return typed(model_of(nodes, {"x": np.zeros((1, 3, 8, 8), kind)}, constants, 21))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("backend", ["cpu", pytest.param("htp", marks=needs_htp)])
def test_a_model_that_takes_and_gives_integers(kind: str, backend: str) -> None:
    model, info = integer_model(kind), np.iinfo(kind)
    made = fixed(openqnn.convert(model))
    assert not {"Quantize", "Dequantize", "Cast"} & {n.op for n in made.nodes}
    inputs = {"x": np.random.default_rng(1).integers(info.min, info.max, (1, 3, 8, 8)).astype(kind)}
    with openqnn.Session(made, backend) as session:
        found = session.run(inputs)["y"]
    assert found.dtype == kind
    wanted = meant(model.SerializeToString(), inputs)["y"]
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1


def test_a_tensor_is_converted_for_those_that_read_it_in_another_width() -> None:
    wide, narrow = Encoding.per_tensor(1e-4, -30000, 16), Encoding.per_tensor(0.03, -100, 8)
    graph = graph_of("""
        input %x: float32[2,3]
        %a: float32[2,3] = Tanh(%x)
        %b: float32[2,3] = ElementWiseNeg(%a)
        output %b
    """)
    graph.given = {
        "x": Given("model", 16, encoding=wide), "a": Given("model", 16, encoding=wide, also=(narrow,)),
        "b": Given("model", 8, encoding=narrow),
    }  # fmt: skip
    made = fixed(graph)
    (convert,) = (n for n in made.nodes if n.op == "Convert")
    assert (convert.x(0).encoding, convert.out.encoding) == (wide, narrow)
    assert not made.given, "what was given is now what the tensors have"


@needs_htp
def test_what_htp_refuses_stays_in_floats_and_what_reads_it_keeps_its_encoding() -> None:
    """HTP multiplies no 16-bit matrices where the second has its zero elsewhere than in the middle."""
    graph = graph_of("""
        input %a: float32[1,2,4,8]
        input %b: float32[1,2,8,4]
        %product: float32[1,2,4,4] = MatMul(%a, %b) transpose_in0=false transpose_in1=false
        %turned: float32[1,4,2,4] = Transpose(%product) perm=[0, 2, 1, 3]
        %y: float32[1,4,2,4] = Relu(%turned)
        output %y
    """)
    off = Given("model", 16, encoding=Encoding.per_tensor(1e-4, -30000, 16))
    for name in ("a", "b", "product", "y"):
        graph.given[name] = off
    with pytest.warns(openqnn.OpenQnnWarning, match="product|MatMul"):
        made = openqnn.quantize(graph, float_fallback=True, algorithms=())
    kinds = {n.op: n.out.encoding for n in made.nodes}
    assert kinds["MatMul"] is None
    assert kinds["Relu"] == off.encoding


def test_the_encodings_last_through_a_file(tmp_path: Path) -> None:
    graph = hot_word()[0]
    graph.save(tmp_path / "m.oqnn")
    assert openqnn.load(tmp_path / "m.oqnn").given == graph.given


def test_weights_that_a_pass_changes_are_quantized_anew() -> None:
    constants = {
        "s": np.float32(0.05), "z": np.uint8(128), "w": rand(8, 4, 3, 3), "ws": np.float32(0.02),
        "wz": np.int8(0), "k": np.full((8, 1, 1), 1.5, np.float32),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
        node("QuantizeLinear", "w ws wz", "wq"), node("DequantizeLinear", "wq ws wz", "wd"),
        node("Conv", "d wd", "c"), node("Mul", "c k", "m"),
        node("QuantizeLinear", "m s z", "mq"), node("DequantizeLinear", "mq s z"),
    ]  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = openqnn.convert(typed(model_of(nodes, {"x": rand(1, 4, 6, 6)}, constants, 21)))
    assert "lose the model's encodings" in str(caught[0].message)
    (layer,) = (n for n in fixed(graph).nodes if n.op == "Conv2d")
    assert layer.x(1).dtype.is_fixed and layer.x(1).encoding is not None and layer.out.dtype.is_fixed


def test_filters_that_torch_trains_with_the_factor_of_their_batch_norm_keep_their_integers() -> None:
    rng = np.random.default_rng(3)
    gamma, var = rng.uniform(0.5, 2, 8).astype("f4"), rng.uniform(0.1, 3, 8).astype("f4")
    constants = {
        "s": np.float32(0.05), "z": np.uint8(128), "w": rand(8, 4, 3, 3),
        "ws": rng.uniform(0.01, 0.02, 8).astype("f4"), "wz": np.zeros(8, np.int8), "gamma": gamma,
        "beta": rand(8), "mean": rand(8), "var": var,
        "factor": (gamma / np.sqrt(var + np.float32(1e-5))).reshape(1, 8, 1, 1),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
        node("QuantizeLinear", "w ws wz", "wq", axis=0), node("DequantizeLinear", "wq ws wz", "wd", axis=0),
        node("Conv", "d wd", "c"), node("Div", "c factor", "t"),
        node("BatchNormalization", "t gamma beta mean var", "n", epsilon=1e-5),
        node("QuantizeLinear", "n s z", "nq"), node("DequantizeLinear", "nq s z"),
    ]  # fmt: skip
    with warnings.catch_warnings(action="error"):
        graph = openqnn.convert(typed(model_of(nodes, {"x": rand(1, 4, 6, 6)}, constants, 21)))
    (layer,) = (n for n in fixed(graph).nodes if n.op == "Conv2d")
    scales = constants["ws"].reshape(8, 1, 1, 1)
    wanted = np.clip(np.rint(constants["w"] / scales), -128, 127).transpose(2, 3, 1, 0)
    np.testing.assert_array_equal(layer.x(1).data, wanted)


@needs_htp
def test_norms_have_scales_of_unsigned_storage_and_no_channels() -> None:
    """ONNX Runtime's are signed, and a beta of zeros is another constant than a bias by channel of zeros."""
    x = rand(1, 16, 8)
    constants = {
        "s": np.float32(0.05), "z": np.uint8(128), "n": np.rint(rand(8) * 30 + 90).astype(np.int8),
        "ns": np.float32(0.01), "nz": np.int8(0), "beta": np.zeros(8, "f4"), "b": np.zeros(8, np.int32),
        "w": np.rint(rand(8, 8) * 100).astype(np.int8), "ws": np.full(8, 0.01, "f4"), "wz": np.zeros(8, "i1"),
        "bs": np.full(8, 0.0005, "f4"), "bz": np.zeros(8, "i4"),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "xq"), node("DequantizeLinear", "xq s z", "xd"),
        node("DequantizeLinear", "n ns nz", "gamma"),
        node("LayerNormalization", "xd gamma beta", "l", axis=-1),
        node("QuantizeLinear", "l s z", "lq"), node("DequantizeLinear", "lq s z", "ld"),
        node("DequantizeLinear", "w ws wz", "wd", axis=1), node("MatMul", "ld wd", "m"),
        node("DequantizeLinear", "b bs bz", "bd", axis=0), node("Add", "m bd", "a"),
        node("QuantizeLinear", "a s z", "aq"), node("DequantizeLinear", "aq s z"),
    ]  # fmt: skip
    model = typed(model_of(nodes, {"x": x}, constants, 21))
    with warnings.catch_warnings(action="error"):
        made = openqnn.quantize(openqnn.convert(model), float_fallback=True)
    assert all(n.out.dtype.is_fixed for n in made.nodes)
    with openqnn.Session(made, "htp") as session:
        found = session.run({"x": x})["y"]
    assert np.abs(found - meant(model.SerializeToString(), {"x": x})["y"]).max() <= 2 * 0.0501


@needs_htp
def test_a_symmetric_softmax_starts_at_zero_on_htp() -> None:
    graph = graph_of("""
        input %x: float32[1,16,16]
        %p: float32[1,16,16] = Softmax(%x) axis=2 beta=1.0
        %r: float32[16,16] = Reshape(%p)
        output %r
    """)
    graph.given = {
        "x": Given("model", 8, encoding=Encoding.per_tensor(0.05, -128)),
        "p": Given("model", 8, encoding=Encoding.per_tensor(1 / 127, -128)),
    }
    with pytest.warns(openqnn.OpenQnnWarning, match="'p' starts there"):
        made = openqnn.quantize(graph, float_fallback=True)
    x = np.random.default_rng(0).normal(size=(1, 16, 16)).astype(np.float32) * 2
    with openqnn.Session(graph) as session, openqnn.Session(made, "htp") as htp:
        assert np.abs(session.run({"x": x})["r"] - htp.run({"x": x})["r"]).max() < 2 / 127


@needs_htp
def test_the_encodings_last_through_a_dlc(tmp_path: Path) -> None:
    graph = hot_word()[0]
    graph.save(tmp_path / "m.dlc")
    loaded = openqnn.load(tmp_path / "m.dlc")
    assert len(loaded.given) == len(graph.given) == 232
    assert {v.name for v in loaded.values()} >= set(loaded.given)
    inputs = sample_inputs("effword_fp32")
    with openqnn.Session(fixed(loaded)) as session, openqnn.Session(hot_word()[1]) as direct:
        (found,), (wanted,) = session.run(inputs).values(), direct.run(inputs).values()
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@needs_htp
def test_a_constant_of_8_bits_is_stored_in_the_width_of_its_node() -> None:
    """A looked-up embedding that is folded: the sum with 16-bit data stays in fixed point, without a word."""
    nodes = [node("DequantizeLinear", "t s z", "table"), node("Mul", "x f", "h"), node("Add", "h table")]
    table = np.random.default_rng(0).integers(0, 256, (4, 6)).astype(np.uint8)
    constants = {"t": table, "s": np.float32(0.02), "z": np.uint8(128), "f": np.float32(0.7)}
    graph = openqnn.convert(typed(model_of(nodes, {"x": rand(4, 6)}, constants, 17)))
    made = openqnn.quantize(graph, [{"x": rand(4, 6)}], act_bw=16, algorithms=())
    assert all(n.out.dtype.is_fixed for n in made.nodes)
