"""validate_quantization_range: whether data survives an encoding."""

from __future__ import annotations

from typing import Any

import numpy as np

from openqnn.errors import UsageError


def validate_quantization_range(
    data: Any, scale: float, offset: float, bitwidth: int = 8, threshold: float | None = None
) -> bool:
    """Print the mean squared error of quantizing the data, and tell whether it is below a threshold.

    `offset` is a zero point: stored = real / scale + offset. Without a threshold it is the error of the worst
    rounding, half a step everywhere: more means that the range cuts data off.
    """
    if not scale > 0:
        raise UsageError(f"scale is {scale}: a step is above 0")
    array = np.asarray(data, np.float64)
    if not array.size:
        raise UsageError("there is no data to quantize")
    stored = np.clip(np.round(array / scale + offset), 0, 2**bitwidth - 1)
    error = float(np.mean((array - (stored - offset) * scale) ** 2))
    print(f"Quantization MSE: {error}")
    return error < (scale**2 / 4 if threshold is None else threshold)
