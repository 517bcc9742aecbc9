"""Ops that walk along time: recurrent cells, frames of a signal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import Node, Shape
from openqnn.ops.gather import axis_of
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import ABSENT, BIAS, WEIGHT, enum, f32, flag, op, result, tensor, u32

LAYER_NORM_EPSILON = 1e-8


def expect_shapes(n: Node, wanted: dict[int, Shape]) -> None:
    """Each operand that is there has the shape it should have."""
    for index, shape in wanted.items():
        if n.has(index) and n.x(index).shape != shape:
            raise ShapeError(f"{n.where}: input {index} is {list(n.x(index).shape)}, {list(shape)} expected")


def _extent(n: Node) -> tuple[int, int, int]:
    """Time steps, batch and features of input 0; without a time axis there is one step."""
    shape = n.x(0).shape
    steps, batch = (1, shape[0]) if len(shape) == 2 else shape[:2] if n.flag("time_major") else shape[1::-1]
    return steps, batch, shape[-1]


def _time_first(n: Node, b: Body, x: str) -> str:
    if n.x(0).rank == 2:
        return b.op("Unsqueeze", x, b.ints(0))
    return x if n.flag("time_major") else b.transpose(x, (1, 0, 2))


def _as_given(n: Node, b: Body, sequence: str) -> str:
    """The inverse of `_time_first` for the output sequence."""
    if n.x(0).rank == 2:
        return b.op("Squeeze", sequence, b.ints(0))
    return sequence if n.flag("time_major") else b.transpose(sequence, (1, 0, 2))


def _stack(n: Node, b: Body, x: Sequence[str], slots: Sequence[int], size: int) -> str:
    """Vectors or matrices of several gates as ONNX wants them, end to end; absent vectors are zero."""
    zero = lambda: b.const(np.zeros(size), n.x(0).dtype.numpy)
    return b.op("Unsqueeze", b.op("Concat", *(x[s] or zero() for s in slots), axis=0), b.ints(0))


# -- LSTM ----------------------------------------------------------------------------------------------------

H_INIT, C_INIT, W_PROJ, B_PROJ = 10, 11, 22, 23
# Slots of each gate: input weight, recurrent weight, bias, layer norm, peephole.
INPUT, FORGET, CELL, OUTPUT = (16, 17, 21, 12, 18), (1, 4, 7, 13, 19), (2, 5, 8, 14, -1), (3, 6, 9, 15, 20)
PEEPHOLES, NORMS = (18, 20, 19), (12, 13, 14, 15)


def lstm_shape(n: Node) -> list[Shape]:
    _, batch, features = _extent(n)
    units, out = n.x(1).shape[0], n.x(4).shape[1]
    if not n.has(W_PROJ) and out != units:
        raise ShapeError(f"{n.where}: {units} units cannot feed back {out} values without a projection")
    wanted: dict[int, Shape] = dict.fromkeys((7, 8, 9, *NORMS, 18, 19, 20, 21), (units,))
    wanted |= dict.fromkeys((1, 2, 3, 16), (units, features)) | dict.fromkeys((4, 5, 6, 17), (units, out))
    wanted |= {H_INIT: (batch, out), C_INIT: (batch, units), W_PROJ: (out, units), B_PROJ: (out,)}
    expect_shapes(n, wanted)
    if n.has(16) != n.has(17):
        raise ShapeError(f"{n.where}: the input gate needs both its weights or neither")
    sequence = (*n.x(0).shape[:-1], out)
    gates = [(batch, units)] * max(0, len(n.outputs) - 3)
    return [sequence, (batch, units), (batch, out), *gates]


def lstm_macs(n: Node) -> int:
    steps, batch, _ = _extent(n)
    weights = sum(n.x(s).size for s in (1, 2, 3, 4, 5, 6, 16, 17, W_PROJ) if n.has(s))
    return steps * batch * weights


def lstm(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    """ONNX's own cell where it can say it; norms, coupled gates, clips and projection are spelled out."""
    spelled = (*NORMS, W_PROJ)
    clips = n.float("cell_clip_threshold") or (n.float("output_clip_threshold") and n.has(W_PROJ))
    if n.has(16) and len(n.outputs) == 3 and not clips and not any(n.has(s) for s in spelled):
        return _lstm_cell(n, b, x)
    return _lstm_steps(n, b, x)


def _state(n: Node, b: Body, name: str, shape: Shape) -> str:
    """An initial state with a leading axis of one, zero where none is given."""
    return b.op("Unsqueeze", name, b.ints(0)) if name else b.const(np.zeros((1, *shape)), n.x(0).dtype.numpy)


def _lstm_cell(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    _, batch, _ = _extent(n)
    units = n.x(1).shape[0]
    weights, recurrent = (_stack(n, b, x, slots, 0) for slots in ((16, 3, 1, 2), (17, 6, 4, 5)))
    biases = _stack(n, b, [*x, ""], (21, 9, 7, 8, -1, -1, -1, -1), units)
    peepholes = _stack(n, b, x, PEEPHOLES, units) if any(n.has(s) for s in PEEPHOLES) else ""
    states = (_state(n, b, x[s], (batch, units)) for s in (H_INIT, C_INIT))
    sequence, h, c = b.ops(
        "LSTM", _time_first(n, b, x[0]), weights, recurrent, biases, "", *states, peepholes, count=3,
        hidden_size=units, direction=n.enum("direction").lower(),
    )  # fmt: skip
    first = b.ints(0)
    flat = _as_given(n, b, b.op("Squeeze", sequence, b.ints(1)))
    return [flat, b.op("Squeeze", c, first), b.op("Squeeze", h, first)]


class _Gate:
    """One gate of an unrolled cell; weights meet all steps at once, as only the state must wait."""

    def __init__(
        self, n: Node, b: Body, x: Sequence[str], slots: Sequence[int], data: str, steps: int
    ) -> None:
        weight, recurrent, self.bias, self.norm, self.peephole = (x[s] if s >= 0 else "" for s in slots)
        self.b = b
        self.zero = b.const(np.zeros(n.x(1).shape[0]), n.x(0).dtype.numpy)
        self.recurrent = b.transpose(recurrent, (1, 0))
        fed = b.op("MatMul", data, b.transpose(weight, (1, 0)))
        self.fed = b.ops("Split", fed, count=steps, axis=0, num_outputs=steps)

    def __call__(self, step: int, h: str, c: str) -> str:
        """What goes into the gate's activation."""
        b = self.b
        found = b.op("Add", self.fed[step], b.op("MatMul", h, self.recurrent))
        if self.peephole:
            found = b.op("Add", found, b.op("Mul", c, self.peephole))
        bias = self.bias or self.zero
        if self.norm:
            return b.op("LayerNormalization", found, self.norm, bias, axis=-1, epsilon=LAYER_NORM_EPSILON)
        return b.op("Add", found, bias)


def _clip(n: Node, b: Body, x: str, limit: float) -> str:
    dtype = n.x(0).dtype.numpy
    return b.op("Clip", x, b.const(-limit, dtype), b.const(limit, dtype)) if limit else x


def _project(n: Node, b: Body, x: Sequence[str], h: str) -> str:
    if not x[W_PROJ]:
        return h
    h = b.op("MatMul", h, b.transpose(x[W_PROJ], (1, 0)))
    h = b.op("Add", h, x[B_PROJ]) if x[B_PROJ] else h
    return _clip(n, b, h, n.float("output_clip_threshold"))


def _lstm_steps(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    """The cell step by step. The output gate's peephole sees the new cell, the others the old one."""
    steps, batch, _ = _extent(n)
    data = _time_first(n, b, x[0])
    to_input = _Gate(n, b, x, INPUT, data, steps) if n.has(16) else None
    to_forget, to_cell, to_output = (_Gate(n, b, x, slots, data, steps) for slots in (FORGET, CELL, OUTPUT))
    h = _state(n, b, x[H_INIT], (batch, n.x(4).shape[1]))
    c = _state(n, b, x[C_INIT], (batch, n.x(1).shape[0]))
    sequence, seen = [""] * steps, list[str]()
    for t in range(steps) if n.enum("direction") == "FORWARD" else reversed(range(steps)):
        forget, cell = to_forget(t, h, c), to_cell(t, h, c)
        # Without an input gate of its own a cell takes in as much as it forgets.
        into = to_input(t, h, c) if to_input else b.op("Neg", forget)
        kept = b.op("Mul", b.op("Sigmoid", forget), c)
        c = b.op("Add", kept, b.op("Mul", b.op("Sigmoid", into), b.op("Tanh", cell)))
        c = _clip(n, b, c, n.float("cell_clip_threshold"))
        out = to_output(t, h, c)
        hidden = b.op("Mul", b.op("Sigmoid", out), b.op("Tanh", c))
        h = sequence[t] = _project(n, b, x, hidden)
        seen = [into, forget, cell, out, hidden]
    last = [b.op("Squeeze", v, b.ints(0)) for v in (c, h, *seen[: len(n.outputs) - 3])]
    return [_as_given(n, b, b.op("Concat", *sequence, axis=0)), *last]


@op
class Lstm:
    """Long short-term memory in one direction; optional slots add peepholes, layer norms and a projection."""

    in0 = tensor((2, 3))
    w_input_forget = tensor(2, role=WEIGHT, channel_axis=0)
    w_input_cell = tensor(2, role=WEIGHT, channel_axis=0)
    w_input_output = tensor(2, role=WEIGHT, channel_axis=0)
    w_recurrent_forget = tensor(2, role=WEIGHT, channel_axis=0)
    w_recurrent_cell = tensor(2, role=WEIGHT, channel_axis=0)
    w_recurrent_output = tensor(2, role=WEIGHT, channel_axis=0)
    b_forget = tensor(1, role=BIAS)
    b_cell = tensor(1, role=BIAS)
    b_output = tensor(1, role=BIAS)
    h_init = tensor(2, optional=True)
    c_init = tensor(2, optional=True)
    ln_input = tensor(1, role=WEIGHT, optional=True)
    ln_forget = tensor(1, role=WEIGHT, optional=True)
    ln_cell = tensor(1, role=WEIGHT, optional=True)
    ln_output = tensor(1, role=WEIGHT, optional=True)
    w_input_input = tensor(2, role=WEIGHT, channel_axis=0, optional=True)
    w_recurrent_input = tensor(2, role=WEIGHT, channel_axis=0, optional=True)
    w_cell_input = tensor(1, role=WEIGHT, optional=True)
    w_cell_forget = tensor(1, role=WEIGHT, optional=True)
    w_cell_output = tensor(1, role=WEIGHT, optional=True)
    b_input = tensor(1, role=BIAS, optional=True)
    w_proj = tensor(2, role=WEIGHT, channel_axis=0, optional=True)
    b_proj = tensor(1, role=BIAS, optional=True)
    reset = tensor(optional=True)  # forgets what earlier inferences left, which here is nothing
    h_seq = result()
    c_last = result()
    h_last = result()
    input_gate = result(optional=True)
    forget_gate = result(optional=True)
    cell_gate = result(optional=True)
    output_gate = result(optional=True)
    hidden_state = result(optional=True)
    direction = enum("FORWARD", FORWARD=0, REVERSE=1)
    cell_clip_threshold = f32(default=0.0)
    output_clip_threshold = f32(default=0.0)
    time_major = flag(True)
    input_gate_qscale = f32(default=0.0)
    forget_gate_qscale = f32(default=0.0)
    cell_gate_qscale = f32(default=0.0)
    output_gate_qscale = f32(default=0.0)
    hidden_state_offset = f32(default=0.0)
    hidden_state_qscale = f32(default=0.0)
    infer = lstm_shape
    lower = lstm
    macs = lstm_macs


# -- GRU -----------------------------------------------------------------------------------------------------


def gru_shape(n: Node) -> list[Shape]:
    _, batch, features = _extent(n)
    units = n.x(1).shape[0]
    wanted: dict[int, Shape] = {13: (1, batch, units)}
    wanted |= dict.fromkeys((1, 2, 3), (units, features)) | dict.fromkeys((4, 5, 6), (units, units))
    expect_shapes(n, wanted | dict.fromkeys(range(7, 13), (units,)))
    return [(*n.x(0).shape[:-1], units), (1, batch, units)]


def gru_macs(n: Node) -> int:
    steps, batch, _ = _extent(n)
    return steps * batch * sum(n.x(s).size for s in range(1, 7))


def gru(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    units = n.x(1).shape[0]
    weights, recurrent = (_stack(n, b, x, slots, 0) for slots in ((1, 2, 3), (4, 5, 6)))
    biases = _stack(n, b, x, range(7, 13), units)
    sequence, last = b.ops(
        "GRU", _time_first(n, b, x[0]), weights, recurrent, biases, "", x[13], count=2, hidden_size=units,
        direction=n.enum("direction").lower(), linear_before_reset=n.int("linear_before_reset"),
    )  # fmt: skip
    return [_as_given(n, b, b.op("Squeeze", sequence, b.ints(1))), last]


@op
class Gru:
    """Gated recurrent unit in one direction: the state becomes (1 - update) * candidate + update * state."""

    in0 = tensor(3)
    w_input_update = tensor(2, role=WEIGHT, channel_axis=0)
    w_input_reset = tensor(2, role=WEIGHT, channel_axis=0)
    w_input_new = tensor(2, role=WEIGHT, channel_axis=0)
    w_recurrent_update = tensor(2, role=WEIGHT, channel_axis=0)
    w_recurrent_reset = tensor(2, role=WEIGHT, channel_axis=0)
    w_recurrent_new = tensor(2, role=WEIGHT, channel_axis=0)
    b_input_update = tensor(1, role=BIAS, optional=True)
    b_input_reset = tensor(1, role=BIAS, optional=True)
    b_input_new = tensor(1, role=BIAS, optional=True)
    b_recurrent_update = tensor(1, role=BIAS, optional=True)
    b_recurrent_reset = tensor(1, role=BIAS, optional=True)
    b_recurrent_new = tensor(1, role=BIAS, optional=True)
    h_init = tensor(3, optional=True)
    reset = tensor(optional=True)  # forgets what earlier inferences left, which here is nothing
    h_seq = result()
    h_last = result()
    direction = enum("FORWARD", FORWARD=0, REVERSE=1)
    linear_before_reset = u32(default=0)
    time_major = flag(True)
    infer = gru_shape
    lower = gru
    macs = gru_macs


# -- frames --------------------------------------------------------------------------------------------------


def _frame_length(n: Node) -> int:
    """The parameter, else the window's length."""
    if "frame_length" in n.params:
        return n.int("frame_length")
    if not n.has(1):
        raise ShapeError(f"{n.where}: neither a window nor frame_length says how long a frame is")
    return n.x(1).shape[0]


def stft_shape(n: Node) -> list[Shape]:
    batch, length, parts = n.x(0).shape
    frame, step = _frame_length(n), n.int("frame_step")
    if parts != 1 or step < 1 or not 1 <= frame <= length:
        raise ShapeError(
            f"{n.where}: frames of {frame} every {step} do not fit the signal {list(n.x(0).shape)}"
        )
    expect_shapes(n, {1: (frame,)})
    bins = frame // 2 + 1 if n.flag("onesided") else frame
    return [(batch, (length - frame) // step + 1, bins, 2)]


def stft(n: Node, b: Body, x: Sequence[str]) -> str:
    step, length = (b.const(v, np.int64) for v in (n.int("frame_step"), _frame_length(n)))
    return b.op("STFT", x[0], step, x[1], length, onesided=int(n.flag("onesided")))


def buffer_shape(n: Node) -> list[Shape]:
    at, shape = axis_of(n, "buffer_dim"), list(n.x(0).shape)
    shape[at] = n.int("buffer_size")
    return [tuple(shape)]


@op
class Stft:
    """Fourier transforms of windowed frames of a signal; the last axis holds real and imaginary parts."""

    in0 = tensor(3)
    window = tensor(1, optional=True)
    out0 = result()
    frame_step = u32()
    frame_length = u32(default=ABSENT)
    onesided = flag(True)
    infer = stft_shape
    lower = stft


@op
class Buffer:
    """A sliding window over the frames of successive inferences along one axis."""

    in0 = tensor()
    reset = tensor(optional=True)
    out0 = result()
    buffer_size = u32()
    buffer_dim = u32()
    stride = u32(default=1)
    mode = enum("BLOCKING", BLOCKING=0, NON_BLOCKING_LEFT=1, NON_BLOCKING_RIGHT=2)
    buffer_padding = u32(default=0)
    infer = buffer_shape
    why_not = "it keeps frames between inferences, and the built-in backend starts every one afresh"
