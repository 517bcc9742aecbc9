"""Result_<n>/<tensor>.raw, and a folder of results that appears whole or not at all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from openqnn.errors import OutputError
from openqnn.formats import execution_metadata
from openqnn.formats.atomic import full_disk, partial_folder
from openqnn.formats.raw import dequantized
from openqnn.qnn import abi
from openqnn.qnn.net import Array, NetTensor
from openqnn.vendor.net_run.feed import Ports
from openqnn.worker.file_lock import folder_lock

LONGEST_STEM = 200  # bytes: file systems allow 255, and a suffix and a number follow
PENDING = 8  # inferences whose results wait to be written


class Results:
    """Writes the outputs of one graph; `count` is the number of the next Result folder.

    Outputs that are `whole` have no part for each line where an inference takes several. With `both` files of
    real numbers have one in the type of the graph beside them.
    """

    def __init__(
        self,
        folder: Path,
        graph: Ports,
        native: bool,
        stem: Callable[[str], str],
        whole: Collection[str] = (),
        *,
        both: bool = False,
    ) -> None:
        self._folder, self._native, self._whole, self.count = folder, native, whole, 0
        self._tensors = {tensor.name: tensor for tensor in graph.outputs}
        self.files: dict[str, str] = {}
        for name, tensor in self._tensors.items():
            plain = not native or tensor.dtype == abi.FLOAT_32
            self.files[name] = self._free(stem(name), ".raw" if plain else "_native.raw")
        stored = (name for name, tensor in self._tensors.items() if both and tensor.dtype != abi.FLOAT_32)
        self._native_files = {name: f"{Path(self.files[name]).stem}_native.raw" for name in stored}
        folder.mkdir(parents=True, exist_ok=True)
        self._thread = ThreadPoolExecutor(1, "openqnn-results")
        self._pending: deque[Future[None]] = deque()

    def write(self, outputs: dict[str, Array], lines: int, parts: int, room: int | None) -> None:
        """One inference; where it took several lines of the list, each of them has a result of its own.

        The files are written by a thread while the library is at the next inference.
        """
        number = min(lines, parts, room if room is not None else lines)
        if len(self._pending) >= PENDING:
            self._pending.popleft().result()
        copies = {name: array.copy() for name, array in outputs.items()}
        self._pending.append(self._thread.submit(self._store, copies, self.count, number, parts))
        self.count += number

    def finish(self) -> None:
        """Wait for all files; raises what went wrong."""
        with self._thread:
            while self._pending:
                self._pending.popleft().result()

    def _store(self, outputs: dict[str, Array], first: int, number: int, parts: int) -> None:
        files = [(name, self.files[name], self._numbers(name, array)) for name, array in outputs.items()]
        files += [(name, file, outputs[name]) for name, file in self._native_files.items()]
        for index in range(number):
            folder = f"{self._folder}/Result_{first + index}"
            os.mkdir(folder)
            for name, file, array in files:
                one = parts == 1 or name in self._whole
                _write(f"{folder}/{file}", array if one else array.reshape(parts, -1)[index])

    def _numbers(self, name: str, array: Array) -> Array:
        tensor = self._tensors[name]
        return array if self._native or tensor.dtype == abi.FLOAT_32 else as_float(array, tensor)

    def _free(self, stem: str, suffix: str) -> str:
        stem = os.fsencode(stem)[:LONGEST_STEM].decode(errors="ignore")
        file, number = f"{stem}{suffix}", 1
        while file.lower() in {taken.lower() for taken in self.files.values()}:
            number += 1
            file = f"{stem}_{number}{suffix}"
        return file


def as_float(array: Array, tensor: NetTensor) -> Array:
    """An output as real numbers in float32."""
    quant = tensor.quant
    if quant is None:
        return array.astype(np.float32)
    if quant.axis is None:
        return dequantized(array, quant.scales[0], quant.offsets[0])
    shape = [-1 if axis == quant.axis else 1 for axis in range(array.ndim)]
    offsets = np.array(quant.offsets, np.float64).reshape(shape)
    return ((array.astype(np.float64) + offsets) * np.array(quant.scales).reshape(shape)).astype(np.float32)


def _write(path: str, array: Array) -> None:
    """Unbuffered: one system call per file is what keeps small inferences fast."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        rest = np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")
        while rest:
            rest = rest[os.write(handle, rest) :]
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}", hint="is the disk full?") from error
    finally:
        os.close(handle)


@contextmanager
def unfinished(target: Path) -> Generator[Path]:
    """A folder beside `target` to write in, whose content takes its place when the block ends well.

    A run that is killed leaves only that folder, whose name says that it is partial; a later one removes it.
    """
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target} is a file, and results need a folder")
    try:
        with partial_folder(target) as partial:
            content = partial / "results"
            content.mkdir()
            yield content
            _move(content, target)
    except OSError as error:
        reason = f"{target}: cannot be written: {error.strerror or error}"
        raise OutputError(reason, hint=full_disk(error)) from error


def _move(partial: Path, target: Path) -> None:
    """Put the results in their place, one run after the other where two write to one folder."""
    target.mkdir(exist_ok=True)
    lock = folder_lock(target, wait=True)
    try:
        # The record of a finished run goes first from the old results and comes last with the new ones.
        (target / execution_metadata.FILE).unlink(missing_ok=True)
        _merge(partial, target)
    finally:
        if lock is not None:
            os.close(lock)


def _merge(partial: Path, target: Path) -> None:
    """Results take the place of results. A folder named as a graph may hold other things, which stay."""
    record = execution_metadata.FILE
    _remove_results(target)
    for item in sorted(partial.iterdir(), key=lambda path: path.name == record):
        old = target / item.name
        if item.is_dir() and old.is_dir():
            _merge(item, old)
        else:
            item.replace(old)


def _remove_results(target: Path) -> None:
    """Results of an earlier run, which would look like this run's where they are more; what is no result and
    lies among them stays."""
    for old in target.glob("Result_*"):
        if old.is_dir() and not old.is_symlink() and old.name.removeprefix("Result_").isdigit():
            for file in old.glob("*.raw"):
                file.unlink()
            with suppress(OSError):
                old.rmdir()
