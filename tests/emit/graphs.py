"""Graphs that between them have every kind of tensor, parameter and encoding that a printer meets."""

from __future__ import annotations

import numpy as np

from openqnn.emit import lower
from openqnn.ir import DType, Graph
from openqnn.ops.builder import Builder
from openqnn.qnn import abi
from openqnn.qnn.net import Array, Net, NetNode, NetQuant, NetScalar, NetTensor, TensorKind
from tests.qnn.nets import ConvRelu, build, node, static, u32

Case = tuple[Net, dict[str, Array]]


def _image(shape: tuple[int, ...], seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def conv_relu() -> Case:
    """From an ir graph: convolution without and with bias, Relu, and a constant that two nodes share."""
    graph = Graph("conv_relu")
    x = graph.add_input("image.1", DType.FLOAT_32, (1, 8, 8, 3))
    b = Builder(graph)
    weight = b.const(_image((3, 3, 3, 4)) * 0.2, name="/conv/weight")
    back = b.const(_image((1, 1, 4, 3), 2), name="1x1:weight")
    bias = b.const(_image((4,), 3), name="bias")
    pads = {"stride": (1, 1), "pad_amount": ((1, 1), (1, 1))}
    y = b("Conv2d", x, weight, bias, name="/Conv", **pads)
    y = b("Relu", y, name="0relu")
    y = b("Conv2d", y, back, name="shrink", stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    y = b("Conv2d", y, weight, bias, name="again", **pads)
    graph.add_output(y)
    return lower(graph), {"image_1": _image((1, 8, 8, 3), 4)}


def concat() -> Case:
    """Two inputs and two outputs, integer scalars and tensors as parameters."""
    graph = Graph("concat")
    left = graph.add_input("left", DType.FLOAT_32, (2, 3))
    right = graph.add_input("right", DType.FLOAT_32, (2, 5))
    b = Builder(graph)
    joined = b("Concat", left, right, name="joined", axis=1)
    turned = b("Transpose", joined, name="turned", perm=(1, 0))
    total = b("ReduceSum", turned, name="total", axes=(0,), keep_dims=True)
    graph.add_output(total)
    graph.add_output(turned)
    return lower(graph), {"left": _image((2, 3)), "right": _image((2, 5), 2)}


def per_channel() -> Case:
    """8-bit activations, signed weights with a scale per channel."""
    conv = ConvRelu()
    return conv.per_channel_net(), {"x": conv.quantized_image()}


def quantized() -> Case:
    conv = ConvRelu()
    return conv.quantized_net(), {"x": conv.quantized_image()}


def _one(name: str, op: str, dims: tuple[int, ...], *params: tuple[str, NetScalar | NetTensor]) -> Net:
    x = NetTensor("x", TensorKind.APP_WRITE, abi.FLOAT_32, dims)
    y = NetTensor("y", TensorKind.APP_READ, abi.FLOAT_32, dims)
    return build(name, [x, y], (node("only", op, ("x",), "y", params),))


def clip(low: float, high: float, name: str = "clip") -> Case:
    """Float parameters, up to the largest and infinite ones."""
    net = _one(
        name, "ReluMinMax", (2, 4),
        ("min_value", NetScalar(abi.FLOAT_32, low)), ("max_value", NetScalar(abi.FLOAT_32, high)),
    )  # fmt: skip
    return net, {"x": _image((2, 4))}


def slices() -> Case:
    """Negative numbers in an int32 tensor parameter, masks, and a boolean."""
    x = NetTensor("x", TensorKind.APP_WRITE, abi.FLOAT_32, (4, 6))
    mid = NetTensor("mid", TensorKind.NATIVE, abi.FLOAT_32, (2, 3))
    y = NetTensor("y", TensorKind.APP_READ, abi.FLOAT_32, (2,))
    ranges = ("ranges", static("ranges", np.array([[3, -1 - 4, -2], [0, 6, 2]], np.int32)))
    masks = [
        (key, NetScalar(abi.UINT_32, 0)) for key in ("begin_mask", "end_mask", "new_axes_mask", "shrink_axes")
    ]
    masks[1] = ("end_mask", NetScalar(abi.UINT_32, 1))
    dropped = ("keep_dims", NetScalar(abi.BOOL_8, False))
    nodes = (
        node("cut", "StridedSlice", ("x",), "mid", (ranges, *masks)),
        node("max", "ReduceMax", ("mid",), "y", (u32("axes", [1]), dropped)),
    )
    return build("slices", [x, mid, y], nodes), {"x": _image((4, 6))}


def odd_names() -> Case:
    """Names as no lowering makes them: C's own words, quotes, and two that differ in punctuation only."""
    names = ['in "put"\\n', "a.b", "a/b", "int"]
    tensors = [
        NetTensor(names[0], TensorKind.APP_WRITE, abi.FLOAT_32, (3,)),
        static("a:b", _image((3,))),
        NetTensor(names[1], TensorKind.NATIVE, abi.FLOAT_32, (3,)),
        static("a;b", _image((3,), 2)),
        NetTensor(names[2], TensorKind.NATIVE, abi.FLOAT_32, (3,)),
        NetTensor(names[3], TensorKind.APP_READ, abi.FLOAT_32, (3,)),
    ]
    nodes = (
        node("err", "ElementWiseAdd", (names[0], "a:b"), names[1]),
        node("model", "ElementWiseMultiply", (names[1], "a;b"), names[2]),
        node("döuble", "Relu", (names[2],), names[3]),
    )
    return build("interface", tensors, nodes), {names[0]: _image((3,), 3)}


def absent_input() -> Case:
    """An optional operand left out in the middle of the list."""
    dims = (1, 4, 4, 2)
    tensors = [
        NetTensor("x", TensorKind.APP_WRITE, abi.FLOAT_32, dims),
        NetTensor("y", TensorKind.APP_READ, abi.FLOAT_32, dims),
        static("beta", _image((2,))),
    ]
    params = (u32("axes", [3]), ("epsilon", NetScalar(abi.FLOAT_32, 1e-5)))
    norm = node("norm", "LayerNorm", ("x", None, "beta"), "y", params)
    return build("absent", tensors, (norm,)), {"x": _image(dims)}


def four_bits() -> Net:
    return ConvRelu().per_channel_net(bitwidth=4)


def every_scalar() -> Net:
    """All types of scalar, and of tensor parameter, on an op that does not exist."""
    scalars: list[tuple[str, NetScalar | NetTensor]] = [
        ("i8", NetScalar(abi.INT_8, -128)), ("i16", NetScalar(abi.INT_16, -(2**15))),
        ("i32", NetScalar(abi.INT_32, -(2**31))), ("i64", NetScalar(abi.INT_64, -(2**63))),
        ("u8", NetScalar(abi.UINT_8, 255)), ("u16", NetScalar(abi.UINT_16, 2**16 - 1)),
        ("u32", NetScalar(abi.UINT_32, 2**32 - 1)), ("u64", NetScalar(abi.UINT_64, 2**64 - 1)),
        ("f32", NetScalar(abi.FLOAT_32, 1.1754944e-38)), ("f64", NetScalar(abi.FLOAT_64, 1 / 3)),
        ("nan", NetScalar(abi.FLOAT_32, float("nan"))), ("yes", NetScalar(abi.BOOL_8, True)),
    ]  # fmt: skip
    kinds = (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "bool",
    )
    arrays: list[tuple[str, NetScalar | NetTensor]] = [
        (f"t_{kind}", static(f"t_{kind}", np.array([0, 1, 77], kind))) for kind in kinds
    ]
    x = NetTensor("x", TensorKind.APP_WRITE, abi.UFIXED_8, (3,), NetQuant((0.1,), (-3,), bitwidth=4))
    y = NetTensor("y", TensorKind.APP_READ, abi.FLOAT_32, (3,))
    only = NetNode("only", "my.package", "Everything", ("x", None, "x"), ("y",), (*arrays, *scalars))
    return build("every", [x, y], (only,))
