"""Stored numbers of TFLite models: encodings, packed and sparse weights, and files that lie about them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from ai_edge_litert import schema_py_generated as schema

import openqnn
from openqnn.errors import ModelError, OpenQnnError, UnsupportedError
from openqnn.frontends.tflite.model import read_tflite
from tests.frontends.tflite.build import Body, Op, Quant, T, const, model, single
from tests.frontends.tflite.litert import litert_outputs
from tests.models.fetch import model_path

CHANCE = np.random.default_rng(2)
DATA = CHANCE.uniform(-1, 1, (3, 8)).astype(np.float32)
FULL = "FullyConnectedOptions"
HYBRID = "ignore:weights of 1 layer:openqnn.OpenQnnWarning"  # integers beside floats


def run(source: bytes, inputs: dict[str, Any], **settings: Any) -> dict[str, Any]:
    with openqnn.Session(openqnn.convert(source, **settings)) as session:
        return session.run(inputs)


def test_half_precision_weights_become_single() -> None:
    half = CHANCE.uniform(-1, 1, (5, 8)).astype(np.float16)
    tensors = [T((3, 8)), const(half, "float16"), T((5, 8)), T((3, 5))]
    ops = [
        Op("DEQUANTIZE", [1], [2], {}, "DequantizeOptions"),
        Op("FULLY_CONNECTED", [0, 2, -1], [3], {}, FULL),
    ]
    found = run(model(Body(tensors, ops, [0], [3])), {"t0": DATA})
    np.testing.assert_allclose(found["t3"], DATA @ half.astype(np.float32).T, rtol=1e-4, atol=1e-5)


def weights(dtype: str = "int8") -> T:
    top = 7 if dtype == "int4" else 127
    stored = CHANCE.integers(-top, top, (5, 8)).astype(np.int8)
    return T((5, 8), dtype, stored, Quant([0.02 + 0.01 * i for i in range(5)], [0] * 5, 0), name="w")


@pytest.mark.filterwarnings(HYBRID)
@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_weights_keep_their_encodings_for_each_channel(dtype: str) -> None:
    w = weights(dtype)
    assert w.data is not None and w.quant is not None
    graph = openqnn.convert(single("FULLY_CONNECTED", [T((3, 8)), w, None], [T((3, 5))], FULL))
    said = graph.given["w"]
    assert said.bitwidth == int(dtype[3:]) and said.encoding is not None
    np.testing.assert_allclose(said.encoding.scale, np.float32(w.quant.scale))
    real = w.data * np.float32(w.quant.scale)[:, None]
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run({"t0": DATA})["t2"], DATA @ real.T, rtol=1e-4, atol=1e-5)


def test_integers_beside_floats_are_told() -> None:
    with pytest.warns(openqnn.OpenQnnWarning, match="weights of 1 layer are stored as integers"):
        openqnn.convert(single("FULLY_CONNECTED", [T((3, 8)), weights(), None], [T((3, 5))], FULL))


@pytest.mark.filterwarnings(HYBRID)
def test_scales_of_blocks_give_the_numbers() -> None:
    stored = CHANCE.integers(-7, 7, (5, 8)).astype(np.int8)
    scales = CHANCE.uniform(0.1, 1, (5, 2)).astype(np.float16)
    details: Any = schema.BlockwiseQuantizationT()
    details.scales, details.zeroPoints, details.blockSize = 2, -1, 4
    quantization: Any = schema.QuantizationParametersT()
    quantization.detailsType, quantization.details = schema.QuantizationDetails.BlockwiseQuantization, details
    w = T((5, 8), "int4", stored, name="w", more={"quantization": quantization})
    tensors = [T((3, 8)), w, const(scales, "float16"), T((3, 5))]
    source = model(Body(tensors, [Op("FULLY_CONNECTED", [0, 1, -1], [3], {}, FULL)], [0], [3]))
    real = stored * np.repeat(scales.astype(np.float32), 4, axis=1)
    np.testing.assert_allclose(run(source, {"t0": DATA})["t3"], DATA @ real.T, rtol=1e-3, atol=1e-4)


def sparse(dense: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Rows are dense, columns are listed."""
    rows: Any = schema.DimensionMetadataT()
    rows.format, rows.denseSize = 0, dense.shape[0]
    columns: Any = schema.DimensionMetadataT()
    columns.format = 1
    segments: Any = schema.Int32VectorT()
    segments.values = [0, *np.cumsum((dense != 0).sum(axis=1)).tolist()]
    indices: Any = schema.Int32VectorT()
    indices.values = np.nonzero(dense)[1].tolist()
    kind = schema.SparseIndexVector.Int32Vector
    columns.arraySegmentsType, columns.arraySegments = kind, segments
    columns.arrayIndicesType, columns.arrayIndices = kind, indices
    sparsity: Any = schema.SparsityParametersT()
    sparsity.traversalOrder, sparsity.blockMap, sparsity.dimMetadata = [0, 1], [], [rows, columns]
    return {"sparsity": sparsity}


def test_sparse_weights_are_made_dense() -> None:
    dense = np.where(CHANCE.random((5, 8)) < 0.4, CHANCE.uniform(0.1, 1, (5, 8)), 0).astype(np.float32)
    w = T((5, 8), "float32", dense[dense != 0], more=sparse(dense))
    tensors = [T((3, 8)), w, T((5, 8)), T((3, 5))]
    ops = [Op("DENSIFY", [1], [2], {}, "DensifyOptions"), Op("FULLY_CONNECTED", [0, 2, -1], [3], {}, FULL)]
    source = model(Body(tensors, ops, [0], [3]))
    wanted = litert_outputs(source, {"t0": DATA})["t3"]
    np.testing.assert_allclose(run(source, {"t0": DATA})["t3"], wanted, rtol=1e-4, atol=1e-5)


def requantized() -> bytes:
    """Bytes in, the same numbers in other steps out."""
    given, wanted = T((4, 8), "int8", quant=Quant([0.01], [3])), T((4, 8), "int8", quant=Quant([0.02], [-7]))
    return single("QUANTIZE", [given], [wanted], "QuantizeOptions")


def test_another_encoding_of_the_same_numbers() -> None:
    inputs = {"t0": CHANCE.integers(-128, 127, (4, 8)).astype(np.int8)}
    wanted = litert_outputs(requantized(), inputs)["t1"]
    found = run(requantized(), inputs)["t1"]
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1
    graph = openqnn.quantize(openqnn.convert(requantized()), float_fallback=True)
    with openqnn.Session(graph) as session:
        assert np.abs(session.run(inputs)["t1"].astype(int) - wanted.astype(int)).max() <= 1


def test_a_graph_rounds_where_the_model_does() -> None:
    tensor = T((3, 8), "int8", quant=Quant([0.1], [0]))
    source = single("ADD", [tensor, tensor], [tensor], "AddOptions")
    graph = openqnn.convert(source, keep_quant_nodes=True)
    assert any(v.dtype.is_fixed for v in graph.values())


# -- bad files -----------------------------------------------------------------------------------------------


def refused(content: bytes, tmp_path: Path) -> str:
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with pytest.raises(OpenQnnError) as e:
        openqnn.convert(path)
    assert str(path) in str(e.value) or isinstance(e.value, UnsupportedError)
    return str(e.value)


def test_truncated_files(tmp_path: Path) -> None:
    whole = model_path("fer_tflite").read_bytes()
    for end in (9, 100, len(whole) // 2, len(whole) - 40):
        assert "not a readable TFLite model" in refused(whole[:end], tmp_path)


def test_sizes_that_lie(tmp_path: Path) -> None:
    w = T((5, 8), "float32", np.zeros(7, np.float32))
    text = refused(single("FULLY_CONNECTED", [T((3, 8)), w, None], [T((3, 5))], FULL), tmp_path)
    assert "28 bytes are stored, 160 are expected" in text


def test_lost_tensors(tmp_path: Path) -> None:
    tensors = [T((2, 3)), T((2, 3))]
    lost = model(Body(tensors, [Op("RELU", [7], [1])], [0], [1]))
    assert "names a tensor that does not exist" in refused(lost, tmp_path)
    with pytest.raises(ModelError, match="'t1' is not produced by any operator"):
        openqnn.convert(model(Body(tensors, [], [0], [1])))


def test_a_root_outside_of_the_file(tmp_path: Path) -> None:
    assert "leads outside" in refused(struct.pack("<I", 1 << 30) + b"TFL3" + bytes(64), tmp_path)


def test_an_operator_that_no_schema_has(tmp_path: Path) -> None:
    source = bytearray(single("RELU", [T((2, 3))], [T((2, 3))]))
    record = read_tflite(bytes(source)).subgraphs[0].operators[0]
    assert record.op == "RELU"
    text = refused(single("SKIP_GRAM", [T((2, 3))], [T((2, 3))], "SkipGramOptions"), tmp_path)
    assert "QNN graphs compute with numbers only" in text


def test_an_empty_file(tmp_path: Path) -> None:
    assert "empty" in refused(b"", tmp_path)
    with pytest.raises(ModelError, match="no such file"):
        openqnn.convert(tmp_path / "none.tflite")
