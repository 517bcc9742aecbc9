"""The metric map_coco: mean average precision of boxes, masks or key points, by pycocotools."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.errors import InputError, LibraryError
from openqnn.evaluation.plugins.detections import Detection
from openqnn.evaluation.plugins.images import EXTRA, ORIGINAL
from openqnn.evaluation.plugins.parameter_kinds import kind_bool, kind_text
from openqnn.evaluation.plugins.plugin import MEMORY, Context, MetricPlugin, Result, param, plugin

# The 80 classes that COCO uses, by the numbers that it gives them: of 1 to 90 it leaves these out.
UNUSED = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
COCO_CLASSES = [number for number in range(1, 91) if number not in UNUSED]


@plugin("map_coco")
class MapCoco(MetricPlugin):
    """Mean average precision at an overlap of 50 % and over 50 to 95 %, in percent."""

    map_80_to_90: bool = param(kind_bool, False)
    segm: bool = param(kind_bool, False)
    keypoint_map: bool = param(kind_bool, False)
    data: str = param(kind_text, "coco", choices=("coco", "openimages"), only=MEMORY)

    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        try:
            from pycocotools.coco import COCO
            from pycocotools.cocoeval import COCOeval
        except ImportError:
            raise LibraryError("map_coco needs the package pycocotools", hint=EXTRA) from None
        path = context.dataset.annotation_file("map_coco")
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                truth: Any = COCO(str(path))
            except Exception as error:  # whatever reading JSON of another form raises
                raise InputError(f"{path}: no annotations of COCO ({error})") from error
            ids = self._ids(truth, results, path)
            entries = [e for r, i in zip(results, ids, strict=True) for e in self._entries(r, i)]
            if not entries:
                return {"mAP 50": 0.0, "mAP 50:05:95": 0.0}
            kind = "segm" if self.segm else "keypoints" if self.keypoint_map else "bbox"
            judge: Any = COCOeval(truth, truth.loadRes(entries), kind)
            judge.params.imgIds = sorted(set(ids))
            judge.evaluate()
            judge.accumulate()
            judge.summarize()
        return {"mAP 50": 100 * float(judge.stats[1]), "mAP 50:05:95": 100 * float(judge.stats[0])}

    def _ids(self, truth: Any, results: Sequence[Result], path: Path) -> list[int]:
        names = {image["file_name"]: image["id"] for image in truth.imgs.values()}
        found: list[int] = []
        for result in results:
            name = Path(result.item.files[0]).name
            digits = re.findall(r"\d+", Path(name).stem)
            number = names.get(name, int(digits[-1]) if digits else None)
            if number not in truth.imgs:
                raise InputError(f"{path} says nothing of image '{name}'")
            found.append(number)
        return found

    def _entries(self, result: Result, image: int) -> list[dict[str, Any]]:
        detections = result.value
        if not isinstance(detections, list):
            raise InputError(
                "map_coco has no detections to judge", hint="postprocessing plugin object_detection"
            )
        return [self._entry(d, image, result) for d in detections]

    def _entry(self, found: Detection, image: int, result: Result) -> dict[str, Any]:
        left, top, right, bottom = found.box
        label = found.label
        if self.map_80_to_90:
            label = COCO_CLASSES[label] if 0 <= label < len(COCO_CLASSES) else -1
        entry: dict[str, Any] = {
            "image_id": image, "category_id": label, "score": found.score,
            "bbox": [left, top, right - left, bottom - top],
        }  # fmt: skip
        if self.segm:
            entry["segmentation"] = _encoded(found, result.item.notes.get(ORIGINAL))
        if self.keypoint_map:
            if not found.points or len(found.points) % 3:
                raise InputError(
                    "map_coco: keypoint_map needs key points, three numbers each",
                    hint="a plugin of your own that fills Detection.points",
                )
            entry["keypoints"] = list(found.points)
        return entry


def _encoded(found: Detection, size: tuple[int, int] | None) -> Any:
    """A mask in its box, put into the image and run-length encoded."""
    from pycocotools import mask

    from openqnn.evaluation.plugins.image_sizes import scaled

    if found.mask is None or size is None:
        raise InputError("map_coco: segm needs masks", hint="object_detection: mask: True")
    left, top, right, bottom = (round(v) for v in found.box)
    wide, tall = max(1, right - left), max(1, bottom - top)
    plane = np.asarray(found.mask, np.float32).reshape(-1, *np.shape(found.mask)[-2:])
    own = scaled(plane[min(found.label, len(plane) - 1)][..., None], tall, wide, "opencv", "bilinear")
    sheet = np.zeros(size, np.uint8)
    part = sheet[top : top + tall, left : left + wide]
    part[:] = (own.reshape(tall, wide)[: part.shape[0], : part.shape[1]] > 0.5).astype(np.uint8)
    encoded: Any = mask.encode(np.asfortranarray(sheet))
    encoded["counts"] = encoded["counts"].decode()
    return encoded
