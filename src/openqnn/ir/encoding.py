"""Quantization encodings: real = scale * (stored + offset), for a whole tensor or along one axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Encoding:
    """Scales and offsets as QNN writes them (offset = -zero_point). `axis` is None for the whole tensor."""

    scale: tuple[float, ...]
    offset: tuple[int, ...]
    bitwidth: int = 8
    axis: int | None = None
    symmetric: bool = False

    def __post_init__(self) -> None:
        if len(self.scale) != len(self.offset) or not self.scale:
            raise ValueError(f"{len(self.scale)} scales but {len(self.offset)} offsets")
        if self.axis is None and len(self.scale) != 1:
            raise ValueError(f"a whole-tensor encoding has one scale, not {len(self.scale)}")
        if not all(np.isfinite(s) and s > 0 for s in self.scale):
            raise ValueError(f"scales must be positive and finite: {self.scale}")

    @classmethod
    def per_tensor(
        cls, scale: float, offset: int = 0, bitwidth: int = 8, symmetric: bool = False
    ) -> Encoding:
        return cls((float(scale),), (int(offset),), bitwidth, None, symmetric)

    def _broadcast(self, values: tuple[float, ...], rank: int) -> NDArray[np.float64]:
        """The values shaped so that they line up with `axis` of an array of that rank."""
        shape = [1] * rank
        if self.axis is not None:
            shape[self.axis] = len(values)
        return np.asarray(values, np.float64).reshape(shape)

    def dequantize(self, stored: NDArray[np.generic]) -> NDArray[np.float32]:
        scale, offset = (self._broadcast(v, stored.ndim) for v in (self.scale, self.offset))
        return ((stored.astype(np.float64) + offset) * scale).astype(np.float32)

    def quantize(self, real: NDArray[np.generic], signed: bool) -> NDArray[np.int64]:
        """Rounds half to even and saturates to the bit width; the caller narrows the array type."""
        scale, offset = (self._broadcast(v, real.ndim) for v in (self.scale, self.offset))
        low = -(1 << (self.bitwidth - 1)) if signed else 0
        stored = np.rint(real.astype(np.float64) / scale) - offset
        return np.clip(stored, low, low + (1 << self.bitwidth) - 1).astype(np.int64)

    def permuted(self, perm: tuple[int, ...]) -> Encoding:
        """The encoding after the tensor's axes moved: new axis i was perm[i]."""
        if self.axis is None:
            return self
        return Encoding(self.scale, self.offset, self.bitwidth, perm.index(self.axis), self.symmetric)
