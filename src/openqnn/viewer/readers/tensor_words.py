"""Parts of views that the readers share: ends of graphs, values in few words, encodings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from openqnn.ir import DType
from openqnn.qnn.net import NetQuant, NetTensor
from openqnn.viewer.from_graph import INPUT, OUTPUT
from openqnn.viewer.view import ViewNode, ViewTensor

LONGEST: Final = 200


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def begins_with(tensor: ViewTensor, name: str = "") -> ViewNode:
    """The node of an input."""
    name = name or tensor.name
    return ViewNode(name, INPUT, outputs=(tensor,), keys=(f"{INPUT}:{name}",))


def ends_with(tensor: ViewTensor, name: str = "") -> ViewNode:
    """The node of an output."""
    name = name or tensor.name
    return ViewNode(name, OUTPUT, inputs=(tensor,), keys=(f"{OUTPUT}:{name}",))


def record_tensor(tensor: NetTensor) -> ViewTensor:
    """A tensor of QNN's records, whose type may be one that nobody knows."""
    try:
        label, width = DType(tensor.dtype).label, 8 * DType(tensor.dtype).numpy.itemsize
    except ValueError:
        label, width = f"type {tensor.dtype:#x}", 0
    quant = "" if tensor.quant is None else quant_words(tensor.quant, width)
    return ViewTensor(tensor.name, label, tensor.dims, quant, "the binary" if quant else "")


def quant_words(quant: NetQuant, width: int = 0) -> str:
    """An encoding in one line; `width` is that of its type, for encodings that do not tell their own."""
    known = quant.bitwidth or width
    bits = f"{known} bits, " if known else ""
    if quant.axis is None:
        return f"{bits}scale {quant.scales[0]:.6g}, offset {quant.offsets[0]}"
    return bits + scales_words(quant.scales, f"axis {quant.axis}")


def scales_words(scales: Sequence[float], along: str) -> str:
    """Several scales in one line."""
    return f"{len(scales)} scales along {along}, {min(scales):.4g} to {max(scales):.4g}"
