"""Recurrent layers. LSTM and GRU in their usual form are QNN's own cells, one node per direction, with the
weights of the gates as views; RNN, other activations and clipping are unrolled step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from openqnn.frontends.compositions import cut
from openqnn.frontends.onnx.activations import hard_sigmoid, softplus, softsign, thresholded_relu
from openqnn.frontends.onnx.elementwise import clip_to
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Shape, Value

MOST_STEPS = 1024  # unrolled; more make graphs that no backend prepares in reasonable time
Activation = Callable[[Value], Value]
# name: how many of alpha and beta it takes, their defaults, and what it computes
_Formula = Callable[[Translation, Value, float, float], Value]
_ACTIVATIONS: dict[str, tuple[int, tuple[float, float], _Formula]] = {
    "relu": (0, (0, 0), lambda t, x, a, b: t.relu(x)),
    "tanh": (0, (0, 0), lambda t, x, a, b: t.tanh(x)),
    "sigmoid": (0, (0, 0), lambda t, x, a, b: t.sigmoid(x)),
    "softsign": (0, (0, 0), lambda t, x, a, b: softsign(t, x)),
    "softplus": (0, (0, 0), lambda t, x, a, b: softplus(t, x)),
    "affine": (2, (1, 0), lambda t, x, a, b: t.add(t.mul(x, a), b)),
    "leakyrelu": (1, (0.01, 0), lambda t, x, a, b: t.prelu(x, t.scalar(a, x))),
    "elu": (1, (1, 0), lambda t, x, a, b: t.elu(x, alpha=a)),
    "scaledtanh": (2, (1, 1), lambda t, x, a, b: t.mul(t.tanh(t.mul(x, b)), a)),
    "hardsigmoid": (2, (0.2, 0.5), lambda t, x, a, b: hard_sigmoid(t, x, alpha=a, beta=b)),
    "thresholdedrelu": (1, (1, 0), lambda t, x, a, b: thresholded_relu(t, x, alpha=a)),
}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """What the three ops have in common, with time first and one entry per direction."""

    t: Translation
    x: Value  # [steps, batch, features]
    w: list[Value]  # per direction [gates * hidden, features]
    r: list[Value]  # per direction [gates * hidden, hidden]
    b: list[Value | None]  # per direction [2 * gates * hidden]
    h: list[Value]  # per direction [batch, hidden]
    reverse: list[bool]
    batch_first: bool
    hidden: int

    @property
    def steps(self) -> int:
        return self.x.shape[0]

    def gate(self, weights: Value, index: int) -> Value:
        """The part of one gate, along the first axis."""
        return cut(self.t, weights, 0, index * self.hidden, (index + 1) * self.hidden)

    def biases(self, direction: int, gates: int) -> tuple[Value, Value]:
        """The biases of the input and of the state; zero where there are none."""
        both = self.b[direction]
        size = gates * self.hidden
        if both is None:
            zero = self.t.constant(np.zeros(size, self.x.dtype.numpy))
            return zero, zero
        return cut(self.t, both, 0, 0, size), cut(self.t, both, 0, size, 2 * size)

    def outputs(self, sequences: list[Value], *last: list[Value]) -> list[Value]:
        """Y and the last states of all directions, in the layout of the model."""
        t, (steps, batch, _), hidden = self.t, self.x.shape, self.hidden
        y = t.concat([t.reshape(s, (steps, 1, batch, hidden)) for s in sequences], 1)
        states = [t.concat([t.reshape(v, (1, batch, hidden)) for v in each], 0) for each in last]
        if self.batch_first:
            return [t.transpose(y, (2, 0, 1, 3)), *(t.transpose(s, (1, 0, 2)) for s in states)]
        return [y, *states]


def _layer(
    t: Translation, gates: int, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None,
    h: Value | None, direction: str, hidden_size: int | None, layout: int,
) -> Layer:  # fmt: skip
    turned = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if turned is None:
        t.refuse(f"direction={direction!r} is not known")
    if x.rank != 3 or w.rank != 3 or r.rank != 3:
        t.refuse(f"data {list(x.shape)} and weights {list(w.shape)}, {list(r.shape)} should have three axes")
    x = t.transpose(x, (1, 0, 2)) if layout else x
    (steps, _, features), hidden, count = x.shape, r.shape[2], len(turned)
    _check_shape(t, "W", w, (count, gates * hidden, features))
    _check_shape(t, "R", r, (count, gates * hidden, hidden))
    _check_shape(t, "B", b, (count, 2 * gates * hidden))
    if hidden_size not in (None, hidden) or not steps or not hidden:
        t.refuse(f"hidden_size={hidden_size} with {steps} steps does not fit weights {list(r.shape)}")
    if lengths is not None and any(n != steps for n in t.ints(lengths, "sequence_lens")):
        t.refuse("sequences of different lengths: QNN's cells run over all steps")
    states = _states(t, h, x, count, hidden, layout)
    biases: list[Value | None] = [None] * count
    if b is not None:
        biases[:] = _directions(t, b, count)
    weights = _directions(t, w, count), _directions(t, r, count)
    return Layer(t, x, *weights, biases, states, turned, bool(layout), hidden)


def _check_shape(t: Translation, name: str, value: Value | None, shape: Shape) -> None:
    if value is not None and value.shape != shape:
        t.refuse(f"{name} has shape {list(value.shape)}, {list(shape)} expected")


def _directions(t: Translation, value: Value, count: int) -> list[Value]:
    return [_direction(t, value, i) for i in range(count)]


def _direction(t: Translation, v: Value, index: int) -> Value:
    return t.reshape(cut(t, v, 0, index, index + 1), v.shape[1:])


def _states(t: Translation, v: Value | None, x: Value, count: int, hidden: int, layout: int) -> list[Value]:
    """Initial states per direction; zero where none are given, as some backends need to see them."""
    shape = (count, x.shape[1], hidden)
    if v is None:
        return [t.constant(np.zeros(shape[1:], x.dtype.numpy))] * count
    v = t.transpose(v, (1, 0, 2)) if layout and v.rank == 3 else v
    if v.shape != shape:
        t.refuse(f"an initial state has shape {list(v.shape)}, {list(shape)} expected")
    return [_direction(t, v, i) for i in range(count)]


# -- activations ---------------------------------------------------------------------------------------------


def _activations(
    t: Translation, names: Sequence[str] | None, default: Sequence[str], count: int,
    alpha: list[float] | None, beta: list[float] | None, clip: float | None,
) -> list[list[Activation]]:  # fmt: skip
    """The functions of each direction. `clip` bounds what goes into those of the gates, but as in ONNX
    Runtime not the cell on its way out (the third function of an LSTM)."""
    names = [n if isinstance(n, str) else n.decode() for n in names] if names else list(default) * count
    if len(names) != len(default) * count:
        t.refuse(f"{len(names)} activations for {count} direction(s) of {len(default)}")
    alphas, betas = iter(alpha or []), iter(beta or [])
    bounds = [clip if i % len(default) < 2 else None for i in range(len(names))]
    found = [_activation(t, name, alphas, betas, c) for name, c in zip(names, bounds, strict=True)]
    return [found[i * len(default) : (i + 1) * len(default)] for i in range(count)]


def _activation(t: Translation, name: str, alphas: object, betas: object, clip: float | None) -> Activation:
    row = _ACTIVATIONS.get(name.lower())
    if row is None:
        t.refuse(f"activation {name!r} is not known")
    takes, (a, b), formula = row
    a = next(alphas, a) if takes > 0 else a  # pyright: ignore[reportCallIssue, reportArgumentType]
    b = next(betas, b) if takes > 1 else b  # pyright: ignore[reportCallIssue, reportArgumentType]
    return lambda x: formula(t, clip_to(t, x, -clip, clip) if clip else x, a, b)


def _is_usual(names: Sequence[str] | None, default: Sequence[str], count: int, clip: float | None) -> bool:
    texts = [n if isinstance(n, str) else n.decode() for n in names or []]
    return not clip and (not texts or [n.lower() for n in texts] == list(default) * count)


# -- unrolled ------------------------------------------------------------------------------------------------

Step = Callable[[Value, tuple[Value, ...]], tuple[Value, ...]]


def _unrolled(
    layer: Layer, direction: int, bias: Value, states: tuple[Value, ...], step: Step
) -> tuple[Value, list[Value]]:
    """Input weights meet all steps at once; only the state waits. Gives the sequence and the last states."""
    t = layer.t
    if layer.steps > MOST_STEPS:
        t.refuse(f"{layer.steps} steps of a cell that QNN does not have are too many to unroll")
    fed = t.add(t.matmul(layer.x, layer.w[direction], turn_b=True), bias)
    places = range(layer.steps)
    found: dict[int, Value] = {}
    for i in reversed(places) if layer.reverse[direction] else places:
        states = step(t.reshape(cut(t, fed, 0, i, i + 1), fed.shape[1:]), states)
        found[i] = t.reshape(states[0], (1, *states[0].shape))
    return t.concat([found[i] for i in places], 0), list(states)


def _times(t: Translation, h: Value, weight: Value) -> Value:
    """The state times weights [out, hidden]."""
    return t.matmul(h, weight, turn_b=True)


@translates("RNN")
def rnn(
    t: Translation, x: Value, w: Value, r: Value, b: Value | None = None, sequence_lens: Value | None = None,
    initial_h: Value | None = None, *, activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None, activations: list[str] | None = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int | None = None, layout: int = 0,
) -> list[Value]:  # fmt: skip
    layer = _layer(t, 1, x, w, r, b, sequence_lens, initial_h, direction, hidden_size, layout)
    count = len(layer.reverse)
    functions = _activations(t, activations, ["tanh"], count, activation_alpha, activation_beta, clip)
    results = []
    for d in range(count):
        bias = t.add(*layer.biases(d, 1))
        step: Step = lambda fed, s, d=d: (functions[d][0](t.add(fed, _times(t, s[0], layer.r[d]))),)
        results.append(_unrolled(layer, d, bias, (layer.h[d],), step))
    return layer.outputs([y for y, _ in results], [s[0] for _, s in results])


# -- LSTM ----------------------------------------------------------------------------------------------------


@translates("LSTM")
def lstm(
    t: Translation, x: Value, w: Value, r: Value, b: Value | None = None, sequence_lens: Value | None = None,
    initial_h: Value | None = None, initial_c: Value | None = None, p: Value | None = None, *,
    activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None,
    activations: list[str] | None = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int | None = None, input_forget: int = 0, layout: int = 0,
) -> list[Value]:  # fmt: skip
    if input_forget:
        t.refuse("coupled input and forget gates (input_forget=1)")
    layer = _layer(t, 4, x, w, r, b, sequence_lens, initial_h, direction, hidden_size, layout)
    count, usual = len(layer.reverse), ["sigmoid", "tanh", "tanh"]
    cells = _states(t, initial_c, layer.x, count, layer.hidden, layout)
    if p is not None and p.shape != (count, 3 * layer.hidden):
        t.refuse(f"P has shape {list(p.shape)}, {[count, 3 * layer.hidden]} expected")
    peepholes = [None if p is None else _direction(t, p, d) for d in range(count)]
    if _is_usual(activations, usual, count, clip):
        results = [_lstm_cell(layer, d, cells[d], peepholes[d]) for d in range(count)]
    else:
        functions = _activations(t, activations, usual, count, activation_alpha, activation_beta, clip)
        results = [_lstm_steps(layer, d, cells[d], peepholes[d], functions[d]) for d in range(count)]
    return layer.outputs(*([one[i] for one in results] for i in range(3)))


def _lstm_cell(layer: Layer, d: int, c: Value, p: Value | None) -> list[Value]:
    """ONNX orders the gates input, output, forget, cell, and its two biases are only ever added."""
    t = layer.t
    bias = _sum(t, *layer.biases(d, 4))
    w, r, b = ([layer.gate(v, i) for i in range(4)] for v in (layer.w[d], layer.r[d], bias))
    holes = [None] * 3 if p is None else [layer.gate(p, i) for i in range(3)]
    y, c_last, h_last = t.many(
        "Lstm", layer.x, w[2], w[3], w[1], r[2], r[3], r[1], b[2], b[3], b[1], layer.h[d], c,
        None, None, None, None, w[0], r[0], holes[0], holes[2], holes[1], b[0],
        direction="REVERSE" if layer.reverse[d] else "FORWARD", time_major=True,
    )  # fmt: skip
    return [y, h_last, c_last]


def _sum(t: Translation, a: Value, b: Value) -> Value:
    """A sum that is worked out at once when both are known: cells want constants."""
    if a.data is not None and b.data is not None:
        return t.constant(a.data + b.data, a.name)
    return t.add(a, b)


def _lstm_steps(layer: Layer, d: int, c: Value, p: Value | None, functions: list[Activation]) -> list[Value]:
    t, (f, g, h_of) = layer.t, functions
    part = lambda v, i: cut(t, v, 1, i * layer.hidden, (i + 1) * layer.hidden)
    hole = lambda v, cell, i: v if p is None else t.add(v, t.mul(cell, layer.gate(p, i)))

    def step(fed: Value, states: tuple[Value, ...]) -> tuple[Value, Value]:
        h, cell = states
        gates = t.add(fed, _times(t, h, layer.r[d]))
        into, forget = f(hole(part(gates, 0), cell, 0)), f(hole(part(gates, 2), cell, 2))
        cell = t.add(t.mul(forget, cell), t.mul(into, g(part(gates, 3))))
        return t.mul(f(hole(part(gates, 1), cell, 1)), h_of(cell)), cell

    y, (h, c) = _unrolled(layer, d, _sum(t, *layer.biases(d, 4)), (layer.h[d], c), step)
    return [y, h, c]


# -- GRU -----------------------------------------------------------------------------------------------------


@translates("GRU")
def gru(
    t: Translation, x: Value, w: Value, r: Value, b: Value | None = None, sequence_lens: Value | None = None,
    initial_h: Value | None = None, *, activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None, activations: list[str] | None = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int | None = None, layout: int = 0,
    linear_before_reset: int = 0,
) -> list[Value]:  # fmt: skip
    layer = _layer(t, 3, x, w, r, b, sequence_lens, initial_h, direction, hidden_size, layout)
    count, usual = len(layer.reverse), ["sigmoid", "tanh"]
    linear = bool(linear_before_reset)
    if _is_usual(activations, usual, count, clip):
        sequences = [_gru_cell(layer, d, linear) for d in range(count)]
    else:
        functions = _activations(t, activations, usual, count, activation_alpha, activation_beta, clip)
        sequences = [_gru_steps(layer, d, functions[d], linear) for d in range(count)]
    # From the sequence and not from the cell's second output, in which libQnnCpu returns the initial state.
    places = [0 if backwards else layer.steps - 1 for backwards in layer.reverse]
    last = [cut(t, y, 0, i, i + 1) for y, i in zip(sequences, places, strict=True)]
    return layer.outputs(sequences, last)


def _gru_cell(layer: Layer, d: int, linear: bool) -> Value:
    """Batch first, because libQnnCpu gets time first wrong for more than one sequence."""
    t, one = layer.t, layer.x.shape[1] == 1
    w, r = ([layer.gate(v, i) for i in range(3)] for v in (layer.w[d], layer.r[d]))
    biases = [layer.gate(v, i) for v in layer.biases(d, 3) for i in range(3)]
    data = layer.x if one else t.transpose(layer.x, (1, 0, 2))
    h = t.reshape(layer.h[d], (1, *layer.h[d].shape))
    y = t(
        "Gru", data, *w, *r, *biases, h, direction="REVERSE" if layer.reverse[d] else "FORWARD",
        linear_before_reset=int(linear), time_major=one,
    )  # fmt: skip
    return y if one else t.transpose(y, (1, 0, 2))


def _gru_steps(layer: Layer, d: int, functions: list[Activation], linear: bool) -> Value:
    t, (f, g), size = layer.t, functions, layer.hidden
    part = lambda v, i: cut(t, v, 1, i * size, (i + 1) * size)
    input_bias, state_bias = layer.biases(d, 3)
    update_reset, new = cut(t, layer.r[d], 0, 0, 2 * size), layer.gate(layer.r[d], 2)
    gate_bias, new_bias = cut(t, state_bias, 0, 0, 2 * size), layer.gate(state_bias, 2)

    def step(fed: Value, states: tuple[Value, ...]) -> tuple[Value]:
        (h,) = states
        gates = t.add(cut(t, fed, 1, 0, 2 * size), t.add(_times(t, h, update_reset), gate_bias))
        z, reset = f(part(gates, 0)), f(part(gates, 1))
        if linear:
            inner = t.mul(reset, t.add(_times(t, h, new), new_bias))
        else:
            inner = t.add(_times(t, t.mul(reset, h), new), new_bias)
        candidate = g(t.add(part(fed, 2), inner))
        return (t.add(t.mul(t.sub(1.0, z), candidate), t.mul(z, h)),)

    return _unrolled(layer, d, input_bias, (layer.h[d],), step)[0]
