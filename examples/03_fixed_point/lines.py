"""Data for the third example: lines of text, upright and upside down, and how many a run told right."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WORDS = ("OpenQNN 2048", "fixed point", "Snapdragon", "calibration", "the quick brown fox", "Line 42 of 100")
CALIBRATION, TRIAL = range(16), range(100, 108)


def line(number: int) -> np.ndarray:
    """A line of text as the network takes it, [1, 3, 48, 192]; odd ones are upside down."""
    random = np.random.default_rng(number)
    image = Image.new("RGB", (192, 48), tuple(random.integers(200, 256, 3)))
    font = ImageFont.load_default(float(random.uniform(18, 34)))
    words = WORDS[number % len(WORDS)]
    ImageDraw.Draw(image).text((4, 24), words, tuple(random.integers(0, 90, 3)), font, "lm")
    pixels = np.asarray(image.rotate(180 * (number % 2)), np.float32)
    return ((pixels / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None].astype(np.float32)


def make(folder: str) -> None:
    """Writes lines as .npy for `openqnn quantize`, and as .raw with lists for QNN's tools (channel-last)."""
    root = Path(folder)
    for kind, numbers in (("calibration", CALIBRATION), ("trial", TRIAL)):
        (root / kind).mkdir(parents=True, exist_ok=True)
        for n in numbers:
            np.save(root / kind / f"{n}.npy", line(n))
            line(n).transpose(0, 2, 3, 1).tofile(root / f"{kind}_{n}.raw")
        names = (f"{root / f'{kind}_{n}.raw'}\n" for n in numbers)
        (root / f"{kind}.txt").write_text("".join(names), encoding="utf-8")


def count(folder: str) -> None:
    """How many of the trial lines were told right by a run of qnn-net-run."""
    results = [
        np.fromfile(next(Path(folder, f"Result_{i}").glob("*.raw")), np.float32).argmax()
        for i in range(len(TRIAL))
    ]
    right = sum(int(found) == n % 2 for found, n in zip(results, TRIAL, strict=True))
    print(f"{right} of {len(TRIAL)} lines told right")
    if right < len(TRIAL) - 1:
        sys.exit("error: more than one line was told wrong")


if __name__ == "__main__":
    {"make": make, "count": count}[sys.argv[1]](*sys.argv[2:])
