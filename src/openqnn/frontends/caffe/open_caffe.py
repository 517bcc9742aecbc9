"""Opens a Caffe network: finds its two files, the .prototxt and the .caffemodel, and reads both."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from openqnn.errors import ModelError, UsageError
from openqnn.frontends.caffe.caffemodel import is_caffemodel, read_caffemodel
from openqnn.frontends.caffe.importer import WEIGHTED, Importer
from openqnn.frontends.caffe.network import Network, needed, read_network, results
from openqnn.frontends.caffe.prototxt import Message, read_prototxt
from openqnn.frontends.dimensions import Dimensions, check_dimensions
from openqnn.frontends.frontend import Source
from openqnn.ir import Array

LARGEST: Final = 16 << 20  # bytes of text


def open_importer(
    source: Source, dimensions: Dimensions, outputs: Sequence[str], *, caffemodel: str = ""
) -> Importer:
    """Reads the network and its weights; `outputs` ends it at these blobs."""
    if not isinstance(source, str | os.PathLike):
        raise UsageError("a Caffe network is given by the path of its .prototxt")
    text, weights = _files_of(Path(source), caffemodel)
    network = read_network(_read(text), text.stem)
    check_dimensions(dimensions, network.inputs)
    wanted = list(outputs) or results(network.layers)
    layers = needed(network.layers, wanted)
    lonely = next((layer.name for layer in layers if layer.type in WEIGHTED), None)
    if weights is None and lonely is not None:
        hint = f"put it beside it as {text.with_suffix('.caffemodel').name}, or give --caffemodel FILE"
        raise ModelError(f"{text}: the .caffemodel with the weights of '{lonely}' is missing", hint=hint)
    blobs = read_caffemodel(weights) if weights is not None else {}
    read = {name for layer in layers for name in layer.bottoms}
    used = [i for i in network.inputs if i.name in read]
    return Importer(network.name, layers, used, wanted, blobs, dimensions)


def open_network(path: Path) -> tuple[Network, dict[str, list[Array]]]:
    """The network of a file with the weights beside it, as far as they are there."""
    text, weights = _files_of(path, "")
    network = read_network(_read(text), text.stem)
    return network, read_caffemodel(weights) if weights is not None else {}


def _files_of(path: Path, caffemodel: str) -> tuple[Path, Path | None]:
    """The network and its weights: either is given, the other has its name or is alone in the folder."""
    if not path.is_file():
        raise ModelError(f"{path}: {'no file' if path.exists() else 'no such file'}")
    if caffemodel and not Path(caffemodel).is_file():
        raise ModelError(f"{caffemodel}: no such file")
    if not is_caffemodel(path):
        return path, Path(caffemodel) if caffemodel else _beside(path, ".caffemodel")
    network = _beside(path, ".prototxt")
    if network is None:
        hint = f"give the .prototxt, or put it beside it as {path.with_suffix('.prototxt').name}"
        raise ModelError(f"{path}: these are weights of Caffe, without their network", hint=hint)
    return network, path


def _beside(path: Path, suffix: str) -> Path | None:
    same = path.with_suffix(suffix)
    if same.is_file():
        return same
    others = list(path.parent.glob(f"*{suffix}"))
    alone = len(others) == 1 and len(list(path.parent.glob(f"*{path.suffix}"))) == 1
    return others[0] if alone else None


def _read(path: Path) -> Message:
    try:
        if path.stat().st_size > LARGEST:
            raise ModelError(f"{path}: too large for the text of a network")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise ModelError(f"{path}: no text: byte {e.start} is no UTF-8") from e
    except OSError as e:
        raise ModelError(f"{path}: cannot be read: {e.strerror}") from e
    return read_prototxt(text, str(path))
