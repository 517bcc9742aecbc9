"""The plugin centerface_postproc: faces out of CenterFace's four outputs."""

from __future__ import annotations

import numpy as np

from openqnn.errors import InputError
from openqnn.evaluation.match_boxes import overlaps
from openqnn.evaluation.plugins.detections import Detection, frame_of, to_image, typed
from openqnn.evaluation.plugins.images import ORIGINAL
from openqnn.evaluation.plugins.parameter_kinds import kind_dims, kind_float, kind_words
from openqnn.evaluation.plugins.plugin import FILE, Context, PostprocessPlugin, Result, param, plugin
from openqnn.ir import Array

STRIDE = 4  # pixels of the input for each place of the heat map


def kept_boxes(boxes: Array, scores: Array, most: float) -> list[int]:
    """Non-maximum suppression: the best first, without those that overlap a better one by more than that."""
    left, kept = list(np.argsort(-scores, kind="stable")), list[int]()
    while left:
        best = int(left.pop(0))
        kept.append(best)
        if left:
            shared = overlaps(boxes[best][None], boxes[left])[0]
            left = [i for i, share in zip(left, shared, strict=True) if share <= most]
    return kept


@plugin("centerface_postproc")
class CenterFacePostprocess(PostprocessPlugin):
    """Outputs in the order heat map [1, 1, H, W], scales [1, 2, H, W], offsets [1, 2, H, W], landmarks."""

    dims: tuple[int, ...] = param(kind_dims)
    dtypes: tuple[str, ...] | None = param(kind_words, None, only=FILE)
    heatmap_threshold: float = param(kind_float, 0.05)
    nms_threshold: float = param(kind_float, 0.3)

    def process(self, result: Result, context: Context) -> Result:
        arrays: list[Array] = [
            a.astype(np.float64) for a in typed(result, self.dtypes or context.output_types)
        ]
        if len(arrays) < 3 or arrays[0].ndim < 3:
            raise InputError("centerface_postproc: the outputs are no heat map, scales and offsets")
        heat = arrays[0].reshape(arrays[0].shape[-2:])
        scale, offset = (a.reshape(2, *heat.shape) for a in arrays[1:3])
        rows, columns = np.where(heat > self.heatmap_threshold)
        tall, wide = (np.exp(s[rows, columns]) * STRIDE for s in scale)
        y = (rows + offset[0][rows, columns] + 0.5) * STRIDE - tall / 2
        x = (columns + offset[1][rows, columns] + 0.5) * STRIDE - wide / 2
        height, width = self.dims[:2]
        corners = np.stack([np.maximum(x, 0), np.maximum(y, 0), x + wide, y + tall], axis=-1)
        boxes = np.minimum(corners, [width, height, width, height])
        scores = heat[rows, columns]
        frame = frame_of(result.item.notes, self.dims, None)
        placed = to_image(boxes, frame, result.item.notes.get(ORIGINAL))
        kept = kept_boxes(boxes, scores, self.nms_threshold)
        return Result(
            result.item, result.arrays, [Detection(0, float(scores[i]), tuple(placed[i])) for i in kept]
        )
