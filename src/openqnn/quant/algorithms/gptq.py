"""Rounds weights so that the outputs of their layers stay, not the weights themselves.

Layer by layer in the order of the graph: the data that reaches a layer is taken from the graph in floating
point and from the one in fixed point, whose layers before it are done. Weights that suit the latter better
are looked for first, see `fitting`. They are rounded one input after the other, and what a rounding does to
the outputs is made good by the inputs that are still to come (Optimal Brain Quantization, as GPTQ orders it).
The bias then moves the mean of every output to where it was: that is bias correction, of which less is done
where samples disagree.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array, DType, Graph, Node, Value
from openqnn.quant.algorithms.layers import Layer, is_layer
from openqnn.quant.algorithms.least_squares import Sample, Seen, Sums, agreed, fitted
from openqnn.quant.algorithms.step_walk import Walk, last_step, steps_of
from openqnn.runtime.boundary import accepted
from openqnn.targets.htp.kernels.words.curves import HIGHEST
from openqnn.targets.htp.kernels.words.products import unit_of

Floats = NDArray[np.floating]

FEWEST_ROWS, MOST_ROWS = 4096, 16384  # of data that a layer is tuned by, over all samples,
NUMBERS = 1 << 22  # and how many numbers they may have: with more rows chance decides less
MOST_INNER = 2400  # inputs of a layer: beyond that the equations take longer than they gain
# What keeps inputs that the data hardly moves from making good for others, as a share of the mean square of
# an input; more where there are few rows for each input: what fits few samples does not fit those to come.
LEAST_DAMPING, DAMPING = 0.1, 2.0
FEWEST, MOST = 4, 24  # samples
MEMORY, LIVE = 512 << 20, 4  # bytes for all samples, and large tensors of each that are alive at once
NARROW = 8  # bits of data behind which samples must agree on a bias
BLOCK = 64  # inputs that errors before them are added to at a time


@dataclass(frozen=True, slots=True)
class Means:
    """Means of each sample's rows, in the graph in floating point and in the other, [sample, group, 1,
    inner]."""

    real: Floats
    fixed: Floats


def round_by_gptq(
    real: Graph,
    fixed: Graph,
    samples: Sequence[Mapping[str, Array]],
    *,
    leave: Collection[str] = (),
    threads: int = 0,
    biases_only: bool = False,
) -> list[str]:
    """Changes stored weights and biases of `fixed`, which was made from `real`; gives the layers' names.

    Weights to `leave` are those whose encodings somebody has given: they are rounded as that one expects.
    With `biases_only` all weights stay, and bias correction is all that is done.
    """
    fits = has_fixed_data if biases_only else is_tunable
    layers = {n.name: n for n in fixed.nodes if fits(n) and n.x(1).name not in leave}
    origin = {n.name: n for n in real.nodes if n.name in layers and is_layer(n)}
    before, after = (_walk_to(graph, origin, samples, threads) for graph in (real, fixed))
    stops = _stops(fixed, origin)
    for step in range(last_step(after.steps)):
        before.run(step)
        after.run(step)
        for node in stops:
            if after.steps[node] == step + 1:
                _tune(origin[node.name], node, before.known, after.known, biases_only)
    return list(origin)


def _stops(graph: Graph, names: Container[str]) -> set[Node]:
    return {node for node in graph.nodes if node.name in names}


def _walk_to(
    graph: Graph, names: Container[str], samples: Sequence[Mapping[str, Array]], threads: int
) -> Walk:
    """A walk through the graph that stops before each of the named nodes."""
    steps = steps_of(graph, _stops(graph, names).__contains__)
    return Walk(graph, [accepted(graph, sample) for sample in samples], steps, threads)


def sample_limit(graph: Graph) -> int:
    """How many samples may be on their way through a graph at once without taking too much memory."""
    widest = max((sum(v.nbytes for v in n.outputs) for n in graph.nodes), default=1)
    return max(FEWEST, min(MOST, MEMORY // (LIVE * max(widest, 1))))


def has_fixed_data(node: Node) -> bool:
    """A layer whose weight and data are in fixed point."""
    return is_layer(node) and node.x(1).dtype.is_fixed and node.x(0).dtype.is_fixed


def is_tunable(node: Node) -> bool:
    """A layer in fixed point whose weight nothing else reads, small enough for the equations."""
    if not has_fixed_data(node):
        return False
    alone = len(node.x(1).users) == 1 and all(o == 0 for o in _offsets(node.x(1)))
    return alone and Layer(node).inner <= MOST_INNER


def _offsets(value: Value) -> tuple[int, ...]:
    return value.encoding.offset if value.encoding is not None else (1,)


def _tune(
    origin: Node,
    node: Node,
    real: Mapping[str, list[Array]],
    fixed: Mapping[str, list[Array]],
    biases_only: bool,
) -> None:
    layer = Layer(node)
    rows = _rows(layer, node.x(0), real[origin.x(0).name], fixed[node.x(0).name])
    if not rows:
        return
    means = Means(
        *(np.stack([r[i].mean(axis=1, keepdims=True, dtype=np.float64) for r in rows]) for i in (0, 1))
    )
    weight, before = node.x(1), origin.x(1).data
    assert before is not None and weight.encoding is not None and weight.data is not None
    target = layer.matrix(before.astype(np.float64))
    if biases_only:
        now = layer.matrix(weight.encoding.dequantize(weight.data))
    else:
        seen = Seen(_samples(rows, means, target))
        scales = layer.scales(weight.encoding)
        largest = min((1 << (weight.encoding.bitwidth - 1)) - 1, HIGHEST)
        stored = rounded(fitted(target, seen), seen.whole, scales, largest)
        weight.data = layer.weight(stored).astype(weight.dtype.numpy)
        now = stored * scales
    _correct_bias(origin, node, means, target, now)


def _rows(layer: Layer, value: Value, real: list[Array], fixed: list[Array]) -> list[tuple[Floats, Floats]]:
    """Rows at the same places of each sample in both graphs; none of one that is not all finite there."""
    rows = min(max(NUMBERS // (layer.groups * layer.inner), FEWEST_ROWS), MOST_ROWS)
    per_sample = max(1, min(layer.positions, -(-rows // len(real))))
    chance = np.random.default_rng(0)
    found: list[tuple[Floats, Floats]] = []
    for a, b in zip(real, fixed, strict=True):
        places = np.sort(chance.choice(layer.positions, per_sample, replace=False))
        wanted = layer.rows(a, places)
        if np.isfinite(wanted).all():  # nothing makes good for an infinite error
            found.append((wanted, layer.rows(_real(value, b), places)))
    return found


def _samples(rows: list[tuple[Floats, Floats]], means: Means, weights: Floats) -> list[Sample]:
    real, fixed = (m.mean(axis=0).astype(np.float32) for m in (means.real, means.fixed))
    parts = ((x - real, y - fixed) for x, y in rows)
    return [Sample(y, (x - y) @ weights.astype(np.float32)) for x, y in parts]


def _real(value: Value, stored: Array) -> Array:
    assert value.encoding is not None
    return (stored.astype(np.float32) + np.float32(value.encoding.offset[0])) * np.float32(
        value.encoding.scale[0]
    )


def rounded(wanted: Floats, seen: Sums, scales: Floats, largest: int) -> Floats:
    """Integers whose products with the data stay closest to those of the wanted weights.

    By the factor of the moments itself: what the errors so far ask of the next weight takes no inverse.
    """
    inner = wanted.shape[1]
    damping = max(LEAST_DAMPING, DAMPING * inner / seen.rows)
    mean = np.trace(seen.squares, axis1=1, axis2=2)[:, None, None] / inner
    moments = seen.squares + damping * np.maximum(mean, 1e-12 * seen.rows) * np.eye(inner)
    order = np.argsort(-np.diagonal(moments, axis1=1, axis2=2).mean(axis=0), kind="stable")
    last = order[::-1]
    upper = np.linalg.cholesky(moments[:, last][:, :, last])[:, ::-1, ::-1]
    pull = upper / np.diagonal(upper, axis1=1, axis2=2)[:, None]  # of an error, on those that follow
    whole = wanted[:, order]
    steps = np.broadcast_to(scales, whole.shape)[:, order]
    found, errors = np.empty_like(whole), np.empty_like(whole)
    for start in range(0, inner, BLOCK):
        end = min(start + BLOCK, inner)
        goal = whole[:, start:end] + pull[:, :start, start:end].transpose(0, 2, 1) @ errors[:, :start]
        for i in range(start, end):
            found[:, i] = np.clip(np.rint(goal[:, i - start] / steps[:, i]), -largest, largest)
            errors[:, i] = whole[:, i] - found[:, i] * steps[:, i]
            goal[:, i + 1 - start :] += pull[:, i, i + 1 : end, None] * errors[:, i, None]
    back = np.empty_like(found)
    back[:, order] = found
    return back


def _correct_bias(origin: Node, node: Node, means: Means, target: Floats, now: Floats) -> None:
    """The mean of every output becomes what it was, behind data of 8 bits as far as the samples agree on it.

    Finer data is that of the graph in floating point, and the rounding of weights alone has moved the mean.
    There HTP drops bits of sums, half a unit on average, which is made good: not much, but it would add up.
    Where all data is a little smaller, biases that restore means leave less for the next layer, and so on.
    """
    bias = node.x(2) if node.has(2) else None
    if bias is None or bias.data is None or bias.dtype is not DType.SFIXED_32 or len(bias.users) != 1:
        return
    before = origin.x(2).data
    assert before is not None and bias.encoding is not None
    shifts = (means.real @ target - means.fixed @ now).reshape(len(means.real), -1)
    if node.x(0).dtype.bits <= NARROW:
        moved = agreed(shifts)
    else:
        moved = shifts.mean(axis=0) + unit_of(node) / 2 * np.asarray(bias.encoding.scale)
    bias.data = bias.encoding.quantize(before.astype(np.float64) + moved, True).astype(np.int32)
