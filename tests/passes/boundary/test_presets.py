"""The encodings that came with a model, through the passes."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.errors import OpenQnnWarning
from openqnn.ir import Encoding, Given, Graph
from openqnn.passes import Explain, run_passes
from openqnn.passes.boundary.given_encodings import settle_given, spread_given
from tests.passes.harness import graph_of, ops, reasons

SAID = Given("model", 8, encoding=Encoding.per_tensor(0.1, -3))
CHANNELS = Encoding((0.5, 0.25, 0.125, 1.0), (0, 0, 0, 0), 8, 1, symmetric=True)
STORED = np.random.default_rng(0).integers(-127, 128, (4, 4)).astype(np.float32)
DATA = {"w": STORED * np.asarray(CHANNELS.scale, np.float32)}


def settled(graph: Graph) -> Explain:
    spread_given(graph)
    log = run_passes(graph, verify=True)
    settle_given(graph, log)
    return log


def layer(after: str) -> Graph:
    return graph_of(f"input %x: float32[3,4]\nconst %w: float32[4,4] = data\n{after}\noutput %y", DATA)


PRODUCT = "%p: float32[3,4] = FullyConnected(%x, %w) keep_dims=false"
SCALED = "const %c: float32[4] = [1.5, 2.5, 3.5, 4.5]\n%y: float32[3,4] = ElementWiseMultiply(%p, %c)"


def test_what_is_said_spreads_over_the_same_values() -> None:
    graph = graph_of("""
        input %x: float32[2,3]
        %a: float32[3,2] = Transpose(%x) perm=[1, 0]
        %b: float32[3,2] = Tanh(%a)
        %c: float32[3,2] = Relu(%b)
        %d: float32[6] = Reshape(%c)
        output %d
    """)
    graph.given = {"a": SAID, "c": SAID}
    spread_given(graph)
    assert set(graph.given) == {"x", "a", "b", "c", "d"}


def test_it_does_not_spread_to_what_others_read() -> None:
    graph = graph_of("""
        input %x: float32[2,3]
        %a: float32[3,2] = Transpose(%x) perm=[1, 0]
        %b: float32[2,3] = Tanh(%x)
        output %a
        output %b
    """)
    graph.given = {"a": SAID}
    spread_given(graph)
    assert set(graph.given) == {"a"}


def test_the_axis_goes_with_a_weight_that_is_turned() -> None:
    graph = layer(
        "%t: float32[4,4] = Transpose(%w) perm=[1, 0]\n"
        "%y: float32[3,4] = MatMul(%x, %t) transpose_in0=false transpose_in1=false"
    )
    graph.given = {"w": Given("model", 8, encoding=CHANNELS, signed=True)}
    settled(graph)
    (said,) = graph.given.values()
    (weight,) = (v for v in graph.constants() if v.rank == 2)
    assert said.encoding is not None and weight.data is not None
    along = np.moveaxis(said.encoding.quantize(weight.data, signed=True), said.encoding.axis or 0, 1)
    assert np.array_equal(along, STORED)


def test_a_weight_that_is_changed_keeps_its_width_and_there_is_a_word() -> None:
    graph = layer(f"{PRODUCT}\n{SCALED}")
    graph.given = {"w": Given("model", 8, encoding=CHANNELS, signed=True)}
    with pytest.warns(OpenQnnWarning, match="1 weights lose the model's encodings.*'w'"):
        log = settled(graph)
    assert ops(graph) == ["FullyConnected"]
    assert graph.given["w"] == Given("model", 8, signed=True)
    assert "the width remains" in reasons(log)


def test_a_tensor_is_not_fused_away_with_the_only_encoding() -> None:
    graph = layer(f"{PRODUCT}\n{SCALED}")
    graph.given = {"p": SAID}
    log = settled(graph)
    assert "ElementWiseMultiply" in ops(graph) and graph.given == {"p": SAID}
    assert "'p' has an encoding of the model's own, and 'y' has none" in reasons(log)


def test_a_tensor_that_is_fused_into_another_is_noted() -> None:
    graph = layer(f"{PRODUCT}\n{SCALED}")
    graph.given = {"p": SAID, "y": SAID}
    log = settled(graph)
    assert ops(graph) == ["FullyConnected"] and graph.given == {"y": SAID}
    assert any(e.where == "'p'" and "fused" in e.reason for e in log.declined)


def test_operands_like_any_other_are_stored_as_activations_are() -> None:
    graph = graph_of("""
        input %x: float32[3,4]
        const %k: float32[4] = [0.5, -1.0, 2.0, 3.5]
        %y: float32[3,4] = ElementWiseAdd(%x, %k)
        output %y
    """)
    graph.given = {"k": Given("model", 8, encoding=Encoding.per_tensor(0.5, 0), signed=True)}
    settled(graph)
    said = graph.given["k"]
    assert said.encoding is not None and not said.signed and said.encoding.offset == (-128,)
