"""Recurrent layers of ATen, kept whole: one QNN cell per layer and direction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openqnn.frontends.onnx import rnn as onnx
from openqnn.frontends.onnx.shape import sliced
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Value

Layer = Callable[..., list[Value]]
# torch's order of gates by ONNX's: LSTM has input, forget, cell, output; ONNX input, output, forget, cell.
_LSTM, _GRU, _PLAIN = (0, 3, 1, 2), (1, 0, 2), (0,)


def _turned(t: TorchTranslation, weights: Value, order: tuple[int, ...]) -> Value:
    """Gates in ONNX's order, with an axis for the direction in front."""
    size = weights.shape[0] // len(order)
    gates = [sliced(t, weights, {0: slice(i * size, (i + 1) * size)}) for i in order]
    if all(g.data is not None for g in gates):
        joined = t.constant(np.concatenate([g.data for g in gates if g.data is not None]), weights.name)
    else:
        joined = t.concat(gates, 0)
    return t.reshape(joined, (1, *joined.shape))


def _stacked(
    t: TorchTranslation, layer: Layer, order: tuple[int, ...], x: Value, states: list[Value],
    params: list[Value], has_biases: bool, num_layers: int, train: bool, bidirectional: bool,
    batch_first: bool, dropout: float,
) -> list[Value]:  # fmt: skip
    """Layers one behind the other: the sequence, and the last states of all layers and directions."""
    if dropout and train:
        t.refuse("dropout between layers in training mode", hint="export the model for inference: eval()")
    ways, each = 1 + bidirectional, 2 + 2 * has_biases
    if len(params) != ways * num_layers * each:
        t.refuse(
            f"{len(params)} weights, {ways * num_layers * each} expected", hint="proj_size is not supported"
        )
    y = t.transpose(x, (1, 0, 2)) if batch_first else x
    runs: list[list[Value]] = []
    for i in range(num_layers):
        runs += [_run(t, layer, order, y, states, params, i * ways + way, each, way) for way in range(ways)]
        y = t.concat([found[0] for found in runs[-ways:]], 2)
    ends = [t.concat(list(each_state), 0) for each_state in zip(*(found[1:] for found in runs), strict=True)]
    return [t.transpose(y, (1, 0, 2)) if batch_first else y, *ends]


def _run(
    t: TorchTranslation, layer: Layer, order: tuple[int, ...], x: Value, states: list[Value],
    params: list[Value], at: int, each: int, way: int,
) -> list[Value]:  # fmt: skip
    """One layer in one direction: `at` counts both, each with as many weights."""
    w, r, *biases = (_turned(t, p, order) for p in params[at * each : (at + 1) * each])
    begin = [sliced(t, s, {0: slice(at, at + 1)}) for s in states]
    b = _both(t, biases) if biases else None
    found = layer(t, x, w, r, b, None, *begin, direction=("forward", "reverse")[way])
    return [t.reshape(found[0], (found[0].shape[0], *found[0].shape[2:])), *found[1:]]


def _both(t: TorchTranslation, biases: list[Value]) -> Value:
    if all(b.data is not None for b in biases):
        return t.constant(np.concatenate([b.data for b in biases if b.data is not None], 1), biases[0].name)
    return t.concat(biases, 1)


@translates("lstm.input")
def lstm(
    t: TorchTranslation, x: Value, hx: list[Value], params: list[Value], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Value]:  # fmt: skip
    layer: Layer = lambda t, y, w, r, b, lens, h, c, **more: onnx.lstm(t, y, w, r, b, lens, h, c, **more)
    return _stacked(
        t, layer, _LSTM, x, hx, params, has_biases, num_layers, train, bidirectional, batch_first, dropout
    )


@translates("gru.input")
def gru(
    t: TorchTranslation, x: Value, hx: Value, params: list[Value], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Value]:  # fmt: skip
    layer: Layer = lambda *args, **more: onnx.gru(*args, **more, linear_before_reset=1)
    return _stacked(
        t, layer, _GRU, x, [hx], params, has_biases, num_layers, train, bidirectional, batch_first, dropout
    )


@translates("rnn_tanh.input", "rnn_relu.input")
def rnn(
    t: TorchTranslation, x: Value, hx: Value, params: list[Value], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Value]:  # fmt: skip
    kind = "Tanh" if "tanh" in t.op else "Relu"
    layer: Layer = lambda *args, **more: onnx.rnn(*args, **more, activations=[kind])
    return _stacked(
        t, layer, _PLAIN, x, [hx], params, has_biases, num_layers, train, bidirectional, batch_first, dropout
    )
