"""Put the graphs of several DLC files into one.

libQnnIr writes one graph per file, and libQnnSystem reads as many as there are. A DLC is a ZIP of records:
`model` and `model.params` are flatbuffers with a list of graphs, `model.params.bin` holds the weights. All
references in a flatbuffer are relative, so whole ones can be put behind a new list that points into them;
only the places of the weights have to be moved. Weights that graphs have in common are stored once.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
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

    def copy(self, name: str, target: BinaryIO, start: int = 0, size: int | None = None) -> int:
        """Append a record, or a part of it, to `target`; gives its size."""
        count = 0
        for chunk in self._chunks(name, start, size):
            target.write(chunk)
            count += len(chunk)
        return count

    def digest(self, name: str, start: int, size: int) -> bytes:
        """What tells a part of a record from any other."""
        found = hashlib.blake2b(digest_size=32)
        for chunk in self._chunks(name, start, size):
            found.update(chunk)
        return found.digest()

    def _chunks(self, name: str, start: int, size: int | None) -> Iterator[bytes]:
        record = self.records.get(name)
        if record is None:
            return
        left = record.size - start if size is None else size
        if start + left > record.size:
            raise ModelError(f"{self.path} ends in the middle of '{name}'")
        with self.path.open("rb") as file:
            file.seek(record.offset + start)
            while left:
                chunk = file.read(min(left, _CHUNK))
                if not chunk:
                    raise ModelError(f"{self.path} ends in the middle of '{name}'")
                yield chunk
                left -= len(chunk)


def merge_dlcs(sources: Sequence[Path], target: Path, extra: Mapping[str, str] | None = None) -> None:
    """Write all graphs of the sources to `target`, and records of one's own, which libraries pass over."""
    files = [DlcFile(path) for path in sources]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        params = [_Buffer(file.read(PARAMS), b"NETP", file.path) for file in files]
        moves = _write_weights(archive, files, params)
        for name in files[0].records:
            if name not in (MODEL, PARAMS, WEIGHTS):
                archive.writestr(name, files[0].read(name))
        models = [_Buffer(file.read(MODEL), b"NETD", file.path) for file in files]
        for buffer, moved in zip(params, moves, strict=True):
            buffer.move_weights(moved)
        archive.writestr(MODEL, _joined(models))
        archive.writestr(PARAMS, _joined(params))
        for name, content in (extra or {}).items():
            archive.writestr(name, content)


def _write_weights(
    archive: zipfile.ZipFile, files: Sequence[DlcFile], params: Sequence[_Buffer]
) -> list[dict[tuple[int, int], int]]:
    """One record with each weight once; gives for each file the new places by the old ones and sizes.

    The first file's stay where they are; of the others, those that no file before had are put behind them.
    """
    known: dict[tuple[int, bytes], int] = {}
    moves: list[dict[tuple[int, int], int]] = []
    with archive.open(WEIGHTS, "w", force_zip64=True) as out:
        end = files[0].copy(WEIGHTS, out)  # pyright: ignore[reportArgumentType]
        for index, (file, buffer) in enumerate(zip(files, params, strict=True)):
            moved: dict[tuple[int, int], int] = {}
            for place, size in buffer.weights():
                content = size, file.digest(WEIGHTS, place, size)
                if content not in known:
                    known[content] = place if index == 0 else end + -end % _ALIGNMENT
                    if index:
                        out.write(bytes(-end % _ALIGNMENT))
                        file.copy(WEIGHTS, out, place, size)  # pyright: ignore[reportArgumentType]
                        end = known[content] + size
                moved[place, size] = place if index == 0 else known[content]
            moves.append(moved)
    return moves


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

    def weights(self) -> list[tuple[int, int]]:
        """Place and size of every weight."""
        slots = (slot for graph in self.graphs().values() for slot in self._weight_slots(graph))
        tables = (slot + self._u32(slot) for slot in slots)
        return [(self._u64(table, 0), self._u64(table, 1)) for table in tables]

    def move_weights(self, moved: Mapping[tuple[int, int], int]) -> None:
        """Put weights that were at a place, with a size, at another place.

        A place of zero is not stored at all, so each place gets a new record at the end of the buffer.
        """
        for slot in [slot for graph in self.graphs().values() for slot in self._weight_slots(graph)]:
            old = slot + self._u32(slot)
            place, size = self._u64(old, 0), self._u64(old, 1)
            if moved[place, size] == place:
                continue
            self.body.extend(bytes(-len(self.body) % 8))
            # A layout of fields (8 bytes), 4 to align, then the table: distance to the layout, the fields.
            table = len(self.body) + 12
            struct.pack_into("<I", self.body, slot, table - slot)
            self.body.extend(struct.pack("<4H4xi2Q", 8, 20, 4, 12, 12, moved[place, size], size))

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
