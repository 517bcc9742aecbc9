"""Running a converter for real and looking at both what it wrote and the graph that it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from openqnn import Graph, Session
from openqnn.cli.shared import convert_source as converters
from tests.cli.tool import Result, tool
from tests.onnx_models import model, tensor, weight

Array = np.ndarray[Any, Any]


@dataclass
class Converted:
    result: Result
    graph: Graph
    cpp: Path

    @property
    def source(self) -> str:
        return self.cpp.read_text(encoding="utf-8")

    def shapes(self) -> list[tuple[int, ...]]:
        return [v.shape for v in (*self.graph.inputs, *self.graph.outputs)]

    def types(self) -> list[str]:
        return [v.dtype.label for v in (*self.graph.inputs, *self.graph.outputs)]

    def ops(self) -> list[str]:
        return [n.op for n in self.graph.nodes]

    def run(self, *arrays: Array) -> list[Array]:
        with Session(self.graph) as session:
            return list(session.run(dict(zip(session.input_names, arrays, strict=True))).values())


class Converter:
    """`qnn-onnx-converter`, which must succeed; the graph is caught on its way to the files."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.caught = folder, list[Graph]()
        write = converters._write_source

        def catch(graph: Graph, *rest: Any) -> None:
            self.caught.append(graph)
            write(graph, *rest)

        monkeypatch.setattr(converters, "_write_source", catch)

    def __call__(self, source: onnx.ModelProto | Path, *flags: object) -> Converted:
        path = source if isinstance(source, Path) else self.save(source)
        target = self.folder / "out" / "model.cpp"
        result = tool("qnn-onnx-converter", "-i", path, "-o", target, *flags)
        assert result.code == 0, result.err
        return Converted(result, self.caught[-1], target)

    def save(self, source: onnx.ModelProto, name: str = "m.onnx") -> Path:
        path = self.folder / name
        onnx.save(source, path)
        return path


def reference(source: onnx.ModelProto, *arrays: Array) -> list[Array]:
    session = onnxruntime.InferenceSession(source.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = dict(zip([i.name for i in session.get_inputs()], arrays, strict=True))
    return cast("list[Array]", session.run(None, feeds))


def channel_last(array: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def image_model(rank: int = 4, dynamic: bool = False) -> onnx.ModelProto:
    """A convolution with batch norm and relu: x [1,3,6,...] -> y [1,4,6,...]."""
    dims = rank - 2
    rng = np.random.default_rng(3)
    filters = (rng.standard_normal((4, 3, *[3] * dims)) / 4).astype(np.float32)
    scales = [rng.uniform(0.5, 1.5, 4).astype(np.float32) for _ in range(4)]
    nodes = [
        helper.make_node("Conv", ["x", "w", "bias"], ["c"], name="conv", pads=[1] * dims * 2),
        helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], name="norm"),
        helper.make_node("Relu", ["n"], ["y"], name="act"),
    ]
    arrays = dict(zip(("w", "bias", "s", "b", "m", "v"), (filters, scales[0], *scales), strict=True))
    size: list[Any] = ["n", 3, "side", *[6] * (dims - 1)] if dynamic else [1, 3, *[6] * dims]
    return model(
        nodes,
        [tensor("x", size)],
        [tensor("y", [None] * rank)],
        [weight(name, array) for name, array in arrays.items()],
    )


def integer_model() -> onnx.ModelProto:
    """Rows of a table by 64-bit numbers: i [2] -> y [2,3]."""
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    node = helper.make_node("Gather", ["t", "i"], ["y"], name="rows")
    return model([node], [tensor("i", [2], TensorProto.INT64)], [tensor("y", [2, 3])], [weight("t", table)])
