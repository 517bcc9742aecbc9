"""The TFLite frontend: recognizes TFLite models, and opens them straight from their flatbuffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from openqnn.errors import UsageError
from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import Source, head_of

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

    unknown = next((o for o in options if o not in _OPTIONS), None)
    if unknown is not None:
        raise UsageError(f"{unknown}: TFLite models have no such option")
    return open_importer(
        source, dimensions, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes, **options
    )
