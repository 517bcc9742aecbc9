"""Large networks of random weights: python -m benchmarks.layers FILE MEGABYTES external|embedded

A process of its own: what it takes in memory must not count for the processes that are measured later.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTH = 2048
LAYER = WIDTH * WIDTH * 4  # bytes
SHAPES = {"flat": [1, WIDTH], "image": [1, WIDTH, 1, 1]}


def build(path: Path, megabytes: int, external: bool) -> None:
    """Fully connected layers, matrix products and convolutions in turn, about so large."""
    weights = list(_weights(megabytes * 1_000_000 // LAYER, path.with_suffix(".bin"), external))
    nodes: list[onnx.NodeProto] = []
    value = "x"
    for i, weight in enumerate(weights):
        made, value = _layer(("Gemm", "MatMul", "Conv")[i % 3], i, weight, value)
        nodes += made
    inputs, outputs = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, WIDTH]) for n in ("x", value))
    shapes = [helper.make_tensor(n, TensorProto.INT64, [len(s)], s) for n, s in SHAPES.items()]
    graph = helper.make_graph(nodes, "layers", [inputs], [outputs], [*weights, *shapes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def _weights(count: int, side: Path, external: bool) -> Iterator[TensorProto]:
    rng = np.random.default_rng(0)
    block = (rng.standard_normal((WIDTH, WIDTH)) * 0.02).astype(np.float32)
    for i in range(count):
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH])
        data = np.roll(block, i).tobytes()
        if external:
            tensor.data_location = TensorProto.EXTERNAL
            for key, entry in (("location", side.name), ("offset", i * LAYER), ("length", LAYER)):
                tensor.external_data.add(key=key, value=str(entry))
            with side.open("ab") as file:
                file.write(data)
        else:
            tensor.raw_data = data
        yield tensor


def _layer(kind: str, i: int, weight: TensorProto, x: str) -> tuple[list[onnx.NodeProto], str]:
    """The nodes of one layer and the name of its result."""
    y = f"y{i}"
    if kind != "Conv":
        return [
            helper.make_node(kind, [x, weight.name], [f"m{i}"]),
            helper.make_node("Relu", [f"m{i}"], [y]),
        ], y
    weight.dims[:] = [WIDTH, WIDTH, 1, 1]
    nodes = [
        helper.make_node("Reshape", [x, "image"], [f"r{i}"]),
        helper.make_node("Conv", [f"r{i}", weight.name], [f"c{i}"]),
        helper.make_node("Relu", [f"c{i}"], [f"a{i}"]),
        helper.make_node("Reshape", [f"a{i}", "flat"], [y]),
    ]
    return nodes, y


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "external")
