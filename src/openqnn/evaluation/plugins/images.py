"""Images as plugins see them: read from files as RGB bytes, rows by columns by channels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from openqnn.errors import InputError, LibraryError
from openqnn.evaluation.plugins.plugin import Context, Item
from openqnn.ir import Array

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff")
ORIGINAL = "original_size"  # of an item's image, as (height, width)
EXTRA = "pip install 'openqnn[evaluate]'"


def with_image(item: Item, context: Context) -> Item:
    """The item with its first file read as an image, unless arrays are there already."""
    if item.arrays:
        return item
    image = read_image(context.dataset.path(item.files[0]))
    return item.with_arrays([image], **{ORIGINAL: image.shape[:2]})


def read_image(path: Path) -> Array:
    """RGB bytes from an image file; numbers as they are from .npy."""
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        from PIL import Image

        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: this is no image ({error})") from error


def opencv() -> Any:
    """OpenCV; an error that says how to get it otherwise."""
    try:
        import cv2
    except ImportError:
        raise LibraryError("images are resized by OpenCV, which is not installed", hint=EXTRA) from None
    return cv2
