"""What goes into the inferences: files of an input list as arrays in the graph's own types."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from openqnn.errors import BackendError, InputError
from openqnn.formats.input_list import InputList, named_files
from openqnn.formats.raw import quantized, read_raw
from openqnn.qnn import abi
from openqnn.qnn.net import Array, NetTensor

if TYPE_CHECKING:
    from openqnn.vendor.net_run.run_graphs import RunSettings

DEFAULT_CACHE = 256 << 20  # bytes of inputs that are kept for another round over the list


class Ports(Protocol):
    """A graph as seen from outside: what goes in and what comes out."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[NetTensor, ...]: ...

    @property
    def outputs(self) -> tuple[NetTensor, ...]: ...


def file_dtype(settings: RunSettings, tensor: NetTensor) -> np.dtype[np.generic]:
    """The type of the numbers in the files of an input."""
    return abi.numpy_dtype(tensor.dtype) if is_native(settings, tensor) else np.dtype(np.float32)


def is_native(settings: RunSettings, tensor: NetTensor) -> bool:
    """Whether the files of an input hold its own type; otherwise they hold float32."""
    return settings.native_inputs or tensor.name in settings.native_names


class Feed:
    """Input sets of a graph. `groups` has the lines of each, `size` of them where a line is part of a batch.

    That is one element of it or, of a batch that is multiplied, as many as the graph was composed with.
    """

    def __init__(self, graph: Ports, given: InputList, settings: RunSettings) -> None:
        self._graph, self._list, self._settings = graph, given, settings
        self._tensors = {tensor.name: tensor for tensor in graph.inputs}
        self._batch = _common_batch(graph.inputs)
        named = [named_files(given, line, list(self._tensors), graph.name) for line in given.lines]
        sizes = dict.fromkeys((1, settings.batch_multiplier, self._batch))
        self.size = size = next((size for size in sizes if self._are_parts(named[0], size)), 1)
        self.groups = [named[i : i + size] for i in range(0, len(named), size)]
        self._numbers = [line.number for line in given.lines]
        self._cache: OrderedDict[int, dict[str, Array]] = OrderedDict()
        self._room = self._cache_room()

    def divides(self, output: NetTensor) -> bool:
        """Whether an output has a part for each line of a set: sums over the batch, for one, have not."""
        multiplied = self.size == self._settings.batch_multiplier
        return multiplied or (bool(output.dims) and output.dims[0] == self._batch)

    def blank(self) -> dict[str, Array]:
        return {t.name: np.zeros(t.dims, abi.numpy_dtype(t.dtype)) for t in self._graph.inputs}

    def fill(self, turn: int, into: dict[str, Array]) -> None:
        """Copy an input set into bound arrays."""
        arrays = self._cache.get(turn)
        if arrays is None:
            arrays = {name: self._read(turn, name) for name in into}
            if len(self._cache) < self._room:
                self._cache[turn] = arrays
        for name, array in arrays.items():
            into[name][...] = array

    def _cache_room(self) -> int:
        """How many input sets are kept."""
        one = max(1, sum(t.nbytes for t in self.blank().values()))
        if self._settings.cache_sets is not None:
            return len(self.groups) if self._settings.cache_sets < 0 else self._settings.cache_sets
        limit = DEFAULT_CACHE if self._settings.cache_bytes is None else self._settings.cache_bytes
        return limit // one

    def _are_parts(self, files: dict[str, Path], count: int) -> bool:
        """Whether so many files like those of the first line make a set; the other lines must be alike."""
        for name, path in files.items():
            tensor = self._tensors[name]
            whole = prod(tensor.dims) * self._file_dtype(tensor).itemsize
            if path.stat().st_size * count != whole:
                return False
        return True

    def _read(self, turn: int, name: str) -> Array:
        tensor = self._tensors[name]
        number = self._numbers[turn * self.size]
        wanted = prod(tensor.dims) // self.size
        parts: list[Array] = []
        for offset, files in enumerate(self.groups[turn]):
            subject = f"{self._list.path}, line {number + offset}, input '{name}'"
            own = abi.numpy_dtype(tensor.dtype)
            raw = read_raw(files[name], self._file_dtype(tensor), [wanted], subject, own)
            parts.append(self._stored(raw, tensor, subject))
        missing = self.size - len(parts)  # the last lines may be fewer than a batch
        if missing:
            parts.append(np.zeros(wanted * missing, parts[0].dtype))
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(tensor.dims)

    def _file_dtype(self, tensor: NetTensor) -> np.dtype[np.generic]:
        return file_dtype(self._settings, tensor)

    def _stored(self, raw: Array, tensor: NetTensor, subject: str) -> Array:
        """File contents as the graph stores them."""
        dtype = abi.numpy_dtype(tensor.dtype)
        if is_native(self._settings, tensor):
            return raw
        if tensor.quant is not None:
            if tensor.quant.axis is not None:
                raise BackendError(f"{subject}: an input with scales per channel takes native files only")
            scale, offset = tensor.quant.scales[0], tensor.quant.offsets[0]
            return quantized(raw, scale, offset, dtype, tensor.quant.bitwidth or dtype.itemsize * 8)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if raw.size and not (limits.min <= raw.min() and raw.max() <= limits.max):
                raise InputError(f"{subject}: numbers beyond {abi.dtype_name(tensor.dtype)}")
            if np.any((raw != 0) & (np.abs(raw) < np.finfo(np.float32).tiny)):
                name = abi.dtype_name(tensor.dtype)
                hint = f"for data in the tensor's own type, {name}, use --use_native_input_files"
                raise InputError(f"{subject}: the numbers look like integers read as floats", hint=hint)
        return raw.astype(dtype)


def _common_batch(tensors: Sequence[NetTensor]) -> int:
    """The first dimension, where all inputs share it."""
    first = {tensor.dims[0] if tensor.dims else 1 for tensor in tensors}
    return first.pop() if len(first) == 1 else 1
