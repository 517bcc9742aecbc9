"""Ops of two-stage detectors: region proposals, their pyramid levels, boxes from deltas, key points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, DType, Node, Shape
from openqnn.ops.detection import check
from openqnn.ops.nms import clip_to, decode, filled, keep
from openqnn.ops.schema import ABSENT, INDEX, f32, flag, i32, op, result, tensor, u32

INT = DType.INT_32
LEVEL_EPSILON = 1e-6

# -- boxes from deltas ---------------------------------------------------------------------------------------


def axis_aligned_shape(n: Node) -> list[Shape]:
    rois, deltas, batch, size = (n.x(i).shape for i in range(4))
    fits = rois == (deltas[0], 4) and deltas[1] % 4 == 0 and batch == rois[:1] and size[1] == 2
    check(n, fits, "[r, 4], [r, classes * 4], [r] and [b, 2]")
    return [deltas]


def axis_aligned(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    rois, deltas, batch, size = (np.asarray(a) for a in arrays)
    weights = np.asarray(n.floats("weights"), np.float32)
    found = decode(rois, deltas.reshape(len(rois), -1, 4), weights, clip=False)
    height, width = size[batch.astype(np.intp)].T[:, :, None]
    return [clip_to(found, height, width)]


@op
class AxisAlignedBboxTransform:
    """Boxes moved and scaled by predicted deltas, clipped to their image (height, width)."""

    rois = tensor(2)
    deltas = tensor(2)
    batch_indices = tensor(1, role=INDEX)
    image_size = tensor(2)
    out0 = result()
    weights = f32(4, default=(1.0, 1.0, 1.0, 1.0))
    infer = axis_aligned_shape
    compute = axis_aligned


def bbox_transform_shape(n: Node) -> list[Shape]:
    rois, deltas, info = (n.x(i).shape for i in range(3))
    fits = rois == (deltas[0], 5) and deltas[1] % 4 == 0 and info[1] == 3
    check(n, fits, "[r, 5] (upright boxes), [r, classes * 4] and [b, 3]")
    return [deltas, (info[0],)]


def bbox_transform(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    """Regions are in pixels of the scaled image; deltas apply at the original scale."""
    rois, deltas, info = (np.asarray(a) for a in arrays)
    batch = rois[:, 0].astype(np.intp)
    height, width, scale = info[batch].T[:, :, None]
    weights = np.asarray(n.floats("weights"), np.float32)
    found = decode(rois[:, 1:] / scale, deltas.reshape(len(rois), -1, 4), weights)
    found = clip_to(found, np.floor(height / scale + 0.5), np.floor(width / scale + 0.5))
    found = found * scale[..., None] if n.flag("apply_scale") else found
    return [found, np.bincount(batch, minlength=len(info))]


@op
class BboxTransform:
    """Boxes (image, x1, y1, x2, y2) moved and scaled by deltas, clipped to images (height, width, scale)."""

    rois = tensor(2)
    deltas = tensor(2)
    image_info = tensor(2)
    out_boxes = result()
    rois_per_batch = result()
    weights = f32(4)
    apply_scale = flag(True)
    angle_bounds = i32(2, default=ABSENT)  # for rotated boxes, which the shape rule turns away
    angle_clip_threshold = f32(default=ABSENT)
    infer = bbox_transform_shape
    compute = bbox_transform


# -- proposals -----------------------------------------------------------------------------------------------


def generate_shape(n: Node) -> list[Shape]:
    scores, deltas, anchors, size = (n.x(i).shape for i in range(4))
    fits = deltas == (*scores[:3], scores[3] * 4) and anchors == (scores[3], 4) and size == (scores[0], 2)
    check(n, fits, "[b, h, w, a], [b, h, w, a * 4], [a, 4] and [b, 2]")
    rows = n.outputs[0].shape[0] if n.outputs and n.outputs[0].shape else scores[0] * n.int("post_nms_limit")
    return [(rows,), (rows, 4), (rows,)]


def _proposals(n: Node, scores: Array, deltas: Array, anchors: Array, size: Array) -> tuple[Array, Array]:
    """Scores and boxes of one image."""
    rows, columns, _ = scores.shape
    high, wide = n.floats("img_size_ratio")
    y, x = (place[:, :, None] for place in np.indices((rows, columns), np.float32))
    shifts = np.stack([x * wide, y * high, x * wide, y * high], axis=-1)
    boxes = decode((shifts + anchors).reshape(-1, 4), deltas.reshape(-1, 1, 4), np.ones(4, np.float32))[:, 0]
    boxes = clip_to(boxes, *size)
    marks = scores.reshape(-1)
    order = np.argsort(-marks, kind="stable")[: n.int("pre_nms_limit") or None]
    order = order[((boxes[order, 2:] - boxes[order, :2]) >= n.float("min_size")).all(1)]
    picks, _ = keep(
        boxes[order],
        marks[order],
        n.float("iou_threshold"),
        above=-np.inf,
        limit=n.int("post_nms_limit") or None,
    )
    return marks[order][picks], boxes[order][picks]


def generate_proposals(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    scores, deltas, anchors, size = (np.asarray(a) for a in arrays)
    found = [_proposals(n, scores[i], deltas[i], anchors, size[i]) for i in range(len(scores))]
    batch = np.concatenate([np.full(len(marks), i) for i, (marks, _) in enumerate(found)])
    marks, boxes = (np.concatenate(part) for part in zip(*found, strict=True))
    count = n.out.shape[0]
    return [filled(marks, count, np.finfo(marks.dtype).min), filled(boxes, count), filled(batch, count)]


@op
class GenerateProposals:
    """The best regions x1, y1, x2, y2 that a region proposal network predicts around its anchors."""

    scores = tensor(4)
    deltas = tensor(4)
    anchors = tensor(2)
    image_size = tensor(2)
    out_scores = result()
    out_rois = result()
    out_batch = result(INT)
    img_size_ratio = f32(2)
    min_size = f32()
    pre_nms_limit = u32()
    post_nms_limit = u32()
    iou_threshold = f32()
    bbox_xform_clip = flag(True)
    infer = generate_shape
    compute = generate_proposals


def collect_shape(n: Node) -> list[Shape]:
    levels = n.int("rpn_max_level") - n.int("rpn_min_level") + 1
    given = [n.x(i).shape for i in range(len(n.inputs))]
    fits = levels > 0 and len(given) == 2 * levels
    fits = fits and all(
        len(r) == 2 and r[1] == 5 and s == r[:1] for r, s in zip(given[:levels], given[levels:], strict=True)
    )
    check(n, fits, f"{levels} regions [r, 5], then as many scores [r],")
    return [(n.int("post_nms_top"), 5)]


def collect_proposals(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    half = len(arrays) // 2
    rois, scores = (np.concatenate([np.asarray(a) for a in part]) for part in (arrays[:half], arrays[half:]))
    return [filled(rois[np.argsort(-scores, kind="stable")], n.out.shape[0])]


@op
class CollectRpnProposals:
    """The best regions of all pyramid levels, given as the regions of each level, then the scores of each."""

    rois = tensor(variadic=True)
    out0 = result()
    rpn_min_level = u32()
    rpn_max_level = u32()
    post_nms_top = u32()
    infer = collect_shape
    compute = collect_proposals


def distribute_shape(n: Node) -> list[Shape]:
    rois, levels = n.x(0).shape, n.int("roi_max_level") - n.int("roi_min_level") + 1
    check(n, rois[1] == 5 and levels > 0, "[r, 5] and levels in ascending order")
    return [rois[:1], *[rois] * levels]


def distribute_proposals(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    """The first output says where each region went, in the levels laid end to end with their unused rows."""
    rois = np.asarray(arrays[0])
    low, high = n.int("roi_min_level"), n.int("roi_max_level")
    size = np.sqrt(np.clip(rois[:, 3:] - rois[:, 1:3], 0, None).astype(np.float32).prod(1))
    level = n.int("roi_canonical_level") + np.log2(size / n.int("roi_canonical_scale") + LEVEL_EPSILON)
    level = np.clip(np.floor(level), low, high).astype(int) - low
    restore = np.zeros(len(rois), np.int32)
    out: list[Array] = []
    for k in range(high - low + 1):
        members = np.flatnonzero(level == k)
        restore[members] = k * len(rois) + np.arange(len(members))
        out.append(filled(rois[members], len(rois)))
    return [restore, *out]


@op
class DistributeFpnProposals:
    """Regions handed to pyramid levels by their size, and the order that puts them back."""

    rois = tensor(2)
    restore_index = result(INT)
    rois_level = result(variadic=True)
    roi_min_level = u32()
    roi_max_level = u32()
    roi_canonical_scale = u32()
    roi_canonical_level = u32()
    infer = distribute_shape
    compute = distribute_proposals


# -- key points ----------------------------------------------------------------------------------------------


def keypoint_shape(n: Node) -> list[Shape]:
    heat, boxes = n.x(0).shape, n.x(1).shape
    check(n, boxes == (heat[0], 4) and min(heat[1:3]) >= 2, "[r, h, w, k] with h, w of at least 2 and [r, 4]")
    return [(heat[0], heat[3]), (heat[0], heat[3], 2)]


def _around(i: int, size: int) -> list[int]:
    """An index and its neighbours; at the border the inner one stands for the missing one."""
    return [i - 1 if i > 0 else 1, i, i + 1 if i + 1 < size else size - 2]


def _peak(heat: Array, row: int, column: int) -> tuple[float, float, float]:
    """Offset (x, y) and height of the summit of a quadratic surface through the cells around a maximum."""
    rows, columns = heat.shape
    g = heat[np.ix_(_around(row, rows), _around(column, columns))].astype(np.float64)
    slope = np.array([g[1, 2] - g[1, 0], g[2, 1] - g[0, 1]]) / 2
    cross = (g[2, 2] - g[2, 0] - g[0, 2] + g[0, 0]) / 4
    curve = np.array([[g[1, 2] - 2 * g[1, 1] + g[1, 0], cross], [cross, g[2, 1] - 2 * g[1, 1] + g[0, 1]]])
    steep = curve[0, 0] * curve[1, 1]
    if abs(np.linalg.det(curve)) < 1e-5 * (1 + steep):  # flat: no summit to be found
        return 0.0, 0.0, float(g[1, 1])
    step = np.linalg.solve(curve, -slope)
    step *= min(
        1.0, 1.5 / max(np.abs(step).max(), 1e-9)
    )  # the surface says nothing about what is further away
    return float(step[0]), float(step[1]), float(g[1, 1] + slope @ step + step @ curve @ step / 2)


def max_keypoints(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    heat, boxes = (np.asarray(a) for a in arrays)
    count, rows, columns, kinds = heat.shape
    scores, points = np.zeros((count, kinds)), np.zeros((count, kinds, 2))
    for i, k in np.ndindex(count, kinds):
        row, column = divmod(int(heat[i, :, :, k].argmax()), columns)
        dx, dy, scores[i, k] = _peak(heat[i, :, :, k], row, column)
        place = np.array([(column + dx + 0.5) / columns, (row + dy + 0.5) / rows])
        points[i, k] = boxes[i, :2] + place * (boxes[i, 2:] - boxes[i, :2])
    return [scores, points]


@op
class HeatMapMaxKeyPoint:
    """The place (x, y) and height of the peak of every heat map, in the coordinates of its box."""

    heatmap = tensor(4)
    boxes = tensor(2)
    out_scores = result()
    out_keypoints = result()
    infer = keypoint_shape
    compute = max_keypoints
