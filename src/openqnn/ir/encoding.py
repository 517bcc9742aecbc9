"""Quantization encodings: real = scale * (stored + offset), for a whole tensor or along one axis.

With blocks, a channel is divided along a second axis, and every block has an integer multiple of the scale of
its channel: few bits are stored, and products are still sums of integers in one unit for each channel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of `size` elements along `axis`, and the multiple of each: all of one channel, then the next."""

    axis: int
    size: int
    multiples: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.size < 1 or not self.multiples or min(self.multiples) < 1:
            raise ValueError(
                f"blocks have a size and multiples of 1 at least, not {self.size} and {self.multiples}"
            )


@dataclass(frozen=True, slots=True)
class Encoding:
    """Scales and offsets as QNN writes them (offset = -zero_point). `axis` is None for the whole tensor.

    An encoding with blocks is symmetric, and has its scales along `axis`.
    """

    scale: tuple[float, ...]
    offset: tuple[int, ...]
    bitwidth: int = 8
    axis: int | None = None
    symmetric: bool = False
    blocks: Blocks | None = None

    def __post_init__(self) -> None:
        if len(self.scale) != len(self.offset) or not self.scale:
            raise ValueError(f"{len(self.scale)} scales but {len(self.offset)} offsets")
        if self.axis is None and len(self.scale) != 1:
            raise ValueError(f"a whole-tensor encoding has one scale, not {len(self.scale)}")
        if not all(np.isfinite(s) and s > 0 for s in self.scale):
            raise ValueError(f"scales must be positive and finite: {self.scale}")
        if self.blocks is not None:
            self._check_blocks(self.blocks)

    def _check_blocks(self, blocks: Blocks) -> None:
        if self.axis in (None, blocks.axis) or any(self.offset):
            raise ValueError("blocks need scales along another axis, and offsets of zero")
        if len(blocks.multiples) % len(self.scale):
            raise ValueError(
                f"{len(blocks.multiples)} blocks are not the same for {len(self.scale)} channels"
            )

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

    def multiples(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """How many times the scale of its channel a step of each element is, to line up with the shape."""
        if self.blocks is None or self.axis is None:
            return np.ones((1,) * len(shape))
        grid = np.asarray(self.blocks.multiples, np.float64).reshape(len(self.scale), -1)
        spread = np.repeat(grid, self.blocks.size, axis=1)
        sizes = [1] * len(shape)
        sizes[self.axis], sizes[self.blocks.axis] = shape[self.axis], shape[self.blocks.axis]
        return (spread if self.axis < self.blocks.axis else spread.T).reshape(sizes)

    def steps(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """The step of each element, to line up with the shape."""
        return self._broadcast(self.scale, len(shape)) * self.multiples(shape)

    def largest_steps(self) -> tuple[float, ...]:
        """The largest step of each channel."""
        if self.blocks is None:
            return self.scale
        grid = np.asarray(self.blocks.multiples).reshape(len(self.scale), -1)
        return tuple((np.asarray(self.scale) * grid.max(axis=1)).tolist())

    def dequantize(self, stored: NDArray[np.generic]) -> NDArray[np.float32]:
        scale, offset = self.steps(stored.shape), self._broadcast(self.offset, stored.ndim)
        return ((stored.astype(np.float64) + offset) * scale).astype(np.float32)

    def quantize(self, real: NDArray[np.generic], signed: bool) -> NDArray[np.int64]:
        """The nearest stored integers, as AIMET finds them: halves go up, and up to 16 bits it is float32.

        Halves are common: an image that is scaled to [-1, 1] has nothing else. The caller narrows the type.
        """
        exact = np.float32 if self.bitwidth <= 16 else np.float64
        low = -(1 << (self.bitwidth - 1)) if signed else 0
        scale, offset = self.steps(real.shape), self._broadcast(self.offset, real.ndim)
        with np.errstate(over="ignore"):  # a mask is beyond all steps, if not beyond all floats
            unsigned = real.astype(exact) / scale.astype(exact) - (offset + low).astype(exact)
        stored = np.clip(np.floor(unsigned + exact(0.5)), 0, (1 << self.bitwidth) - 1)
        return stored.astype(np.int64) + low

    def permuted(self, perm: tuple[int, ...]) -> Encoding:
        """The encoding after the tensor's axes moved: new axis i was perm[i]."""
        if self.axis is None:
            return self
        blocks = self.blocks and replace(self.blocks, axis=perm.index(self.blocks.axis))
        return replace(self, axis=perm.index(self.axis), blocks=blocks)
