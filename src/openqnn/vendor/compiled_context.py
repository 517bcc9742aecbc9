"""Graphs that a vendor's library compiled, as `openqnn.compile` gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from openqnn.errors import UsageError
from openqnn.formats.atomic import Parked
from openqnn.qnn import abi
from openqnn.qnn.context_info import ContextInfo
from openqnn.qnn.net import Array
from openqnn.qnn.options import ContextOptions
from openqnn.qnn.soc import find_soc
from openqnn.targets.registry import target_of_library
from openqnn.vendor.remote import compile_source
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import Settings, target_of

if TYPE_CHECKING:
    from openqnn.ir import Graph


def check_binary_name(path: str | PathLike[str]) -> None:
    """UsageError for names that other kinds of files have."""
    if Path(path).suffix in (".dlc", ".so", ".oqnn"):
        hint = "save the graph itself to have it as .oqnn or .dlc"
        raise UsageError(f"{path}: a compiled context is saved as .bin or .onnx", hint=hint)


@dataclass(frozen=True, slots=True, repr=False)
class CompiledContext:
    """Graphs as a library compiled them. `save` writes a context binary, or an EPContext model for .onnx."""

    file: Parked
    info: ContextInfo
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """The time that the library took, by its functions."""

    def __repr__(self) -> str:
        backend = abi.backend_name(self.info.backend_id)
        chip = f", {find_soc(self.info.soc_model)}" if self.info.soc_model else ""
        return f"<CompiledContext of {', '.join(self.graphs)} for {backend}{chip}>"

    @property
    def graphs(self) -> tuple[str, ...]:
        return tuple(graph.name for graph in self.info.graphs)

    @property
    def blob(self) -> Array:
        """The context binary, read anew each time."""
        return np.frombuffer(self.file.read(), np.uint8)

    def save(self, path: str | PathLike[str]) -> None:
        """The file appears whole or not at all."""
        check_binary_name(path)
        if Path(path).suffix == ".onnx":
            from openqnn.emit.epcontext import write_epcontext

            write_epcontext(path, self.blob, self.info)
        else:
            self.file.put(path)


def compile_graphs(
    graphs: Sequence[Graph],
    library: str,
    soc: str | int | None = None,
    timeout: float | None = None,
    settings: Settings | None = None,
    *,
    share_weights: bool = False,
) -> CompiledContext:
    """Compile in a child process. HTP compiles for SM8650 unless another SoC is named."""
    target = target_of(library, soc, settings)
    if share_weights and len(graphs) > 1 and target_of_library(library).compiles:
        target = replace(target, context=ContextOptions(weight_sharing=True))
    file = Parked("context.bin")
    made = compile_source(Source(tuple(graphs)), target, file=str(file.path), timeout=timeout)
    assert made.info is not None
    return CompiledContext(file, made.info, made.seconds)
