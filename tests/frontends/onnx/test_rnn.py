"""Recurrent layers in all their variants, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openqnn.errors import UnsupportedError
from tests.frontends.onnx.against_ort import model_of, node, ops, rand, same
from tests.onnx_models import import_onnx

STEPS, BATCH, FEATURES, HIDDEN = 5, 3, 4, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
INPUTS = {"RNN": "x w r b l h", "GRU": "x w r b l h", "LSTM": "x w r b l h c p"}
OUTPUTS = {"RNN": "y yh", "GRU": "y yh", "LSTM": "y yh yc"}


def layer(
    op: str, count: int, drop: str = "", batch: int = BATCH
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Names, run-time inputs and constants of a layer; the inputs in `drop` are left out."""
    gates = GATES[op] * HIDDEN
    inputs = {
        "x": rand(STEPS, batch, FEATURES),
        "h": rand(count, batch, HIDDEN),
        "c": rand(count, batch, HIDDEN, seed=1),
    }
    constants = {
        "w": rand(count, gates, FEATURES, seed=2) * 0.5,
        "r": rand(count, gates, HIDDEN, seed=3) * 0.5,
        "b": rand(count, 2 * gates, seed=4),
        "l": np.full(batch, STEPS, np.int32),
        "p": rand(count, 3 * HIDDEN, seed=5),
    }
    names = ["_" if n in drop.split() else n for n in INPUTS[op].split()]
    used = lambda table: {n: a for n, a in table.items() if n in names}
    return " ".join(names), used(inputs), used(constants)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("drop", ["", "b l h c p"])
@pytest.mark.parametrize("batch", [1, 3])
def test_directions(op: str, direction: str, drop: str, batch: int) -> None:
    names, inputs, constants = layer(op, 2 if direction == "bidirectional" else 1, drop, batch)
    graph = same(node(op, names, OUTPUTS[op], hidden_size=HIDDEN, direction=direction), inputs, constants)
    cell = {"GRU": "Gru", "LSTM": "Lstm"}.get(op)
    assert cell is None or ops(graph)[cell] == (2 if direction == "bidirectional" else 1)


@pytest.mark.parametrize("linear", [0, 1])
@pytest.mark.parametrize("clip", [None, 0.4])
def test_gru_resets_before_or_after_the_product(linear: int, clip: float | None) -> None:
    names, inputs, constants = layer("GRU", 1)
    more = {} if clip is None else {"clip": clip}
    same(
        node("GRU", names, "y yh", hidden_size=HIDDEN, linear_before_reset=linear, **more), inputs, constants
    )


@pytest.mark.parametrize("op", GATES)
def test_clipping_is_unrolled(op: str) -> None:
    names, inputs, constants = layer(op, 1)
    graph = same(node(op, names, OUTPUTS[op], hidden_size=HIDDEN, clip=0.3), inputs, constants)
    assert not {"Gru", "Lstm"} & set(ops(graph))


@pytest.mark.parametrize(
    ("op", "functions", "more"),
    [
        ("RNN", ["Relu"], {}),
        ("RNN", ["LeakyRelu"], {"activation_alpha": [0.3]}),
        ("RNN", ["ScaledTanh"], {"activation_alpha": [1.5], "activation_beta": [0.7]}),
        ("GRU", ["HardSigmoid", "Softsign"], {"activation_alpha": [0.3], "activation_beta": [0.4]}),
        ("LSTM", ["HardSigmoid", "Relu", "Tanh"], {"activation_alpha": [0.3], "activation_beta": [0.4]}),
    ],
)
def test_other_activations(op: str, functions: list[str], more: dict[str, Any]) -> None:
    names, inputs, constants = layer(op, 1)
    same(node(op, names, OUTPUTS[op], hidden_size=HIDDEN, activations=functions, **more), inputs, constants)


def test_unused_states_are_not_needed() -> None:
    names, inputs, constants = layer("LSTM", 1)
    same(node("LSTM", names, "_ yh", hidden_size=HIDDEN), inputs, constants)


def test_sequences_of_different_lengths_are_refused() -> None:
    names, inputs, constants = layer("LSTM", 1)
    constants["l"] = np.asarray([5, 4, 5], np.int32)
    with pytest.raises(UnsupportedError, match="different lengths"):
        import_onnx(model_of(node("LSTM", names, "y", hidden_size=HIDDEN), inputs, constants, 14))


def test_weights_are_views_of_the_source() -> None:
    names, inputs, constants = layer("GRU", 1)
    graph = same(node("GRU", names, "y", hidden_size=HIDDEN), inputs, constants)
    cell = next(n for n in graph.nodes if n.op == "Gru")
    assert all(cell.x(i).data.base is not None for i in range(1, 7))  # type: ignore[union-attr]
