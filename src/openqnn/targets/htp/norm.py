"""Normalisations and softmax: HTP has them along the last axis only."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.ops.layout import inverse
from openqnn.passes.edit import scalar
from openqnn.targets.htp.ranks import view
from openqnn.targets.htp.rules import Instead, again, fixed_rule, rule, takes

takes("Batchnorm", "L2Norm", "LayerNorm", "LogSoftmax", "RmsNorm", axes=4)


def to_last(b: Builder, x: Value, axis: int) -> Value:
    """The axis behind all others."""
    return b.transpose(x, _last(x.rank, axis))


def from_last(b: Builder, x: Value, axis: int) -> Value:
    return b.transpose(x, inverse(_last(x.rank, axis)))


def _last(rank: int, axis: int) -> tuple[int, ...]:
    return (*(i for i in range(rank) if i != axis), axis)


@rule("Softmax", "LogSoftmax", "L2Norm")
def along_last_axis(node: Node, b: Builder) -> Instead:
    # The validator: "axis has incorrect Value 0, expected equal to 2".
    axis, last = node.int("axis"), node.x(0).rank - 1
    if axis == last:
        return None
    changes: dict[str, Any] = {"axis": last}
    if "axes" in node.params:
        changes["axes"] = (last,)
    return from_last(b, again(b, node, to_last(b, node.x(0), axis), **changes), axis)


@rule("LayerNorm", "RmsNorm")
def over_one_last_axis(node: Node, b: Builder) -> Instead:
    # Several axes, or others than the last: "axes has incorrect Value 2, expected equal to 1".
    x, axes = node.x(0), sorted(node.ints("axes"))
    rank = x.rank
    if axes == [rank - 1] and node.op == "LayerNorm":
        return None
    if axes == [rank - 1] and node.has(2):
        return None
    rest = [i for i in range(rank) if i not in axes]
    perm = (*rest, *axes)
    turned = x if perm == tuple(range(rank)) else b.transpose(x, perm)
    width = prod(x.shape[a] for a in axes)
    flat = view(b, turned, (*(x.shape[i] for i in rest), width))
    gamma, beta = (view(b, node.x(i), (width,)) if node.has(i) else None for i in (1, 2))
    done = _normed(node, b, flat, gamma, beta)
    done = view(b, done, turned.shape)
    return done if turned is x else b.transpose(done, inverse(perm))


def _normed(node: Node, b: Builder, x: Value, gamma: Value | None, beta: Value | None) -> Value:
    """RmsNorm without beta fails in finalize (1002), with one it ignores it: zeros, and a sum after."""
    last, dtype = (x.rank - 1,), x.dtype.numpy
    if node.op == "LayerNorm":
        return again(b, node, x, gamma, beta, axes=last)
    gamma = gamma or b.const(np.ones(x.shape[-1]), dtype)
    done = again(b, node, x, gamma, b.const(np.zeros(x.shape[-1]), dtype), axes=last)
    return done if beta is None else b.add(done, beta)


@rule("RmsNorm")
def rms_beta_is_ignored(node: Node, b: Builder) -> Instead:
    # In half precision the values of beta make no difference to the result.
    if not node.has(2) or scalar(node.x(2)) == 0:
        return None
    data = node.x(2).data
    if data is not None and not data.any():
        return None
    zeros = b.const(np.zeros(node.x(2).shape), node.x(0).dtype.numpy)
    done = again(b, node, node.x(0), node.inputs[1], zeros)
    shape = tuple(d if i in node.ints("axes") else 1 for i, d in enumerate(node.x(0).shape))
    return b.add(done, view(b, node.x(2), shape))


@rule("RmsNorm")
def rms_of_one_list_of_rows(node: Node, b: Builder) -> Instead:
    # With more than one axis longer than 1 in front of the last, as for the heads of attention, results are
    # those of other rows: in bytes always, in half precision mostly.
    x = node.x(0)
    last = (x.rank - 1,)
    if node.ints("axes") != last or sum(size > 1 for size in x.shape[:-1]) < 2:
        return None
    rows = view(b, x, (prod(x.shape[:-1]), x.shape[-1]))
    return view(b, again(b, node, rows, *node.inputs[1:], axes=(1,)), x.shape)


@fixed_rule("Batchnorm")
def factors_of_16_bits(node: Node, b: Builder, width: int) -> Value | None:
    # Factors have the width of weights and one scale for all channels: of 8 bits small ones have few steps,
    # which 16-bit data lose 20 dB by. Those of a product have the width of the data.
    x = node.x(0)
    if width < 16 or not node.x(1).is_constant:
        return None
    y = b.mul(x, _along_last(b, node.x(1), x.rank))
    return b.add(y, _along_last(b, node.x(2), x.rank)) if node.has(2) else y


def _along_last(b: Builder, value: Value, rank: int) -> Value:
    assert value.data is not None
    return b.graph.constant(value.name, value.data.reshape(*[1] * (rank - 1), -1), value.dtype)
