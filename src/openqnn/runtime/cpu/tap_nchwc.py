"""Taps without the cost of putting numbers in order.

ONNX Runtime's convolutions keep blocks of channels together, and each value that is read in its own axis
order is written a second time for that. Whoever only counts numbers does not need the order: here ONNX
Runtime optimises the graph first, and the result is then changed to give such values as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from math import prod

import onnx

from openqnn.ir import Shape
from openqnn.ops.onnx_writer import Body
from openqnn.runtime.cpu.executable import Optimized, optimized
from openqnn.runtime.cpu.to_onnx import Lowered

DOMAIN = "com.microsoft.nchwc"
LARGEST_BLOCK = 16
# Optimising apart takes time, which the runs have to win back: it was measured to pay from so many bytes
# shown in all runs together, and for each byte of weights, which are written and read again.
LEAST_SHOWN, PER_WEIGHT = 200 << 20, 27
MOST_WEIGHTS = 32 << 20  # bytes; for a while there are several copies of them


def is_worthwhile(lowered: Lowered, runs: int) -> bool:
    """Whether so many runs win more than the preparation costs."""
    if lowered.steps or not any(node.op_type == "Conv" for node in lowered.body.nodes):
        return False
    weights = sum(a.nbytes for a in lowered.body.constants.values())
    shown = sum(
        prod(shape) * dtype.itemsize for dtype, shape in map(lowered.types.__getitem__, lowered.outputs)
    )
    return weights <= MOST_WEIGHTS and runs * shown >= LEAST_SHOWN + PER_WEIGHT * weights


def _is_reorder(node: onnx.NodeProto) -> bool:
    return node.domain == DOMAIN and node.op_type == "ReorderOutput"


def tapped_nchwc(lowered: Lowered, loose: Collection[str]) -> Lowered:
    """The graph as ONNX Runtime optimises it, with the `loose` of its outputs in whatever order they are.

    Numbers that only fill a block up are never among them. Types are those of the arrays that come out, and
    of what is in blocks.
    """
    ready = optimized(lowered)
    graph, body = ready.graph, Body()
    body.constants = ready.constants
    types = {n: lowered.types[n] for n in (*lowered.inputs, *lowered.outputs)}
    used = Counter(name for node in graph.node for name in node.input)
    block, names = _block(ready), dict[str, str]()
    for node in filter(_is_reorder, graph.node):
        source, target, shape = node.input[0], node.output[0], _shape(node, lowered)
        dtype = lowered.types[target][0]
        if target in loose and not used[target] and source not in names and not shape[1] % block:
            names[source], types[target] = target, (dtype, shape)
        else:  # it can pass from one stretch to the next as it is
            types[source] = dtype, _filled(shape, block)
    given = set(names.values())
    for node in graph.node:
        if node.op_type != "ReorderOutput" or node.output[0] not in given:
            _rename(node, names)
            body.nodes.append(node)
    return replace(lowered, body=body, types=types)


def _block(ready: Optimized) -> int:
    """A multiple of how many channels are kept together: 8 or 16, as the processor has it."""
    nodes = (node for node in ready.graph.node if node.domain == DOMAIN and node.op_type == "Conv")
    first = [len(ready.constants[node.input[1]]) for node in nodes if node.input[1] in ready.constants]
    return LARGEST_BLOCK // 2 if any(n % LARGEST_BLOCK for n in first) else LARGEST_BLOCK


def _shape(node: onnx.NodeProto, lowered: Lowered) -> Shape:
    """Shape of a blocked array with nothing to fill up: batch, channels, and the rest."""
    shape = lowered.types[node.output[0]][1]
    last = any(a.name == "channels_last" and a.i for a in node.attribute)
    return (shape[0], shape[-1], *shape[1:-1]) if last else shape


def _filled(shape: Shape, block: int) -> Shape:
    """Shape of a blocked array, with what fills the last block up."""
    batch, channels, *rest = shape
    return (batch, -(-channels // block) * block, *rest)


def _rename(node: onnx.NodeProto, names: dict[str, str]) -> None:
    for field in (node.input, node.output):
        field[:] = [names.get(name, name) for name in field]
