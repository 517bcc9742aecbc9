"""Where two backends part is told tensor by tensor."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import openqnn
from openqnn.analysis.accuracy.tensor_folder import write_tensors
from openqnn.analysis.compare_backends import Gap
from openqnn.analysis.compared_run import in_axes
from openqnn.errors import InputError, OpenQnnWarning, UsageError
from tests.analysis.test_half_precision import attention
from tests.cli.tool import assert_refused
from tests.cli.tool import openqnn as command
from tests.frontends.onnx.against_ort import model_of, node, rand
from tests.models.fetch import model_path
from tests.qnn.nets import needs_cpu, needs_htp

SAMPLES = [{"x": rand(1, 3, 8, 8, seed=n)} for n in range(8)]


def small_network() -> onnx.ModelProto:
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("Add", "r one", "s"),
    ]  # fmt: skip
    return model_of(nodes, {"x": rand(1, 3, 8, 8)}, {"w": rand(4, 3, 3, 3), "one": np.float32(1.0)}, 17)


@needs_htp
def test_the_first_node_that_overflows_is_named() -> None:
    """Half precision cannot hold what the first product makes: what follows is not to blame."""
    found = openqnn.compare(openqnn.convert(attention(3e4)), [{"x": rand(4, 16)}])
    assert not found.agree
    assert found.parting[0].name == "q" and "65504" in found.parting[0].half
    assert "part first at 'q'" in str(found)
    assert [t.name for t in found.tensors] == ["q", "logits", "y"]


@needs_htp
def test_fixed_point_agrees_with_its_simulation() -> None:
    fixed = openqnn.quantize(openqnn.convert(small_network()), SAMPLES)
    found = openqnn.compare(fixed, SAMPLES, samples=2)
    assert found.agree and found.parting == () and found.samples == 2
    assert all(t.sqnr > 50 for t in found.tensors) and found.hidden == ()


@needs_cpu
def test_any_two_backends() -> None:
    found = openqnn.compare(openqnn.convert(small_network()), SAMPLES, "libQnnCpu.so")
    assert found.agree and all(t.sqnr > 100 for t in found.tensors)
    assert {t.name for t in found.tensors} >= {"r", "s"}


def test_nothing_to_compare() -> None:
    graph = openqnn.convert(small_network())
    with pytest.raises(UsageError, match="against itself"):
        openqnn.compare(graph, SAMPLES, "cpu")
    with pytest.raises(InputError, match="no samples"), pytest.warns(OpenQnnWarning, match="NaN"):
        openqnn.compare(graph, [{"x": np.full((1, 3, 8, 8), np.nan, np.float32)}], "libQnnCpu.so")


def test_what_is_infinite_only_on_one_is_lost() -> None:
    gap = Gap()
    gap.add(np.array([1.0, -np.inf]), np.array([1.0, 0.0]))
    assert gap.sqnr == np.inf and gap.reach == 1.0
    gap.add(np.array([1.0, 2.0]), np.array([1.0, np.inf]))
    assert gap.sqnr == -np.inf


@needs_htp
def test_the_command(tmp_path: Path) -> None:
    onnx.save(attention(3e4), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", rand(4, 16))
    table = tmp_path / "t.csv"
    result = command("compare", tmp_path / "m.onnx", "--data", tmp_path / "x.npy", "--csv", table)
    assert (result.code, result.err) == (1, "")
    assert "They part first at FullyConnected 'q'" in result.out and "infinite beyond 65504" in result.out
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [(r["name"], r["parts"]) for r in rows] == [("q", "True"), ("logits", "False"), ("y", "False")]
    found = command("compare", tmp_path / "m.onnx", "--data", tmp_path / "x.npy", "--json")
    record = json.loads(found.out)
    assert record["parting"] == ["q"] and not record["agree"] and record["tensors"][0]["sqnr"] < 10
    same = command("compare", tmp_path / "m.onnx", "--data", tmp_path / "x.npy", "--backend", "cpu")
    assert_refused(same, "against itself", code=2)


def test_the_source_in_its_framework(tmp_path: Path) -> None:
    """Fixed point against ONNX Runtime: channels are where the source has them, names as QNN spells them."""
    onnx.save(small_network(), tmp_path / "m.onnx")
    fixed = openqnn.quantize(openqnn.convert(tmp_path / "m.onnx"), SAMPLES)
    found = openqnn.compare(fixed, SAMPLES, "cpu", reference=str(tmp_path / "m.onnx"), limit=30)
    assert found.agree and found.parting == ()
    assert {t.name for t in found.tensors} >= {"r", "s"}
    assert "c" in found.hidden, "what a Relu behind it clips exists in the source only"


def test_another_graph_and_a_folder_of_raw_files(tmp_path: Path) -> None:
    graph = openqnn.convert(small_network())
    fixed = openqnn.quantize(graph, SAMPLES)
    graph.save(tmp_path / "float.oqnn")
    with openqnn.Session(fixed) as session:
        for index, sample in enumerate(SAMPLES[:2]):
            write_tensors(tmp_path / "out" / f"Result_{index}", session.run(sample, ["r", "s"]))
    found = openqnn.compare(
        fixed, SAMPLES, str(tmp_path / "out"), reference=str(tmp_path / "float.oqnn"), samples=2, limit=30
    )
    same = openqnn.compare(fixed, SAMPLES, str(tmp_path / "out"), samples=2)
    assert found.agree and {t.name for t in found.tensors} >= {"r", "s"}
    assert all(t.sqnr > 90 for t in same.tensors)
    with pytest.raises(InputError, match="2 results, and there are 4 samples"):
        openqnn.compare(fixed, SAMPLES, str(tmp_path / "out"))
    (tmp_path / "out" / "Result_1" / "r.raw").write_bytes(b"1234" * 3)
    with pytest.raises(InputError, match="3 numbers, and tensor 'r' has 256"):
        openqnn.compare(fixed, SAMPLES, str(tmp_path / "out"), samples=2)


def test_litert_runs_a_tflite_model() -> None:
    pytest.importorskip("ai_edge_litert")
    path = model_path("face_landmark_fp32")
    graph = openqnn.convert(path)
    (data,) = graph.inputs
    sample = {data.name: rand(*graph.ports[data.name].shape)}
    found = openqnn.compare(graph, [sample], "cpu", reference=str(path))
    assert found.agree and len(found.tensors) > 50 and found.parting == ()


def test_another_model_is_no_reference(tmp_path: Path) -> None:
    other = model_of([node("Relu", "x", "other")], {"x": rand(1, 3, 8, 8)}, {}, 17)
    onnx.save(other, tmp_path / "other.onnx")
    with pytest.raises(InputError, match="no output of graph"):
        openqnn.compare(
            openqnn.convert(small_network()), SAMPLES, "cpu", reference=str(tmp_path / "other.onnx")
        )


def test_channels_are_moved_where_shapes_say_so() -> None:
    array = rand(1, 3, 4, 5)
    assert np.array_equal(in_axes(array, (1, 4, 5, 3))[0], np.moveaxis(array, 1, -1))
    assert in_axes(array, (1, 3, 20)) == []
    assert len(in_axes(rand(1, 4, 4, 4), (1, 4, 4, 4))) == 2, "the shape does not tell"
    assert in_axes(rand(3, 4), (1, 3, 4))[0].shape == (1, 3, 4)
