"""Boxes and the suppression of those that overlap, in numpy: what the detection ops share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from openqnn.ir import Array

# By how much the scores of boxes shrink, given their overlaps with a box that was chosen.
Kernel: TypeAlias = Callable[[Array], Array]
MAX_LOG_SCALE = float(np.log(1000 / 16))  # the usual bound on a predicted log scale, lest exp overflow


def overlaps(box: Array, boxes: Array) -> Array:
    """Intersection over union of one box with others, all given by two opposite corners."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    start, end = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    common = np.clip(np.minimum(end, high) - np.maximum(start, low), 0, None).prod(1)
    union = (end - start).prod() + (high - low).prod(1) - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def hard(threshold: float) -> Kernel:
    return lambda overlap: np.where(overlap > threshold, 0.0, 1.0)


def linear(threshold: float) -> Kernel:
    return lambda overlap: np.where(overlap >= threshold, 1 - overlap, 1.0)


def gaussian(sigma: float) -> Kernel:
    return lambda overlap: np.exp(-(overlap**2) / sigma)


def product(first: Kernel, second: Kernel) -> Kernel:
    return lambda overlap: first(overlap) * second(overlap)


def suppress(
    boxes: Array, scores: Array, kernel: Kernel, *, floor: float = -np.inf, limit: int | None = None
) -> tuple[list[int], list[float]]:
    """Chooses the best box again and again, shrinking the scores of the others; gives indices and scores.

    Scores that a choice shrinks to zero or below `floor` are out; the best of all is in, whatever it scores.
    """
    boxes, left = boxes.astype(np.float64), scores.astype(np.float64)
    alive = np.ones(len(left), np.bool_)
    chosen, found = list[int](), list[float]()
    while alive.any() and (limit is None or len(chosen) < limit):
        best = int(np.argmax(np.where(alive, left, -np.inf)))
        chosen.append(best)
        found.append(float(left[best]))
        alive[best] = False
        factor = kernel(overlaps(boxes[best], boxes))
        left = left * factor
        alive &= (factor > 0) & (left >= floor)
    return chosen, found


def keep(
    boxes: Array, scores: Array, threshold: float, *, above: float, limit: int | None = None
) -> tuple[Array, Array]:
    """Hard suppression among the boxes that score above a threshold; gives indices and scores, best first."""
    candidates = np.flatnonzero(scores > above)
    chosen, _ = suppress(boxes[candidates], scores[candidates], hard(threshold), limit=limit)
    picked = candidates[chosen]
    return picked, scores[picked]


def decode(boxes: Array, deltas: Array, weights: Array, *, clip: bool = True) -> Array:
    """Boxes x1, y1, x2, y2 moved by dx, dy and scaled by e^dw, e^dh; deltas are [n, classes, 4]."""
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    size = high - low
    deltas = deltas / weights
    scale = np.minimum(deltas[..., 2:], MAX_LOG_SCALE) if clip else deltas[..., 2:]
    centre, half = low + size / 2 + deltas[..., :2] * size, np.exp(scale) * size / 2
    return np.concatenate([centre - half, centre + half], axis=-1)


def clip_to(boxes: Array, height: Array | float, width: Array | float) -> Array:
    """Corners x1, y1, x2, y2 moved into the image."""
    bound = np.stack(np.broadcast_arrays(width, height, width, height), axis=-1)
    return np.clip(boxes, 0, bound)


def filled(rows: Array, count: int, fill: float = 0) -> Array:
    """Exactly `count` rows: cut, or filled up."""
    out = np.full((count, *rows.shape[1:]), fill, rows.dtype)
    out[: len(rows)] = rows[:count]
    return out
