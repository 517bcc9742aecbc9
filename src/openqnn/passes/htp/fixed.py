"""Forms whose fixed-point kernels on HTP are right, put in before ranges are measured.

Each rule says what the library does with the other form, as measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from openqnn.ir import Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ir.verify import verify
from openqnn.ops import Builder, infer_outputs
from openqnn.passes.constants import merge_constants
from openqnn.passes.edit import alive, builder_at, supplant
from openqnn.passes.explain import Explain
from openqnn.passes.htp.clipped_sums import keep_clips
from openqnn.passes.htp.gather import gathered_apart
from openqnn.passes.htp.rules import again
from openqnn.passes.identity import remove_identities
from openqnn.passes.precision import set_float_width

_NO_PADS = ((0, 0), (0, 0))
FixedRule: TypeAlias = Callable[[Node, Builder, int], "Value | None"]


def matrix_layer(node: Node, b: Builder, width: int) -> Value | None:
    """MatMul loses its bias where the weights have a scale for each channel; FullyConnected adds it right."""
    weight = node.x(1)
    stacked = any(d != 1 for d in weight.shape[:-2])
    if weight.data is None or weight.rank < 2 or stacked:
        return None
    matrix = weight.data.reshape(weight.shape[-2:])
    data = matrix if node.flag("transpose_in1") else np.ascontiguousarray(matrix.T)
    turned = b.graph.constant(weight.name, data, weight.dtype)
    x, bias = node.x(0), node.inputs[2] if node.has(2) else None
    if node.flag("transpose_in0"):
        x = b.transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))
    flat = x if x.rank == 2 else b.reshape(x, (x.size // x.shape[-1], x.shape[-1]))
    y = b.fully_connected(flat, turned, bias)
    return y if node.out.rank == 2 else b.reshape(y, node.out.shape)


def hard_sigmoid(node: Node, b: Builder, width: int) -> Value | None:
    """At 16 bits the kernel gives wrong numbers; the same in three steps is right."""
    if width != 16 or node.enum("operation") != "HARD_SIGMOID":
        return None
    x = node.x(0)
    moved = b.add(b.mul(x, node.float("alpha")), node.float("beta"))
    return b.clip(moved, 0.0, 1.0)


def mean_of_channels(node: Node, b: Builder, width: int) -> Value | None:
    """Sums over the last axis come in 32s, and the kernel leaves out up to four that are left over. A layer
    with the same weight for every channel is right."""
    x = node.x(0)
    if node.ints("axes") != (x.rank - 1,) or not _leaves_out(x.shape[:-1]):
        return None
    channels = x.shape[-1]
    weight = np.full(channels, 1 / channels if node.op == "ReduceMean" else 1.0, np.float32)
    if x.rank == 4:
        y = b("Conv2d", x, b.const(weight.reshape(1, 1, channels, 1)), stride=(1, 1), pad_amount=_NO_PADS)
    else:
        y = b.fully_connected(b.reshape(x, (x.size // channels, channels)), b.const(weight[None]))
    return b.reshape(y, node.out.shape)


def _leaves_out(rows: Sequence[int]) -> bool:
    """Of a tile: eight rows or what is left of them, as wide as the tensor. Of batches nothing is known."""
    *batch, height, width = (1, 1, *rows)
    if math.prod(batch) > 1 and width % 8:
        return True
    tile = (height % 8 or 8 if height > 8 else height) * width
    return tile > 32 and 1 <= tile % 32 <= 4


def gathered_rows(node: Node, b: Builder, width: int) -> Value | None:
    """Bytes and pairs of bytes have the fault that integers have."""
    return gathered_apart(node, b, (4, 8, 16, 32))


def without_groups(node: Node, b: Builder) -> Value | None:
    """Groups of a transposed convolution have fewer channels than there are scales for: the weights of all
    become one matrix, with zeros for what does not meet."""
    group, weight = node.params.get("group", 1), node.inputs[1] if node.has(1) else None
    if group == 1 or "output_padding" not in node.params or weight is None or weight.data is None:
        return None
    blocks = np.split(weight.data, node.int("group"), axis=-2)
    many, size = len(blocks), weight.shape[-1]
    rows = [
        np.pad(w, [(0, 0)] * (w.ndim - 1) + [(i * size, (many - 1 - i) * size)]) for i, w in enumerate(blocks)
    ]
    whole = b.graph.constant(weight.name, np.concatenate(rows, axis=-2), weight.dtype)
    return again(b, node, node.x(0), whole, *node.inputs[2:], shape=node.out.shape, group=1)


RULES: Final[dict[str, FixedRule]] = {
    "MatMul": matrix_layer,
    "ElementWiseNeuron": hard_sigmoid,
    "Gather": gathered_rows,
    "ReduceMean": mean_of_channels,
    "ReduceSum": mean_of_channels,
}


def prepare_fixed(graph: Graph, width: int, widths: Mapping[str, int] | None = None) -> Graph:
    """A graph that computes the same, ready to be quantized to activations of that width.

    Nodes in `widths` may have another one.
    """
    own = widths or {}
    made, log = clone_graph(graph), Explain()
    set_float_width(made, 32)  # casts between widths of floats mean nothing once both are integers
    remove_identities(made, log)
    for node in list(made.nodes):
        rule = RULES.get(node.op)
        bits = own.get(node.name, width)
        b = builder_at(made, node)
        new = (rule(node, b, bits) if rule is not None else without_groups(node, b)) if alive(node) else None
        if new is not None:
            supplant(made, node.out, new)
    keep_clips(made)
    merge_constants(made, log)  # a weight that many steps share was turned for each
    _keep_names(graph, made)
    verify(made, infer_outputs, after="prepare_fixed")
    return made


def _keep_names(graph: Graph, made: Graph) -> None:
    """A constant that took the place of another gets its name: overrides go by names."""
    gone = {v.name for v in graph.constants()} - {v.name for v in made.constants()}
    for value in made.constants():
        stem = value.name.rpartition("_")[0]
        if stem in gone:
            value.name = stem
            gone.remove(stem)
