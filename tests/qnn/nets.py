"""Small graphs for the vendor library tests, and the marks that skip where a library is missing."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import LibraryError
from openqnn.qnn import abi
from openqnn.qnn.library import WHEEL, find_library
from openqnn.qnn.net import Array, Net, NetNode, NetQuant, NetScalar, NetTensor, TensorKind
from tests.providers import OURS, named

Params = tuple[tuple[str, NetScalar | NetTensor], ...]


def requires(library: str) -> pytest.MarkDecorator:
    """Skip where the library is not installed."""
    reason = f"no {library} vendor library: pip install {WHEEL}"
    return pytest.mark.skipif(not _installed(library), reason=reason)


def _installed(library: str) -> bool:
    try:
        find_library(library)
    except LibraryError:
        return False
    return True


needs_cpu, needs_htp = requires("cpu"), requires("htp")

FOLDERS = "OPENQNN_TEST_LIBRARIES"
"""Folders with libraries of other QNN versions to test as well, separated as in PATH."""


def each_version(*libraries: str) -> pytest.MarkDecorator:
    """Run a test with a `folder` of libraries: the installed ones, those of `tests.providers`, and those that
    the environment names."""
    others = [p for p in (*OURS, *named()) if p.id != _installed_version()]
    cases = [pytest.param(p.folder or Path(), id=p.id, marks=p.marks) for p in others]
    cases += [
        pytest.param(Path(entry), id=entry)
        for entry in os.environ.get(FOLDERS, "").split(os.pathsep)
        if entry
    ]
    if all(_installed(library) for library in libraries):
        cases.insert(0, pytest.param(find_library(libraries[0]).parent, id="installed"))
    return pytest.mark.parametrize("folder", cases)


def _installed_version() -> str:
    try:
        return version("onnxruntime-qnn")
    except PackageNotFoundError:
        return ""


def static(name: str, data: Array, dtype: int | None = None, quant: NetQuant | None = None) -> NetTensor:
    code = abi.dtype_code(data.dtype) if dtype is None else dtype
    return NetTensor(name, TensorKind.STATIC, code, data.shape, quant, data)


def u32(name: str, values: object) -> tuple[str, NetTensor]:
    return name, static(name, np.array(values, np.uint32))


def build(name: str, tensors: list[NetTensor], nodes: tuple[NetNode, ...]) -> Net:
    """A graph whose inputs and outputs are told by the kinds of its tensors."""
    return Net(
        name,
        {tensor.name: tensor for tensor in tensors},
        tuple(t.name for t in tensors if t.kind is TensorKind.APP_WRITE),
        tuple(t.name for t in tensors if t.kind is TensorKind.APP_READ),
        nodes,
    )


def node(name: str, op: str, inputs: tuple[str | None, ...], output: str, params: Params = ()) -> NetNode:
    return NetNode(name, "qti.aisw", op, inputs, (output,), params, f"onnx node /{name}")


def unary(op: str, dims: tuple[int, ...], params: Params = (), to: tuple[int, ...] | None = None) -> Net:
    """One float operation from x to y."""
    x = NetTensor("x", TensorKind.APP_WRITE, abi.FLOAT_32, dims)
    y = NetTensor("y", TensorKind.APP_READ, abi.FLOAT_32, dims if to is None else to)
    return build("g", [x, y], (node("first", op, ("x",), "y", params),))


CONV_PARAMS: Params = (
    u32("stride", [1, 1]),
    u32("pad_amount", [[1, 1], [1, 1]]),
    u32("dilation", [1, 1]),
    ("group", NetScalar(abi.UINT_32, 1)),
)


class ConvRelu:
    """A 3x3 convolution with bias and Relu, in float and in 8 bits, with its numpy reference."""

    in_scale, weight_scale, mid_scale, out_scale = 8 / 255, 0.8 / 255, 12 / 255, 6 / 255

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.weight = (rng.normal(size=(3, 3, 16, 32)) * 0.1).astype(np.float32)
        self.bias = (rng.normal(size=32) * 0.1).astype(np.float32)
        self.image = rng.normal(size=(1, 32, 32, 16)).astype(np.float32)

    def reference(self) -> Array:
        padded = np.pad(self.image, ((0, 0), (1, 1), (1, 1), (0, 0)))
        taps = [(i, j) for i in range(3) for j in range(3)]
        total = sum(padded[:, i : i + 32, j : j + 32] @ self.weight[i, j] for i, j in taps)
        return np.maximum(total + self.bias, 0)

    def float_net(self) -> Net:
        f32, dims = abi.FLOAT_32, (1, 32, 32, 32)
        return self._net(
            NetTensor("x", TensorKind.APP_WRITE, f32, self.image.shape),
            static("w", self.weight),
            static("b", self.bias),
            NetTensor("mid", TensorKind.NATIVE, f32, dims),
            NetTensor("y", TensorKind.APP_READ, f32, dims),
        )

    def quantized_net(self) -> Net:
        u8, dims = abi.UFIXED_8, (1, 32, 32, 32)
        bias_scale = self.in_scale * self.weight_scale
        bias = np.round(self.bias / bias_scale).astype(np.int32)
        weight_quant, bias_quant = NetQuant((self.weight_scale,), (-128,)), NetQuant((bias_scale,), (0,))
        in_quant, mid_quant = NetQuant((self.in_scale,), (-128,)), NetQuant((self.mid_scale,), (-128,))
        return self._net(
            NetTensor("x", TensorKind.APP_WRITE, u8, self.image.shape, in_quant),
            static("w", _to_u8(self.weight, self.weight_scale), u8, weight_quant),
            static("b", bias, abi.SFIXED_32, bias_quant),
            NetTensor("mid", TensorKind.NATIVE, u8, dims, mid_quant),
            NetTensor("y", TensorKind.APP_READ, u8, dims, NetQuant((self.out_scale,), (0,))),
        )

    def quantized_image(self) -> Array:
        return _to_u8(self.image, self.in_scale)

    def per_channel_net(self, bitwidth: int | None = None) -> Net:
        """As `quantized_net`, with signed weights that have a scale per output channel."""
        net, steps = self.quantized_net(), 7 if bitwidth == 4 else 127
        scales = np.abs(self.weight).max(axis=(0, 1, 2)) / steps
        zeros = (0,) * scales.size
        weight = np.round(self.weight / scales).astype(np.int8)
        bias = np.round(self.bias / (scales * self.in_scale)).astype(np.int32)
        weight_quant = NetQuant(tuple(scales.tolist()), zeros, 3, bitwidth)
        bias_quant = NetQuant(tuple((scales * self.in_scale).tolist()), zeros, 0)
        replaced = {
            "w": static("w", weight, abi.SFIXED_8, weight_quant),
            "b": static("b", bias, abi.SFIXED_32, bias_quant),
        }
        return Net(net.name, {**net.tensors, **replaced}, net.inputs, net.outputs, net.nodes)

    def _net(self, *tensors: NetTensor) -> Net:
        conv = node("conv", "Conv2d", ("x", "w", "b"), "mid", CONV_PARAMS)
        return build("conv_relu", list(tensors), (conv, node("relu", "Relu", ("mid",), "y")))


def _to_u8(values: Array, scale: float) -> Array:
    return np.clip(np.round(values / scale) + 128, 0, 255).astype(np.uint8)
