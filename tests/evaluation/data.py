"""Labelled data of the evaluator's tests: real digits as images and raw files, with a config about them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

from tests.models.fetch import model_path
from tests.models.sets import digits

MODEL = "mnist_conv"
FIRST = 36  # of the digits that no other test calibrates with
GRAY = '''
from openqnn.evaluation.plugins import PreprocessPlugin, plugin


@plugin("gray")
class Gray(PreprocessPlugin):
    """One plane of an image's three, as the network takes it."""

    def process(self, item, context):
        return item.with_arrays([item.arrays[0][..., 0][None, None]])
'''
RAISES = '''
from openqnn.evaluation.plugins import MetricPlugin, plugin


@plugin("raises")
class Raises(MetricPlugin):
    """Always fails."""

    def evaluate(self, results, context):
        return {"never": 1 / 0}
'''


def write_digits(place: Path, count: int) -> list[int]:
    """Images, raw files, their lists and the truth; gives the labels."""
    (place / "images").mkdir(parents=True)
    images, labels = digits()
    names, raws, truth = [], [], []
    for i in range(count):
        pixels = images[FIRST + i]
        Image.fromarray(pixels.reshape(28, 28).round().astype(np.uint8)).save(place / "images" / f"d{i}.png")
        pixels.astype(np.float32).tofile(place / f"d{i}.raw")
        names.append(f"images/d{i}.png")
        raws.append(str(place / f"d{i}.raw"))
        truth.append(f"d{i}.png {labels[FIRST + i]}")
    for name, lines in (("inputlist.txt", names), ("raw.txt", raws), ("truth.txt", truth)):
        (place / name).write_text("\n".join(lines) + "\n")
    (place / "calib.txt").write_text("\n".join(map(str, range(8))) + "\n")
    (place / "plugins").mkdir()
    (place / "plugins" / "gray.py").write_text(GRAY)
    return [int(label) for label in labels[FIRST : FIRST + count]]


def schema(**said: Any) -> dict[str, Any]:
    return {"inference_schema": said}


def config(place: Path, *schemas: Mapping[str, Any]) -> dict[str, Any]:
    """A config about the digits, to be changed and written."""
    return {
        "model": {
            "info": {"desc": "digits"},
            "dataset": {
                "name": "digits", "path": str(place), "inputlist_file": "inputlist.txt",
                "annotation_file": "truth.txt", "calibration": {"type": "index", "file": "calib.txt"},
            },
            "processing": {
                "preprocessing": {
                    "transformations": [
                        {"plugin": {"name": "resize", "params": {"dims": "28,28"}}},
                        {"plugin": {"name": "gray"}},
                    ]
                }
            },
            "inference-engine": {
                "model_path": str(model_path(MODEL)), "inference_schemas": copy.deepcopy(list(schemas)),
            },
            "evaluator": {
                "comparator": {"type": "cos"},
                "metrics": [{"plugin": {"name": "topk", "params": {"kval": "1,5", "round": 7}}}],
            },
        }
    }  # fmt: skip


def write_config(place: Path, content: Mapping[str, Any]) -> Path:
    path = place / "config.yaml"
    path.write_text(yaml.safe_dump(dict(content), sort_keys=False))
    return path
