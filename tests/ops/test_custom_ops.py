"""Custom ops: declared in Python or XML, known to everything that reads, writes and runs graphs."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import openqnn
from openqnn.cli.main import main
from openqnn.emit import lower
from openqnn.emit.emission_order import with_package
from openqnn.emit.model_source import write_model_source
from openqnn.emit.read_net_json import read_net_json
from openqnn.errors import BackendError, UnsupportedError, UsageError
from openqnn.formats.op_package import OpDef, OperandDef, OpPackage
from openqnn.formats.op_package_xml import print_op_package, read_op_package
from openqnn.ir.graph_text import parse_graph
from openqnn.ir.verify import verify
from openqnn.ops import infer_outputs
from openqnn.ops.custom import custom_ops, forget_custom_ops, package_named
from tests.formats.test_op_package_xml import XML

X = np.random.default_rng(0).normal(size=(1, 3, 4, 4)).astype(np.float32)
RELU_X = np.maximum(X, 0)


@pytest.fixture(autouse=True)
def _nothing_declared() -> Generator[None]:
    forget_custom_ops()
    yield
    forget_custom_ops()


def affine(
    x: Any, bias: Any = None, *, factor: float = 1.0, table: list[float] = (0.5, 1.5),  # pyright: ignore[reportArgumentType]
    times: int = 1, mode: Literal["PLUS", "MINUS"] = "PLUS", on: bool = True,
) -> Any:  # fmt: skip
    """Scales and shifts."""
    shift = np.float32(table[1] if mode == "PLUS" else -table[1])
    return np.float32(factor * times) * x + shift if on else x


def declare(**more: Any) -> None:
    openqnn.custom_op("my.Package", "Affine", domain="my.domain", **more)(affine)


def model(
    *, stated: bool = False, op: str = "Affine", outputs: int = 1, **attributes: Any
) -> onnx.ModelProto:
    names = ["y", "y2"][:outputs]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, X.shape) for n in ("x", "z", "y")]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node(op, ["r"], names, domain="my.domain", name="mine", **attributes),
        helper.make_node("Relu", ["y"], ["z"], name="last"),
    ]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:2], value_info=info[2:] if stated else [])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]
    return helper.make_model(graph, opset_imports=sets)


def converted() -> openqnn.Graph:
    declare()
    return openqnn.convert(model(factor=2.0, times=3, mode="MINUS", table=[1.0, 0.25]))


def test_runs_on_the_built_in_backend() -> None:
    graph = converted()
    verify(graph, infer_outputs)
    assert [(n.package, n.op_name) for n in graph.nodes][1] == ("my.Package", "Affine")
    with openqnn.Session(graph) as session:
        found = session.run({"x": X}, ["y", "z"])
    np.testing.assert_allclose(found["y"], 6 * RELU_X - 0.25, atol=1e-6)
    np.testing.assert_allclose(found["z"], np.maximum(6 * RELU_X - 0.25, 0), atol=1e-6)


def test_text_and_files_keep_it(tmp_path: Path) -> None:
    graph = converted()
    assert str(parse_graph(str(graph))) == str(graph)
    for name in ("g.oqnn", "g.dlc"):
        forget_custom_ops()
        declare()
        graph.save(tmp_path / name)
        for declared in (True, False):  # without a declaration it is known from the file
            forget_custom_ops()
            if declared:
                declare()
            again = openqnn.load(tmp_path / name)
            assert str(again) == str(graph)
            if not declared:
                with pytest.raises(BackendError, match="no function computes it here"):
                    openqnn.Session(again)


def test_printers_have_its_package(tmp_path: Path) -> None:
    net = lower(converted())
    renamed = with_package(net, "other")
    assert [n.package for n in renamed.nodes] == ["other", "my.Package", "other"]
    written = write_model_source([net], tmp_path / "g.cpp")
    text = written.cpp.read_text()
    assert '"my.Package", // Package Name' in text and '"Affine", // Qnn Node Type' in text
    assert written.net_json is not None
    found = read_net_json(written.net_json)
    assert [(n.package, n.op) for n in found.nodes][1] == ("my.Package", "Affine")


def test_python_and_xml_are_one_record(tmp_path: Path) -> None:
    declare(types=("float32", "ufixed8"))
    package = package_named("my.Package")
    (tmp_path / "p.xml").write_text(print_op_package(package))
    forget_custom_ops()
    openqnn.load_custom_ops(tmp_path / "p.xml")
    assert package_named("my.Package") == package
    assert "<Enum>MINUS</Enum>" in print_op_package(package)
    declare(types=("float32", "ufixed8"))  # the function completes the file
    with openqnn.Session(openqnn.convert(model(factor=2.0))) as session:
        np.testing.assert_allclose(session.run({"x": X})["z"], 2 * RELU_X + 1.5, atol=1e-6)


def test_xml_becomes_python_and_xml_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every construct; the functions that it proposes complete the record."""
    (tmp_path / "p.xml").write_text(XML)
    package = read_op_package(tmp_path / "p.xml")
    for old, new in (("p.xml", "p.py"), ("p.py", "again.xml")):
        forget_custom_ops()
        assert main(["op-package", "write", str(tmp_path / old), "-o", str(tmp_path / new)]) == 0
    assert read_op_package(tmp_path / "again.xml") == package
    written = (tmp_path / "p.py").read_text()
    proposed = written[written.index("#\n# from typing") :].replace("\n# ", "\n")
    (tmp_path / "p.py").write_text(written.partition("# A function")[0] + proposed)
    forget_custom_ops()
    openqnn.load_custom_ops(tmp_path / "p.py")
    assert package_named("my.Package") == package and custom_ops()[0].function is not None
    assert main(["op-package", "write", str(tmp_path / "p.py"), "-o", str(tmp_path / "p.txt")]) == 2
    assert "XML or Python" in capsys.readouterr().err


def test_a_record_is_as_strict_as_xml() -> None:
    ops = (OpDef("Halve", (OperandDef("x", rank="two"),), (OperandDef("y"),)),)
    with pytest.raises(UsageError, match="op package P: <Rank>: 'two' is no rank"):
        openqnn.declare_op_package(OpPackage("P", ops))


def test_contradicting_declarations(tmp_path: Path) -> None:
    declare()
    (tmp_path / "p.xml").write_text(print_op_package(package_named("my.Package")))
    forget_custom_ops()
    openqnn.load_custom_ops(tmp_path / "p.xml")
    with pytest.raises(UsageError, match=r"p.xml declares 2 inputs, 1 outputs, parameters factor.*none"):
        openqnn.custom_op("my.Package", "Affine")(lambda x: x)


def test_shape_comes_from_the_model_where_nothing_computes_it(tmp_path: Path) -> None:
    declare()
    (tmp_path / "p.xml").write_text(print_op_package(package_named("my.Package")))
    forget_custom_ops()
    openqnn.load_custom_ops(tmp_path / "p.xml")
    assert openqnn.convert(model(stated=True)).nodes[1].out.shape == X.shape
    with pytest.raises(UnsupportedError, match="nobody says what shape 'y' has"):
        openqnn.convert(model())


def test_images_are_channel_last_where_the_op_says_so() -> None:
    layouts = {"x": "NHWC", "out": "NHWC"}
    shape = lambda x: (x[0], x[1], x[2], 1)
    mean = lambda x: x.mean(axis=3, keepdims=True, dtype=np.float32)
    openqnn.custom_op("my.Package", "ChannelMean", layouts=layouts, shape=shape)(mean)
    graph = openqnn.convert(model(op="ChannelMean"))
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run({"x": X})["z"], RELU_X.mean(1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("types", [("float32", "int32"), {"x": ("float32", "ufixed8"), "place": ("int32",)}])
def test_several_outputs_and_types(types: Any) -> None:
    openqnn.custom_op("my.Package", "Split", outputs=("low", "place"), types=types)(
        lambda x: (x * np.float32(0.5), np.argsort(x, -1))
    )
    low, place = custom_ops()[0].declared.outputs
    assert (place.datatypes == ("QNN_DATATYPE_INT_32",)) == isinstance(types, dict)
    assert "QNN_DATATYPE_FLOAT_32" in low.datatypes
    graph = openqnn.convert(model(op="Split", outputs=2))
    assert [v.dtype.label for v in graph.nodes[1].outputs] == ["float32", "int32"]
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run({"x": X})["z"], RELU_X / 2, atol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"beta": 1.0}, "attribute 'beta' is no parameter of my.Package::Affine"),
        ({"mode": "TIMES"}, "mode=TIMES is none of PLUS, MINUS"),
        ({"table": 1.0}, "parameter table=1.0 should have shape"),
        ({"factor": "much"}, "parameter factor=much is no float32"),
    ],
)
def test_wrong_attributes(attributes: dict[str, Any], message: str) -> None:
    declare()
    with pytest.raises(UnsupportedError, match=message):
        openqnn.convert(model(**attributes))


def _raises(x: Any) -> Any:
    raise IndexError("oh")


@pytest.mark.parametrize(
    ("function", "message"),
    [(_raises, "its function raised IndexError: oh"), (lambda x: "text", "gives str, an array is expected")],
)
def test_wrong_functions(function: Any, message: str) -> None:
    openqnn.custom_op("my.Package", "Affine")(function)
    with pytest.raises((UnsupportedError, BackendError), match=message):
        openqnn.convert(model())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"types": ("float31",)}, "'float31' is no data type"),
        ({"types": {"x": ("float31",)}}, "'float31' is no data type"),
        ({"types": {"q": ("float32",)}}, "there is no tensor 'q'"),
        ({"backends": ("TPU",)}, "'TPU' is no backend"),
        ({"layouts": {"q": "NHWC"}}, "there is no tensor 'q'"),
        ({"layouts": {"x": "HWC"}}, "'HWC' is no layout"),
    ],
)
def test_wrong_declarations(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        declare(**settings)
    with pytest.raises(UsageError, match="QNN's own package"):
        openqnn.custom_op("qti.aisw", "Affine")(affine)


def test_an_op_called_like_one_of_qnn_is_no_such_op() -> None:
    """Passes go by names: Relu of another package is not theirs."""
    openqnn.custom_op("my.Package", "Relu", domain="my.domain")(lambda x: x * np.float32(2))
    graph = openqnn.convert(model(op="Relu"))
    assert [n.op for n in graph.nodes] == ["Relu", "my.Package::Relu", "Relu"]
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run({"x": X})["z"], 2 * RELU_X, atol=1e-6)
