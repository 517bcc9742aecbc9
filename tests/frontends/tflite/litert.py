"""What LiteRT computes on a TFLite model: the numbers that a conversion is held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def interpreter(model: Path | bytes, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    source: dict[str, Any] = (
        {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    )
    made = Interpreter(**source)
    for detail in made.get_input_details():
        if shapes and detail["name"] in shapes:
            made.resize_tensor_input(detail["index"], shapes[detail["name"]])
    made.allocate_tensors()
    return made


def litert_outputs(model: Path | bytes, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a first inference, by name."""
    made = interpreter(model, {name: array.shape for name, array in inputs.items()})
    for detail in made.get_input_details():
        made.set_tensor(detail["index"], inputs[detail["name"]])
    made.invoke()
    return {d["name"]: made.get_tensor(d["index"]) for d in made.get_output_details()}


def random_inputs(model: Path | bytes, seed: int = 0) -> dict[str, Array]:
    """Numbers from 0 to 1, or any integers of the input's type."""
    chance = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for detail in interpreter(model).get_input_details():
        dtype = np.dtype(detail["dtype"])
        if dtype.kind == "f":
            found[detail["name"]] = chance.random(detail["shape"]).astype(dtype)
        elif dtype.kind == "b":
            found[detail["name"]] = chance.random(detail["shape"]) < 0.5
        else:
            info = np.iinfo(dtype)
            found[detail["name"]] = chance.integers(info.min, info.max, detail["shape"], dtype, endpoint=True)
    return found


def cosine(a: Array, b: Array) -> float:
    left, right = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    length = np.linalg.norm(left) * np.linalg.norm(right)
    return float(left @ right / length) if length else float(np.allclose(left, right))
