"""What is in a context binary, in few words."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from openqnn.ir import DType
from openqnn.qnn import abi
from openqnn.qnn.context_info import ContextInfo, GraphInfo
from openqnn.qnn.net import NetTensor
from openqnn.qnn.soc import find_soc
from openqnn.vendor.remote import describe_context


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """A graph of the binary; `settings` are what the library compiled it with, where it tells."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: dict[str, int]


@dataclass(frozen=True, slots=True)
class ContextSummary:
    backend: str
    build_id: str
    core_api: str
    backend_api: str
    blob_version: str
    bytes: int
    target: str
    graphs: tuple[CompiledGraph, ...]


def summarise_context(info: ContextInfo) -> ContextSummary:
    chip = str(find_soc(info.soc_model)) if info.soc_model else ""
    arch = f"HTP v{info.dsp_arch}" if info.dsp_arch else ""
    return ContextSummary(
        abi.backend_name(info.backend_id),
        info.build_id,
        _dotted(info.core_api),
        _dotted(info.backend_api),
        _dotted(info.blob_version),
        info.blob_size,
        chip or arch,
        tuple(_graph(graph) for graph in info.graphs),
    )


def read_context(path: str | PathLike[str]) -> ContextInfo:
    """What the library says of a file; the message about a damaged one names it."""
    return describe_context(path)


def described(tensor: NetTensor) -> str:
    """Name, type and shape in the form of the text format."""
    try:
        label = DType(tensor.dtype).label
    except ValueError:
        label = f"type {tensor.dtype:#x}"
    return f"{tensor.name}: {label}[{','.join(map(str, tensor.dims))}]"


def _graph(graph: GraphInfo) -> CompiledGraph:
    blob = graph.htp
    settings = {} if blob is None else {
        "vtcm_mb": blob.vtcm_size >> 20,
        "optimization_level": blob.optimization_level,
        "hvx_threads": blob.hvx_threads,
        "spill_fill_bytes": blob.spill_fill_size,
    }  # fmt: skip
    return CompiledGraph(
        graph.name,
        tuple(described(item.tensor) for item in graph.inputs),
        tuple(described(item.tensor) for item in graph.outputs),
        settings,
    )


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))
