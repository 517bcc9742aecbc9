"""From a range of real numbers to an encoding: zero is exact, the range has a least width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import DType, Encoding
from openqnn.targets.htp.kernels.words.curves import HIGHEST

MIN_RANGE = 1e-4
BYTE = 8
LEAST_CHANNEL = 1e-6  # of the largest channel: channels of zeros need a scale too


def covering(low: float, high: float) -> tuple[float, float]:
    """The range widened so that it holds zero and is wide enough to be divided into steps."""
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    return low, max(high, low + MIN_RANGE)


def encoding(
    low: float, high: float, bitwidth: int, *, symmetric: bool = False, steps: tuple[int, int] | None = None
) -> Encoding:
    """The encoding of unsigned storage for a range; symmetric ones have their zero in the middle of it.

    With `steps` the range is spread over as many stored values alone. Those of 16 bits that start at the
    lowest are meant for products of two matrices, which need the zero in the middle.
    """
    low, high = covering(low, high)
    middle = 1 << (bitwidth - 1)
    count = (1 << bitwidth) - 1 if steps is None else steps[1] - steps[0]
    if steps is not None and (symmetric or (-steps[0] == middle and bitwidth > BYTE)):
        scale = 2 * max(-low, high) / count
        return Encoding.per_tensor(scale, -middle, bitwidth, symmetric=True)
    if symmetric:
        return Encoding.per_tensor(max(-low, high) / (middle - 1), -middle, bitwidth, symmetric=True)
    scale = (high - low) / count
    return Encoding.per_tensor(scale, int(np.rint(low / scale)), bitwidth)


def signed_encoding(
    bounds: NDArray[np.floating],
    bitwidth: int,
    axis: int | None,
    least_scale: NDArray[np.floating],
    steps: tuple[int, int] | None = None,
) -> Encoding:
    """The encoding of signed storage, symmetric around zero, for the largest magnitude of each channel."""
    scales = signed_scales(bounds, bitwidth, least_scale, steps)
    return Encoding(tuple(scales.tolist()), (0,) * len(scales), bitwidth, axis, symmetric=True)


def signed_scales(
    bounds: NDArray[np.floating],
    bitwidth: int,
    least_scale: NDArray[np.floating],
    steps: tuple[int, int] | None = None,
) -> NDArray[np.float64]:
    largest = min((1 << (bitwidth - 1)) - 1, HIGHEST)
    if steps is not None:
        largest = min(largest, (steps[1] - steps[0]) / 2)
    given = np.asarray(bounds, np.float64).reshape(-1)
    least = float(given.max(initial=0.0)) * LEAST_CHANNEL or MIN_RANGE / 2
    return np.maximum(np.maximum(given, least) / largest, least_scale)


def limits(found: Encoding, signed: bool = False) -> tuple[float, float]:
    """The smallest and largest real number of a whole-tensor encoding."""
    first = -(1 << (found.bitwidth - 1)) if signed else 0
    low = found.scale[0] * (first + found.offset[0])
    return low, low + found.scale[0] * ((1 << found.bitwidth) - 1)


def activation_type(bitwidth: int) -> DType:
    return DType.UFIXED_16 if bitwidth == 16 else DType.UFIXED_8


def parameter_type(bitwidth: int, symmetric: bool) -> DType:
    """Values of four bits are stored in a byte each: that is the form that HTP takes."""
    if symmetric:
        return DType.SFIXED_16 if bitwidth == 16 else DType.SFIXED_8
    return DType.UFIXED_16 if bitwidth == 16 else DType.UFIXED_8
