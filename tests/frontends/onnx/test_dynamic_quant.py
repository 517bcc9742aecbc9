"""Dynamically quantized models: products of floats, with the encodings that their weights came with."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.quantization import QuantType, quantize_dynamic

import openqnn
from openqnn.errors import OpenQnnWarning
from openqnn.ir import Graph
from openqnn.runtime.metrics import sqnr
from tests.frontends.onnx.against_ort import model_of, node, ops, rand, typed

Arrays = dict[str, Any]
MS = {"domain": "com.microsoft"}
INTEGERS = {"Cast", "ElementWiseRound", "ElementWiseUnary", "ReduceMin", "ReduceMax"}


def by_ort(model: onnx.ModelProto, inputs: Arrays) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def close(model: onnx.ModelProto, inputs: Arrays, least: float = 35) -> Graph:
    """Converts without a warning, and gives what ONNX Runtime does but for its 8-bit activations."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", OpenQnnWarning)
        graph = openqnn.convert(typed(model))
    assert not INTEGERS & set(ops(graph)), ops(graph)
    with openqnn.Session(graph) as session:
        (found,) = session.run(inputs).values()
    assert sqnr(by_ort(model, inputs)[0], found) > least
    return graph


def dynamic(model: onnx.ModelProto, folder: Path, **choices: Any) -> onnx.ModelProto:
    quantize_dynamic(typed(model), folder / "q.onnx", **choices)
    return onnx.load(folder / "q.onnx")


@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize("per_channel", [False, True])
def test_matrix_products(tmp_path: Path, kind: QuantType, per_channel: bool) -> None:
    nodes = [node("MatMul", "x w", "h"), node("Add", "h b", "g"), node("Gemm", "g v c", "y")]
    constants = {"w": rand(24, 32), "b": rand(32), "v": rand(32, 8, seed=1), "c": rand(8)}
    inputs = {"x": rand(5, 24, seed=2)}
    made = dynamic(
        model_of(nodes, inputs, constants, 17), tmp_path, weight_type=kind, per_channel=per_channel
    )
    assert sum(n.op_type == "MatMulInteger" for n in made.graph.node) == 2
    graph = close(made, inputs)
    said = [g for g in graph.given.values() if g.encoding is not None]
    assert len(said) == 2 and all(g.bitwidth == 8 for g in said)
    assert {len(g.encoding.scale) > 1 for g in said if g.encoding} == {per_channel}


def test_weights_keep_their_integers(tmp_path: Path) -> None:
    inputs = {"x": rand(5, 24, seed=2)}
    model = model_of(node("MatMul", "x w"), inputs, {"w": rand(24, 32)}, 17)
    made = dynamic(model, tmp_path, weight_type=QuantType.QInt8, per_channel=True)
    stored = {i.name: onnx.numpy_helper.to_array(i) for i in made.graph.initializer}["w_quantized"]
    fixed = openqnn.quantize(openqnn.convert(typed(made)), [inputs], backend="cpu", algorithms=())
    weight = next(v for v in fixed.constants() if v.dtype.is_fixed and v.size == stored.size)
    assert weight.data is not None
    assert np.array_equal(np.sort(weight.data, axis=None), np.sort(stored, axis=None))


def test_a_width_that_its_weights_do_not_get_is_said(tmp_path: Path) -> None:
    inputs = {"x": rand(5, 24, seed=2)}
    made = dynamic(model_of(node("MatMul", "x w"), inputs, {"w": rand(24, 32)}, 17), tmp_path)
    graph = openqnn.convert(typed(made))
    with pytest.warns(OpenQnnWarning, match=r"weight_bw=4: 1 tensors keep .* 8 bits .* ignore_encodings"):
        openqnn.quantize(graph, [inputs], backend="cpu", weight_bw=4, judge=False, algorithms=())
    openqnn.quantize(
        graph, [inputs], backend="cpu", weight_bw=4, judge=False, algorithms=(), ignore_encodings=True
    )


def test_convolutions(tmp_path: Path) -> None:
    inputs = {"x": rand(1, 3, 9, 9)}
    model = model_of(
        node("Conv", "x w b", pads=[1, 1, 1, 1]), inputs, {"w": rand(4, 3, 3, 3), "b": rand(4)}, 17
    )
    made = dynamic(model, tmp_path, weight_type=QuantType.QUInt8)
    assert any(n.op_type == "ConvInteger" for n in made.graph.node)
    graph = close(made, inputs)
    assert ops(graph)["Conv2d"] == 1 and len(graph.given) == 1


def test_scales_by_channel_of_a_convolution() -> None:
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"), node("ConvInteger", "q w z", "sums"),
        node("Cast", "sums", "real", to=1), node("Mul", "s v", "scale"), node("Mul", "scale real"),
    ]  # fmt: skip
    whole = np.random.default_rng(0).integers(-127, 128, (4, 3, 3)).astype(np.int8)
    constants = {"w": whole, "v": (np.arange(1, 5) * 0.01).astype(np.float32).reshape(1, 4, 1)}
    graph = close(model_of(nodes, {"x": rand(1, 3, 20)}, constants, 17), {"x": rand(1, 3, 20)})
    (said,) = graph.given.values()
    assert said.encoding is not None and len(said.encoding.scale) == 4


def test_scales_one_after_the_other_and_moved_integers() -> None:
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"), node("Transpose", "q", "t", perm=[0, 2, 1]),
        node("MatMulInteger", "t w z", "sums"), node("Cast", "sums", "real", to=1),
        node("Mul", "real s", "half"), node("Mul", "half v"),
    ]  # fmt: skip
    whole = np.random.default_rng(0).integers(-127, 128, (6, 8)).astype(np.int8)
    constants = {"w": whole, "v": np.float32(0.02)}
    inputs = {"x": rand(2, 6, 5)}
    close(model_of(nodes, inputs, constants, 17), inputs)


def test_both_factors_are_data() -> None:
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"), node("DynamicQuantizeLinear", "k", "r t u"),
        node("MatMulInteger", "q r z u", "sums"), node("Cast", "sums", "real", to=1),
        node("Mul", "s t", "scale"), node("Mul", "real scale"),
    ]  # fmt: skip
    inputs = {"x": rand(2, 5, 16), "k": rand(2, 16, 5, seed=1)}
    close(model_of(nodes, inputs, {}, 17), inputs, 30)


def test_recurrent_layers(tmp_path: Path) -> None:
    inputs = {"x": rand(6, 1, 8)}
    constants = {
        "w": rand(1, 64, 8) * 0.3,
        "r": rand(1, 64, 16, seed=1) * 0.3,
        "b": rand(1, 128, seed=2) * 0.1,
    }
    model = model_of(node("LSTM", "x w r b", "y", hidden_size=16), inputs, constants, 17)
    made = dynamic(model, tmp_path)
    assert any(n.op_type == "DynamicQuantizeLSTM" for n in made.graph.node)
    close(made, inputs, 25)


@pytest.mark.parametrize("bias", [False, True])
def test_fused_products(bias: bool) -> None:
    whole = np.random.default_rng(0).integers(-127, 128, (24, 32)).astype(np.int8)
    constants = {"w": whole, "v": rand(32) ** 2 * 0.01 + 0.01, "n": np.zeros(32, np.int8), "b": rand(32)}
    inputs, last = {"x": rand(5, 24)}, " b" if bias else ""
    close(model_of(node("DynamicQuantizeMatMul", f"x w v n{last}", **MS), inputs, constants, 17), inputs)
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"),
        node("MatMulIntegerToFloat", f"q w s v z n{last}", **MS),
    ]
    close(model_of(nodes, inputs, constants, 17), inputs)


def test_fused_attention() -> None:
    whole = np.random.default_rng(0).integers(-127, 128, (16, 48)).astype(np.int8)
    constants = {"w": whole, "b": rand(48) * 0.1, "v": np.float32(0.004), "n": np.int8(0)}
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"),
        node("QAttention", "q w b s v _ z n", num_heads=2, **MS),
    ]
    graph = close(model_of(nodes, {"x": rand(1, 7, 16)}, constants, 17), {"x": rand(1, 7, 16)})
    assert ops(graph)["Softmax"] == 1 and len(graph.given) >= 1


def test_a_fused_layer_may_give_floats() -> None:
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.integers(-127, 128, (8, 6)).astype(np.int8), "v": np.float32(0.02), "n": np.int8(0),
        "s": np.float32(0.03), "z": np.uint8(120), "b": rng.integers(-900, 900, 6).astype(np.int32),
    }  # fmt: skip
    nodes = [node("QuantizeLinear", "x s z", "q"), node("QGemm", "q s z w v n b", **MS)]
    close(model_of(nodes, {"x": rand(5, 8)}, constants, 17), {"x": rand(5, 8)})


def packed(bits: int, depth: int, block: int, zeros: bool) -> Arrays:
    rng, columns = np.random.default_rng(0), 6
    blocks = -(-depth // block)
    found = {
        "w": rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
        "v": (rng.random(columns * blocks) * 0.02 + 0.01).astype(np.float32),
    }
    if zeros:
        found["n"] = rng.integers(0, 256, columns * -(-blocks * bits // 8)).astype(np.uint8)
    return found


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("depth", "block"), [(64, 16), (40, 16), (32, 32)])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_packed_weights(bits: int, depth: int, block: int, zeros: bool, keep: bool) -> None:
    constants, inputs = packed(bits, depth, block, zeros), {"x": rand(3, depth)}
    said = {"K": depth, "N": 6, "bits": bits, "block_size": block}
    model = typed(
        model_of(node("MatMulNBits", "x w v n" if zeros else "x w v", **MS, **said), inputs, constants, 17)
    )
    with openqnn.Session(openqnn.convert(model, keep_quant_nodes=keep)) as session:
        (found,) = session.run(inputs).values()
    np.testing.assert_allclose(found, by_ort(model, inputs)[0], 1e-4, 1e-4)


def test_one_block_is_an_encoding_by_channel() -> None:
    model = model_of(
        node("MatMulNBits", "x w v", **MS, K=32, N=6, bits=4, block_size=32),
        {"x": rand(3, 32)}, packed(4, 32, 32, zeros=False), 17,
    )  # fmt: skip
    (said,) = openqnn.convert(typed(model)).given.values()
    assert said.bitwidth == 4 and said.encoding is not None and len(said.encoding.scale) == 6


def test_what_is_no_pattern_is_warned_of() -> None:
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"), node("MatMulInteger", "q w z", "sums"),
        node("Cast", "sums", "real", to=1), node("Mul", "real s", "y"),
    ]  # fmt: skip
    nodes[1].name = "odd_product"
    nodes[1].input[2] = "other"
    whole = np.random.default_rng(0).integers(-127, 128, (24, 8)).astype(np.int8)
    model = model_of(nodes, {"x": rand(5, 24)}, {"w": whole, "other": np.uint8(3)}, 17)
    with pytest.warns(OpenQnnWarning, match=r"'odd_product'.*half precision.*65504"):
        openqnn.convert(typed(model))
