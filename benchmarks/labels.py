"""Samples whose right answer is known: digits, files by extension, rendered text, turned lines."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.models.fetch import model_path
from tests.models.samples import HALF, planes
from tests.models.sets import CALIBRATION, EVALUATION, digits, files, first_and_last, line, words

Feeds = list[dict[str, Any]]
DIGITS, FILES, LINES, TURNED = 500, 200, 100, 400
# PP-OCR's English alphabet: nothing, ASCII from 0 on, the marks before it, and two spaces
ALPHABET = "\0" + "".join(map(chr, [*range(0x30, 0x7F), *range(0x21, 0x30)])) + "  "


@dataclass(frozen=True)
class Labelled:
    """A model, its samples with the right answers, and how to read an answer out of its outputs."""

    what: str
    model: str
    load: Callable[[], tuple[Feeds, list[Any]]]
    answer: Callable[[Mapping[str, Any]], Any]

    def share(self, outputs: Sequence[Mapping[str, Any]], truth: Sequence[Any]) -> float:
        """The share of right answers; where several are right, the truth is a tuple of them."""
        right = [
            self.answer(o) in t if isinstance(t, tuple) else self.answer(o) == t
            for o, t in zip(outputs, truth, strict=True)
        ]
        return float(np.mean(right))


def _first(outputs: Mapping[str, Any]) -> Any:
    return next(iter(outputs.values()))


def _largest(outputs: Mapping[str, Any]) -> int:
    return int(np.argmax(_first(outputs)))


def _digits() -> tuple[Feeds, list[Any]]:
    images, labels = digits()
    chosen = slice(CALIBRATION + EVALUATION, CALIBRATION + EVALUATION + DIGITS)
    return [{"Input3": image} for image in images[chosen]], labels[chosen].tolist()


def _files() -> tuple[Feeds, list[Any]]:
    chosen = files()[CALIBRATION + EVALUATION :][:FILES]
    return [{"bytes": first_and_last(path)} for path, _ in chosen], [kinds for _, kinds in chosen]


def _kind(outputs: Mapping[str, Any]) -> str:
    labels = json.loads(model_path("magika_config").read_text())["target_labels_space"]
    return labels[_largest(outputs)]


def _lines() -> tuple[Feeds, list[Any]]:
    chance = random.Random(60)
    texts = [words(chance) for _ in range(LINES)]
    return [{"x": planes(line(48, 320, t, chance), HALF, HALF)} for t in texts], texts


def _text(outputs: Mapping[str, Any]) -> str:
    """The likeliest character of each column, repetitions and blanks left out."""
    best = np.argmax(_first(outputs)[0], axis=-1)
    kept = [c for i, c in enumerate(best) if c and (i == 0 or c != best[i - 1])]
    return "".join(ALPHABET[c] for c in kept)


def _turned() -> tuple[Feeds, list[Any]]:
    chance = random.Random(70)
    feeds: Feeds = []
    for number in range(TURNED):
        image = line(48, 192, words(chance), chance)
        feeds.append({"x": planes(image.rotate(180 * (number % 2)), HALF, HALF)})
    return feeds, [number % 2 for number in range(TURNED)]


LABELLED = (
    Labelled("handwritten digits (mnist_conv)", "mnist_conv", _digits, _largest),
    Labelled("kinds of files (magika)", "magika", _files, _kind),
    Labelled("lines of text, exact (ppocrv4_rec_en)", "ppocrv4_rec_en", _lines, _text),
    Labelled("lines upside down (ppocr_cls)", "ppocr_cls", _turned, _largest),
)
