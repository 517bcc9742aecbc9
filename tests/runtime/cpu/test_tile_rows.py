"""Layers that are computed a few rows at a time give the very integers of those that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import openqnn
from openqnn.ir import Graph
from openqnn.runtime.boundary import inward
from openqnn.runtime.cpu import executable, tile_rows
from openqnn.runtime.cpu.executable import Blocks, compile_steps
from openqnn.runtime.cpu.to_onnx import Lowered, to_onnx

pytestmark = pytest.mark.filterwarnings("ignore::openqnn.OpenQnnWarning")

CHANNELS, SIDE = 32, 24
SMALL, LARGE = 32 << 10, 64 << 20  # bytes of cache, for layers of 72 kB
Geometry = dict[str, list[int] | int]
GEOMETRIES: dict[str, tuple[int, Geometry]] = {
    "points": (1, {}),
    "padded": (3, {"pads": [1, 1, 1, 1]}),
    "not padded": (3, {}),
    "padded below": (4, {"pads": [0, 0, 3, 3]}),
    "strides": (3, {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "dilated": (3, {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    "by channel": (5, {"pads": [2, 2, 2, 2], "group": CHANNELS}),
    "by channel, strides": (3, {"pads": [0, 0, 1, 1], "strides": [2, 2], "group": CHANNELS}),
}


class Maker:
    """An ONNX model, written op by op."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.chance = np.random.default_rng(1)

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def conv(self, x: str, inputs: int, kernel: int = 1, **geometry: list[int] | int) -> str:
        group = geometry.get("group", 1)
        assert isinstance(group, int)
        shape = (CHANNELS, inputs // group, kernel, kernel)
        weights = self.chance.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        names = [f"w{len(self.weights)}", f"b{len(self.weights)}"]
        arrays = (weights, self.chance.standard_normal(CHANNELS) / 4)
        self.weights += [
            numpy_helper.from_array(a.astype(np.float32), n) for a, n in zip(arrays, names, strict=True)
        ]
        return self.op("Conv", x, *names, kernel_shape=[kernel, kernel], **geometry)

    def graph(self, folder: Path, result: str) -> Graph:
        sizes = [("x", [1, 3, SIDE, SIDE]), (result, None)]
        ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes]
        graph = helper.make_graph(self.nodes, "layers", ports[:1], ports[1:], self.weights)
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "layers.onnx"
        )
        return openqnn.convert(folder / "layers.onnx")


def plain(b: Maker, x: str) -> str:
    return b.op("Relu", x)


def curved(b: Maker, x: str) -> str:
    return b.op("HardSwish", x)


def gated(b: Maker, x: str) -> str:
    x = b.op("HardSwish", x)
    gate = b.op("HardSigmoid", b.conv(b.op("GlobalAveragePool", x), CHANNELS))
    return b.op("Mul", x, gate)


def around(b: Maker, x: str) -> str:
    """A layer beside another one, and the sum of both."""
    x = b.op("Relu", x)
    return b.op("Add", b.op("HardSwish", b.conv(x, CHANNELS, 3, pads=[1, 1, 1, 1])), x)


def fixed(folder: Path, geometry: str, then: Callable[[Maker, str], str]) -> Graph:
    b, (kernel, attributes) = Maker(), GEOMETRIES[geometry]
    first = then(b, b.conv("x", 3, 3, pads=[1, 1, 1, 1]))
    second = then(b, b.conv(first, CHANNELS, kernel, **attributes))
    result = b.op("Relu", b.conv(second, CHANNELS))
    data = np.random.default_rng(0).standard_normal((3, 1, 3, SIDE, SIDE)).astype(np.float32)
    return openqnn.quantize(b.graph(folder, result), [{"x": each} for each in data], wide=False)


def kinds(lowered: Lowered) -> Counter[str]:
    return Counter(node.op_type for node in lowered.body.nodes)


@pytest.mark.parametrize("then", [plain, curved, gated, around])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_parts_give_the_same_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, geometry: str, then: Callable[[Maker, str], str]
) -> None:
    monkeypatch.setattr(tile_rows, "NODE", 0)  # whatever the parts are, they pay
    graph = fixed(tmp_path, geometry, then)
    blocks = Blocks(to_onnx(graph))
    results: list[list[np.ndarray]] = []
    x = np.random.default_rng(2).standard_normal((1, 3, SIDE, SIDE)).astype(np.float32)
    feeds = {
        name: inward(v, graph.ports[v.name], x.transpose(0, 2, 3, 1) if v.shape[-1] == 3 else x)
        for name, v in blocks.lowered.inputs.items()
    }
    for cache in (SMALL, LARGE):
        monkeypatch.setattr(executable, "second_cache", lambda size=cache: size)
        body = blocks.body(in_parts=True)
        (step,) = compile_steps(body, 1, ready=True)
        assert isinstance(step, executable.OnnxStep)
        results.append(step.session.run(list(body.outputs.values()), feeds))
        if cache == SMALL:
            assert kinds(body)["Concat"] >= 2 and kinds(body)["Slice"] >= 6
        else:
            assert not kinds(body)["Concat"]
    np.testing.assert_array_equal(*results)


def test_only_one_thread_has_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "second_cache", lambda: SMALL)
    monkeypatch.setattr(tile_rows, "NODE", 0)
    blocks = Blocks(to_onnx(fixed(tmp_path, "padded", curved)))
    many, one, again = (blocks.body(in_parts=parts) for parts in (False, True, False))
    assert kinds(many) == kinds(again)
    assert sum(kinds(one).values()) > 2 * sum(kinds(many).values())


def test_small_layers_are_not_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "second_cache", lambda: SMALL)
    blocks = Blocks(to_onnx(fixed(tmp_path, "padded", plain)))
    assert kinds(blocks.body(in_parts=True)) == kinds(blocks.body(in_parts=False))


def test_a_cache_that_the_system_does_not_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_rows, "CACHE", tmp_path / "size")
    assert tile_rows.second_cache() == tile_rows.USUAL_CACHE
    (tmp_path / "size").write_text("512K\n")
    assert tile_rows.second_cache() == 512 << 10
    (tmp_path / "size").write_text("much")
    assert tile_rows.second_cache() == tile_rows.USUAL_CACHE
