"""One tensor of an encodings file in a form that every version of the format can be read into.

    real = scale * (stored + offset)

Offsets have QNN's sign: offset = -zero_point. `signed` says which integers are stored, [-128, 127] or
[0, 255] for 8 bits, and the offset is relative to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal, TypeAlias

OUTPUT_CHANNEL: Final = "output channel"
Axis: TypeAlias = 'int | Literal["output channel"] | None'


class Kind(StrEnum):
    """What the file says that a tensor is; version 2 does not say it."""

    ACTIVATION = "activation"
    PARAM = "param"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Blocks:
    """Scales of blocks along an axis. Low-power ones (LPBQ) are an integer multiple of their channel's scale.

    `shape` is that of the grid of scales, in the tensor's own axes; it is empty where a file has them in one
    row, channel by channel. `axis` is None where the format implies it: the input channels.
    """

    size: int
    axis: int | None = None
    shape: tuple[int, ...] = ()
    multiples: tuple[int, ...] = ()
    expanded_bits: int = 0  # width of multiple and stored value together; 0 when there are no multiples

    @property
    def low_power(self) -> bool:
        return bool(self.multiples)

    @property
    def channel_axis(self) -> int | None:
        """The axis that is not divided into blocks, where the shape of the grid tells."""
        if self.axis is None or not self.shape:
            return None
        others = [i for i in range(len(self.shape)) if i != self.axis % len(self.shape)]
        wide = [i for i in others if self.shape[i] != 1]
        if len(wide) > 1:
            return None
        return wide[0] if wide else others[0] if len(others) == 1 else None

    def grid(self) -> tuple[int, ...]:
        """The axes of the grid in the order that a flat list has them: matrices by output channel."""
        axes = tuple(range(len(self.shape)))
        return axes[::-1] if len(axes) == 2 and self.axis is not None and self.axis % 2 == 0 else axes

    def by_channel(self) -> tuple[int, ...]:
        """The multiples with those of one channel together."""
        if (
            not self.shape
            or self.axis is None
            or self.channel_axis is None
            or self.channel_axis < self.axis % len(self.shape)
        ):
            return self.multiples
        count = self.shape[self.channel_axis]
        return tuple(m for channel in range(count) for m in self.multiples[channel::count])

    def largest(self, channels: int) -> list[int]:
        """The largest multiple of each channel."""
        multiples, count = self.by_channel(), len(self.multiples) // channels
        return [max(multiples[i * count : (i + 1) * count]) for i in range(channels)]


@dataclass(frozen=True, slots=True)
class TensorEncoding:
    """The encoding of one tensor. Scales are empty where only a width, or a width and a range, is given."""

    name: str
    bitwidth: int
    kind: Kind = Kind.UNKNOWN
    is_float: bool = False
    symmetric: bool = False
    signed: bool = False
    scales: tuple[float, ...] = ()
    offsets: tuple[float, ...] = ()
    axis: Axis = None
    blocks: Blocks | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    @property
    def channels(self) -> int:
        """How many channels have a scale of their own; 1 for the whole tensor."""
        return len(self.scales or self.low) or 1

    @property
    def unsigned_offsets(self) -> tuple[float, ...]:
        """The offsets for integers from 0 on, which is how versions below 2 write them."""
        return tuple(o - self._middle for o in self.offsets) if self.signed else self.offsets

    @property
    def centred(self) -> bool:
        """Whether zero is in the middle of the stored integers, or one off where the range is strict."""
        middle = 1 << (self.bitwidth - 1)
        return all(o in (-middle, 1 - middle) for o in self.unsigned_offsets)

    @property
    def _middle(self) -> int:
        return 1 << (self.bitwidth - 1)

    def as_signed(self) -> TensorEncoding:
        if self.signed or self.is_float:
            return self
        return replace(self, signed=True, offsets=tuple(o + self._middle for o in self.offsets))

    def limits(self) -> list[tuple[float, float]]:
        """The smallest and largest real number of each channel: of its scale, else as the file gives them."""
        if not self.scales:
            return list(zip(self.low, self.high, strict=True))
        top = (1 << self.bitwidth) - 1
        return [(s * o, s * (o + top)) for s, o in zip(self.scales, self.unsigned_offsets, strict=True)]


@dataclass(frozen=True, slots=True)
class EncodingsFile:
    """All tensors of a file, by name, and the version that it was written in."""

    version: str
    tensors: Mapping[str, TensorEncoding]


def by_name(entries: Iterable[TensorEncoding]) -> dict[str, TensorEncoding]:
    return {entry.name: entry for entry in entries}
