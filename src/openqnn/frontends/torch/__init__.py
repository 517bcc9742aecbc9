"""The PyTorch frontend: recognizes .pt2 files, TorchScript, modules and exported programs, and opens them.

A .pt2 file is read without torch; everything else needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import Source

if TYPE_CHECKING:
    from openqnn.frontends.frontend import Importer

name: Final = "torch"
title: Final = "PyTorch"
suffixes: Final = (".pt2", ".pt", ".pth", ".ts")


def recognizes(source: Source) -> bool:
    """Whether it is a module, an exported program, or an archive as torch writes them."""
    from openqnn.frontends.torch.archive import ArchiveKind, kind_of

    if any(kind.__module__.split(".")[0] == "torch" for kind in type(source).__mro__):
        return True
    return kind_of(source) is not ArchiveKind.OTHER


def open(
    source: Source,
    dimensions: Dimensions,
    outputs: Sequence[str],
    *,
    prune: bool = True,
    keep_quant_nodes: bool = True,
    **options: Any,
) -> Importer:
    """An importer for a model, not yet run. `outputs` ends the model at these tensors."""
    from openqnn.frontends.torch.open_torch import open_importer

    return open_importer(
        source, dimensions, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes, **options
    )
