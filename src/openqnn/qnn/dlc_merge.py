"""Put the graphs of several DLC files into one.

libQnnIr writes one graph per file, and libQnnSystem reads as many as there are. A DLC is a ZIP of records:
`model` and `model.params` are flatbuffers with a list of graphs, `model.params.bin` holds the weights. All
references in a flatbuffer are relative, so whole ones can be put behind a new list that points into them;
only the places of the weights have to be moved.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from openqnn.errors import ModelError

MODEL, PARAMS, WEIGHTS = "model", "model.params", "model.params.bin"
_HEADER = 8
_ALIGNMENT = 16
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class _Record:
    offset: int
    size: int
    checksum: int


class DlcFile:
    """The records of a DLC, read where they are.

    The library's own files carry no checksums, which zipfile insists on; those that were merged here, or that
    other tools wrote, do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive, path.open("rb") as file:
                self.records = {info.filename: _locate(file, info) for info in archive.infolist()}
        except (OSError, zipfile.BadZipFile, struct.error, NotImplementedError, ValueError) as error:
            hint = "check its size, copy it again or convert the model again"
            raise ModelError(f"{path} is not a DLC file: {error}", hint=hint) from error

    def check(self) -> None:
        """ModelError where a record is not what its checksum was taken of; zero stands for none."""
        with self.path.open("rb") as file:
            for name, record in self.records.items():
                if record.checksum and _checksum(file, record) != record.checksum:
                    raise ModelError(
                        f"{self.path} is damaged: record '{name}' does not have its checksum",
                        hint="copy the file again or convert the model again",
                    )

    def read(self, name: str) -> bytes:
        record = self.records.get(name)
        if record is None:
            raise ModelError(f"{self.path} has no record '{name}'")
        with self.path.open("rb") as file:
            file.seek(record.offset)
            return file.read(record.size)

    def copy(self, name: str, target: BinaryIO) -> int:
        """Append a record to `target`; gives its size."""
        record = self.records.get(name)
        if record is None:
            return 0
        with self.path.open("rb") as file:
            file.seek(record.offset)
            left = record.size
            while left:
                chunk = file.read(min(left, _CHUNK))
                if not chunk:
                    raise ModelError(f"{self.path} ends in the middle of '{name}'")
                target.write(chunk)
                left -= len(chunk)
        return record.size


def merge_dlcs(sources: Sequence[Path], target: Path, extra: Mapping[str, str] | None = None) -> None:
    """Write all graphs of the sources to `target`, and records of one's own, which libraries pass over."""
    files = [DlcFile(path) for path in sources]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        starts = _write_weights(archive, files)
        for name in files[0].records:
            if name not in (MODEL, PARAMS, WEIGHTS):
                archive.writestr(name, files[0].read(name))
        models = [_Buffer(file.read(MODEL), b"NETD", file.path) for file in files]
        params = [_Buffer(file.read(PARAMS), b"NETP", file.path) for file in files]
        for buffer, start in zip(params, starts, strict=True):
            buffer.move_weights(start)
        archive.writestr(MODEL, _joined(models))
        archive.writestr(PARAMS, _joined(params))
        for name, content in (extra or {}).items():
            archive.writestr(name, content)


def _write_weights(archive: zipfile.ZipFile, files: Iterable[DlcFile]) -> list[int]:
    """One record behind the other; gives where each file's weights begin."""
    starts: list[int] = []
    place = 0
    with archive.open(WEIGHTS, "w", force_zip64=True) as out:
        for file in files:
            gap = -place % _ALIGNMENT
            out.write(bytes(gap))
            starts.append(place + gap)
            place += gap + file.copy(WEIGHTS, out)  # pyright: ignore[reportArgumentType]
    return starts


def _locate(file: BinaryIO, info: zipfile.ZipInfo) -> _Record:
    if info.compress_type != zipfile.ZIP_STORED:
        raise zipfile.BadZipFile(f"record '{info.filename}' is compressed")
    file.seek(info.header_offset)
    name_size, extra_size = struct.unpack("<26x2H", file.read(30))
    return _Record(info.header_offset + 30 + name_size + extra_size, info.file_size, info.CRC)


def _checksum(file: BinaryIO, record: _Record) -> int:
    file.seek(record.offset)
    left, found = record.size, 0
    while left and (chunk := file.read(min(left, _CHUNK))):
        found = zlib.crc32(chunk, found)
        left -= len(chunk)
    return found


class _Buffer:
    """A flatbuffer with its eight bytes of header, in memory of its own."""

    def __init__(self, data: bytes, identifier: bytes, path: Path) -> None:
        if data[:2] != b"\xd5\x0a" or data[_HEADER + 4 : _HEADER + 8] != identifier:
            raise ModelError(f"{path} has a '{identifier.decode()}' record of a version that is not known")
        self.header, self.identifier = data[:_HEADER], identifier
        self.body = bytearray(data[_HEADER:])

    def graphs(self) -> dict[bytes, int]:
        """Where the graphs' tables are, by name."""
        return {self._name(place): place for place in self._tables(self._field(self._u32(0), 0))}

    def move_weights(self, by: int) -> None:
        """Add to the place of every weight.

        A place of zero is not stored at all, so each place gets a new record at the end of the buffer.
        """
        slots = [slot for graph in self.graphs().values() for slot in self._weight_slots(graph)]
        if not by:
            return
        for slot in slots:
            old = slot + self._u32(slot)
            place, size = self._u64(old, 0), self._u64(old, 1)
            self.body.extend(bytes(-len(self.body) % 8))
            # A layout of fields (8 bytes), 4 to align, then the table: distance to the layout, the fields.
            table = len(self.body) + 12
            struct.pack_into("<I", self.body, slot, table - slot)
            self.body.extend(struct.pack("<4H4xi2Q", 8, 20, 4, 12, 12, place + by, size))

    def _weight_slots(self, graph: int) -> Iterator[int]:
        for tensor in self._tables(self._field(graph, 1)):
            yield from self._external(tensor)
        for node in self._tables(self._field(graph, 2)):
            for tensor in self._tables(self._field(node, 0)):
                yield from self._external(tensor)

    def _external(self, tensor: int) -> Iterator[int]:
        slot = self._field(tensor, 3)
        if slot is not None:
            yield slot

    def _tables(self, slot: int | None) -> list[int]:
        """The tables of a list, given the place that refers to the list."""
        if slot is None:
            return []
        vector = slot + self._u32(slot)
        slots = range(vector + 4, vector + 4 + 4 * self._u32(vector), 4)
        return [slot + self._u32(slot) for slot in slots]

    def _field(self, table: int, index: int) -> int | None:
        layout = table - int(struct.unpack_from("<i", self.body, table)[0])
        size = int(struct.unpack_from("<H", self.body, layout)[0])
        if 4 + 2 * index >= size:
            return None
        offset = int(struct.unpack_from("<H", self.body, layout + 4 + 2 * index)[0])
        return table + offset if offset else None

    def _name(self, graph: int) -> bytes:
        slot = self._field(graph, 0)
        if slot is None:
            return b""
        place = slot + self._u32(slot)
        return bytes(self.body[place + 4 : place + 4 + self._u32(place)])

    def _u32(self, place: int) -> int:
        return int(struct.unpack_from("<I", self.body, place)[0])

    def _u64(self, table: int, index: int) -> int:
        place = self._field(table, index)
        return 0 if place is None else int(struct.unpack_from("<Q", self.body, place)[0])


def _joined(buffers: Sequence[_Buffer]) -> bytes:
    """One flatbuffer that lists the graphs of all, by name: the library searches the list as a sorted one."""
    count = sum(len(buffer.graphs()) for buffer in buffers)
    # Root reference, identifier, the root's layout of fields (with padding), the root, the list of graphs.
    head = struct.pack("<I4s3H2x", 16, buffers[0].identifier, 6, 8, 4) + struct.pack("<iII", 8, 4, count)
    start = len(head) + 4 * count
    start += -start % _ALIGNMENT
    bodies = bytearray()
    places: dict[bytes, int] = {}
    for buffer in buffers:
        bodies.extend(bytes(-len(bodies) % _ALIGNMENT))
        places.update({name: start + len(bodies) + place for name, place in buffer.graphs().items()})
        bodies.extend(buffer.body)
    references = [
        struct.pack("<I", places[name] - len(head) - 4 * index) for index, name in enumerate(sorted(places))
    ]
    gap = bytes(start - len(head) - 4 * count)
    return b"".join([buffers[0].header, head, *references, gap, bodies])
