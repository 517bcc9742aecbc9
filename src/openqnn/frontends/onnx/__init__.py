"""The ONNX frontend: recognizes ONNX models, and opens them with the onnx package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import Source, check_options, head_of

if TYPE_CHECKING:
    from openqnn.frontends.onnx.importer import Importer

name: Final = "onnx"
title: Final = "ONNX"
suffixes: Final = (".onnx",)
_IR_VERSION = 0x08  # the first field of a ModelProto, which every exporter writes first
_NEWEST_IR = 64  # far beyond the versions there are; above it a byte is not one


def recognizes(source: Source) -> bool:
    """Whether it is a ModelProto, or a file that begins with an IR version."""
    kind = type(source)
    if kind.__name__ == "ModelProto" and kind.__module__.startswith("onnx"):
        return True
    head = head_of(source, 3)
    return len(head) == 3 and head[0] == _IR_VERSION and 0 < head[1] < _NEWEST_IR and head[2] & 7 in (0, 2)


def open(
    source: Source,
    dimensions: Dimensions,
    outputs: Sequence[str],
    *,
    prune: bool = True,
    keep_quant_nodes: bool = True,
    **options: Any,
) -> Importer:
    """An importer for a model, not yet run. `outputs` ends the model at these tensors.

    Without its quantize nodes the graph is in floating point, and has their encodings as `given`.
    """
    from openqnn.frontends.onnx.open_onnx import open_importer

    check_options(title, options)
    return open_importer(source, dimensions, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes)
