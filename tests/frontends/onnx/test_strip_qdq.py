"""Encodings in a model's nodes: what remains is the model in floating point, and a table by tensor name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import NodeProto

import openqnn
from openqnn.errors import ModelError, UnsupportedError
from openqnn.ir import DType, Encoding, Given, Graph
from openqnn.passes import Explain
from tests.frontends.onnx.against_ort import model_of, node, ops, rand, typed

STEP = {"s": np.float32(0.05), "z": np.uint8(128)}
X = {"x": rand(1, 4, 6, 6)}


def taken(nodes: list[NodeProto], constants: dict[str, Any], inputs: dict[str, Any] = X) -> Graph:
    return openqnn.convert(typed(model_of(nodes, inputs, constants, 21)))


def pair(source: str, target: str, step: str = "s z") -> list[NodeProto]:
    stored = f"{source}_stored"
    return [
        node("QuantizeLinear", f"{source} {step}", stored),
        node("DequantizeLinear", f"{stored} {step}", target),
    ]


def given(graph: Graph, name: str) -> Encoding:
    found = graph.given[name].encoding
    assert found is not None
    return found


def reference(model: onnx.ModelProto, inputs: dict[str, Any]) -> np.ndarray:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, inputs)[0])


def test_a_pair_is_the_encoding_of_the_tensor_before_it() -> None:
    graph = taken([*pair("x", "d"), node("Tanh", "d", "t"), *pair("t", "u"), node("Neg", "u")], STEP)
    assert ops(graph) == {"Tanh": 1, "ElementWiseNeg": 1}
    assert set(graph.given) == {"x", "t"}
    scale = float(np.float32(0.05))
    assert graph.given["t"] == Given("model", 8, encoding=Encoding.per_tensor(scale, -128))


@pytest.mark.parametrize(("kind", "offset"), [("int8", -138), ("int16", -(1 << 15) - 10), ("uint16", -10)])
def test_activations_are_given_in_unsigned_storage(kind: str, offset: int) -> None:
    step = {"s": np.float32(0.05), "z": np.asarray(10, kind)}
    graph = taken([*pair("x", "d"), node("Tanh", "d")], step)
    assert given(graph, "x").offset == (offset,)
    assert not graph.given["x"].signed


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int4", "uint4"])
@pytest.mark.parametrize("axis", [None, 0])
def test_weights_give_the_same_integers_again(kind: str, axis: int | None) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind) if kind.endswith("4") else kind)
    bits, signed = int(kind.strip("uint")), kind.startswith("i")
    low = -(1 << (bits - 1)) if signed else 0
    stored = np.random.default_rng(0).integers(low, low + (1 << bits), (8, 4, 3, 3))
    scale = np.linspace(0.003, 0.05, 8, dtype=np.float32) if axis == 0 else np.float32(0.003)
    zero = np.full(np.shape(scale), 3).astype(dtype)
    constants = {"w": stored.astype(dtype), "ws": scale, "wz": zero}
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    graph = taken([node("DequantizeLinear", "w ws wz", "d", **attributes), node("Conv", "x d")], constants)
    weight = next(v for v in graph.constants() if v.name == "w")
    found = given(graph, "w")
    assert weight.data is not None and weight.shape == (3, 3, 4, 8)
    assert found.axis == (None if axis is None else 3), "the axis went with the filters"
    assert np.array_equal(found.quantize(weight.data, signed), stored.transpose(2, 3, 1, 0))


def test_real_weights_that_a_pair_rounds_are_rounded() -> None:
    w = rand(8, 4, 3, 3) * 0.1
    step = {"w": w, "ws": np.float32(0.01), "wz": np.int8(0)}
    nodes = [*pair("w", "d", "ws wz"), node("Conv", "x d")]
    graph = taken(nodes, step)
    weight = next(v for v in graph.constants() if v.name == "w")
    assert weight.data is not None
    rounded = np.clip(np.rint(w / np.float32(0.01)), -128, 127) * np.float32(0.01)
    np.testing.assert_array_equal(weight.data, rounded.transpose(2, 3, 1, 0))
    assert graph.given["w"].signed


def test_weights_in_blocks_stay_real() -> None:
    stored = np.random.default_rng(0).integers(-8, 8, (8, 6)).astype(ml_dtypes.int4)
    scale = np.linspace(0.1, 0.9, 24, dtype=np.float32).reshape(4, 6)
    nodes = [node("DequantizeLinear", "w s", "d", axis=0, block_size=2), node("MatMul", "x d")]
    model = model_of(nodes, {"x": rand(3, 8)}, {"w": stored, "s": scale}, 21)
    log = Explain()
    graph = openqnn.convert(typed(model), explain=log)
    assert not graph.given and "per block" in str(log)
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(
            session.run({"x": rand(3, 8)})["y"], reference(model, {"x": rand(3, 8)}), atol=1e-5
        )


def test_a_relu_that_the_range_stood_for_comes_back() -> None:
    positive = {"s": np.float32(0.02), "z": np.uint8(0), "c": rand(8, 4, 1, 1)}
    graph = taken([node("Conv", "x c", "t"), *pair("t", "y")], positive)
    assert ops(graph)["Relu"] == 1
    assert graph.outputs[0].name == "y" and given(graph, "y").offset == (0,)
    again = taken([node("Conv", "x c", "c2"), node("Relu", "c2", "t"), *pair("t", "y")], positive)
    assert ops(again)["Relu"] == 1, "it was there"
    six = {**positive, "s": np.float32(6 / 255)}
    assert ops(taken([node("Conv", "x c", "t"), *pair("t", "y")], six))["Relu6"] == 1


MOVES = {
    "transposed": [node("Transpose", "q", "m", perm=[0, 2, 3, 1])],
    "pooled": [node("MaxPool", "q", "m", kernel_shape=[2, 2])],
    "twice": [node("Flatten", "q", "f"), node("Identity", "f", "m")],
    "joined": [node("Concat", "q q", "m", axis=1)],
}


@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
def test_integers_that_are_moved_become_real(moves: list[NodeProto]) -> None:
    nodes = [node("QuantizeLinear", "x s z", "q"), *moves, node("DequantizeLinear", "m s z", "d")]
    graph = taken([*nodes, node("Tanh", "d")], STEP)
    assert not {"Quantize", "Dequantize", "Cast"} & set(ops(graph))
    with openqnn.Session(graph) as session:
        found = session.run(X)["y"]
    exact = reference(model_of([*nodes, node("Tanh", "d")], X, STEP, 21), X)
    np.testing.assert_allclose(found, exact, atol=0.03)


def test_a_table_of_integers_is_looked_up_in_real_numbers() -> None:
    table = np.random.default_rng(0).integers(0, 255, (50, 8)).astype(np.uint8)
    inputs = {"x": np.array([[3, 7, 7]], np.int64)}
    nodes = [node("Gather", "t x", "g"), node("DequantizeLinear", "g s z", "d"), node("Tanh", "d")]
    graph = taken(nodes, {**STEP, "t": table}, inputs)
    assert set(graph.given) == {"t", "g"}
    with openqnn.Session(graph) as session:
        wanted = reference(model_of(nodes, inputs, {**STEP, "t": table}, 21), inputs)
        np.testing.assert_allclose(session.run(inputs)["y"], wanted, atol=1e-6)


def test_a_tensor_in_two_widths_keeps_both() -> None:
    wide = {"s16": np.float32(0.0002), "z16": np.uint16(40000)}
    nodes = [*pair("x", "a", "s16 z16"), *pair("a", "b"), node("Tanh", "b")]
    graph = taken(nodes, {**STEP, **wide})
    assert ops(graph) == {"Tanh": 1}
    said = graph.given["x"]
    assert said.bitwidth == 16 and [e.bitwidth for e in said.also] == [8]


def test_borders_of_integers_stay() -> None:
    nodes = [node("DequantizeLinear", "x s z", "d"), node("Tanh", "d", "t"), node("QuantizeLinear", "t s z")]
    inputs = {"x": np.random.default_rng(0).integers(0, 255, (2, 5)).astype(np.uint8)}
    graph = taken(nodes, STEP, inputs)
    assert ops(graph)["Quantize"] == ops(graph)["Dequantize"] == 1
    assert {"d", "t"} <= set(graph.given)
    with openqnn.Session(graph) as session:
        wanted = reference(model_of(nodes, inputs, STEP, 21), inputs)
        np.testing.assert_array_equal(session.run(inputs)["y"], wanted)


def test_nodes_that_are_asked_for_stay() -> None:
    model = typed(model_of([*pair("x", "d"), node("Tanh", "d")], X, STEP, 21))
    graph = openqnn.convert(model, keep_quant_nodes=True)
    assert ops(graph) == {"Quantize": 1, "Dequantize": 1, "Tanh": 1} and not graph.given
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run(X)["y"], reference(model, X), atol=1e-6)


def test_a_plain_model_is_left_alone() -> None:
    assert not taken([node("Tanh", "x")], {}).given
    report = openqnn.check(typed(model_of([*pair("x", "d"), node("Tanh", "d")], X, STEP, 21)))
    assert report.ok and report.supported == Counter(QuantizeLinear=1, DequantizeLinear=1, Tanh=1)


# Small weights: ONNX Runtime's integer kernels saturate sums of two products on processors without VNNI.
INTEGERS = {
    "xs": np.float32(0.03), "xz": np.uint8(120), "ws": np.linspace(0.01, 0.03, 8, dtype=np.float32),
    "w": np.random.default_rng(1).integers(-60, 60, (8, 4, 3, 3)).astype(np.int8), "wz": np.zeros(8, np.int8),
    "b": np.random.default_rng(2).integers(-9999, 9999, 8).astype(np.int32),
    "ys": np.float32(0.1), "yz": np.uint8(110), "as": np.float32(0.2), "az": np.uint8(100),
}  # fmt: skip


def test_ops_on_integers_are_spelled_out() -> None:
    ms = "com.microsoft"
    nodes = [
        node("QuantizeLinear", "x xs xz", "q"),
        node("QLinearConv", "q xs xz w ws wz ys yz b", "c"),
        node("QLinearAdd", "c ys yz c ys yz as az", "a", domain=ms),
        node("QLinearSigmoid", "a as az ps pz", "p", domain=ms),
        node("DequantizeLinear", "p ps pz"),
    ]
    constants = {**INTEGERS, "ps": np.float32(1 / 256), "pz": np.uint8(0)}
    graph = taken(nodes, constants)
    assert ops(graph) == {"Conv2d": 1, "ElementWiseAdd": 1, "Sigmoid": 1, "Transpose": 2}
    scales = [given(graph, name).scale[0] for name in ("x", "c.real", "a.real", "y")]
    assert scales == [float(np.float32(s)) for s in (0.03, 0.1, 0.2, 1 / 256)]
    bias = next(v for v in graph.constants() if v.name == "b")
    assert bias.data is not None
    np.testing.assert_array_equal(given(graph, "b").quantize(bias.data, True), INTEGERS["b"])
    with openqnn.Session(graph) as session:
        found = session.run(X)["y"]
    np.testing.assert_allclose(found, reference(model_of(nodes, X, constants, 21), X), atol=0.12)


def test_other_forms_of_ops_on_integers() -> None:
    ms, rows = "com.microsoft", {"x": rand(5, 4)}
    matrix = np.random.default_rng(3).integers(-60, 60, (6, 4)).astype(np.int8)
    constants = {**INTEGERS, "m": matrix, "ms": np.full(6, 0.02, np.float32), "mz": np.zeros(6, np.int8)}
    constants |= {"c": np.arange(6, dtype=np.int32) * 100}
    nodes = [
        node("QuantizeLinear", "x xs xz", "q"),
        node("QGemm", "q xs xz m ms mz c ys yz", "g", domain=ms, transB=1),
        node("QLinearConcat", "as az g ys yz q xs xz", "j", domain=ms, axis=1),
        node("DequantizeLinear", "j as az"),
    ]
    graph = taken(nodes, constants, rows)
    assert ops(graph) == {"FullyConnected": 1, "Concat": 1}
    assert given(graph, "m").axis == 0, "along the results"
    with openqnn.Session(graph) as session:
        found = session.run(rows)["y"]
    np.testing.assert_allclose(found, reference(model_of(nodes, rows, constants, 21), rows), atol=0.25)


def test_rounding_in_training_is_a_pair() -> None:
    fake = node("FakeQuant", "x s z e", domain="com.microsoft", quant_min=-128, quant_max=127)
    model = model_of([fake], X, {"s": np.float32(0.05), "z": np.float32(7), "e": np.asarray(True)}, 21)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    graph = openqnn.convert(model)
    assert given(graph, "x").offset == (-135,)


def test_fewer_steps_than_the_bits_have() -> None:
    """As torch exports ranges of 7 bits, and others weights of 4 bits in bytes."""
    w = rand(8, 4, 3, 3) * 0.5
    constants = {
        **STEP, "w": w, "ws": np.float32(0.1), "wz": np.int8(0), "low": np.uint8(0), "high": np.uint8(127),
        "first": np.int8(-8), "last": np.int8(7),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("Clip", "q low high", "k"),
        node("DequantizeLinear", "k s z", "d"), node("QuantizeLinear", "w ws wz", "wq"),
        node("Clip", "wq first last", "wk"), node("DequantizeLinear", "wk ws wz", "wd"), node("Conv", "d wd"),
    ]  # fmt: skip
    log = Explain()
    graph = openqnn.convert(typed(model_of(nodes, X, constants, 21)), explain=log)
    assert set(ops(graph)) <= {"Conv2d", "Transpose"}
    assert given(graph, "x").offset == (-128,) and "less than all steps" in str(log)
    weight = next(v for v in graph.constants() if v.name == "w")
    assert weight.data is not None
    stored = given(graph, "w").quantize(weight.data, signed=True)
    np.testing.assert_array_equal(stored, np.clip(np.rint(w / np.float32(0.1)), -8, 7).transpose(2, 3, 1, 0))


def test_gelu_is_found_between_the_nodes() -> None:
    """One more than an error function is never negative: its encoding starts at zero without a Relu."""
    constants = {
        **STEP, "root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5),
        "o": np.float32(2 / 255), "first": np.uint8(0),
    }  # fmt: skip
    nodes = [
        *pair("x", "a"), node("Div", "a root", "b"), *pair("b", "c"), node("Erf", "c", "d"), *pair("d", "e"),
        node("Add", "e one", "f"), *pair("f", "g", "o first"), node("Mul", "a g", "h"), *pair("h", "i"),
        node("Mul", "i half", "j"), *pair("j", "y"),
    ]  # fmt: skip
    assert ops(taken(nodes, constants)) == {"Gelu": 1}


def test_casts_that_torch_writes_between_the_nodes() -> None:
    """Its converted models cast integers to the type that they have, and fill zero points of biases."""
    constants = {
        **STEP, "w": np.arange(-16, 16, dtype=np.int8).reshape(8, 4, 1, 1), "ws": np.full(8, 0.1, "f4"),
        "wz": np.zeros(8, np.int8), "b": np.arange(8, dtype=np.int32), "bs": np.full(8, 0.005, "f4"),
        "eight": np.asarray([8]),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("Cast", "q", "same", to=onnx.TensorProto.UINT8),
        node("DequantizeLinear", "same s z", "d"), node("DequantizeLinear", "w ws wz", "f", axis=0),
        node("ConstantOfShape", "eight", "zeros"), node("Cast", "zeros", "bz", to=onnx.TensorProto.INT32),
        node("DequantizeLinear", "b bs bz", "bias", axis=0), node("Conv", "d f bias", "c"), *pair("c", "y"),
    ]  # fmt: skip
    graph = taken(nodes, constants)
    assert set(ops(graph)) <= {"Conv2d", "Transpose"}
    assert {"x", "w", "b", "y"} <= set(graph.given)
    assert given(graph, "b").scale == (float(np.float32(0.005)),) * 8


def test_a_cast_to_another_type_stays() -> None:
    nodes = [node("QuantizeLinear", "x s z", "q"), node("Cast", "q", to=onnx.TensorProto.FLOAT)]
    assert {"Quantize", "Cast"} <= set(ops(taken(nodes, STEP)))


def test_fewer_steps_in_kept_nodes_are_a_clip_of_unsigned_integers() -> None:
    constants = {**STEP, "low": np.uint8(0), "high": np.uint8(127)}
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("Clip", "q low high", "k"),
        node("DequantizeLinear", "k s z"),
    ]  # fmt: skip
    model = typed(model_of(nodes, X, constants, 21))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with openqnn.Session(openqnn.convert(model, keep_quant_nodes=True)) as ours:
        np.testing.assert_array_equal(ours.run(X)["y"], session.run(["y"], X)[0])


BROKEN = {
    "DequantizeLinear": ([node("DequantizeLinear", "x")], "1 inputs given, 2 to 3 expected"),
    "QuantizeLinear": ([node("QuantizeLinear", "", "q"), *pair("x", "d")], "0 inputs given"),
    "Concat": ([*pair("x", "d"), node("Concat", "", axis=0)], "Concat"),
    "Cast": ([*pair("x", "d"), node("Cast", "s", "c"), node("Mul", "d c")], "attribute 'to' is missing"),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "words"), BROKEN.values(), ids=BROKEN)
def test_a_node_that_lacks_something_is_named(nodes: list[NodeProto], words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        openqnn.convert(model_of(nodes, X, STEP, 21))


def test_an_empty_attribute_of_an_op_on_integers_is_named() -> None:
    conv = node("QLinearConv", "q s z q s z s z", "c")
    conv.attribute.add(name="strides", type=onnx.AttributeProto.INTS)  # the helper makes no empty ones
    nodes = [node("QuantizeLinear", "x s z", "q"), conv, node("DequantizeLinear", "c s z")]
    with pytest.raises(UnsupportedError, match="strides"):
        openqnn.convert(model_of(nodes, X, STEP, 21))


def test_a_constant_that_does_not_fit_its_shape_is_named() -> None:
    value = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[2], raw_data=b"1234")
    nodes = [*pair("x", "d"), node("Constant", "", "c", value=value), node("Mul", "d c")]
    with pytest.raises(ModelError, match=r"tensor 'w' .* does not fit its data"):
        openqnn.convert(model_of(nodes, X, STEP, 21))


@pytest.mark.parametrize("op", ["QuantizeLinear", "Clip"])
def test_steps_that_do_not_fit_a_constant_are_named(op: str) -> None:
    constants = {
        **STEP,
        "w": rand(4, 5).astype(np.uint8 if op == "Clip" else np.float32),
        "two": np.ones(2, np.float32),
    }
    if op == "Clip":
        constants["two"] = constants["two"].astype(np.uint8)
    nodes = [*pair("x", "d"), node(op, "w two", "v"), node("DequantizeLinear", "v s z")]
    with pytest.raises(UnsupportedError, match=op):
        openqnn.convert(model_of(nodes, X, constants, 21))


def test_scales_of_64_bits() -> None:
    """ONNX has none, but says so only where a model is checked."""
    step = {"s": np.float64(0.05), "z": np.uint8(128)}
    graph = openqnn.convert(
        model_of([node("Cast", "x", "q", to=2), node("DequantizeLinear", "q s z")], X, step, 21)
    )
    assert [v.dtype for v in graph.outputs] == [DType.FLOAT_32]
