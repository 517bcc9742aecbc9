"""What the model tells where a file leaves it open: which tensors are parameters, and how they lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from openqnn.formats.encodings.fields import Place
from openqnn.formats.encodings.record import OUTPUT_CHANNEL, Blocks, Kind, TensorEncoding


@dataclass(frozen=True, slots=True)
class Parameter:
    """A constant of the source model, and the axes of its output and input channels where it has some."""

    shape: tuple[int, ...]
    channel_axis: int | None = None
    block_axis: int | None = None


def settled(
    entry: TensorEncoding, parameters: Mapping[str, Parameter], path: str | os.PathLike[str]
) -> TensorEncoding:
    """The entry with all that the model tells; InputError where the two contradict each other."""
    found, place = parameters.get(entry.name), Place(path, entry.name)
    if entry.kind is Kind.UNKNOWN:
        entry = replace(entry, kind=Kind.ACTIVATION if found is None else Kind.PARAM)
    if found is None or entry.axis is None:
        return entry
    if found.channel_axis is None:
        is_whole = entry.channels == 1 and entry.blocks is None  # one scale: that of the whole tensor
        return replace(entry, axis=None) if is_whole else entry
    channels = found.shape[found.channel_axis]
    if entry.blocks is not None:
        return _with_grid(entry, found, place)
    if entry.channels != channels:
        place.fail(f"{entry.channels} encodings for {channels} output channels")
    return replace(entry, axis=found.channel_axis) if entry.axis == OUTPUT_CHANNEL else entry


def _order_in_grid(blocks: Blocks, channels: int, count: int) -> list[int]:
    """Which number of a flat list, channel by channel, each place of the grid takes."""
    if blocks.grid() == tuple(range(len(blocks.shape))):
        return list(range(channels * count))
    return [c * count + b for b in range(count) for c in range(channels)]


def _with_grid(entry: TensorEncoding, found: Parameter, place: Place) -> TensorEncoding:
    """A flat list has the blocks of one channel together; a grid has the axes of the tensor."""
    blocks = entry.blocks
    if blocks is None or blocks.shape or found.block_axis is None or found.channel_axis is None:
        return entry
    channels, size = found.shape[found.channel_axis], found.shape[found.block_axis]
    count = -(-size // blocks.size)
    numbers = blocks.multiples or entry.scales
    if len(numbers) != channels * count:
        expected = f"{channels} channels of {count} blocks"
        place.fail(f"{len(numbers)} blocks, the tensor has {expected}", "block_size")
    shape = [1] * len(found.shape)
    shape[found.channel_axis], shape[found.block_axis] = channels, count
    made = replace(blocks, axis=found.block_axis, shape=tuple(shape))
    order = _order_in_grid(made, channels, count)
    if blocks.low_power:
        made = replace(made, multiples=tuple(blocks.multiples[i] for i in order))
        return replace(entry, blocks=made, axis=found.channel_axis)
    scales, offsets = (tuple(values[i] for i in order) for values in (entry.scales, entry.offsets))
    return replace(entry, blocks=made, axis=found.channel_axis, scales=scales, offsets=offsets)
