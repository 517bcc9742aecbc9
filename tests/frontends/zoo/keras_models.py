"""keras.applications with random weights, saved as .keras files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras

SMALL, LEAST = 64, {"InceptionV3": 96, "InceptionResNetV2": 96, "Xception": 96}
FIXED = {"NASNetLarge": 331, "NASNetMobile": 224}
"""Sides of the images; NASNet asks for its own."""


def names() -> list[str]:
    found = keras.applications
    return [name for name in dir(found) if callable(getattr(found, name))]


def saved(name: str, folder: Path) -> tuple[Path, NDArray[np.float32], NDArray[np.float32]]:
    """A network as a file, an input, and what Keras makes of it."""
    keras.utils.set_random_seed(0)
    side = FIXED.get(name) or LEAST.get(name, SMALL)
    make = getattr(keras.applications, name)
    model = make(weights=None, input_shape=(side, side, 3))
    x = np.random.default_rng(0).random((1, side, side, 3), np.float32)
    settle(model, x)
    path = folder / f"{name}.keras"
    model.save(path)
    return path, x, np.asarray(model(x, training=False))


def settle(model: keras.Model, x: NDArray[np.float32]) -> None:
    """Batch norms take the statistics of an input, as after training: or numbers grow by depth."""
    norms = [v for v in model._flatten_layers() if isinstance(v, keras.layers.BatchNormalization)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = 0.0
    model(np.concatenate([x, np.random.default_rng(1).random(x.shape, np.float32)]), training=True)
