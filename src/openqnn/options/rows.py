"""Values that take several words on the command line: NAME DIMS, NAME TYPE, ..."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

LAYOUTS = ("NCDHW", "NDHWC", "NCHW", "NHWC", "NFC", "NCF", "NTF", "TNF", "NF", "NC", "F", "NONTRIVIAL")
COLOURS = ("bgr", "rgb", "rgba", "argb32", "nv21", "nv12")
ENCODINGS = (*COLOURS, "time_series", "other")
INPUT_TYPES = ("image", "default", "opaque")
DATA_TYPES = (
    "float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
MODEL_COLOUR = "bgr"  # what a model is taken to expect when nobody says otherwise


def dims(text: str) -> tuple[int, ...]:
    """1,3,224,224."""
    try:
        shape = tuple(int(d) for d in text.split(",")) if text.strip() else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected dimensions such as 1,3,224,224") from None
    if any(d < 1 for d in shape):
        raise argparse.ArgumentTypeError(f"{text!r}: dimensions are at least 1")
    return shape


def named_dims(words: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    name, text = words
    return name, dims(text)


def all_named_dims(words: Sequence[str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """NAME DIMS, once or several times in a row."""
    if len(words) % 2:
        raise argparse.ArgumentTypeError(f"{' '.join(words)!r}: expected NAME DIMS, such as data 1,3,224,224")
    return tuple(named_dims(words[i : i + 2]) for i in range(0, len(words), 2))


def named_number(words: Sequence[str]) -> tuple[str, int]:
    name, text = words
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{name} {text!r}: expected a number of at least 1")
    return name, int(text)


def named_choice(choices: tuple[str, ...]) -> Callable[[Sequence[str]], tuple[str, str]]:
    """NAME and one of the given words."""

    def read(words: Sequence[str]) -> tuple[str, str]:
        name, word = words
        return name, chosen(word, choices)

    return read


def chosen(word: str, choices: tuple[str, ...]) -> str:
    """The choice that a word means, in whatever case it is written."""
    found = next((c for c in choices if c.lower() == word.lower()), None)
    if found is None:
        raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(choices)}")
    return found


def named_encoding(words: Sequence[str]) -> tuple[str, str, str]:
    """NAME IN [OUT]: what the application will give, and what the model expects."""
    if not 2 <= len(words) <= 3:
        raise argparse.ArgumentTypeError(f"{' '.join(words)!r}: expected NAME IN [OUT]")
    given = chosen(words[1], ENCODINGS)
    wanted = chosen(words[2], ENCODINGS) if len(words) == 3 else MODEL_COLOUR
    return words[0], given, wanted


def kept(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """--preserve_io [layout|datatype [NAME ...]]; "" stands for both."""
    if not words:
        return "", ()
    return chosen(words[0], ("layout", "datatype")), tuple(words[1:])
