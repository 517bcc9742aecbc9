"""Transformers of random weights with external data: python -m benchmarks.transformer FILE.onnx BLOCKS

A process of its own: what it takes in memory must not count for the processes that are measured later.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, WORDS = 2048, 16, 64
INNER = 4 * WIDTH


class Writer:
    """Nodes by what they compute; large weights go into the file beside the model."""

    def __init__(self, path: Path) -> None:
        self.side = path.with_suffix(".bin")
        self.side.write_bytes(b"")
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[TensorProto] = []
        self.block = np.random.default_rng(0).standard_normal(WIDTH * INNER).astype(np.float32) * 0.02

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def small(self, numbers: np.ndarray) -> str:
        tensor = numpy_helper.from_array(numbers, f"c{len(self.weights)}")
        self.weights.append(tensor)
        return tensor.name

    def weight(self, rows: int, columns: int) -> str:
        """Every one has numbers of its own: none is stored once for several."""
        data = np.roll(self.block[: rows * columns], len(self.weights)).tobytes()
        tensor = TensorProto(name=f"w{len(self.weights)}", data_type=TensorProto.FLOAT, dims=[rows, columns])
        tensor.data_location = TensorProto.EXTERNAL
        place = (("location", self.side.name), ("offset", self.side.stat().st_size), ("length", len(data)))
        for key, entry in place:
            tensor.external_data.add(key=key, value=str(entry))
        with self.side.open("ab") as file:
            file.write(data)
        self.weights.append(tensor)
        return tensor.name

    def norm(self, x: str) -> str:
        scale, bias = (self.small(np.full(WIDTH, v, np.float32)) for v in (1, 0))
        return self.add("LayerNormalization", x, scale, bias, axis=-1)

    def heads(self, x: str, order: list[int]) -> str:
        shape = self.small(np.asarray([1, WORDS, HEADS, WIDTH // HEADS]))
        product = self.add("MatMul", x, self.weight(WIDTH, WIDTH))
        return self.add("Transpose", self.add("Reshape", product, shape), perm=order)

    def attention(self, x: str) -> str:
        q, k, v = (self.heads(x, order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = self.add("Mul", self.add("MatMul", q, k), self.small(np.float32((WIDTH // HEADS) ** -0.5)))
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        joined = self.add("Transpose", mixed, perm=[0, 2, 1, 3])
        flat = self.add("Reshape", joined, self.small(np.asarray([1, WORDS, WIDTH])))
        return self.add("MatMul", flat, self.weight(WIDTH, WIDTH))

    def layers(self, x: str) -> str:
        wide = self.add("Sigmoid", self.add("MatMul", x, self.weight(WIDTH, INNER)))
        return self.add("MatMul", wide, self.weight(INNER, WIDTH))


def build(path: Path, blocks: int) -> None:
    writer = Writer(path)
    x = "x"
    for _ in range(blocks):
        x = writer.add("Add", x, writer.attention(writer.norm(x)))
        x = writer.add("Add", x, writer.layers(writer.norm(x)))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, WORDS, WIDTH]) for n in ("x", x)]
    graph = helper.make_graph(writer.nodes, "transformer", ends[:1], ends[1:], writer.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]))
