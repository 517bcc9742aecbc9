"""The TFLite frontend: recognizes TFLite models, and opens them straight from their flatbuffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import Source, check_options, head_of

if TYPE_CHECKING:
    from openqnn.frontends.tflite.importer import Importer

name: Final = "tflite"
title: Final = "TFLite"
suffixes: Final = (".tflite",)
_OPTIONS = ("signature", "signature_names")


def recognizes(source: Source) -> bool:
    """Whether it is a flatbuffer with TFLite's identifier, in a file or as bytes."""
    head = source[:8] if isinstance(source, bytes) else head_of(source, 8)
    return head[4:] == b"TFL3"


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

    The option `signature` names the signature whose subgraph it is.
    """
    from openqnn.frontends.tflite.open_tflite import open_importer

    check_options(title, options, _OPTIONS)
    return open_importer(
        source, dimensions, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes, **options
    )
