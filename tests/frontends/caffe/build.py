"""Caffe networks as tests need them: the text of a layer or several, and a writer of their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Blobs = Mapping[str, Sequence[NDArray[np.float32]]]
INPUT = 'layer {{ name: "input{i}" type: "Input" top: "x{i}" input_param {{ shape {{ {dims} }} }} }}\n'


def varint(value: int) -> bytes:
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | (0x80 if value else 0))
        if not value:
            return bytes(found)


def part(number: int, content: bytes) -> bytes:
    """A field with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def blob(array: NDArray[np.float32], *, old: bool = False) -> bytes:
    """A BlobProto; in its old form the shape is four numbers."""
    if old:
        dims = [1] * (4 - array.ndim) + list(array.shape)
        sizes = b"".join(varint(i << 3) + varint(d) for i, d in enumerate(dims, start=1))
    else:
        sizes = part(7, part(1, b"".join(map(varint, array.shape))))
    return part(5, array.astype("<f4").tobytes()) + sizes


def caffemodel(blobs: Blobs, *, old: bool = False) -> bytes:
    """A NetParameter with the weights of layers, as Caffe writes it today or wrote it first."""
    layers = b""
    for name, arrays in blobs.items():
        inner = part(4 if old else 1, name.encode())
        inner += b"".join(part(6 if old else 7, blob(a, old=old)) for a in arrays)
        layers += part(2 if old else 100, inner)
    return part(1, b"net") + layers


def inputs_text(shapes: Sequence[Sequence[int]]) -> str:
    return "".join(
        INPUT.format(i=i, dims=" ".join(f"dim: {d}" for d in shape)) for i, shape in enumerate(shapes)
    )


def layer_text(kind: str, params: str, bottoms: int, tops: int) -> str:
    """One layer 'it' that reads the inputs x0, x1, ..."""
    names = [f'bottom: "x{i}"' for i in range(bottoms)]
    names += [f'top: "{"y" if tops == 1 else f"y{i}"}"' for i in range(tops)]
    return f'layer {{ name: "it" type: "{kind}" {" ".join(names)} {params} }}\n'


def write_network(folder: Path, text: str, blobs: Blobs | None = None, *, old: bool = False) -> Path:
    """net.prototxt, and net.caffemodel beside it where there are weights."""
    path = folder / "net.prototxt"
    path.write_text('name: "net"\n' + text, encoding="utf-8")
    if blobs:
        path.with_suffix(".caffemodel").write_bytes(caffemodel(blobs, old=old))
    return path
