"""Ops at the end of a detector: they decode boxes and choose among them. Unused rows are zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import Array, DType, Node, Shape
from openqnn.ops.gather import first_rows
from openqnn.ops.nms import Kernel, filled, gaussian, hard, keep, linear, overlaps, product, suppress
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import INDEX, enum, f32, flag, i32, op, result, tensor, u32
from openqnn.ops.shape_rules import declared

INT, COUNT = DType.INT_32, DType.UINT_32


def check(n: Node, holds: bool, wanted: str) -> None:
    """ShapeError with all operand shapes unless `holds`."""
    if not holds:
        shapes = ", ".join("none" if v is None else str(list(v.shape)) for v in n.inputs)
        raise ShapeError(f"{n.where}: operands {shapes}; {wanted} expected")


def _best(rows: list[tuple[float, int, int]], limit: int) -> list[tuple[float, int, int]]:
    """The highest of (score, class, box), best first; equal ones stay in order."""
    return sorted(rows, key=lambda row: -row[0])[:limit]


def _pack(found: list[tuple[float, int, int]], boxes: Array, count: int) -> tuple[Array, Array, Array]:
    """Boxes, scores and classes of detections, filled up to `count` rows."""
    scores, classes, picks = (np.array([row[k] for row in found]) for k in range(3))
    return filled(boxes[picks.astype(np.intp)], count), filled(scores, count), filled(classes, count)


# -- NonMaxSuppression ---------------------------------------------------------------------------------------


def nms_shape(n: Node) -> list[Shape]:
    """Room for all that can be selected, and for the number that is, by batch."""
    boxes, scores = n.x(0).shape, n.x(1).shape
    check(
        n, boxes[-1] == 4 and (boxes[0], boxes[1]) == (scores[0], scores[2]), "[b, n, 4] and [b, classes, n]"
    )
    rows = scores[0] * scores[1] * min(n.int("max_boxes_selected"), boxes[1])
    return [(rows, 3), boxes[:1]][: len(n.outputs) or 2]


def nms(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    thresholds = (b.const(n.float(name), np.float32) for name in ("iou_threshold", "score_threshold"))
    real = [b.cast(name, np.float32) if n.x(i).dtype is DType.FLOAT_16 else name for i, name in enumerate(x)]
    rows = b.op("NonMaxSuppression", *real, b.const(n.int("max_boxes_selected"), np.int64), *thresholds)
    batch = b.op("Slice", rows, b.ints(0), b.ints(1), b.ints(1))
    mine = b.cast(b.op("Equal", batch, b.ints(*range(n.x(0).shape[0]))), np.int64)
    found = [first_rows(b, rows, n.out.shape[0], 3, fill=0), b.op("ReduceSum", mine, b.ints(0), keepdims=0)]
    return [b.cast(name, value.dtype.numpy) for name, value in zip(found, n.outputs, strict=False)]


@op
class NonMaxSuppression:
    """Rows (batch, class, box) of the best boxes of every class that do not overlap, and their number."""

    boxes = tensor(3)
    scores = tensor(3)
    indices = result(INT)
    valid_count = result(COUNT, optional=True)
    iou_threshold = f32()
    score_threshold = f32(default=0.0)
    max_boxes_selected = u32()
    infer = nms_shape
    lower = nms


# -- MultiClassNms, CombinedNms ------------------------------------------------------------------------------


def multi_class_shape(n: Node) -> list[Shape]:
    (shape, *_), boxes, scores = declared(n), n.x(0).shape, n.x(1).shape
    check(n, boxes[-1] == 4 and boxes[:2] == scores[:2], "[b, n, 4] and [b, n, classes]")
    features = [n.x(i).shape for i in range(2, len(n.inputs))]
    check(n, all(f[:2] == boxes[:2] for f in features), f"features [{boxes[0]}, {boxes[1]}, ...]")
    check(n, len(shape) == 3 and (shape[0], shape[2]) == (boxes[0], 4), f"an output [{boxes[0]}, rows, 4]")
    rows = (boxes[0], shape[1])
    return [shape, rows, rows, (boxes[0],), *((*rows, *f[2:]) for f in features)]


def multi_class_nms(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    boxes, scores, *features = (np.asarray(a) for a in arrays)
    out = [np.zeros(v.shape, v.dtype.numpy) for v in n.outputs]
    for batch, (corners, marks) in enumerate(zip(boxes, scores, strict=True)):
        rows: list[tuple[float, int, int]] = []
        for kind in range(marks.shape[1]):
            rows += [(s, kind, i) for i, s in _class_nms(n, corners, marks[:, kind])]
        found = _best(rows, n.out.shape[1])
        for target, value in zip(out, _pack(found, corners, n.out.shape[1]), strict=False):
            target[batch] = value
        out[3][batch] = len(found)
        picks = [i for _, _, i in found]
        for target, feature in zip(out[4:], features, strict=True):
            target[batch] = filled(feature[batch, picks], n.out.shape[1])
    return out


def _class_nms(n: Node, boxes: Array, scores: Array) -> list[tuple[int, float]]:
    """One class; with a sigma the scores of boxes that overlap a little shrink, too."""
    sigma, threshold, floor = n.float("soft_nms_sigma"), n.float("iou_threshold"), n.float("score_threshold")
    kernel = product(hard(threshold), gaussian(2 * sigma)) if sigma else hard(threshold)
    candidates = np.flatnonzero(scores > floor)
    chosen, found = suppress(boxes[candidates], scores[candidates], kernel, floor=floor)
    return list(zip(candidates[chosen].tolist(), found, strict=True))


@op
class MultiClassNms:
    """The best boxes of all classes that do not overlap within their class, with their features."""

    boxes = tensor(3)
    scores = tensor(3)
    features = tensor(optional=True, variadic=True)
    out_boxes = result()
    out_scores = result(1)
    out_classes = result(INT)
    valid_count = result(COUNT)
    out_features = result(2, optional=True, variadic=True)
    iou_threshold = f32()
    score_threshold = f32(default=0.0)
    soft_nms_sigma = f32(default=0.0)
    infer = multi_class_shape
    compute = multi_class_nms


def combined_shape(n: Node) -> list[Shape]:
    boxes, scores = n.x(0).shape, n.x(1).shape
    fits = boxes[-1] == 4 and boxes[:2] == scores[:2] and boxes[2] in (1, scores[2])
    check(n, fits, "[b, n, 1 or classes, 4] and [b, n, classes]")
    rows = n.int("max_total_boxes")
    if n.flag("pad_per_class"):
        rows = min(rows, n.int("max_boxes_per_class") * scores[2])
    return [(boxes[0], rows, 4), (boxes[0], rows), (boxes[0], rows), (boxes[0],)]


def combined_nms(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    boxes, scores = (np.asarray(a) for a in arrays)
    out = [np.zeros(v.shape, v.dtype.numpy) for v in n.outputs]
    limit, rows = n.int("max_boxes_per_class"), n.out.shape[1]
    for batch, (corners, marks) in enumerate(zip(boxes, scores, strict=True)):
        found: list[tuple[float, int, int]] = []
        shared = corners.shape[1] == 1
        for kind in range(marks.shape[1]):
            own = corners[:, 0 if shared else kind]
            picks, values = keep(
                own, marks[:, kind], n.float("iou_threshold"), above=n.float("score_threshold"), limit=limit
            )
            found += [(float(s), kind, int(i)) for i, s in zip(picks, values, strict=True)]
        found = _best(found, rows)
        chosen = [corners[i, 0 if shared else kind] for _, kind, i in found]
        out[0][batch] = filled(np.array(chosen).reshape(-1, 4), rows)
        out[1][batch], out[2][batch] = _pack(found, corners[:, 0], rows)[1:]
        out[3][batch] = len(found)
    if n.flag("clip_boxes"):
        out[0] = np.clip(out[0], 0, 1)
    return out


@op
class CombinedNms:
    """The best boxes of all classes, suppressed class by class, as TensorFlow's CombinedNonMaxSuppression."""

    boxes = tensor(4)
    scores = tensor(3)
    out_boxes = result()
    out_scores = result(1)
    out_classes = result(COUNT)
    valid_count = result(COUNT)
    max_boxes_per_class = u32()
    max_total_boxes = u32()
    iou_threshold = f32()
    score_threshold = f32(default=0.0)
    pad_per_class = flag(False)
    clip_boxes = flag(False)
    infer = combined_shape
    compute = combined_nms


# -- DetectionOutput -----------------------------------------------------------------------------------------


def detection_shape(n: Node) -> list[Shape]:
    (shape, *_), scores, deltas, anchors = declared(n), n.x(0).shape, n.x(1).shape, n.x(2).shape
    places = scores[1] * (1 if n.flag("share_location") else scores[2])
    fits = anchors == (scores[1], 4) and deltas == (scores[0], places, 4)
    check(n, fits, f"[b, n, classes], [b, {places}, 4] and [n, 4]")
    check(n, len(shape) == 2 and shape[0] == scores[0], f"a first output [{scores[0]}, rows]")
    return [shape, (*shape, 4), shape, (scores[0],)]


def _ssd_boxes(n: Node, deltas: Array, anchors: Array) -> Array:
    """Corners y1, x1, y2, x2 in [0, 1] of anchors given by centre and size, [n, classes or 1, 4]."""
    deltas = deltas.reshape(len(anchors), -1, 4) / np.asarray(n.floats("delta_scaling_factors"), np.float32)
    centre, size = anchors[:, None, :2], anchors[:, None, 2:]
    middle, half = centre + deltas[..., :2] * size, np.exp(deltas[..., 2:]) * size / 2
    return np.clip(np.concatenate([middle - half, middle + half], axis=-1), 0, 1)


def _regular(n: Node, boxes: Array, scores: Array) -> list[tuple[float, int, int]]:
    """Every class by itself; then the best of all."""
    limit = n.int("detection_limit")
    found: list[tuple[float, int, int]] = []
    for kind in range(scores.shape[1]):
        if kind == n.int("background_class_idx") and not n.flag("use_bg_in_nms"):
            continue
        own = boxes[:, min(kind, boxes.shape[1] - 1)]
        found += [(float(scores[i, kind]), kind, i) for i in _adaptive(n, own, scores[:, kind], limit)]
    return _best(found, n.out.shape[1])


def _adaptive(n: Node, boxes: Array, scores: Array, limit: int) -> list[int]:
    """Hard suppression whose threshold shrinks by nms_eta with every choice, while it is above a half."""
    threshold, eta = n.float("iou_threshold"), n.float("nms_eta")
    chosen: list[int] = []
    order = np.argsort(-scores, kind="stable")
    for i in order[scores[order] > n.float("confidence_threshold")].tolist():
        if len(chosen) == limit:
            break
        if not chosen or overlaps(boxes[i], boxes[chosen]).max() <= threshold:
            chosen.append(i)
            threshold *= eta if eta < 1 and threshold > 0.5 else 1
    return chosen


def _fast(n: Node, boxes: Array, scores: Array) -> list[tuple[float, int, int]]:
    """Anchors compete by their best class; each that is kept reports its best `detection_limit` classes."""
    background, classes = n.int("background_class_idx"), scores.shape[1]
    real = np.array([k for k in range(classes) if k != background])
    limit = n.int("detection_limit") if n.int("detection_limit") > 0 else len(real)
    best = scores[:, real].max(1)
    at = real[scores[:, real].argmax(1)]
    own = boxes[np.arange(len(boxes)), np.minimum(at, boxes.shape[1] - 1)]
    found: list[tuple[float, int, int]] = []
    for i in _adaptive(n, own, best, n.out.shape[1] // limit):
        ranked = real[np.argsort(-scores[i, real], kind="stable")][:limit]
        found += [(float(scores[i, k]), int(k), i) for k in ranked]
    return found[: n.out.shape[1]]


def detection_output(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    scores, deltas, anchors = (np.asarray(a, np.float32) for a in arrays)
    out = [np.zeros(v.shape, v.dtype.numpy) for v in n.outputs]
    choose = _fast if n.enum("nms_type") == "FAST" else _regular
    first = 0 if n.flag("output_background") else 1  # classes are counted from here
    for batch in range(len(scores)):
        boxes = _ssd_boxes(n, deltas[batch], anchors)
        found = choose(n, boxes, scores[batch])
        for row, (score, kind, i) in enumerate(found):
            out[0][batch, row], out[2][batch, row] = score, kind - first
            out[1][batch, row] = boxes[i, min(kind, boxes.shape[1] - 1)]
        out[3][batch] = len(found)
    return out


@op
class DetectionOutput:
    """Decodes the boxes of a single-shot detector and chooses among those that overlap."""

    scores = tensor(3)
    deltas = tensor(3)
    anchors = tensor(2)
    out_scores = result()
    out_boxes = result()
    out_classes = result(INT)
    valid_count = result(COUNT)
    delta_scaling_factors = f32(4)
    confidence_threshold = f32()
    iou_threshold = f32()
    nms_type = enum("FAST", FAST=0, REGULAR=1)
    background_class_idx = u32(default=0)
    use_bg_in_nms = flag(False)
    output_background = flag(True)
    share_location = flag(True)
    nms_eta = f32(default=1.0)
    detection_limit = i32(default=-1)
    infer = detection_shape
    compute = detection_output


# -- BoxWithNmsLimit -----------------------------------------------------------------------------------------


def limit_shape(n: Node) -> list[Shape]:
    boxes, scores, batch = n.x(0).shape, n.x(1).shape, n.x(2).shape
    fits = boxes == (scores[0], scores[1] * 4) and batch == scores[:1]
    check(n, fits, "[r, classes * 4], [r, classes] and [r]")
    rows = n.outputs[0].shape[0] if n.outputs and n.outputs[0].shape else scores[0] * scores[1]
    splits = n.x(3).shape if n.has(3) else (1,)
    every: list[Shape] = [(rows, 4), (rows,), (rows,), (rows,), splits, (rows,), (scores[1],)]
    return every[: max(4, len(n.outputs))]


def box_with_nms_limit(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    """Images one after the other, classes within, best first. Unused classes, images and picks are -1."""
    boxes, scores, batch = (np.asarray(a) for a in arrays[:3])
    found: list[tuple[int, int, float, int, int]] = []
    for image in np.unique(batch):
        rows = np.flatnonzero(batch == image)
        found += [(int(image), *row, int(rows[row[2]])) for row in _image_limit(n, boxes[rows], scores[rows])]
    table = np.array(found, np.float64).reshape(-1, 5)
    marks, (images, kinds, picks, places) = table[:, 2], table[:, (0, 1, 3, 4)].astype(np.intp).T
    corners = boxes.reshape(len(boxes), -1, 4)[places, kinds]
    count = n.out.shape[0]
    head = [filled(corners, count), filled(marks, count), filled(kinds, count, -1), filled(images, count, -1)]
    splits = [np.count_nonzero(images == i) for i in range(n.outputs[4].size)] if len(n.outputs) > 4 else []
    sizes = [np.count_nonzero(kinds == k) for k in range(scores.shape[1])]
    return [*head, np.array(splits), filled(picks, count, -1), np.array(sizes)][: len(n.outputs)]


def _kernel(n: Node) -> Kernel:
    if n.enum("nms_kernel_method") == "GAUSSIAN":
        return gaussian(n.float("sigma"))
    return (hard if n.enum("nms_kernel_method") == "HARD" else linear)(n.float("iou_threshold"))


def _image_limit(n: Node, boxes: Array, scores: Array) -> list[tuple[int, float, int]]:
    """(class, score, box) of one image; pre_nms_limit bounds the result, whatever its name says."""
    kernel = _kernel(n)
    floor, limit = n.float("nms_score_threshold"), n.int("pre_nms_limit")
    found: list[tuple[int, float, int]] = []
    for kind in range(scores.shape[1]):
        rows = np.flatnonzero(scores[:, kind] > n.float("score_threshold"))
        own = boxes[rows, kind * 4 : kind * 4 + 4]
        chosen, marks = suppress(own, scores[rows, kind], kernel, floor=floor)
        found += [(kind, mark, int(rows[i])) for i, mark in zip(chosen, marks, strict=True)]
    if 0 < limit < len(found):
        worst = sorted((mark for _, mark, _ in found), reverse=True)[limit - 1]
        found = [row for row in found if row[1] >= worst][:limit]
    return found


@op
class BoxWithNmsLimit:
    """The best boxes of every class and image; suppression may be hard, or shrink scores."""

    boxes = tensor(2)
    scores = tensor(2)
    batch_indices = tensor(1, role=INDEX)
    batch_splits = tensor(1, role=INDEX, optional=True)
    out_boxes = result()
    out_scores = result(1)
    out_classes = result(INT)
    out_batch = result(INT)
    out_splits = result(INT, optional=True)
    keeps = result(INT, optional=True)
    keeps_size = result(INT, optional=True)
    nms_kernel_method = enum(dtype=INT, HARD=0, LINEAR=1, GAUSSIAN=2)
    nms_score_threshold = f32()
    score_threshold = f32()
    pre_nms_limit = i32()
    iou_threshold = f32()
    sigma = f32()
    infer = limit_shape
    compute = box_with_nms_limit
