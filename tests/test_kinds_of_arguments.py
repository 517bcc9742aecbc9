"""What is given of a wrong kind is an error of ours that says so; inputs that decide shapes are frozen."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import openqnn
from openqnn.errors import OpenQnnError, OpenQnnWarning, UsageError
from openqnn.quant.recipe import Choices, Recipe
from tests.cli.tool import openqnn as command
from tests.frontends.onnx.against_ort import model_of, node, rand


def top_k() -> onnx.ModelProto:
    """The k largest of a row, where k is an input; and a factor, which is one, too."""
    nodes = [node("TopK", "x k", "v i", axis=1), node("Mul", "v f", "y")]
    inputs = {"x": rand(2, 8), "k": np.array([3]), "f": np.array(2.0, np.float32)}
    made = model_of(nodes, inputs, {}, 17)
    del made.graph.output[:]
    made.graph.output.append(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None))
    return made


def small() -> openqnn.Graph:
    return openqnn.convert(model_of([node("Relu", "x", "y")], {"x": rand(2, 3)}, {}, 17))


Given: Any = object()  # of no kind that fits


@pytest.mark.parametrize(
    "call",
    [
        lambda: openqnn.convert(top_k(), input_shapes=[1, 2]),
        lambda: openqnn.convert(top_k(), input_shapes={"x": "2x8"}),
        lambda: openqnn.convert(top_k(), input_shapes={"x": (2.5, 8)}),
        lambda: openqnn.convert(top_k(), input_shapes={"x": None}),
        lambda: openqnn.convert(top_k(), dims=["n"]),
        lambda: openqnn.convert(top_k(), dims={"n": "b"}),
        lambda: openqnn.convert(top_k(), batch="3"),
        lambda: openqnn.convert(top_k(), outputs="y"),
        lambda: openqnn.convert(top_k(), input_values=[3]),
        lambda: openqnn.convert(top_k(), input_values={"nothing": 3}),
        lambda: openqnn.convert(top_k(), input_values={"k": 2.5}),
        lambda: openqnn.convert(top_k(), input_values={"k": [1, 2]}),
        lambda: openqnn.quantize(Given, []),
        lambda: openqnn.quantize(small(), [], overrides={"x": Given}),
        lambda: openqnn.quantize(small(), [], threads=-3),
        lambda: openqnn.split_outputs(Given),
        lambda: openqnn.compare(Given, []),
        lambda: openqnn.Session(Given),
        lambda: openqnn.Session(small(), Given),
        lambda: openqnn.load(Given),
        lambda: small().save(Given),
    ],
)
def test_it_is_told(call: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert "Given" not in str(caught.value) and len(str(caught.value).splitlines()[0]) > 20


def test_an_input_that_decides_a_shape_is_frozen() -> None:
    with pytest.raises(OpenQnnError):
        openqnn.convert(top_k())
    graph = openqnn.convert(top_k(), input_values={"k": 3, "f": 2})
    assert [v.name for v in graph.inputs] == ["x"] and graph.outputs[0].shape == (2, 3)
    x = rand(2, 8)
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run({"x": x})["y"], -np.sort(-x, 1)[:, :3] * 2, rtol=1e-6)
    assert openqnn.check(top_k(), input_values={"k": 3}).ok


def test_the_command_freezes_it_too(tmp_path: Path) -> None:
    onnx.save(top_k(), tmp_path / "m.onnx")
    made = tmp_path / "m.oqnn"
    result = command(
        "convert", tmp_path / "m.onnx", "--input_value", "k=3", "--input_value", "f=0.5", "-o", made
    )
    assert result.code == 0, result.err
    assert [v.name for v in openqnn.load(made).inputs] == ["x"]


def test_what_a_notebook_shows() -> None:
    graph = small()
    graph.name = "<b>"
    shown = graph._repr_html_()
    assert "&lt;b&gt;" in shown and "x: float32 [2, 3]" in shown and "1 Relu" in shown


def test_a_mask_of_attention_is_no_bad_weight() -> None:
    mask = np.where(np.tri(4, dtype=bool), 0, -np.inf).astype(np.float32)
    nodes = [node("Add", "x m", "a"), node("Softmax", "a", "y", axis=-1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", OpenQnnWarning)
        openqnn.convert(model_of(nodes, {"x": rand(4, 4)}, {"m": mask}, 17))
    mask[0, 0] = np.nan
    with pytest.warns(OpenQnnWarning, match="NaN or infinite"):
        openqnn.convert(model_of(nodes, {"x": rand(4, 4)}, {"m": mask}, 17))


def test_editors_know_the_choices_of_the_quantizer() -> None:
    hints = {name: field.type for name, field in Recipe.__dataclass_fields__.items()}
    assert Choices.__annotations__.keys() == hints.keys()
    assert [str(h.__forward_arg__) for h in Choices.__annotations__.values()] == list(hints.values())
    shown = inspect.signature(openqnn.quantize).parameters["choices"].annotation
    assert shown == "Unpack[Choices]"
