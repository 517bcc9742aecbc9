"""Damage to a Caffe network, decided by a seed alone: to its text, or to the file of its weights."""

from __future__ import annotations

import random
import re
import zlib
from functools import cache

import numpy as np

from tests.frontends.caffe.build import caffemodel, inputs_text, layer_text
from tests.frontends.caffe.cases import CASES
from tests.fuzz.damage import damaged
from tests.models.fetch import model_path

NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "7",
    "65537",
    "4294967296",
    "1e30",
    "-0.5",
    "true",
    "MAX",
    '"x"',
    "inf",
    "nan",
)
SSD_SHARE = 0.1  # of the damage goes to the real detector, the rest to small networks of one layer


@cache
def _content(number: int) -> tuple[str, bytes]:
    """The text and the weights of a small network; -1 is the detector."""
    if number < 0:
        return model_path("ssd_face_caffe").read_text(), model_path("ssd_face_weights").read_bytes()
    case = CASES[number]
    chance = np.random.default_rng(zlib.crc32(case.id.encode()))
    text = inputs_text(case.shapes) + layer_text(case.kind, case.params, len(case.shapes), case.tops)
    blobs = [chance.random(shape).astype(np.float32) for shape in case.weights]
    return text, caffemodel({"it": blobs}, old=bool(number % 3)) if blobs else b""


def mutated_caffe(seed: int) -> tuple[str, bytes, bytes]:
    """What was done, the .prototxt and the .caffemodel."""
    chance = random.Random(seed)
    number = -1 if chance.random() < SSD_SHARE else chance.randrange(len(CASES))
    text, weights = _content(number)
    what = "the detector" if number < 0 else CASES[number].id
    how = chance.choice(("numbers", "numbers", "numbers", "text", "weights"))
    if how == "numbers":
        for _ in range(chance.choice((1, 1, 2, 3))):
            places = list(re.finditer(r"(?<=: )\S+", text))
            place = chance.choice(places)
            text = text[: place.start()] + chance.choice(NUMBERS) + text[place.end() :]
    data = damaged(text.encode(), seed) if how == "text" else text.encode()
    if how == "weights" and weights:
        head = min(len(weights), 256)  # tags, names and sizes; what follows are mostly numbers
        weights = damaged(weights[:head], seed) + weights[head:]
    return f"{what}: {how}", data, weights
