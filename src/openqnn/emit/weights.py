"""model.bin: the weights of a model, one tar member per static tensor, in the order of model.cpp."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from openqnn.emit.emission_order import WeightNames
from openqnn.errors import ModelError
from openqnn.formats.atomic import replacing
from openqnn.formats.tar import write_tar
from openqnn.qnn.marshal import static_data
from openqnn.qnn.net import NetTensor


def write_weights(names: WeightNames, path: str | os.PathLike[str]) -> None:
    """Streams every weight; memory that is mapped from a file is read once and never held."""
    with replacing(path) as file:
        write_tar(file, _members(names.weights))


def _members(weights: Mapping[str, NetTensor]) -> Iterator[tuple[str, memoryview]]:
    for name, tensor in weights.items():
        if tensor.data is None:
            raise ModelError(f"static tensor '{tensor.name}' has no data")
        # Bytes, because numpy gives no buffer for some types that it stores (bfloat16 views, for one).
        yield f"{name}.raw", static_data(tensor, tensor.data).reshape(-1).view("uint8").data
