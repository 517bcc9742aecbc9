"""Damage to a model, decided by a seed alone: to its bytes, or to the fields of its protobuf message."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper, version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

from openqnn.frontends.onnx.protobuf import split_model
from tests.models.fetch import model_path, static_shapes

MODELS = {"mnist_conv": 6, "silero_seq": 2, "magika": 2, "ppocr_cls": 1, "mtcnn_onet": 2}  # id: how often
QUANTIZED = {"mnist_conv+QDQ": 2, "mnist_conv+QOperator": 1}  # a model as ONNX Runtime quantizes it
FIRST_QUANTIZED = 1_000_000  # seeds from here on damage these
INTEGERS = [
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    64,
    255,
    1000,
    1 << 31,
    -(1 << 31),
    (1 << 31) - 1,
    (1 << 63) - 1,
    -(1 << 63),
]
FLOATS = [0.0, -1.0, 0.5, 1e-30, 1e38, float("inf"), float("-inf"), float("nan")]
WORDS = ["", "constant", "SAME_UPPER", "bogus", "linear", "reflect", "a b/ü", "nearest", "NOTSET", "x" * 300]
TYPES = [0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 14, 16, 22, 99]


@cache
def source(model: str) -> bytes:
    return model_path(model).read_bytes()


@cache
def static(model: str) -> bytes:
    """The same with the input shapes written in, so that damage is not always met by 'dynamic dimensions'."""
    model, _, form = model.partition("+")
    proto = onnx.ModelProto.FromString(source(model))
    for info in proto.graph.input:
        for dim, size in zip(
            info.type.tensor_type.shape.dim, static_shapes(model).get(info.name, ()), strict=False
        ):
            dim.dim_value = size
    return _quantized(proto, form) if form else proto.SerializeToString()


class _Noise(CalibrationDataReader):
    """One sample for the quantizer: its ranges need not be good."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        weights = {t.name for t in proto.graph.initializer}
        shapes = {
            i.name: [d.dim_value for d in i.type.tensor_type.shape.dim]
            for i in proto.graph.input
            if i.name not in weights
        }
        rng = np.random.default_rng(0)
        self.samples = iter([{n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}])

    def get_next(self) -> Any:
        return next(self.samples, None)


def _quantized(proto: onnx.ModelProto, form: str) -> bytes:
    newer = version_converter.convert_version(proto, 13)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        quantize_static(newer, path, _Noise(newer), quant_format=QuantFormat[form])
        return path.read_bytes()


def mutated(seed: int) -> tuple[str, bytes]:
    """What was done, and the damaged file."""
    rng = random.Random(seed)
    models = MODELS if seed < FIRST_QUANTIZED else QUANTIZED
    model = rng.choices(list(models), list(models.values()))[0]
    content = static(model)
    if seed % 3 == 0:
        kind, damaged = _bytes(rng, model, content)
        return f"{model}: bytes: {kind}", damaged
    proto = onnx.ModelProto.FromString(content)
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        change = rng.choice(FIELDS)
        done.append(f"{change.__name__[1:]} {change(rng, proto)}")
    return f"{model}: {'; '.join(done)}", proto.SerializeToString()


# --- bytes


@cache
def _structure(model: str) -> list[tuple[int, int]]:
    """The ranges of the file that are not large weights: damage to weights alone teaches little."""
    content = static(model)
    spans = sorted((s.start, s.end) for s in split_model(memoryview(content))[1].values())
    edges = [0, *(e for span in spans for e in span), len(content)]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]


def _place(rng: random.Random, model: str, content: bytes) -> int:
    if rng.random() < 0.1:
        return rng.randrange(len(content))
    ranges = _structure(model)
    start, end = rng.choices(ranges, [b - a for a, b in ranges])[0]
    return rng.randrange(start, end)


def _bytes(rng: random.Random, model: str, content: bytes) -> tuple[str, bytes]:
    at = _place(rng, model, content)
    kind = rng.choice(["flip", "flip", "set", "cut", "insert", "delete", "splice", "many"])
    data = bytearray(content)
    if kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "set":
        data[at] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    elif kind == "cut":
        del data[at:]
    elif kind == "insert":
        data[at:at] = rng.randbytes(rng.choice([1, 2, 8, 100]))
    elif kind == "delete":
        del data[at : at + rng.choice([1, 2, 8, 100])]
    elif kind == "splice":
        other, length = _place(rng, model, content), rng.choice([4, 32, 500])
        data[at : at + length] = content[other : other + length]
    else:
        for _ in range(20):
            data[_place(rng, model, content)] = rng.randrange(256)
    return f"{kind} at {at}", bytes(data)


# --- fields


def _node(rng: random.Random, proto: onnx.ModelProto) -> onnx.NodeProto:
    return rng.choice(proto.graph.node) if proto.graph.node else proto.graph.node.add(op_type="Relu")


def _names(proto: onnx.ModelProto) -> list[str]:
    graph = proto.graph
    names = [n for node in graph.node for n in (*node.input, *node.output)]
    return [*names, *(i.name for i in graph.input), *(i.name for i in graph.initializer), "", "ghost"]


@cache
def _ops() -> list[str]:
    return sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""})


def _attribute(rng: random.Random, proto: onnx.ModelProto) -> str:
    """Another value for an attribute, of the same kind."""
    nodes = [n for n in proto.graph.node if n.attribute]
    if not nodes:
        return "none"
    node = rng.choice(nodes)
    a = rng.choice(node.attribute)
    if a.type == AttributeProto.INT:
        a.i = rng.choice(INTEGERS)
    elif a.type == AttributeProto.FLOAT:
        a.f = rng.choice(FLOATS)
    elif a.type == AttributeProto.STRING:
        a.s = rng.choice(WORDS).encode()
    elif a.type == AttributeProto.INTS:
        a.ints[:] = [
            rng.choice([*INTEGERS, *a.ints]) for _ in range(rng.choice([len(a.ints), len(a.ints), 0, 1, 5]))
        ]
    elif a.type == AttributeProto.TENSOR:
        _tensor(rng, a.t)
    return f"{node.op_type}.{a.name} of {node.name or node.output[:1]}"


def _attribute_kind(rng: random.Random, proto: onnx.ModelProto) -> str:
    """An attribute goes, comes, changes its name or becomes of another kind."""
    node = _node(rng, proto)
    choice = rng.randrange(4)
    if choice == 0 and node.attribute:
        del node.attribute[rng.randrange(len(node.attribute))]
    elif choice == 1 and node.attribute:
        rng.choice(node.attribute).type = rng.choice(list(AttributeProto.AttributeType.values()))  # pyright: ignore[reportAttributeAccessIssue]
    elif choice == 2 and node.attribute:
        rng.choice(node.attribute).name = rng.choice(["axis", "axes", "perm", "to", "mode", "bogus", ""])
    else:
        value = rng.choice([rng.choice(INTEGERS), rng.choice(FLOATS), rng.choice(WORDS), [1, 2], [0.5]])
        name = rng.choice(["axis", "axes", "perm", "to", "mode", "group", "keepdims", "value"])
        node.attribute.append(helper.make_attribute(name, value))
    return f"{node.op_type} {choice}"


def _inputs(rng: random.Random, proto: onnx.ModelProto) -> str:
    node = _node(rng, proto)
    names = list(node.input)
    choice = rng.randrange(5)
    if choice == 0:
        rng.shuffle(names)
    elif choice == 1 and names:
        names.pop(rng.randrange(len(names)))
    elif choice == 2 and names:
        names[rng.randrange(len(names))] = rng.choice(_names(proto))
    elif choice == 3:
        names.append(rng.choice(_names(proto)))
    elif names:
        names[rng.randrange(len(names))] = ""
    node.input[:] = names
    return f"{node.op_type} {choice} {names}"


def _outputs(rng: random.Random, proto: onnx.ModelProto) -> str:
    node = _node(rng, proto)
    names = list(node.output)
    choice = rng.randrange(4)
    if choice == 0 and names:
        names.pop()
    elif choice == 1 and names:
        names[rng.randrange(len(names))] = rng.choice(_names(proto))
    elif choice == 2:
        names.append("extra")
    elif names:
        names[0] = ""
    node.output[:] = names
    return f"{node.op_type} {choice} {names}"


def _tensor(rng: random.Random, tensor: TensorProto) -> str:
    choice = rng.randrange(6)
    if choice == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(INTEGERS)
    elif choice == 1:
        tensor.dims.append(rng.choice([0, 1, 2, -1]))
    elif choice == 2:
        tensor.data_type = rng.choice(TYPES)
    elif choice == 3:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    elif choice == 4:
        tensor.dims[:] = sorted(tensor.dims) if rng.random() < 0.5 else tensor.dims[1:]
    elif tensor.data_type == TensorProto.INT64:
        try:
            array = numpy_helper.to_array(tensor).copy()
        except ValueError:  # damaged by an earlier change already
            return "none"
        if array.size:
            array.flat[rng.randrange(array.size)] = rng.choice(INTEGERS)
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(array, name))
    return f"{tensor.name} {choice}"


def _initializer(rng: random.Random, proto: onnx.ModelProto) -> str:
    small = [t for t in proto.graph.initializer if t.data_type == TensorProto.INT64]
    pool = small if small and rng.random() < 0.5 else proto.graph.initializer
    return _tensor(rng, rng.choice(pool)) if pool else "none"


def _initializer_gone(rng: random.Random, proto: onnx.ModelProto) -> str:
    weights = proto.graph.initializer
    if not weights:
        return "none"
    index = rng.randrange(len(weights))
    name = weights[index].name
    if rng.random() < 0.3:
        weights.append(weights[index])
    else:
        del weights[index]
    return name


def _info(rng: random.Random, proto: onnx.ModelProto) -> str:
    """Shape or type of an input, an output or something between."""
    graph = proto.graph
    info = rng.choice([*graph.input, *graph.output, *graph.value_info] or [graph.input.add(name="x")])
    tensor = info.type.tensor_type
    choice = rng.randrange(5)
    if choice == 0 and tensor.shape.dim:
        rng.choice(tensor.shape.dim).dim_value = rng.choice([*INTEGERS, 1, 2, 4, 8, 16])
    elif choice == 1:
        tensor.elem_type = rng.choice(TYPES)
    elif choice == 2:
        tensor.shape.dim.add(dim_value=rng.choice([0, 1, 2]))
    elif choice == 3:
        tensor.ClearField("shape")
    else:
        info.name = rng.choice(_names(proto))
    return f"{info.name} {choice}"


def _op(rng: random.Random, proto: onnx.ModelProto) -> str:
    node = _node(rng, proto)
    old, node.op_type = node.op_type, rng.choice(_ops())
    if rng.random() < 0.5:
        del node.attribute[:]
    return f"{old} -> {node.op_type}"


def _domain(rng: random.Random, proto: onnx.ModelProto) -> str:
    node = _node(rng, proto)
    node.domain = rng.choice(["com.microsoft", "my.domain", "ai.onnx", "ai.onnx.ml"])
    return f"{node.op_type} {node.domain}"


def _order(rng: random.Random, proto: onnx.ModelProto) -> str:
    """A node goes, comes twice, or all change places."""
    nodes = list(proto.graph.node)
    choice = rng.randrange(3)
    if choice == 0 and nodes:
        nodes.pop(rng.randrange(len(nodes)))
    elif choice == 1 and nodes:
        nodes.insert(rng.randrange(len(nodes)), rng.choice(nodes))
    else:
        rng.shuffle(nodes)
    copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
    del proto.graph.node[:]
    proto.graph.node.extend(copies)
    return str(choice)


def _opset(rng: random.Random, proto: onnx.ModelProto) -> str:
    version = rng.choice([*range(1, 28), -1, 0, 1 << 40])
    for opset in proto.opset_import:
        opset.version = version
    return str(version)


def _borders(rng: random.Random, proto: onnx.ModelProto) -> str:
    """An input or an output goes or comes."""
    graph, choice = proto.graph, rng.randrange(4)
    name = rng.choice(_names(proto))
    if choice == 0 and graph.output:
        del graph.output[rng.randrange(len(graph.output))]
    elif choice == 1:
        graph.output.append(onnx.ValueInfoProto(name=name))
    elif choice == 2 and graph.input:
        del graph.input[rng.randrange(len(graph.input))]
    else:
        graph.input.append(helper.make_tensor_value_info(name, rng.choice(TYPES), [2, 3]))
    return f"{choice} {name}"


def _constant(rng: random.Random, proto: onnx.ModelProto) -> str:
    """A computed input becomes a small constant: shapes, axes and indices of all kinds."""
    node = _node(rng, proto)
    if not node.input:
        return "none"
    values = [rng.choice(INTEGERS[:10]) for _ in range(rng.randrange(5))]
    dtype = rng.choice([np.int64, np.float32, np.int32, np.bool_, np.float16, np.uint8, np.float64])
    array = np.asarray(values).astype(dtype) if rng.random() < 0.8 else np.asarray(1, dtype)
    proto.graph.initializer.append(numpy_helper.from_array(array, "fuzz.constant"))
    place = rng.randrange(len(node.input))
    node.input[place] = "fuzz.constant"
    return f"{node.op_type} input {place} = {array.dtype}{values}"


FIELDS: list[Callable[[random.Random, onnx.ModelProto], str]] = [
    _attribute, _attribute, _attribute_kind, _inputs, _outputs, _initializer, _initializer, _initializer_gone,
    _info, _op, _op, _op, _domain, _order, _opset, _borders, _constant, _constant,
]  # fmt: skip
