"""The comparison of a run, as a program: reports of the verifier, CSV files, and differences node by node."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openqnn.analysis.accuracy.run_differences import (
    RunOutputs,
    Thresholds,
    compare_runs,
    counts_differ,
    units_differ,
    write_differences,
)
from openqnn.analysis.accuracy.verification import read_graph_struct, read_tensor_mapping
from openqnn.analysis.accuracy.verifiers import verifier_named, with_parameters
from openqnn.errors import OpenQnnError
from openqnn.formats.atomic import replacing

RESULT = "differences.json"


def compare_outputs(asked: Mapping[str, Any]) -> dict[str, Any]:
    """`asked` names two folders of outputs, the graph, the verifier and where results go."""
    verifier = with_parameters(verifier_named(asked["verifier"]), asked["parameters"])
    runs = (RunOutputs(Path(asked["first"])), RunOutputs(Path(asked["second"])))
    struct = read_graph_struct(asked["model_json"])
    mapping = read_tensor_mapping(asked["mapping"]) if asked["mapping"] else {}
    limits = Thresholds(asked["accuracy_threshold"], asked["perf_threshold"])
    nodes = compare_runs(
        runs, struct, makers_of(asked["model_json"]), verifier, limits, mapping, Path(asked["verification"]),
        tuple(asked.get("tensors", ())),
    )  # fmt: skip
    write_differences(Path(asked["csv"]), nodes, verifier.name)
    notes = [note for note in (counts_differ(runs), units_differ(runs)) if note]
    return {
        "format": "openqnn differences", "use_case": asked["use_case"], "verifier": verifier.name,
        "model_json": asked["model_json"], "accuracy_threshold": limits.accuracy,
        "perf_threshold": limits.performance, "notes": notes,
        "nodes": [node.record(verifier.name) for node in nodes],
    }  # fmt: skip


def makers_of(net_json: str) -> dict[str, tuple[str, str]]:
    """Which node makes a tensor, and of which op it is."""
    graph = json.loads(Path(net_json).read_text(encoding="utf-8")).get("graph", {})
    return {
        tensor: (name, str(node.get("type", "")))
        for name, node in graph.get("nodes", {}).items()
        for tensor in node.get("output_names", ())
    }


def _main(text: str) -> None:
    asked = json.loads(text)
    found = compare_outputs(asked)
    with replacing(Path(asked["intermediate"]) / RESULT) as file:
        file.write(json.dumps(found, indent=1).encode())
    differ = sum(bool(node["kinds"]) for node in found["nodes"])
    print(f"{len(found['nodes'])} nodes compared, {differ} differ")


if __name__ == "__main__":
    try:
        _main(sys.argv[1])
    except OpenQnnError as error:
        print(error.told())
        sys.exit(1)
