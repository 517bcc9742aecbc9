"""Subgraphs of a model as nodes of a custom op, and back, proved on random data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import openqnn
from openqnn.cli.main import main
from openqnn.errors import UnsupportedError, UsageError
from openqnn.frontends.custom_ops import forget_composites
from tests.docs.valid import valid_record

X = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)


def declare(wrong: bool = False) -> None:
    @openqnn.custom_op("MyPackage", "ScaledTanh", domain="my.domain")
    def scaled_tanh(x: Any, *, factor: float = 1.0) -> Any:  # pyright: ignore[reportUnusedFunction]
        return (factor * np.tanh(x) + wrong).astype(np.float32)

    openqnn.composite("my.domain", "ScaledTanh")(lambda q, x, *, factor=1.0: q.mul(q.tanh(x), factor))


def model(path: Path) -> Path:
    """Twice a number times tanh, with another operation between."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"]),
        helper.make_node("Mul", ["a", "two"], ["b"]),
        helper.make_node("Exp", ["b"], ["c"]),
        helper.make_node("Tanh", ["c"], ["d"]),
        helper.make_node("Mul", ["d", "three"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(n, 1, X.shape) for n in ("x", "y")]
    numbers = [helper.make_tensor(n, 1, [1], [v]) for n, v in (("two", 2.5), ("three", 3.5))]
    graph = helper.make_graph(nodes, "twice", infos[:1], infos[1:], numbers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture
def graph(tmp_path: Path) -> openqnn.Graph:
    declare()
    return openqnn.convert(model(tmp_path / "twice.onnx"))


def outputs(graph: openqnn.Graph) -> np.ndarray:
    with openqnn.Session(graph) as session:
        return session.run({"x": X})["y"]


def test_a_subgraph_and_its_repeats_become_nodes_and_come_back(graph: openqnn.Graph, tmp_path: Path) -> None:
    expected, count = outputs(graph), len(graph.nodes)
    fused = openqnn.fuse(graph, "MyPackage::ScaledTanh", ["x"], ["b"], {"factor": "two"})
    assert fused.places == ("b", "y")
    assert fused.error < 1e-6
    custom = [n for n in fused.graph.nodes if n.package == "MyPackage"]
    assert [n.params["factor"] for n in custom] == [2.5, 3.5]
    assert len(fused.graph.nodes) == count - 2
    np.testing.assert_allclose(outputs(fused.graph), expected, rtol=1e-6)
    fused.graph.save(tmp_path / "fused.dlc")
    back = openqnn.expand(openqnn.load(tmp_path / "fused.dlc"), "MyPackage::ScaledTanh")
    assert {n.package for n in back.graph.nodes} == {n.package for n in graph.nodes}
    np.testing.assert_allclose(outputs(back.graph), expected, rtol=1e-6)
    assert len(graph.nodes) == count, "the graph that was given stays"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda q, x, *, factor=1.0: q.mul(q.tanh(x), q.constant(np.array([factor]))), ""),
        (lambda q, x, *, factor=1.0: q.tang(x), r"'b'.*composite raised AttributeError.*test_fuse.py:\d+"),
        (lambda q, x, *, factor=1.0: None, r"'b'.*composite .*test_fuse.py:\d+. does not give its results"),
    ],
)
def test_composites_that_expand(graph: openqnn.Graph, function: Any, message: str) -> None:
    fused = openqnn.fuse(graph, "MyPackage::ScaledTanh", ["x"], ["b"], {"factor": "two"})
    forget_composites()
    openqnn.composite("my.domain", "ScaledTanh")(function)
    if message:
        with pytest.raises(UnsupportedError, match=message):
            openqnn.expand(fused.graph, "MyPackage::ScaledTanh")
        return
    back = openqnn.expand(fused.graph, "MyPackage::ScaledTanh")
    np.testing.assert_allclose(outputs(back.graph), outputs(graph), rtol=1e-6)


def test_only_the_named_place(graph: openqnn.Graph) -> None:
    fused = openqnn.fuse(graph, "MyPackage::ScaledTanh", ["x"], ["b"], {"factor": 2.5}, everywhere=False)
    assert fused.places == ("b",)


def test_a_number_that_is_no_parameter_tells_places_apart(graph: openqnn.Graph) -> None:
    assert openqnn.fuse(graph, "MyPackage::ScaledTanh", ["x"], ["b"], {"factor": 2.5}).places == ("b",)


def test_a_function_that_computes_something_else_is_refused(graph: openqnn.Graph) -> None:
    with pytest.raises(UnsupportedError, match="does not compute what the subgraph at 'b' does"):
        openqnn.fuse(graph, "MyPackage::ScaledTanh", ["x"], ["b"], {"factor": 2.0})


@pytest.mark.parametrize(
    ("inputs", "ends", "op", "message"),
    [
        (["x"], ["nowhere"], "MyPackage::ScaledTanh", "no tensor 'nowhere'"),
        (["c"], ["b"], "MyPackage::ScaledTanh", "reads the graph's input 'x'"),
        (["b"], ["b"], "MyPackage::ScaledTanh", "nothing lies between 'b' and 'b'"),
        (["x"], ["b"], "MyPackage::Other", "no custom op 'MyPackage::Other'"),
    ],
)
def test_what_bounds_no_subgraph(
    graph: openqnn.Graph, inputs: list[str], ends: list[str], op: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        openqnn.fuse(graph, op, inputs, ends, {"factor": 2.5})


def test_what_others_read_inside(tmp_path: Path) -> None:
    declare()
    nodes = [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("Mul", ["a", "two"], ["b"])]
    nodes.append(helper.make_node("Add", ["a", "b"], ["y"]))
    infos = [helper.make_tensor_value_info(n, 1, X.shape) for n in ("x", "y")]
    made = helper.make_graph(nodes, "g", infos[:1], infos[1:], [helper.make_tensor("two", 1, [1], [2.5])])
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with pytest.raises(UsageError, match="'a' inside the subgraph is read outside"):
        openqnn.fuse(
            openqnn.convert(tmp_path / "m.onnx"), "MyPackage::ScaledTanh", ["x"], ["b"], {"factor": 2.5}
        )


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model(tmp_path / "twice.onnx")
    (tmp_path / "my_ops.py").write_text(
        "import numpy as np, openqnn\n"
        '@openqnn.custom_op("MyPackage", "ScaledTanh", domain="my.domain")\n'
        "def scaled_tanh(x, *, factor: float = 1.0):\n    return factor * np.tanh(x)\n"
        '@openqnn.composite("my.domain", "ScaledTanh")\n'
        "def composed(q, x, *, factor=1.0):\n    return q.mul(q.tanh(x), factor)\n"
    )
    words = ["--custom_ops", "my_ops.py", "--op", "MyPackage::ScaledTanh"]
    ends = ["--from", "x", "--to", "b", "--param", "factor=two"]
    assert main(["fuse", "twice.onnx", *words, *ends, "-o", "fused.dlc"]) == 0
    assert "MyPackage::ScaledTanh at y" in capsys.readouterr().out
    assert main(["fuse", "twice.onnx", *words, *ends, "--json", "-o", "again.dlc"]) == 0
    assert "y" in valid_record("fuse", capsys.readouterr().out)["places"]
    assert main(["fuse", "fused.dlc", *words, "--expand", "-o", "plain.oqnn"]) == 0
    np.testing.assert_allclose(
        outputs(openqnn.load("plain.oqnn")), outputs(openqnn.convert("twice.onnx")), rtol=1e-6
    )
    assert main(["fuse", "twice.onnx", *words, *ends[:4], "--param", "factor=9", "-o", "wrong.dlc"]) == 1
    assert "does not compute" in capsys.readouterr().err
    assert not Path("wrong.dlc").exists()
