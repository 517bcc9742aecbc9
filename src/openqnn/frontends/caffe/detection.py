"""The layers of SSD, the detector of single shots: prior boxes, and what becomes of them."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from openqnn.frontends.caffe.table import field, translates
from openqnn.frontends.compositions import cut
from openqnn.frontends.translation import Translation
from openqnn.ir import Array, Value

DEFAULT_VARIANCE = 0.1
MOST_PRIORS = 1 << 24
SAME = 1e-6  # aspect ratios that are as good as one


# -- prior boxes ---------------------------------------------------------------------------------------------


@translates("PriorBox")
def prior_box(
    t: Translation, features: Value, image: Value, *, min_size: list[float],
    max_size: list[float] | None = None, aspect_ratio: list[float] | None = None, flip: bool = True,
    clip: bool = False,
    variance: list[float] | None = None, img_size: int = 0, img_h: int = 0, img_w: int = 0,
    step: float = 0.0, step_h: float = 0.0, step_w: float = 0.0, offset: float = 0.5,
) -> Value:  # fmt: skip
    """Boxes around every place of a feature map, relative to the image; then the variances of each."""
    if features.rank != 4 or image.rank != 4:
        t.refuse("needs a feature map and an image")
    sizes = _sizes(t, min_size, max_size or [], _ratios(t, aspect_ratio or [], flip))
    height, width = _said(img_h, img_size, image.shape[2]), _said(img_w, img_size, image.shape[3])
    rows, columns = features.shape[2:]
    if rows * columns * len(sizes) > MOST_PRIORS:
        t.refuse(f"{rows * columns * len(sizes):,} prior boxes are beyond all bounds")
    y = _places(rows, _said(step_h, step, height / rows), offset)
    x = _places(columns, _said(step_w, step, width / columns), offset)
    boxes = _boxes(x, y, sizes) / np.asarray([width, height] * 2, np.float32)
    flat = (np.clip(boxes, 0, 1) if clip else boxes).reshape(-1)
    spread = _variances(t, variance or [DEFAULT_VARIANCE])
    return t.constant(np.stack([flat, np.tile(spread, len(flat) // 4)])[None].astype(np.float32))


def _said(*choices: float) -> float:
    """The first that is not zero."""
    return next(filter(None, choices), 0.0)


def _places(count: int, step: float, offset: float) -> Array:
    return (np.arange(count, dtype=np.float32) + np.float32(offset)) * np.float32(step)


def _boxes(x: Array, y: Array, sizes: list[tuple[float, float]]) -> Array:
    """Corners of all sizes around every place, row by row."""
    centres = np.stack([*np.meshgrid(x, y)], -1)[:, :, None, :]
    half = np.asarray(sizes, np.float32) / 2
    return np.concatenate([centres - half, centres + half], -1)


def _ratios(t: Translation, said: list[float], flip: bool) -> list[float]:
    found = [1.0]
    for ratio in said:
        if ratio <= 0:
            t.refuse(f"aspect_ratio: {ratio} is not positive")
        if all(abs(ratio - known) > SAME for known in found):
            found += [ratio, 1 / ratio] if flip else [ratio]
    return found


def _sizes(
    t: Translation, smallest: list[float], largest: list[float], ratios: list[float]
) -> list[tuple[float, float]]:
    """Widths and heights: the square, the one between it and the next, then the other shapes."""
    if min([*smallest, *largest], default=0) <= 0 or len(largest) not in (0, len(smallest)):
        t.refuse("min_size is to be positive, and max_size too, with as many of them if any")
    found: list[tuple[float, float]] = []
    for i, size in enumerate(smallest):
        found.append((size, size))
        if largest:
            middle = sqrt(size * largest[i])
            found.append((middle, middle))
        found += [(size * sqrt(r), size / sqrt(r)) for r in ratios if abs(r - 1) > SAME]
    return found


def _variances(t: Translation, said: list[float]) -> Array:
    if len(said) not in (1, 4):
        t.refuse(f"variance {said}: one number or four are expected")
    return np.asarray(said * (4 // len(said)), np.float32)


# -- detections ----------------------------------------------------------------------------------------------


@translates("DetectionOutput")
def detection_output(
    t: Translation, locations: Value, confidences: Value, priors: Value, *, num_classes: int,
    share_location: bool = True, background_label_id: int = 0, nms_param: dict[str, Any] | None = None,
    code_type: str = "CORNER", variance_encoded_in_target: bool = False, keep_top_k: int = -1,
    confidence_threshold: float = -1e30, clip: bool = False,
) -> Value:  # fmt: skip
    """Rows of image, label, confidence and corners, best first; those that are not used are zero."""
    if not share_location or field(nms_param, "eta", 1.0) != 1:
        t.refuse("boxes for each class, or a threshold that changes on the way (eta), are not translated")
    known = _known_priors(t, priors)
    batch, count = locations.shape[0], known.shape[1]
    if (locations.size, confidences.size) != (batch * count * 4, batch * count * num_classes):
        t.refuse(f"locations and confidences do not fit {count} prior boxes of {num_classes} classes")
    spread = np.ones_like(known[1]) if variance_encoded_in_target else known[1]
    boxes = _decoded(t, t.reshape(locations, (batch, count, 4)), known[0], spread, code_type)
    labels = [i for i in range(num_classes) if i != background_label_id]
    marks = _picked(t, t.reshape(confidences, (batch, count, num_classes)), labels)
    top = field(nms_param, "top_k", -1)
    looked_at = top if 0 < top < count else count
    marks = _best_of_each_class(t, marks, top) if looked_at < count else marks
    rows = min(keep_top_k if keep_top_k > 0 else 1 << 31, looked_at * len(labels))
    return _rows(t, boxes, marks, labels, (batch, rows, 4), clip, {
        "iou_threshold": field(nms_param, "nms_threshold", 0.3),
        "score_threshold": max(confidence_threshold, 0.0),
    })  # fmt: skip


def _known_priors(t: Translation, priors: Value) -> Array:
    """Boxes and variances, a row of four numbers for each."""
    if priors.size % 8:
        t.refuse(f"prior boxes {list(priors.shape)} are no boxes with their variances")
    return t.static(priors, "the prior boxes").reshape(2, -1, 4).astype(np.float32)


def _rows(
    t: Translation, boxes: Value, marks: Value, labels: list[int], shape: tuple[int, int, int], clip: bool,
    limits: dict[str, float],
) -> Value:  # fmt: skip
    batch, rows, _ = shape
    chosen, best, kinds, _ = t.many("MultiClassNms", boxes, marks, shape=shape, **limits)
    label = t.gather(t.constant(np.asarray(labels, np.float32)), kinds, axis=0)
    label = t.mul(label, t.sign(best))  # none where no detection is
    image = np.broadcast_to(np.arange(batch, dtype=np.float32)[:, None, None], (batch, rows, 1))
    parts = [t.constant(image), *(t.reshape(v, (batch, rows, 1)) for v in (label, best))]
    table = t.concat([*parts, t.clip(chosen, 0.0, 1.0) if clip else chosen], 2)
    return t.reshape(table, (1, 1, batch * rows, 7))


def _picked(t: Translation, marks: Value, labels: list[int]) -> Value:
    """The columns of those labels: all but the background's."""
    missing = next((i for i in range(marks.shape[2]) if i not in labels), None)
    if missing is None:
        return marks
    if not labels:
        t.refuse("there is no class besides the background")
    ends = [(0, missing), (missing + 1, marks.shape[2])]
    return t.concat([cut(t, marks, 2, a, b) for a, b in ends if b > a], 2)


def _best_of_each_class(t: Translation, marks: Value, count: int) -> Value:
    """Zero for all but the `count` highest of every class, so that only these are looked at."""
    by_class = t.transpose(marks, (0, 2, 1))
    values, _ = t.many("TopK", by_class, k=count)
    limit = cut(t, values, 2, count - 1, count)
    return t.transpose(t.select(t.less(by_class, limit), t.scalar(0.0, marks), by_class), (0, 2, 1))


def _decoded(t: Translation, deltas: Value, priors: Array, spread: Array, code: str) -> Value:
    """Corners from what the network says of each prior box; `spread` are the variances."""
    if code == "CORNER":
        return t.add(t.mul(deltas, t.constant(spread[None])), t.constant(priors[None]))
    sizes = priors[:, 2:] - priors[:, :2]
    if code == "CORNER_SIZE":
        factor = spread * np.concatenate([sizes, sizes], 1)
        return t.add(t.mul(deltas, t.constant(factor[None])), t.constant(priors[None]))
    if code != "CENTER_SIZE":
        t.refuse(f"code_type: {code} is not known")
    centres = (priors[:, :2] + priors[:, 2:]) / 2
    moved = t.mul(cut(t, deltas, 2, 0, 2), t.constant((spread[:, :2] * sizes)[None]))
    middle = t.add(moved, t.constant(centres[None]))
    grown = t.exp(t.mul(cut(t, deltas, 2, 2, 4), t.constant(spread[:, 2:][None])))
    half = t.mul(grown, t.constant((sizes / 2)[None]))
    return t.concat([t.sub(middle, half), t.add(middle, half)], 2)
