"""model.bin: the weights of a model, one tar member per static tensor, in the order of model.cpp."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from openqnn.emit.emission_order import WeightNames
from openqnn.errors import ModelError
from openqnn.formats.atomic import replacing
from openqnn.formats.tar import Member, write_tar
from openqnn.qnn.marshal import static_data
from openqnn.qnn.net import NetTensor

_SEAL = "// Weights: {size} bytes, CRC-32 {checksum:08x}"
_SEALED = re.compile(r"^// Weights: (\d+) bytes, CRC-32 ([0-9a-f]{8})$", re.MULTILINE)
_CHUNK = 1 << 20


@dataclass(slots=True)
class Seal:
    """Ties a model.cpp to its model.bin: the bytes that all weights have together, and their CRC-32."""

    size: int = 0
    checksum: int = 0

    def add(self, data: bytes | memoryview) -> None:
        self.size += len(data)
        self.checksum = zlib.crc32(data, self.checksum)

    def __str__(self) -> str:
        return _SEAL.format(size=self.size, checksum=self.checksum)


def write_weights(names: WeightNames, path: str | os.PathLike[str]) -> Seal:
    """Streams every weight; memory that is mapped from a file is read once and never held."""
    seal = Seal()
    with replacing(path) as file:
        write_tar(file, _members(names.weights, seal))
    return seal


def check_weights(source: Path, weights: Path, members: Sequence[Member]) -> None:
    """ModelError where a model.cpp says that its weights are others; those of other tools say nothing."""
    found = _SEALED.search(source.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        return
    seal = Seal()
    with weights.open("rb") as file:
        for member in members:
            file.seek(member.offset)
            left = member.size
            while left and (chunk := file.read(min(left, _CHUNK))):
                seal.add(chunk)
                left -= len(chunk)
    if str(seal) != found[0]:
        raise ModelError(
            f"{weights} is damaged, or was not written together with {source}: its checksum differs",
            hint="convert the model again, and give both files of one conversion",
        )


def _members(weights: Mapping[str, NetTensor], seal: Seal) -> Iterator[tuple[str, memoryview]]:
    for name, tensor in weights.items():
        if tensor.data is None:
            raise ModelError(f"static tensor '{tensor.name}' has no data")
        # Bytes, because numpy gives no buffer for some types that it stores (bfloat16 views, for one).
        data = static_data(tensor, tensor.data).reshape(-1).view("uint8").data
        seal.add(data)
        yield f"{name}.raw", data
