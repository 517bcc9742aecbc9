"""Matching of boxes: which detections of one run another one finds again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openqnn.errors import InputError
from openqnn.ir import Array

KEYS = ("box", "class", "score")
LEAST_SCORE = 0.05


@dataclass(frozen=True, slots=True)
class BoxOutputs:
    """Which outputs hold corners, classes and scores."""

    box: str
    class_: str
    score: str


def read_box_outputs(path: str, outputs: Sequence[str]) -> BoxOutputs:
    """The file of --box_input: for each of box, class and score a raw file, named by an output."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: no JSON ({error})") from error
    if not isinstance(content, dict) or sorted(content) != sorted(KEYS):
        raise InputError(f"{path}: it needs {', '.join(KEYS)}, and nothing else")
    return BoxOutputs(*(_output(path, str(content[key]), outputs) for key in KEYS))


def _output(path: str, said: str, outputs: Sequence[str]) -> str:
    """`Result_0/detection_boxes_0.raw` means the output detection_boxes_0, or detection_boxes."""
    stem = Path(said).name.removesuffix(".raw")
    short = stem.rpartition("_")[0] if stem.rpartition("_")[2].isdigit() else stem
    found = next((name for name in (stem, f"{stem}:0", short) if name in outputs), None)
    if found is None:
        raise InputError(f"{path}: no output is called '{stem}'", hint=f"outputs: {', '.join(outputs)}")
    return found


def overlaps(first: Array, second: Array) -> Array:
    """Intersection over union of each box of one list with each of the other, from corners."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=-1)
    areas = [np.prod(np.maximum(b[:, 2:] - b[:, :2], 0), axis=-1) for b in (first, second)]
    union = areas[0][:, None] + areas[1][None] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def match_boxes(
    reference: Mapping[str, Array], found: Mapping[str, Array], names: BoxOutputs, least: float
) -> float:
    """The percentage of boxes of both runs that have a partner in the other: twice the pairs over all boxes.

    The best overlaps pair first, one box with one, of the same class and with at least that overlap.
    """
    (first, kinds), (second, others) = (_kept(each, names) for each in (reference, found))
    if not len(first) and not len(second):
        return 100.0
    shared = overlaps(first, second) * (kinds[:, None] == others[None])
    pairs = 0
    while shared.size and shared.max() >= max(least, 1e-9):
        i, j = np.unravel_index(int(shared.argmax()), shared.shape)
        shared[i], shared[:, j] = 0, 0
        pairs += 1
    return 100.0 * 2 * pairs / (len(first) + len(second))


def _kept(outputs: Mapping[str, Array], names: BoxOutputs) -> tuple[Array, Array]:
    scores = np.asarray(outputs[names.score], np.float64).reshape(-1)
    boxes = np.asarray(outputs[names.box], np.float64).reshape(-1, 4)
    kinds = np.rint(np.asarray(outputs[names.class_], np.float64)).reshape(-1)
    if not len(scores) == len(boxes) == len(kinds):
        raise InputError(
            f"{len(boxes)} boxes, {len(kinds)} classes and {len(scores)} scores do not belong together",
            hint="box, class and score of --box_input must be outputs of the same detections",
        )
    good = scores >= LEAST_SCORE
    return boxes[good], kinds[good]
