"""execution_metadata.yaml: what a run wrote and how. Written last, so that it stands for a finished run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FILE = "execution_metadata.yaml"


def tensor_entry(
    name: str, datatype: str, dims: Sequence[int], file_type: str, file: str = ""
) -> dict[str, Any]:
    """One input or output: its type in the graph, and the type in the file."""
    entry: dict[str, Any] = {
        "tensor_name": name,
        "datatype": datatype,
        "dimensions": list(dims),
        "file_datatype": file_type,
    }
    return entry | ({"file_name": file} if file else {})


def graph_entry(
    name: str,
    folder: str,
    inferences: int,
    results: int,
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    return {
        "graph_name": name,
        "result_dir": folder,
        "num_inferences": inferences,
        "num_results": results,
        "input_tensors": list(inputs),
        "output_tensors": list(outputs),
    }


def dump(tool: str, backend: str, build: str, graphs: Sequence[Mapping[str, Any]]) -> str:
    """The file's text."""
    import yaml

    record = {"tool": tool, "backend": backend, "backend_build_id": build, "graphs": list(graphs)}
    return yaml.safe_dump(record, sort_keys=False, default_flow_style=None, width=100)
