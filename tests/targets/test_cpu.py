"""Graphs for libQnnCpu, whose Dequantize gives the result of its first run ever after."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn import Session
from openqnn.errors import UnsupportedError, UsageError
from openqnn.ir import Graph
from openqnn.ir.graph_text import parse_graph
from openqnn.targets.registry import find_target, target_of_library
from tests.libraries import need

CPU, SHAPE = "libQnnCpu.so", (1, 4, 2)
ENCODINGS = {
    "ufixed8": "scale=[0.03] offset=[-128] bits=8 symmetric=false",
    "sfixed8": "scale=[0.03] offset=[3] bits=8 symmetric=false",
    "sfixed8 by channel": "scale=[0.03, 0.02] offset=[0, 0] bits=8 axis=2 symmetric=true",
    "ufixed16": "scale=[0.001] offset=[-30000] bits=16 symmetric=false",
}


def graph(kind: str) -> Graph:
    return parse_graph(f"""
graph "g" {{
  input %x: {kind.split(maxsplit=1)[0]}[1,4,2] <{ENCODINGS[kind]}>
  %real: float32[1,4,2] = Dequantize(%x)
  %y: float32[1,4,2] = Relu(%real)
  output %y
}}
""")


@pytest.fixture(autouse=True)
def _library() -> None:
    need(CPU)


@pytest.mark.parametrize("kind", ["ufixed8", "sfixed8", "sfixed8 by channel"])
def test_a_later_run_has_results_of_its_own(kind: str) -> None:
    made, rng = graph(kind), np.random.default_rng(0)
    with Session(made, CPU) as theirs, Session(made) as ours:
        for _ in range(3):
            inputs = {"x": rng.normal(size=SHAPE).astype(np.float32)}
            np.testing.assert_allclose(theirs.run(inputs)["y"], ours.run(inputs)["y"], atol=1e-6)


def test_names_stay() -> None:
    found = target_of_library(CPU).adapt(graph("ufixed8"))
    assert [n.op for n in found.nodes] == ["Cast", "ElementWiseAdd", "ElementWiseMultiply", "Relu"]
    assert found.nodes[-1].x(0).name == "real"


def test_what_libqnncpu_cannot_cast_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="ufixed16 in its first run only"):
        target_of_library(CPU).adapt(graph("ufixed16"))


def test_others_get_the_graph_as_it_is() -> None:
    made = graph("ufixed16")
    assert target_of_library("libQnnSaver.so").adapt(made) is made
    plain = parse_graph('graph "g" {\n input %x: float32[2]\n %y: float32[2] = Relu(%x)\n output %y\n}')
    assert target_of_library(CPU).adapt_file(plain) is plain


def test_targets_are_found_by_name_and_by_library() -> None:
    assert find_target("htp") is target_of_library("/some/where/libQnnHtp.so")
    with pytest.raises(UsageError, match="no target 'npu'"):
        find_target("npu")


def test_a_target_tells_all_that_it_cannot_run() -> None:
    (problem,) = target_of_library(CPU).problems(graph("ufixed16"))
    assert "ufixed16" in problem.reason
    assert not find_target("cpu").problems(graph("ufixed16"))


NEURONS = {
    "ELU": "alpha=1.0",
    "GELU": "",
    "HARD_SIGMOID": "alpha=0.2 beta=0.5",
    "HARD_SWISH": "",
    "RELU": "",
    "SIGMOID": "",
    "SOFTPLUS": "beta=1.0 threshold=20.0",
    "TANH": "",
}


@pytest.mark.parametrize("operation", NEURONS)
def test_activations_in_fixed_point(operation: str) -> None:
    """libQnnCpu validates all of them, executes most, and computes some: the others are in real numbers."""
    known = f"ufixed8[1,4,2] <{ENCODINGS['ufixed8']}>"
    made = parse_graph(f"""
graph "g" {{
  input %x: {known}
  %y: {known} = ElementWiseNeuron(%x) operation={operation} {NEURONS[operation]}
  output %y
}}
""")
    rng = np.random.default_rng(0)
    with Session(made, CPU) as theirs, Session(made) as ours:
        for _ in range(2):
            inputs = {"x": rng.normal(size=SHAPE).astype(np.float32)}
            np.testing.assert_allclose(theirs.run(inputs)["y"], ours.run(inputs)["y"], atol=0.031)
