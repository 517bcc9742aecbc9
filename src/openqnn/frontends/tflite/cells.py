"""Recurrent layers of TFLite. Their states are variable tensors: inputs and outputs of the graph."""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.frontends.compositions import cut
from openqnn.frontends.tflite.activations import fused_activation
from openqnn.frontends.tflite.shape import sliced
from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import Value

TANH = 4  # the only activation of cells that QNN's own Lstm has
MOST_STEPS = 1024  # unrolled


def _state(t: Translation, index: int, value: Value) -> None:
    """What a state is for the next inference."""
    tensor = t.source(index)
    t.write_state(tensor.name, value, tensor)


@translates("UNIDIRECTIONAL_SEQUENCE_LSTM")
def unidirectional_sequence_lstm(
    t: Translation, x: Value, *slots: Value | None, fused_activation_function: int = TANH,
    cell_clip: float = 0.0, proj_clip: float = 0.0, time_major: bool = False,
    diagonal_recurrent_tensors: bool = False,
) -> Value:  # fmt: skip
    """The slots are TFLite's: weights of input, forget, cell and output gates, and so on."""
    if fused_activation_function != TANH or diagonal_recurrent_tensors or x.rank != 3:
        t.refuse("only an LSTM over [batch, time, features] with tanh has a QNN equivalent")
    return _lstm(t, x, slots, (18, 19), time_major, cell_clip, proj_clip)


def _lstm(
    t: Translation, x: Value, slots: Sequence[Value | None], states: tuple[int, int], time_major: bool,
    cell_clip: float, proj_clip: float,
) -> Value:  # fmt: skip
    """`states` are the places of its states among the operator's inputs."""
    given = [None, *slots, *([None] * (24 - len(slots)))]
    i = given.__getitem__
    missing = [n for n in (2, 3, 4, 6, 7, 8, 13, 14, 15, 18, 19) if i(n) is None]
    if missing:
        t.refuse(f"its input {missing[0]} is missing")
    operands = [
        x, i(2), i(3), i(4), i(6), i(7), i(8), i(13), i(14), i(15), i(18), i(19), i(20), i(21), i(22), i(23),
        i(1), i(5), i(9), i(10), i(11), i(12), i(16), i(17),
    ]  # fmt: skip
    while operands[-1] is None:
        operands.pop()
    y, cell, hidden = t.many(
        "Lstm", *operands, time_major=time_major, cell_clip_threshold=cell_clip,
        output_clip_threshold=proj_clip,
    )[:3]  # fmt: skip
    _state(t, states[0], t.reshape(hidden, _shape(given[18])))
    _state(t, states[1], t.reshape(cell, _shape(given[19])))
    return y


@translates("LSTM")
def lstm(
    t: Translation, x: Value, *slots: Value | None, fused_activation_function: int = TANH,
    cell_clip: float = 0.0, proj_clip: float = 0.0, kernel_type: int = 0,
) -> Value:  # fmt: skip
    """A layer over a single step."""
    if fused_activation_function != TANH or kernel_type or x.rank != 2:
        t.refuse("only an LSTM of the full kind over [batch, features] with tanh has a QNN equivalent")
    y = _lstm(t, t.reshape(x, (1, *x.shape)), slots, (18, 19), True, cell_clip, proj_clip)
    return t.reshape(y, y.shape[1:])


@translates("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_sequence_lstm(
    t: Translation, x: Value, *slots: Value | None, fused_activation_function: int = TANH,
    cell_clip: float = 0.0, proj_clip: float = 0.0, merge_outputs: bool = False, time_major: bool = True,
) -> list[Value]:  # fmt: skip
    """Two layers, one of which reads the data from its end."""
    if (
        fused_activation_function != TANH
        or x.rank != 3
        or len(slots) < 38
        or any(s is not None for s in slots[38:])
    ):
        t.refuse(
            "only an LSTM over [batch, time, features] with tanh, without more data, has a QNN equivalent"
        )
    axis = 0 if time_major else 1
    there = _lstm(t, x, [*slots[:17], *slots[34:36]], (35, 36), time_major, cell_clip, proj_clip)
    turned = backwards(t, x, axis)
    back = _lstm(t, turned, [*slots[17:34], *slots[36:38]], (37, 38), time_major, cell_clip, proj_clip)
    return _merged(t, there, backwards(t, back, axis), merge_outputs)


def backwards(t: Translation, x: Value, axis: int) -> Value:
    return sliced(t, x, [(d - 1, -1, -1) if i == axis else (0, d, 1) for i, d in enumerate(x.shape)])


def _merged(t: Translation, there: Value, back: Value, merge: bool) -> list[Value]:
    return [t.concat([there, back], 2)] if merge else [there, back]


def _shape(value: Value | None) -> tuple[int, ...]:
    assert value is not None
    return value.shape


@translates("RNN")
def rnn(
    t: Translation,
    x: Value,
    w: Value,
    r: Value,
    bias: Value,
    state: Value,
    *,
    fused_activation_function: int = 0,
) -> Value:
    y = _step(t, x, w, r, bias, state, fused_activation_function)
    _state(t, 4, y)
    return y


def _step(t: Translation, x: Value, w: Value, r: Value, bias: Value, state: Value, activation: int) -> Value:
    total = t.add(t.fully_connected(x, w, bias), t.fully_connected(state, r))
    return fused_activation(t, total, activation)


@translates("UNIDIRECTIONAL_SEQUENCE_RNN")
def unidirectional_sequence_rnn(
    t: Translation, x: Value, w: Value, r: Value, bias: Value, state: Value, *,
    fused_activation_function: int = 0, time_major: bool = False,
) -> Value:  # fmt: skip
    y, last = _steps(t, x, (w, r, bias), state, fused_activation_function, time_major)
    _state(t, 4, last)
    return y


def _steps(
    t: Translation, x: Value, weights: tuple[Value, Value, Value], state: Value, activation: int,
    time_major: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """The results of all steps, and the state behind the last."""
    axis = 0 if time_major else 1
    if x.rank != 3 or x.shape[axis] > MOST_STEPS:
        t.refuse(f"data {list(x.shape)}: up to {MOST_STEPS} steps of a batch are unrolled")
    found: list[Value] = []
    for i in range(x.shape[axis]):
        part = cut(t, x, axis, i, i + 1)
        state = _step(t, t.reshape(part, (part.shape[1 - axis], x.shape[2])), *weights, state, activation)
        found.append(state)
    return t.pack(found, axis), state


@translates("BIDIRECTIONAL_SEQUENCE_RNN")
def bidirectional_sequence_rnn(
    t: Translation, x: Value, w: Value, r: Value, bias: Value, state: Value, back_w: Value, back_r: Value,
    back_bias: Value, back_state: Value, *more: Value | None, fused_activation_function: int = 0,
    time_major: bool = False, merge_outputs: bool = False,
) -> list[Value]:  # fmt: skip
    """Two layers, one of which reads the data from its end."""
    if any(m is not None for m in more):
        t.refuse("a layer with more data beside its input has no QNN equivalent")
    axis = 0 if time_major else 1
    there, last = _steps(t, x, (w, r, bias), state, fused_activation_function, time_major)
    turned = backwards(t, x, axis)
    weights = back_w, back_r, back_bias
    back, first = _steps(t, turned, weights, back_state, fused_activation_function, time_major)
    _state(t, 4, last)
    _state(t, 8, first)
    return _merged(t, there, backwards(t, back, axis), merge_outputs)


@translates("SVDF")
def svdf(
    t: Translation, x: Value, feature: Value, time: Value, bias: Value | None, state: Value, *, rank: int = 1,
    fused_activation_function: int = 0,
) -> Value:  # fmt: skip
    """A filter along features whose results are remembered, and one along time over what is remembered."""
    filters, memory = time.shape
    if state.shape != (x.shape[0], filters * memory) or not rank or filters % rank:
        t.refuse(f"a state {list(state.shape)} does not fit {filters} filters over {memory} steps")
    now = t.reshape(t.fully_connected(x, feature), (x.shape[0], filters, 1))
    before = cut(t, t.reshape(state, (x.shape[0], filters, memory)), 2, 1, memory)
    kept = t.concat([before, now], 2)
    weights = t.reshape(time, (1, filters, memory))
    parts = t.reduce_sum(t.mul(kept, weights), [2], keep_dims=False)
    units = t.reduce_sum(t.reshape(parts, (x.shape[0], filters // rank, rank)), [2], keep_dims=False)
    _state(t, 4, t.reshape(kept, state.shape))
    y = units if bias is None else t.add(units, bias)
    return fused_activation(t, y, fused_activation_function)
