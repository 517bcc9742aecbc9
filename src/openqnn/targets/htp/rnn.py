"""Recurrent cells, step by step: HTP's own do not work in half precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.ops.rnn import B_PROJ, C_INIT, CELL, FORGET, H_INIT, INPUT, NORMS, OUTPUT, W_PROJ
from openqnn.targets.htp.ranks import view
from openqnn.targets.htp.rules import Instead, Refusal, rule

MOST_STEPS = 1024


def _parts(b: Builder, x: Value, axis: int, count: int) -> Sequence[Value]:
    if count == 1:
        return [x]
    size = x.shape[axis] // count
    return b.split(x, axis, range(size, x.shape[axis], size))


class _Cell:
    """What the cells have in common: all gates in one product, that of the input for all steps at once."""

    def __init__(self, node: Node, b: Builder) -> None:
        self.node, self.b = node, b
        x = node.x(0)
        if x.rank == 2:
            x = b.reshape(x, (1, *x.shape))
        elif not node.flag("time_major"):
            x = b.transpose(x, (1, 0, 2))
        self.x = x
        self.steps, self.batch, self.features = x.shape
        self.units = node.x(1).shape[0]
        if self.steps > MOST_STEPS:
            raise Refusal(
                f"HTP's own {node.op} fails in half precision; {self.steps} steps are too many to spell out",
                f"run the model on {MOST_STEPS} steps at a time and pass the state on",
            )

    @property
    def order(self) -> Sequence[int]:
        steps = range(self.steps)
        return steps if self.node.enum("direction") == "FORWARD" else steps[::-1]

    def stacked(self, slots: Sequence[int]) -> Value:
        """The weights or biases of several gates, end to end; absent biases are zero."""
        zero = self.b.const(np.zeros(self.units), self.node.x(0).dtype.numpy)
        values = [self.node.x(s) if self.node.has(s) else zero for s in slots]
        return self.b.concat(values, 0)

    def fed(self, weights: Sequence[int], biases: Sequence[int]) -> Sequence[Value]:
        """What the input contributes to all gates, [batch, gates * units] for every step."""
        flat = view(self.b, self.x, (self.steps * self.batch, self.features))
        done = self.b.matmul(flat, self.stacked(weights), turn_b=True)
        return _parts(self.b, self.b.add(done, self.stacked(biases)), 0, self.steps)

    def state(self, slot: int, width: int) -> Value:
        shape = (self.batch, width)
        if self.node.has(slot):
            return view(self.b, self.node.x(slot), shape)
        return self.b.const(np.zeros(shape), self.node.x(0).dtype.numpy)

    def sequence(self, found: Sequence[Value]) -> Value:
        """The outputs of all steps in the layout of the node."""
        node, b = self.node, self.b
        width = found[0].shape[1]
        joined = b.concat(found, 0)
        if node.x(0).rank == 2 or node.flag("time_major"):
            return b.reshape(joined, node.out.shape)
        return b.transpose(b.reshape(joined, (self.steps, self.batch, width)), (1, 0, 2))


@rule("Lstm")
def lstm_step_by_step(node: Node, b: Builder) -> Instead:
    # Validates, and then fails in finalize (1002) in every form that was tried.
    cell = _Cell(node, b)
    if any(node.has(s) for s in NORMS) or len(node.outputs) > 3:
        raise Refusal(
            "HTP's own Lstm fails in half precision; layer norms and gate outputs are not spelled out"
        )
    gates = [g for g in (INPUT, FORGET, CELL, OUTPUT) if g is not INPUT or node.has(INPUT[0])]
    fed = cell.fed([g[0] for g in gates], [g[2] for g in gates])
    recurrent = cell.stacked([g[1] for g in gates])
    h, c = cell.state(H_INIT, node.x(4).shape[1]), cell.state(C_INIT, cell.units)
    found: dict[int, Value] = {}
    for t in cell.order:
        both = b.add(fed[t], b.matmul(h, recurrent, turn_b=True))
        h, c = _lstm_step(cell, _parts(b, both, 1, len(gates)), c)
        found[t] = h
    sequence = cell.sequence([found[t] for t in range(cell.steps)])
    return [sequence, b.reshape(c, node.outputs[1].shape), b.reshape(h, node.outputs[2].shape)]


def _lstm_step(cell: _Cell, gates: Sequence[Value], c: Value) -> tuple[Value, Value]:
    """The output gate's peephole sees the new cell, the others the old one."""
    node, b = cell.node, cell.b

    def gate(x: Value, slots: Sequence[int], state: Value) -> Value:
        return b.sigmoid(b.add(x, b.mul(state, node.x(slots[4]))) if node.has(slots[4]) else x)

    forget = gate(gates[-3], FORGET, c)
    into = gate(gates[0], INPUT, c) if len(gates) == 4 else b.sub(1, forget)
    c = b.add(b.mul(forget, c), b.mul(into, b.tanh(gates[-2])))
    c = _clipped(b, c, node.float("cell_clip_threshold"))
    hidden = b.mul(gate(gates[-1], OUTPUT, c), b.tanh(c))
    if node.has(W_PROJ):
        bias = node.x(B_PROJ) if node.has(B_PROJ) else None
        hidden = b.matmul(hidden, node.x(W_PROJ), bias, turn_b=True)
        hidden = _clipped(b, hidden, node.float("output_clip_threshold"))
    return hidden, c


def _clipped(b: Builder, x: Value, limit: float) -> Value:
    return b.clip(x, -limit, limit) if limit else x


@rule("Gru")
def gru_step_by_step(node: Node, b: Builder) -> Instead:
    # In half precision right for one step and a batch of 1 only; wrong numbers otherwise.
    cell = _Cell(node, b)
    late = bool(node.int("linear_before_reset"))
    fed = cell.fed((1, 2, 3), (7, 8, 9))
    both, bias = cell.stacked((4, 5)), cell.stacked((10, 11))
    new, new_bias = node.x(6), cell.stacked((12,))
    h = cell.state(13, cell.units)
    found: dict[int, Value] = {}
    for t in cell.order:
        x_update, x_reset, x_new = _parts(b, fed[t], 1, 3)
        state = b.add(b.matmul(h, both, turn_b=True), bias)
        h_update, h_reset = _parts(b, state, 1, 2)
        update = b.sigmoid(b.add(x_update, h_update))
        reset = b.sigmoid(b.add(x_reset, h_reset))
        inner = h if late else b.mul(reset, h)
        candidate = b.add(b.matmul(inner, new, turn_b=True), new_bias)
        candidate = b.tanh(b.add(x_new, b.mul(reset, candidate) if late else candidate))
        kept = b.mul(update, b.sub(h, candidate))
        h = found[t] = b.add(candidate, kept)
    sequence = cell.sequence([found[t] for t in range(cell.steps)])
    return [sequence, b.reshape(h, node.outputs[1].shape)]
