"""Composites: functions of the user that say a source op in QNN ops, on every backend."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import openqnn
from openqnn.cli.main import main
from openqnn.errors import InputError, UnsupportedError, UsageError
from openqnn.frontends.custom_ops import custom_translator, forget_composites
from openqnn.frontends.translation import Refused

X = np.random.default_rng(0).normal(size=(1, 3, 4, 4)).astype(np.float32)
FILE = """
import openqnn

@openqnn.composite("my.domain", "ScaledTanh")
def scaled_tanh(q, x, *, factor: float = 1.0):
    return q.mul(q.tanh(x), factor)
"""


@pytest.fixture(autouse=True)
def _nothing_declared() -> Generator[None]:
    forget_composites()
    yield
    forget_composites()


def _model(op: str = "ScaledTanh", domain: str = "my.domain", **attributes: Any) -> onnx.ModelProto:
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, X.shape) for n in "xy"]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node(op, ["r"], ["y"], domain=domain, name="mine", **attributes),
    ]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=sets)


def _declare() -> None:
    @openqnn.composite("my.domain", "ScaledTanh")
    def scaled_tanh(q: Any, x: Any, *, factor: float = 1.0) -> Any:  # pyright: ignore[reportUnusedFunction]
        return q.mul(q.tanh(x), factor)


@pytest.mark.parametrize(("backend", "error"), [("cpu", 1e-6), ("libQnnCpu.so", 1e-6), ("htp", 4e-3)])
def test_composite_runs(backend: str, error: float) -> None:
    _declare()
    graph = openqnn.convert(_model(factor=2.5))
    with openqnn.Session(graph, backend) as session:
        found = session.run({"x": X})["y"]
    np.testing.assert_allclose(found, 2.5 * np.tanh(np.maximum(X, 0)), atol=error)
    assert graph.nodes[-1].source == "onnx node mine"


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "my_ops.py").write_text(FILE)
    onnx.save(_model(factor=0.5), tmp_path / "m.onnx")
    given = [str(tmp_path / "m.onnx"), "--custom_ops", str(tmp_path / "my_ops.py")]
    assert main(["convert", *given, "-o", str(tmp_path / "m.oqnn"), "--quiet"]) == 0
    assert [n.op for n in openqnn.load(tmp_path / "m.oqnn").nodes] == ["Relu", "Tanh", "ElementWiseMultiply"]


def test_without_declaration_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(_model(), tmp_path / "m.onnx")
    assert main(["convert", str(tmp_path / "m.onnx")]) == 1
    said = capsys.readouterr().err
    assert "ScaledTanh of domain 'my.domain' has no QNN equivalent" in said and "--custom_ops" in said


def test_composite_counts_more_than_function_body() -> None:
    model = _model(factor=3.0)
    body = [helper.make_node("Identity", ["a"], ["b"])]
    function = helper.make_function(
        "my.domain", "ScaledTanh", ["a"], ["b"], body, [helper.make_opsetid("", 17)], ["factor"]
    )
    model.functions.append(function)
    assert "Tanh" not in str(openqnn.convert(model))
    _declare()
    assert "Tanh" in str(openqnn.convert(model))


def _broken(kind: str) -> Any:
    def composite(q: Any, x: Any, *, factor: float = 1.0) -> Any:
        if kind == "raises":
            raise ZeroDivisionError("oh")
        if kind == "number":
            return factor
        if kind == "op":
            return q("Tanhh", x)
        return q.matmul(x, x) if kind == "shape" else ()

    return composite


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("raises", r"ZeroDivisionError: oh \(at .*test_composites.py:\d+\)"),
        ("number", "gives float where a tensor is expected"),
        ("op", "there is no operation 'Tanhh'"),
        ("nothing", "gives nothing where a tensor"),
    ],
)
def test_wrong_composite(kind: str, message: str) -> None:
    openqnn.composite("my.domain", "ScaledTanh")(_broken(kind))
    with pytest.raises(UnsupportedError, match=f"composite my.domain::ScaledTanh.*{message}"):
        openqnn.convert(_model())


def test_attributes_are_checked() -> None:
    _declare()
    with pytest.raises(UnsupportedError, match="attribute 'beta' is not known"):
        openqnn.convert(_model(beta=1.0))
    with pytest.raises(UnsupportedError, match="attribute 'factor' is a str, float is expected"):
        openqnn.convert(_model(factor="much"))


def test_declared_twice() -> None:
    _declare()
    _declare()  # the same function again, as when a module is loaded twice
    with pytest.raises(UsageError, match=r"my\.domain::ScaledTanh is declared twice, at .*:\d+ and at"):
        openqnn.composite("my.domain", "ScaledTanh")(_broken(""))


@pytest.mark.parametrize("text", ["my.domain.ScaledTanh", "my.domain::ScaledTanh", "ScaledTanh"])
def test_frameworks_without_domains(text: str) -> None:
    _declare()
    assert custom_translator(text) is not None
    assert custom_translator("Tanh") is None


def test_ambiguous_name() -> None:
    for domain in ("a", "b"):
        openqnn.composite(domain, "Op")(_broken(""))
    with pytest.raises(Refused, match="declared for the domains 'a' and 'b'"):
        custom_translator("Op")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.py", None, "no such file"),
        ("ops.txt", "", "neither a Python file nor XML"),
        ("bad.py", "def f(:\n", r"bad.py:1: "),
        ("raises.py", "\n1 / 0\n", r"ZeroDivisionError: division by zero \(at .*raises.py:2\)"),
        ("name.py", "import openqnn\n@openqnn.composite\ndef f(q): ...\n", "declared by domain and name"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        openqnn.load_custom_ops(tmp_path / name)
