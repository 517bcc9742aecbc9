"""Samples to calibrate with: input lists, numpy files and folders, arrays, iterables, ONNX Runtime's readers.

Everything is read once, when its turn comes. What passes is looked at on the way, and what seems wrong about
the data as a whole is said at the end.
"""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from openqnn.errors import InputError, OpenQnnWarning
from openqnn.formats.input_list import InputList, named_files, read_input_list
from openqnn.formats.raw import read_raw
from openqnn.ir import Array, Graph, Port
from openqnn.qnn.net import qnn_name
from openqnn.quant.calibration import batches
from openqnn.runtime.boundary import accepted, is_coded, misfit

Subject: TypeAlias = Callable[[int], str]  # what the sample of a number is called

NUMPY_FILES = (".npy", ".npz")
OTHER_SCALE = 50  # times the usual magnitude: 0..255 among 0..1, but no mere difference of loudness or light


@runtime_checkable
class Reader(Protocol):
    """What ONNX Runtime calls a CalibrationDataReader: gives samples until it gives None."""

    def get_next(self) -> Mapping[str, Any] | None: ...


class Samples:
    """Samples that can be gone through, again and again where the source allows it."""

    def __init__(
        self,
        graph: Graph,
        read: Callable[[], Iterator[Mapping[str, Any]]],
        subject: Subject = "sample {}".format,
    ) -> None:
        self._graph, self._read, self._subject, self._said = graph, read, subject, False

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        looks = {v.name: Look(v.name) for v in self._graph.inputs if self._graph.ports[v.name].dtype.is_float}
        for number, sample in enumerate(self._read(), 1):
            self._check(number, sample)
            for name in looks.keys() & sample.keys():
                looks[name].at(number, np.asarray(sample[name]))
            yield sample
        for message in () if self._said else chain.from_iterable(k.messages() for k in looks.values()):
            warnings.warn(f"calibration data: {message}", OpenQnnWarning, stacklevel=2)
        self._said = True

    def _check(self, number: int, sample: Mapping[str, Any]) -> None:
        """InputError that says which sample it is that does not fit."""
        try:
            for part in batches(self._graph, sample):
                accepted(self._graph, part)
        except InputError as e:
            raise InputError(f"{self._subject(number)}: {e.message}", hint=e.hint) from e


class CountedSamples(Samples):
    """Samples whose number is known beforehand."""

    def __init__(
        self,
        graph: Graph,
        read: Callable[[], Iterator[Mapping[str, Any]]],
        count: int,
        subject: Subject = "sample {}".format,
    ) -> None:
        super().__init__(graph, read, subject)
        self._count = count

    def __len__(self) -> int:
        return self._count


def samples_of(
    graph: Graph, source: object, *, native: bool = False, native_names: Collection[str] = ()
) -> Samples:
    """Samples for a graph from anything that holds some.

    A path is an input list, a .npy or .npz file or a folder of them; other sources are one sample (an array
    or a mapping from input names), an iterable of samples, or an object with `get_next`. The raw files of an
    input list hold float32, or with `native` (or for the inputs in `native_names`) the input's own type.
    """
    if isinstance(source, str | os.PathLike):
        return _of_path(graph, Path(source), native, native_names)
    if isinstance(source, Reader):
        return Samples(graph, lambda: _of_reader(graph, source))
    if isinstance(source, np.ndarray | Mapping):
        return CountedSamples(graph, lambda: iter([_named(graph, source, "the sample")]), 1)
    if isinstance(source, Iterable):
        read = lambda: (_named(graph, given, f"sample {i}") for i, given in enumerate(source, 1))
        return (
            CountedSamples(graph, read, len(source)) if isinstance(source, Sequence) else Samples(graph, read)
        )
    raise InputError(
        f"a {type(source).__name__} holds no samples",
        hint="give an input list, a .npy or .npz file, a folder of these, or an iterable of arrays",
    )


def is_whole(sample: Mapping[str, Any]) -> bool:
    """Whether all is numbers: one with NaN counts for ranges, but no integer stands for it in a run."""
    arrays = (np.asarray(given) for given in sample.values())
    return not any(a.dtype.kind == "f" and np.isnan(a).any() for a in arrays)


def _of_reader(graph: Graph, reader: Reader) -> Iterator[Mapping[str, Any]]:
    number = 0
    while (given := reader.get_next()) is not None:
        number += 1
        yield _named(graph, given, f"sample {number}")


def _named(graph: Graph, given: object, subject: str) -> Mapping[str, Any]:
    """A sample by input names; arrays without names go to the inputs in their order."""
    if isinstance(given, Mapping):
        return given
    names = [v.name for v in graph.inputs]
    arrays = [given] if isinstance(given, np.ndarray) else given
    if not isinstance(arrays, Sequence) or isinstance(arrays, str | bytes):
        raise InputError(f"{subject} is a {type(given).__name__}, not an array or a mapping from input names")
    if len(arrays) != len(names):
        raise InputError(
            f"{subject} has {len(arrays)} array(s) for {len(names)} input(s)",
            hint=f"the inputs, in this order: {', '.join(names)}",
        )
    return dict(zip(names, arrays, strict=True))


# -- files ---------------------------------------------------------------------------------------------------


def _of_path(graph: Graph, path: Path, native: bool, native_names: Collection[str]) -> Samples:
    if path.is_dir() or path.suffix in NUMPY_FILES:
        files = sorted(f for f in path.iterdir() if f.suffix in NUMPY_FILES) if path.is_dir() else [path]
        if not files:
            raise InputError(f"{path} has no .npy or .npz files", hint="raw files need an input list")
        parts = [(file, part) for file in files for part in range(_batches(graph, file))]
        read = lambda: (_of_numpy(graph, *part) for part in parts)
        return CountedSamples(graph, read, len(parts), lambda number: str(parts[number - 1][0]))
    unknown = [n for n in native_names if n not in graph.ports]
    if unknown:
        raise InputError(f"the graph has no input '{unknown[0]}' whose files could be native")
    if not path.exists():
        raise InputError(
            f"data {path}: no such file or folder",
            hint="data is a folder of .npy or .npz files, one such file, or an input list",
        )
    given = read_input_list(path)
    _say_outputs(graph, given)
    raw = RawFiles(graph, given, native, frozenset(native_names))
    return CountedSamples(
        graph, lambda: map(raw.sample, range(len(raw.groups))), len(raw.groups), raw.subject
    )


def _say_outputs(graph: Graph, given: InputList) -> None:
    """Lines of # and % name what else somebody wants to see: calibration looks at all tensors anyway."""
    names = {qnn_name(x.name) for x in (*graph.values(), *graph.nodes)} | set(map(qnn_name, graph.merged))
    unknown = [name for name in given.outputs if qnn_name(name) not in names]
    if unknown:
        listed = ", ".join(f"'{name}'" for name in unknown)
        warnings.warn(
            f"{given.path}: the graph has no layer or tensor {listed}, which a line of # or % names",
            OpenQnnWarning,
            stacklevel=4,
        )


MOST_UNFOLDED = 200  # times as large as the file
_UNREADABLE = (
    OSError, ValueError, EOFError, KeyError, TypeError, SyntaxError, MemoryError, OverflowError,
    NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What numpy and zipfile raise on a damaged file."""


def _load(path: Path) -> Any:
    """The arrays of a numpy file; a single one is mapped, so that only what is used of it is read."""
    try:
        return np.load(path, mmap_mode="r" if path.suffix == ".npy" else None, allow_pickle=False)
    except _UNREADABLE as e:
        why = e.strerror if isinstance(e, OSError) and e.strerror else "it holds no plain numpy arrays"
        raise InputError(f"{path} cannot be read: {why}") from e


def _members(path: Path, loaded: Any) -> dict[str, Any]:
    """The arrays of an .npz file; InputError where it is damaged, or unfolds to far more than it is."""
    if not hasattr(loaded, "zip"):
        raise InputError(f"{path} holds one array and no names", hint="np.savez saves arrays by name")
    with loaded:
        size = sum(info.file_size for info in loaded.zip.infolist())
        if size > MOST_UNFOLDED * max(path.stat().st_size, 1 << 20):
            raise InputError(f"{path} says that it unfolds to {size >> 20:,} MB: it is damaged, or no data")
        try:
            found = {name: loaded[name] for name in loaded.files}
        except _UNREADABLE as e:
            raise InputError(f"{path} is damaged: {e}", hint="write it again with np.savez") from e
    wrong = next((name for name, array in found.items() if not isinstance(array, np.ndarray)), None)
    if wrong is not None:
        raise InputError(f"{path}: '{wrong}' is no array")
    return found


def _batches(graph: Graph, path: Path) -> int:
    """How many samples lie one after the other in a file of one array: its header tells."""
    if path.suffix != ".npy":
        return 1
    if len(graph.inputs) != 1:
        raise InputError(
            f"{path} holds one array, the graph has {len(graph.inputs)} inputs",
            hint=f"save them by name in an .npz file: {', '.join(v.name for v in graph.inputs)}",
        )
    shape, wanted = _load(path).shape, graph.ports[graph.inputs[0].name].shape
    fits = wanted and len(shape) == len(wanted) and shape[1:] == wanted[1:] and shape[0] % wanted[0] == 0
    return shape[0] // wanted[0] if fits else 1


def _of_numpy(graph: Graph, path: Path, part: int) -> Mapping[str, Any]:
    loaded = _load(path)
    if path.suffix != ".npy":
        arrays = _members(path, loaded)
        return {n: _fitting(path, n, a, graph.ports[n]) if n in graph.ports else a for n, a in arrays.items()}
    name = graph.inputs[0].name
    whole = _fitting(path, name, loaded, graph.ports[name])
    size = graph.ports[name].shape[0] if whole.ndim else 1
    # a copy, after which the file is no longer mapped: else all of it would end up in memory
    return {name: np.array(whole[part * size : (part + 1) * size] if whole.shape[:1] > (size,) else whole)}


def _fitting(path: Path, name: str, array: Array, port: Port) -> Array:
    """One batch or several; an image is often saved without the axis of the batch."""
    if port.shape[:1] == (1,) and array.shape == port.shape[1:]:
        return array[None]
    if array.ndim != len(port.shape) or array.shape[1:] != port.shape[1:]:
        raise InputError(f"{path}: {misfit(name, array.shape, port)}")
    return array


class RawFiles:
    """The raw files of an input list. Where each holds one element of a batch, several lines are a sample."""

    def __init__(self, graph: Graph, given: InputList, native: bool, native_names: frozenset[str]) -> None:
        self._graph, self._list = graph, given
        self._native = {v.name: native or v.name in native_names for v in graph.inputs}
        coded = (v for v in graph.inputs if is_coded(v, graph.ports[v.name]))
        self._encodings = {v.name: v.encoding for v in coded if v.encoding is not None}
        names = [v.name for v in graph.inputs]
        lines = [(line.number, named_files(given, line, names, graph.name)) for line in given.lines]
        self._batch = self._elements_per_sample(lines[0][1])
        self.groups = [lines[i : i + self._batch] for i in range(0, len(lines), self._batch)]

    def _elements_per_sample(self, files: Mapping[str, Path]) -> int:
        """How many lines make a sample, told by the files of the first."""
        first = {self._graph.ports[name].shape[:1] or (1,) for name in files}
        batch = first.pop()[0] if len(first) == 1 else 1
        single = [
            path.stat().st_size * batch == prod(self._graph.ports[name].shape) * self._dtype(name).itemsize
            for name, path in files.items()
        ]
        return batch if all(single) else 1

    def _dtype(self, name: str) -> np.dtype[Any]:
        return self._graph.ports[name].dtype.numpy if self._native[name] else np.dtype(np.float32)

    def subject(self, number: int) -> str:
        """The line that a sample begins with."""
        return f"{self._list.path}, line {self.groups[number - 1][0][0]}"

    def sample(self, turn: int) -> dict[str, Array]:
        return {name: self._read(turn, name) for name in self._native}

    def _read(self, turn: int, name: str) -> Array:
        port, group = self._graph.ports[name], self.groups[turn]
        parts = [
            read_raw(
                files[name],
                self._dtype(name),
                [prod(port.shape) // self._batch],
                f"{self._list.path}, line {number}, input '{name}'",
                port.dtype.numpy,
            )
            for number, files in group
        ]
        # the last lines may be fewer than a batch: an image twice tells nothing wrong, one of zeros does
        parts += [parts[-1]] * (self._batch - len(parts))
        whole = (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(port.shape)
        if name in self._encodings:  # samples are real numbers
            return self._encodings[name].dequantize(whole) if self._native[name] else whole
        wanted = port.dtype.numpy
        if wanted.kind in "iu" and whole.dtype != wanted:
            limits, subject = np.iinfo(wanted.name), f"{self.subject(turn + 1)}, input '{name}'"
            if not (limits.min <= whole.min() and whole.max() <= limits.max):
                raise InputError(f"{subject}: numbers beyond {port.dtype.label}")
            if np.any(whole != np.rint(whole)):  # integers that are read as floats are next to nothing
                hint = f"--use_native_input_files if the file holds {port.dtype.label}"
                raise InputError(f"{subject}: numbers that are not whole, for {port.dtype.label}", hint=hint)
            return whole.astype(wanted)
        return whole.astype(wanted) if wanted.kind == "b" else whole


# -- what seems wrong ----------------------------------------------------------------------------------------


@dataclass
class Look:
    """What the samples of one input have in common, and where one of them differs."""

    name: str
    sizes: list[float] = field(default_factory=list)  # the largest magnitude in each sample
    bad: list[int] = field(default_factory=list)  # samples with NaN or infinity
    flat: list[tuple[int, float]] = field(default_factory=list)  # samples of one number all over

    def at(self, number: int, array: Array) -> None:
        if not array.size or array.dtype.kind not in "fiu":
            return
        low, high = float(array.min()), float(array.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            self.bad.append(number)
        elif low == high and array.size > 1:
            self.flat.append((number, low))
        self.sizes.append(max(abs(low), abs(high)))

    def messages(self) -> Iterator[str]:
        count, where = len(self.sizes), f"input '{self.name}'"
        if self.bad:
            yield f"{where} has NaN or infinity in {_listed(self.bad)} of {count}"
        if self.flat and len(self.flat) == count and len({value for _, value in self.flat}) == 1:
            yield f"{where} is {self.flat[0][1]:g} in all {count} samples: its range stays unknown"
        elif self.flat:
            yield f"{where} is one number all over in {_listed([n for n, _ in self.flat])} of {count}"
        yield from self._other_scales()

    def _other_scales(self) -> Iterator[str]:
        """Samples that are far larger or smaller than most."""
        sizes = [s for s in self.sizes if np.isfinite(s) and s > 0]
        usual = sorted(sizes)[(len(sizes) - 1) // 2] if sizes else 0.0
        far = lambda size: size > OTHER_SCALE * usual or 0 < size * OTHER_SCALE < usual
        odd = [i for i, size in enumerate(self.sizes, 1) if np.isfinite(size) and far(size)]
        if odd:
            yield (
                f"input '{self.name}' reaches {self.sizes[odd[0] - 1]:.4g} in {_listed(odd)} and about"
                f" {usual:.4g} in the others: are all samples normalised alike?"
            )


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - 3} more" if len(numbers) > 3 else ""
    return f"sample{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:3]))}{more}"
