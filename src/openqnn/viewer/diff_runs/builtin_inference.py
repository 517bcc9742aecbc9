"""An inference on the built-in backend, as a program: every tensor of every sample, in folders."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from openqnn.analysis.accuracy.tensor_folder import write_tensors
from openqnn.api.custom_ops import load_custom_ops, use_op_packages
from openqnn.api.session import Session
from openqnn.emit.graph_from_net import graph_of
from openqnn.emit.read_net_json import read_net_json
from openqnn.errors import InputError, OpenQnnError
from openqnn.ir import Graph
from openqnn.quant.samples import samples_of

SIMULATION = "simulation"


def run_builtin(asked: Mapping[str, str]) -> int:
    """`asked` names net.json, weights, input list and the folder; how many samples were run."""
    load_custom_ops(*asked["custom_ops"].splitlines())
    if asked["op_packages"]:
        use_op_packages(asked["op_packages"])
    weights = asked["model_bin"]
    graph = graph_of(read_net_json(Path(asked["model_json"]), Path(weights) if weights else None))
    _check(graph, asked)
    names = list(dict.fromkeys(value.name for node in graph.nodes for value in node.outputs))
    native = asked["input_data_type"] == "native"
    folder, count = Path(asked["folder"]), 0
    with Session(graph) as session:
        for sample in samples_of(graph, asked["input_list"], native=native):
            write_tensors(folder / "output" / f"Result_{count}", session.run(sample, names, native=False))
            count += 1
            print(f"sample {count}", flush=True)
    return count


def _check(graph: Graph, asked: Mapping[str, str]) -> None:
    fixed = any(value.encoding is not None for value in graph.values())
    if asked["runtime"] == SIMULATION and not fixed:
        raise InputError(
            f"{asked['model_json']}: this graph computes in floating point: there is nothing to simulate",
            hint="runtime built-in runs it",
        )
    missing = [v.name for v in graph.values() if v.is_constant and v.data is None]
    if missing:
        raise InputError(
            f"{asked['model_json']}: weights are missing, such as {missing[0]}", hint="Model Bin"
        )


if __name__ == "__main__":
    try:
        print(f"{run_builtin(json.loads(sys.argv[1]))} sample(s)")
    except OpenQnnError as error:
        print(error.told())
        sys.exit(1)
