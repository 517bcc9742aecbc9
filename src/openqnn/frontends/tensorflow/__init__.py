"""The TensorFlow frontend: recognizes SavedModels, Keras models, frozen graphs and checkpoints.

TensorFlow itself is only imported in a process of its own, which writes the model as TFLite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import Source, check_options

if TYPE_CHECKING:
    from openqnn.frontends.tflite.importer import Importer

name: Final = "tensorflow"
title: Final = "TensorFlow"
suffixes: Final = (".pb", ".meta", ".keras", ".h5", ".hdf5")
_OPTIONS = ("signature", "tag", "validate", "on_answer")


def recognizes(source: Source) -> bool:
    """Whether it is a SavedModel's folder, a Keras file or model, a frozen graph or a checkpoint's graph."""
    from openqnn.frontends.tensorflow.kinds import kind_of

    return bool(kind_of(source))


def open(
    source: Source,
    dimensions: Dimensions,
    outputs: Sequence[str],
    *,
    prune: bool = True,
    keep_quant_nodes: bool = True,
    **options: Any,
) -> Importer:
    """An importer for a model, not yet run. Options: `signature` and `tag` of a SavedModel."""
    from openqnn.frontends.tensorflow.open_tensorflow import open_tensorflow

    check_options(title, options, _OPTIONS)
    return open_tensorflow(
        source, dimensions, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes, **options
    )
