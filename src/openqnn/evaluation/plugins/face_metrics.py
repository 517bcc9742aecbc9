"""The metric widerface_AP: average precision of a face detector on easy, medium and hard faces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openqnn.errors import InputError
from openqnn.evaluation.match_boxes import overlaps
from openqnn.evaluation.plugins.parameter_kinds import kind_float
from openqnn.evaluation.plugins.plugin import Context, MetricPlugin, Result, param, plugin
from openqnn.ir import Array

LEAST = {"easy": 50, "medium": 30, "hard": 10}
"""Pixels that a face is tall at least to belong to a level; smaller ones count neither for nor against."""


@dataclass(frozen=True, slots=True)
class Faces:
    """The boxes of an image as corners, and which of them count at all."""

    boxes: Array
    valid: Array


def read_faces(path: Path) -> dict[str, Faces]:
    """WIDER FACE's list: a line with the image's name, one with the number of faces, and one for each face:
    x y width height blur expression illumination invalid occlusion pose."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    found: dict[str, Faces] = {}
    at = 0
    try:
        while at < len(lines):
            name, count = lines[at], int(lines[at + 1])
            rows = [[float(w) for w in line.split()] for line in lines[at + 2 : at + 2 + max(count, 1)]]
            numbers = np.array([row[:4] for row in rows[:count]], np.float64).reshape(-1, 4)
            valid = np.array([len(row) < 8 or row[7] == 0 for row in rows[:count]], bool)
            boxes = np.concatenate([numbers[:, :2], numbers[:, :2] + numbers[:, 2:]], axis=1)
            found[name] = found[Path(name).name] = Faces(boxes, valid)
            # an image without faces has a line of zeros, or none
            at += 2 + (count or int(at + 2 < len(lines) and lines[at + 2].startswith("0 0")))
    except (ValueError, IndexError) as error:
        raise InputError(f"{path}: no list of faces as WIDER FACE has it ({error})") from error
    return found


@plugin("widerface_AP")
class WiderFaceAp(MetricPlugin):
    """Average precision for each level: the area under precision over recall."""

    IoU_threshold: float = param(kind_float, 0.4)

    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        path = context.dataset.annotation_file("widerface_AP")
        truth = read_faces(path)
        pairs: list[tuple[Faces, list]] = []
        for result in results:
            name = result.item.files[0]
            faces = truth.get(name, truth.get(Path(name).name))
            if faces is None:
                raise InputError(f"{path} says nothing of image '{name}'")
            if not isinstance(result.value, list):
                raise InputError(
                    "widerface_AP has no faces to judge", hint="postprocessing plugin centerface_postproc"
                )
            pairs.append((faces, result.value))
        return {f"{level}_AP": self._level(pairs, least) for level, least in LEAST.items()}

    def _level(self, pairs: Sequence[tuple[Faces, list]], least: int) -> float:
        scored: list[tuple[float, bool]] = []
        total = 0
        for faces, detections in pairs:
            counts = faces.valid & (faces.boxes[:, 3] - faces.boxes[:, 1] >= least)
            total += int(counts.sum())
            scored += self._judged(faces.boxes, counts, detections)
        return average_precision(scored, total)

    def _judged(self, boxes: Array, counts: Array, detections: Sequence) -> list[tuple[float, bool]]:
        """Each detection that counts, the best first: its score, and whether it found a face."""
        taken, found = np.zeros(len(boxes), bool), list[tuple[float, bool]]()
        for detection in sorted(detections, key=lambda d: -d.score):
            shares = overlaps(np.array([detection.box]), boxes)[0] if len(boxes) else np.zeros(0)
            best = int(shares.argmax()) if len(shares) else -1
            if best < 0 or shares[best] < self.IoU_threshold:
                found.append((detection.score, False))
            elif counts[best]:
                found.append((detection.score, not taken[best]))
                taken[best] = True
        return found


def average_precision(scored: Sequence[tuple[float, bool]], total: int) -> float:
    """The area under the precision that is reached at a recall or beyond it."""
    if not total:
        return float("nan")
    order = sorted(scored, key=lambda pair: -pair[0])
    right = np.cumsum([hit for _, hit in order]) if order else np.zeros(0)
    precision = right / np.arange(1, len(order) + 1)
    recall = np.concatenate([[0.0], right / total, [1.0]])
    envelope = np.maximum.accumulate(np.concatenate([[0.0], precision, [0.0]])[::-1])[::-1]
    return float(np.sum(np.diff(recall) * envelope[1:]))
