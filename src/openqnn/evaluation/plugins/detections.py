"""Plugins that read boxes out of a detector's outputs: object_detection and centernet_postprocess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openqnn.errors import InputError, UsageError
from openqnn.evaluation.plugins.image_sizes import FRAME, LETTERBOX, Frame
from openqnn.evaluation.plugins.images import ORIGINAL
from openqnn.evaluation.plugins.parameter_kinds import (
    kind_bool,
    kind_counts,
    kind_dims,
    kind_float,
    kind_int,
    kind_numbers,
    kind_optional,
    kind_words,
)
from openqnn.evaluation.plugins.plugin import FILE, Context, PostprocessPlugin, Result, param, plugin
from openqnn.ir import Array


@dataclass(frozen=True, slots=True)
class Detection:
    """A box in pixels of the original image, as left, top, right, bottom; a mask or key points with it."""

    label: int
    score: float
    box: tuple[float, float, float, float]
    mask: Any = None
    points: tuple[float, ...] = ()


def frame_of(notes: Mapping[str, Any], dims: Sequence[int], kind: str | None) -> Frame:
    """Where the image lies in the input: as resize left it, or computed from the image's size."""
    if isinstance(notes.get(FRAME), Frame):
        return notes[FRAME]
    height, width = dims[:2]
    rows, columns = notes.get(ORIGINAL, (height, width))
    if kind != LETTERBOX:
        return Frame((width / columns, height / rows), (0.0, 0.0), (height, width))
    ratio = min(height / rows, width / columns)
    left, top = (width - round(columns * ratio)) // 2, (height - round(rows * ratio)) // 2
    return Frame((ratio, ratio), (float(left), float(top)), (height, width))


def to_image(
    boxes: Array, frame: Frame, size: tuple[int, int] | None, *, skip_padding: bool = False
) -> Array:
    """Corners in the input as corners in the image, inside of it."""
    offset = np.zeros(4) if skip_padding else np.array([*frame.offset, *frame.offset])
    found = (boxes - offset) / np.array([*frame.scale, *frame.scale])
    if size is None:
        return found
    return np.clip(found, 0, [size[1], size[0], size[1], size[0]])


def typed(result: Result, dtypes: Sequence[str] | None) -> list[Array]:
    """The outputs as the config says that they are."""
    kinds = list(dtypes or ())
    return [
        np.asarray(a).astype(kinds[i]) if i < len(kinds) else np.asarray(a)
        for i, a in enumerate(result.arrays)
    ]


@plugin("object_detection")
class ObjectDetection(PostprocessPlugin):
    """Outputs in the order boxes [N, 4], scores [N] or [N, classes], labels [N], masks.

    Boxes are corners in pixels of the input, or what `scale` makes such of them; with scores for each class
    the best class of a box is its label. With padded_outputs rows without a score above 0 are filling.
    """

    dims: tuple[int, ...] = param(kind_dims)
    type: str | None = param(kind_optional, None)
    label_offset: int = param(kind_int, 0)
    score_threshold: float = param(kind_float, 0.001)
    xywh_to_xyxy: bool = param(kind_bool, False)
    xy_swap: bool = param(kind_bool, False)
    dtypes: tuple[str, ...] | None = param(kind_words, None)
    mask: bool = param(kind_bool, False)
    mask_dims: tuple[int, ...] | None = param(kind_counts, None)
    padded_outputs: bool = param(kind_bool, False)
    scale: tuple[float, ...] = param(kind_numbers, (1.0,))
    skip_padding: bool = param(kind_bool, False)

    def process(self, result: Result, context: Context) -> Result:
        arrays = typed(result, self.dtypes or context.output_types)
        if len(arrays) < 2 or arrays[0].shape[-1] != 4:
            shapes = ", ".join(str(list(a.shape)) for a in arrays)
            raise InputError(f"object_detection: outputs of shapes {shapes} are no boxes [N, 4] and scores")
        boxes = self._corners(arrays[0].reshape(-1, 4).astype(np.float64))
        return Result(result.item, result.arrays, self._found(result, arrays, boxes))

    def _found(self, result: Result, arrays: Sequence[Array], boxes: Array) -> list[Detection]:
        scores, labels = self._scored(arrays, len(boxes))
        frame = frame_of(result.item.notes, self.dims, self.type)
        size = result.item.notes.get(ORIGINAL)
        placed = to_image(boxes, frame, size, skip_padding=self.skip_padding)
        least = max(self.score_threshold, 1e-12) if self.padded_outputs else self.score_threshold
        masks = self._masks(arrays, len(boxes))
        return [
            Detection(int(labels[i]) + self.label_offset, float(scores[i]), tuple(placed[i]), masks[i])
            for i in np.argsort(-scores, kind="stable")
            if scores[i] >= least
        ]

    def _corners(self, boxes: Array) -> Array:
        boxes = boxes * np.asarray(self.scale if len(self.scale) in (1, 4) else self.scale * 2)
        if self.xy_swap:
            boxes = boxes[:, [1, 0, 3, 2]]
        if self.xywh_to_xyxy:
            middle, half = boxes[:, :2], boxes[:, 2:] / 2
            boxes = np.concatenate([middle - half, middle + half], axis=1)
        return boxes

    def _scored(self, arrays: Sequence[Array], count: int) -> tuple[Array, Array]:
        scores = arrays[1].reshape(count, -1).astype(np.float64)
        if scores.shape[1] > 1:
            return scores.max(axis=1), scores.argmax(axis=1)
        if len(arrays) < 3:
            return scores[:, 0], np.zeros(count, np.int64)
        labels = np.rint(arrays[2].reshape(-1).astype(np.float64))
        if len(labels) != count:
            raise InputError(f"object_detection: {count} boxes have {len(labels)} labels")
        return scores[:, 0], labels

    def _masks(self, arrays: Sequence[Array], count: int) -> list[Any]:
        if not self.mask:
            return [None] * count
        if self.mask_dims is None or len(arrays) < 4:
            raise UsageError("object_detection: mask needs mask_dims and a fourth output")
        return list(arrays[3].reshape(self.mask_dims)[..., :, :].reshape(count, -1, *self.mask_dims[-2:]))


@plugin("centernet_postprocess")
class CenterNetPostprocess(PostprocessPlugin):
    """Outputs in the order heat map [1, C, H, W], sizes [1, 2, H, W], offsets [1, 2, H, W].

    `score` is a threshold in percent.
    """

    dtypes: tuple[str, ...] | None = param(kind_words, only=FILE)
    output_dims: tuple[int, ...] = param(kind_dims)
    top_k: int = param(kind_int, 100)
    num_classes: int = param(kind_int, 1)
    score: int = param(kind_int, 1)

    def process(self, result: Result, context: Context) -> Result:
        if not context.memory and len(self.dtypes or ()) < 3:
            raise UsageError("centernet_postprocess: dtypes needs three types at least")
        arrays = typed(result, self.dtypes)
        height, width = self.output_dims[:2]
        if len(arrays) < 3 or arrays[0].size != self.num_classes * height * width:
            shapes = ", ".join(str(list(a.shape)) for a in arrays)
            raise InputError(
                f"centernet_postprocess: outputs of shapes {shapes} are no heat map of {self.num_classes}"
                f" classes by {height} by {width}, sizes and offsets"
            )
        heat = arrays[0].reshape(self.num_classes, height, width).astype(np.float64)
        if heat.min() < 0 or heat.max() > 1:
            heat = 1 / (1 + np.exp(-heat))
        sizes, offsets = (a.reshape(2, height, width).astype(np.float64) for a in arrays[1:3])
        return Result(result.item, result.arrays, self._found(result, heat, sizes, offsets))

    def _found(self, result: Result, heat: Array, sizes: Array, offsets: Array) -> list[Detection]:
        height, width = self.output_dims[:2]
        frame = result.item.notes.get(FRAME)
        stretch = np.array([frame.size[1] / width, frame.size[0] / height] * 2 if frame else [1.0] * 4)
        found: list[Detection] = []
        for label, row, column, score in peaks(heat, self.top_k):
            if score * 100 < self.score:
                continue
            x, y = column + offsets[0, row, column], row + offsets[1, row, column]
            half = sizes[:, row, column] / 2
            box = np.array([x - half[0], y - half[1], x + half[0], y + half[1]]) * stretch
            placed = to_image(box[None], frame, result.item.notes.get(ORIGINAL))[0] if frame else box
            found.append(Detection(label, score, tuple(placed)))
        return found


def peaks(heat: Array, count: int) -> list[tuple[int, int, int, float]]:
    """The highest places of a heat map that no neighbour exceeds: class, row, column, height."""
    padded = np.pad(heat, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    rows, columns = heat.shape[1:]
    around = np.max([padded[:, i : i + rows, j : j + columns] for i in range(3) for j in range(3)], axis=0)
    kept = np.where(heat >= around, heat, -np.inf)
    order = np.argsort(-kept, axis=None, kind="stable")[:count]
    places = np.array(np.unravel_index(order, heat.shape)).T
    return [
        (int(c), int(i), int(j), float(heat[c, i, j])) for c, i, j in places if np.isfinite(kept[c, i, j])
    ]
