"""TFLite_Detection_PostProcess, the custom operator at the end of SSD detectors, in QNN ops."""

from __future__ import annotations

import numpy as np

from openqnn.frontends.compositions import cut
from openqnn.frontends.tflite.table import CUSTOM_DOMAIN, translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import DType, Value

CORNERS = 4


@translates("TFLite_Detection_PostProcess", domain=CUSTOM_DOMAIN)
def detection_postprocess(
    t: Translation, encoded: Value, scores: Value, anchors: Value, *, max_detections: int = 10,
    max_classes_per_detection: int = 1, detections_per_class: int = 100, use_regular_nms: bool = False,
    nms_score_threshold: float = 0.0, nms_iou_threshold: float = 0.5, num_classes: int = 1,
    y_scale: float = 10.0, x_scale: float = 10.0, h_scale: float = 5.0, w_scale: float = 5.0,
) -> list[Value]:  # fmt: skip
    """Boxes from offsets to anchors, then the best that do not overlap.

    By default only the best class of a box counts; with `use_regular_nms` every class has its own boxes.
    """
    if (
        encoded.rank != 3
        or encoded.shape[0] != 1
        or encoded.shape[2] < CORNERS
        or max_classes_per_detection != 1
    ):
        t.refuse(
            f"boxes {list(encoded.shape)} with {max_classes_per_detection} classes each cannot be said in QNN"
        )
    boxes = decoded_boxes(t, encoded, anchors, (y_scale, x_scale, h_scale, w_scale))
    behind = scores.shape[2] - num_classes  # a class for the background stands in front
    if behind not in (0, 1):
        t.refuse(f"scores {list(scores.shape)} do not fit {num_classes} classes")
    marks = cut(t, scores, 2, behind, scores.shape[2])
    shape = (1, max_detections, CORNERS)
    limits = {"iou_threshold": nms_iou_threshold, "score_threshold": nms_score_threshold}
    if use_regular_nms:
        chosen, best, classes, count = _suppressed(t, [boxes, marks], shape, limits)
        classes = t.cast(classes, DType.FLOAT_32)
    else:
        top = t.reduce_max(marks, [2], keep_dims=True)
        kind = t.cast(t.argmax(marks, 2, keep_dims=True), DType.FLOAT_32)
        chosen, best, _, count, classes = _suppressed(t, [boxes, top, kind], shape, limits)
        classes = t.reshape(classes, (1, max_detections))
    return [chosen, classes, best, t.cast(count, DType.FLOAT_32)]


def _suppressed(
    t: Translation, operands: list[Value], shape: tuple[int, ...], limits: dict[str, float]
) -> list[Value]:
    return t.many("MultiClassNms", *operands, shape=shape, **limits)


def decoded_boxes(t: Translation, encoded: Value, anchors: Value, scales: tuple[float, ...]) -> Value:
    """Corners (top, left, bottom, right) from centres and sizes relative to anchors."""
    known = t.static(anchors, "the anchors").astype(np.float32)
    if known.shape != (encoded.shape[1], CORNERS) or min(scales) <= 0:
        t.refuse(f"anchors {list(known.shape)} do not fit boxes {list(encoded.shape)}")
    centres, sizes = known[None, :, :2], known[None, :, 2:]
    moved = t.mul(cut(t, encoded, 2, 0, 2), t.constant(sizes / np.asarray(scales[:2], np.float32)))
    middle = t.add(moved, t.constant(centres))
    grown = t.exp(t.mul(cut(t, encoded, 2, 2, 4), t.constant(1 / np.asarray(scales[2:], np.float32))))
    half = t.mul(grown, t.constant(sizes / 2))
    return t.concat([t.sub(middle, half), t.add(middle, half)], 2)
