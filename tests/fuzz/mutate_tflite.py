"""Damage to a TFLite model, decided by a seed alone: to its bytes, or to single numbers of its tables."""

from __future__ import annotations

import random
import struct
from functools import cache

from tests.models.fetch import model_path

MODELS = {"microwakeword_okay_nabu": 3, "fer_tflite": 3, "basic_pitch_tflite": 1}  # id: how often
NUMBERS = [0, 1, 2, 3, 255, 256, 65535, 1 << 31, (1 << 32) - 1, (1 << 31) - 1]
LARGE = 2048  # bytes from which on a buffer of zeros or noise is weights and not structure


@cache
def content(model: str) -> bytes:
    return model_path(model).read_bytes()


def mutated_tflite(seed: int) -> tuple[str, bytes]:
    """What was done, and the bytes of the model."""
    chance = random.Random(seed)
    model = chance.choice([m for m, count in MODELS.items() for _ in range(count)])
    data = bytearray(content(model))
    how = chance.choice([_cut, _flip, _words, _words, _words, _swap])
    return f"{model}: {how(data, chance)}", bytes(data)


def _place(data: bytearray, chance: random.Random) -> int:
    """The tables stand at both ends of a file, weights between them."""
    edge = min(len(data) // 2, 24 * 1024)
    return chance.randrange(edge) if chance.random() < 0.3 else len(data) - 1 - chance.randrange(edge)


def _cut(data: bytearray, chance: random.Random) -> str:
    end = chance.randrange(len(data))
    del data[end:]
    return f"cut at {end}"


def _flip(data: bytearray, chance: random.Random) -> str:
    places = [_place(data, chance) for _ in range(chance.choice([1, 1, 2, 8]))]
    for place in places:
        data[place] ^= 1 << chance.randrange(8)
    return f"bits at {places}"


def _words(data: bytearray, chance: random.Random) -> str:
    place = _place(data, chance) // 4 * 4
    if place + 4 > len(data):
        return "nothing"
    old = struct.unpack_from("<I", data, place)[0]
    number = chance.choice([*NUMBERS, old + 1, old - 1, old * 2, old + 4, old ^ 0xFFFF]) & 0xFFFFFFFF
    struct.pack_into("<I", data, place, number)
    return f"{old} at {place} became {number}"


def _swap(data: bytearray, chance: random.Random) -> str:
    a, b = (_place(data, chance) // 4 * 4 for _ in range(2))
    size = 4 * chance.choice([1, 1, 2, 8])
    data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]
    return f"{size} bytes at {a} and {b} exchanged"
