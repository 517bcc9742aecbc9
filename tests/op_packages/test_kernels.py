"""Kernels that are written from Python functions: what they can follow, compiled and compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import openqnn
from openqnn.analysis.op_package_check import check_op_package
from openqnn.errors import BackendError
from openqnn.ops.custom import custom_ops
from openqnn.ops.kernel_trace import kernel_body
from tests.op_packages.sample import LIBRARY, PROVIDER, built, generated, needs_compiler

pytestmark = needs_compiler
SHAPES: dict[str, tuple[int, ...]] = dict.fromkeys(["x", "y", "table", "bias", "more"], (2, 3))
FILE = '''
from typing import Literal

import numpy as np
import openqnn


@openqnn.custom_op("MyPackage", "Blend", outputs=("y", "scaled"))
def blend(x, table, bias=None, *, factor: float, taps: list[float], mode: Literal["PLUS", "MINUS"] = "PLUS",
          on: bool = True, power: int = 2):
    y = factor * x**power + (table if mode == "PLUS" else -table)
    y = y if bias is None else y + bias
    return (y if on else x), y * taps[0]


@openqnn.custom_op("MyPackage", "Bend", types=("float32", "ufixed8"))
def bend(x, *, slopes: list[float], low: list[float] = (0.5, 1.5, 2.5)):
    """A slope for each channel."""
    return np.where((x > 0) & ~(x > 3), slopes * x / (1 + np.exp(-x)), np.sign(x) * low).clip(-4, 4)


@openqnn.custom_op("MyPackage", "Whole", types=("int32",), outputs=("q", "larger"))
def whole(x, y):
    return np.trunc(x / (np.abs(y) + 2)).astype(np.int32), (x > y).astype(np.int32)


@openqnn.custom_op("MyPackage", "Sum", cpp="""
for (size_t i = 0; i < out.size(); ++i) {
  float v = x[i] + (bias.given() ? bias.at(i, out) : 0);
  for (const auto& each : more) v *= each.at(i, out);
  out[i] = v;
}
""")
def product(x, bias=None, *more):
    y = x if bias is None else x + bias
    for each in more:
        y = y * each
    return y
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kernels")
    built(generated(place, FILE), CXXFLAGS="-O1 -Wall -Wextra")
    return place


def test_decisions_channels_and_whole_numbers(package: Path) -> None:
    """Once with the least that must be given, once with all that can be."""
    openqnn.load_custom_ops(package / "my_ops.py")
    report = check_op_package(str(package / LIBRARY), PROVIDER, shapes=SHAPES)
    assert report.ok, report.findings
    runs = [f.what for f in report.findings if "largest difference" in f.message]
    assert sorted(runs) == sorted(
        f"MyPackage::{n}" for n in ("Blend", "Bend", "Whole", "Sum", "Blend", "Bend", "Sum")
    )


def test_a_broken_branch_is_found(package: Path, tmp_path: Path) -> None:
    """The branch that only an input that may be left out leads to."""
    source = generated(tmp_path, FILE) / "src" / "ops" / "Blend.cpp"
    text = source.read_text()
    changed = re.sub(r"\+ bias\.at", "- bias.at", text)
    assert changed != text
    source.write_text(changed)
    built(source.parents[2])
    openqnn.load_custom_ops(tmp_path / "my_ops.py")
    report = check_op_package(str(tmp_path / LIBRARY), PROVIDER, shapes=SHAPES)
    assert [f.what for f in report.findings if f.ok is False] == ["MyPackage::Blend"]


def _gap(*inputs: str) -> onnx.ModelProto:
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (2, 3)) for n in ("x", "b", "z")]
    nodes = [helper.make_node("Sum", list(inputs), ["z"], domain="mine", name="sum")]
    graph = helper.make_graph(nodes, "g", info[:2], info[2:])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=sets)


def test_an_input_that_is_left_out_before_others(package: Path) -> None:
    """libQnnCpu hands kernels the others in its place: refused in words, never computed."""
    openqnn.load_custom_ops(package / "my_ops.py")
    feeds = {n: np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32) for n in ("x", "b")}
    given = f"{package / LIBRARY}:{PROVIDER}"
    for inputs, expected in (
        (("x", "b", "x", "x"), (feeds["x"] + feeds["b"]) * feeds["x"] ** 2),
        (("x", "b"), feeds["x"] + feeds["b"]),
    ):
        with openqnn.Session(openqnn.convert(_gap(*inputs)), "libQnnCpu.so", op_packages=given) as session:
            np.testing.assert_allclose(session.run(feeds)["z"], expected, atol=1e-6)
    graph = openqnn.convert(_gap("x", "", "x", "b"))
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run(feeds)["z"], feeds["x"] ** 2 * feeds["b"], atol=1e-6)
    with pytest.raises(BackendError, match="MyPackage::Sum 'sum'") as caught:
        openqnn.Session(graph, "libQnnCpu.so", op_packages=given).run(feeds)
    assert "left out with others behind it" in caught.value.hint


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, *, taps=(1.0, 2.0): x * sum(taps), "a loop over the elements of an array"),
        (lambda x, *, taps=(1.0, 2.0): x * len(taps), "the length of an array"),
        (lambda x: np.bitwise_and(x, 3), "np.bitwise_and"),
        (lambda x: x.astype(np.int8), "astype"),
    ],
)
def test_what_ends_with_a_reason(function: Any, reason: str) -> None:
    openqnn.custom_op("P", "Op")(function)
    body, why = kernel_body(custom_ops()[0])
    assert body == "" and reason in why
