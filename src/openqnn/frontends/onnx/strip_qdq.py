"""Encodings that a model holds as nodes: taken out, so that a model in floating point and a table remain.

A tensor that goes through QuantizeLinear and DequantizeLinear has that pair's encoding; the nodes go. Weights
stored as integers become real numbers, from which the same integers come again. Between the two nodes
may stand ops that only move values about: these do the same to real numbers.

Activations are given in unsigned storage whatever the model has, with the same real numbers: signed ones
are taken only where all operands are signed. Weights stay as they are.

A quantizer that finds zero at the lower end of a range leaves out the Relu before: the integers cannot be
negative. In floating point it is needed, and comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper

from openqnn.frontends.onnx.dynamic_quant import (
    DYNAMIC_OPS,
    float_products,
)
from openqnn.frontends.onnx.importer import ordered
from openqnn.frontends.onnx.packed_weights import PACKED, unpacked_weights
from openqnn.frontends.onnx.qdq_nodes import (
    attribute,
    integer_type,
    real_numbers,
    said_by,
    stored_integers,
)
from openqnn.frontends.onnx.qoperator import (
    DEQUANTIZE,
    QUANTIZE,
    QUANTIZED_OPS,
    constants_of,
    is_quantized_model,
    plain_nodes,
)
from openqnn.frontends.onnx.reader import OnnxModel, Taken
from openqnn.frontends.onnx.truncate import read_by
from openqnn.ir import Array, Given

# They hand on what they get, so integers and the real numbers that these stand for fare alike.
MOVES_ALL = {"Concat"}
MOVES_FIRST = {
    "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool",
    "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
}  # fmt: skip
POSITIVE = {"Abs", "Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus", "Sqrt"}
KEEP_SIGN = MOVES_ALL | MOVES_FIRST | {"Add", "AveragePool", "GlobalAveragePool", "Mul", "ReduceMean", "Sum"}
WITHIN_ONE = {"Erf", "Sin", "Cos", "Tanh"}  # with 1 added to them, as gelu has it, they are not negative
SIX = 6.0  # the upper end of Relu6
ROUNDED = 0.01  # a one that is stored in 8 bits may be less by so much
CLIP = "Clip"  # of integers: a quantizer that uses less than all bits has it between the two nodes
CAST = "Cast"  # of integers to the type that they have: torch's exporter writes it between the two
_READ = QUANTIZED_OPS | MOVES_ALL | MOVES_FIRST | {CLIP, CAST}  # an input at least
_CODES = {
    (True, 8): onnx.TensorProto.INT8, (False, 8): onnx.TensorProto.UINT8,
    (True, 16): onnx.TensorProto.INT16, (False, 16): onnx.TensorProto.UINT16,
}  # fmt: skip


def take_encodings(model: OnnxModel) -> OnnxModel:
    """The model in floating point with the encodings that it held; the same model when it held none."""
    nodes = model.graph.node
    dynamic = any(node.op_type in (*DYNAMIC_OPS, PACKED) for node in nodes)
    if not (dynamic or is_quantized_model(nodes)) or not all(map(_is_whole, nodes)):
        return model
    arrays, source = dict(model.arrays), ordered(model.graph)
    plain = _products(model, source, arrays) if dynamic else source
    work = _Taking(model, plain_nodes(plain, arrays), arrays)
    work.taken.nodes.update(_ops(source) - _ops(plain))
    work.run()
    return model.with_nodes(work.nodes, work.arrays, work.gone, work.taken)


def _products(
    model: OnnxModel, nodes: Sequence[onnx.NodeProto], arrays: dict[str, Array]
) -> list[onnx.NodeProto]:
    nodes = unpacked_weights(nodes, arrays, stored=True)
    constants = constants_of(nodes, arrays, model.tensor)
    inner = [name for n in nodes for name in read_by(n)[len([i for i in n.input if i]) :]]
    return float_products(nodes, arrays, constants, [*(o.name for o in model.graph.output), *inner])


def _ops(nodes: Iterable[onnx.NodeProto]) -> Counter[str]:
    return Counter(node.op_type for node in nodes)


def _is_whole(node: onnx.NodeProto) -> bool:
    """Whether it has what this module reads of a node; the translator names one that has not."""
    needed = 2 if node.op_type in (QUANTIZE, DEQUANTIZE) else int(node.op_type in _READ)
    return len(node.input) >= needed and len(node.output) > 0 and bool(node.output[0] or not needed)


# -- the model -----------------------------------------------------------------------------------------------


class _Taking:
    """Learns which tensors are stored integers, decides what can go, and writes the nodes anew."""

    def __init__(self, model: OnnxModel, nodes: list[onnx.NodeProto], arrays: dict[str, Array]) -> None:
        self.source, self.arrays = nodes, arrays
        self.constants = constants_of(nodes, arrays, model.tensor)
        self.inputs = {i.name for i in model.graph.input}
        self.outputs = [o.name for o in model.graph.output]
        self.inner = {name for n in nodes for name in read_by(n)[len([i for i in n.input if i]) :]}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in nodes:
            for name in dict.fromkeys(node.input):
                self.readers.setdefault(name, []).append(node)
        self.stored: dict[str, Given] = {}  # integer tensors, and what they stand for
        self.real: dict[str, str] = {}  # integer tensors, and the real ones with the same numbers
        self.alias: dict[str, str] = {}  # results of nodes that go, and what takes their place
        self.origin: dict[str, str] = {}  # integers made of real constants, and these
        self.movable: set[int] = set()
        self.made: dict[str, onnx.NodeProto] = {}
        self.chosen: dict[str, Given | None] = {}  # weights that became real
        self.nodes: list[onnx.NodeProto] = []
        self.taken = Taken()
        self.gone: set[str] = set()

    def run(self) -> None:
        for node in self.source:
            with suppress(ValueError):  # scales or limits that do not fit the data: the translator says so
                self._learn_constant(node)
        for node in self.source:
            self._learn(node)
        for node in reversed(self.source):
            if self._moved(node) and all(self._only_taken(o) for o in node.output if o):
                self.movable.add(id(node))
        for node in self.source:
            self._take(node)
        self._name_outputs()

    # -- learning --------------------------------------------------------------------------------------------

    def _said(self, node: onnx.NodeProto) -> Given | None:
        """The encoding of a node that quantizes or dequantizes; None where it is not known."""
        scale = self.constants.get(node.input[1])
        if scale is None or attribute(node, "block_size", 0):
            return None
        zero = self.constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        if len(node.input) > 2 and node.input[2] and zero is None:
            return None
        data = self.constants.get(node.input[0])
        dtype = self._type(node, zero, data)
        return (
            None if dtype is None else said_by(node, scale, zero, dtype, None if data is None else data.ndim)
        )

    def _type(
        self, node: onnx.NodeProto, zero: Array | None, data: Array | None
    ) -> np.dtype[np.generic] | None:
        if zero is not None:
            return zero.dtype
        if node.op_type == QUANTIZE:
            code = attribute(node, "output_dtype", 0)
            return helper.tensor_dtype_to_np_dtype(code) if code else np.dtype(np.uint8)
        if data is not None:
            return data.dtype
        known = self.stored.get(node.input[0])
        return None if known is None else np.dtype(f"{'' if known.signed else 'u'}int{known.bitwidth}")

    def _learn_constant(self, node: onnx.NodeProto) -> None:
        """Weights that are quantized here, and integers that are moved before they become real."""
        data = self.constants.get(node.input[0]) if node.input else None
        if data is None:
            return
        if node.op_type == QUANTIZE:
            self._learn_quantized(node, data)
        elif integer_type(data.dtype) is None:
            return
        elif node.op_type == CLIP:
            low, high, *_ = [self.constants.get(name) for name in (*node.input[1:], "", "")]
            self.constants[node.output[0]] = np.clip(data, low, high).astype(data.dtype)
            self.origin[node.output[0]] = self.origin.get(node.input[0], node.input[0])
        elif node.op_type in MOVES_FIRST:
            self._learn_moved(node)

    def _learn_quantized(self, node: onnx.NodeProto, data: Array) -> None:
        if node.input[1] not in self.constants:
            return
        zero = self.constants.get(node.input[2]) if len(node.input) > 2 else None
        scale = np.asarray(self.constants[node.input[1]])
        zero = np.zeros(scale.shape, np.uint8) if zero is None else zero
        if integer_type(zero.dtype) is not None:
            self.constants[node.output[0]] = stored_integers(node, data, scale, zero)
            self.origin[node.output[0]] = node.input[0]

    def _learn_moved(self, node: onnx.NodeProto) -> None:
        """The encoding that integers get behind a move is theirs before it, where it is one for all."""
        readers = [r for r in self.readers.get(node.output[0], ()) if r.op_type == DEQUANTIZE]
        first = self._said(readers[0]) if readers else None
        if first is not None and first.encoding is not None and first.encoding.axis is None:
            self.stored.setdefault(node.input[0], first)

    def _learn(self, node: onnx.NodeProto) -> None:
        if node.op_type == QUANTIZE and node.input[0] not in self.constants:
            said = self._said(node)
            if said is not None and said.bitwidth in (8, 16):
                self.stored[node.output[0]] = said
        data = [self.stored.get(name) for name in self._data(node)]
        if data and data[0] is not None and all(d == data[0] for d in data):
            self.stored.update({o: data[0] for o in node.output[: self._results(node)] if o})

    def _data(self, node: onnx.NodeProto) -> list[str]:
        """The inputs whose values a node hands on."""
        if node.op_type in MOVES_ALL:
            return list(node.input)
        return [node.input[0]] if self._is_mover(node) else []

    def _is_mover(self, node: onnx.NodeProto) -> bool:
        moves = node.op_type in (*MOVES_FIRST, CLIP) or self._casts_to_the_same(node)
        return moves and node.domain in ("", "ai.onnx")

    def _casts_to_the_same(self, node: onnx.NodeProto) -> bool:
        known = self.stored.get(node.input[0]) if node.op_type == CAST and node.input else None
        code = _CODES.get((known.signed, known.bitwidth), 0) if known is not None else 0
        return code != 0 and attribute(node, "to", 0) == code

    def _results(self, node: onnx.NodeProto) -> int:
        return 1 if node.op_type == "MaxPool" else len(node.output)  # the other one is places

    def _moved(self, node: onnx.NodeProto) -> bool:
        data = self._data(node)
        return bool(data) and all(name in self.stored for name in (*data, node.output[0]))

    def _goes(self, node: onnx.NodeProto, name: str) -> bool:
        """Whether a reader of integers will read real numbers, or go."""
        if id(node) in self.movable:
            return True
        if node.op_type == CLIP and node.output[0] in self.origin:
            return self._only_taken(node.output[0])
        return node.op_type == DEQUANTIZE and node.input[0] == name and self._matches(node, name)

    def _matches(self, node: onnx.NodeProto, name: str) -> bool:
        said = self._said(node)
        return said is not None and (name in self.constants or said == self.stored.get(name))

    def _only_taken(self, name: str) -> bool:
        held = name in self.outputs or name in self.inner
        return not held and all(self._goes(r, name) for r in self.readers.get(name, ()))

    # -- taking ----------------------------------------------------------------------------------------------

    def _take(self, node: onnx.NodeProto) -> None:
        out = node.output[0] if node.output else ""
        if node.op_type in (QUANTIZE, CLIP) and out in self.origin and self._only_taken(out):
            self._drop(node)
        elif node.op_type == QUANTIZE and out in self.stored:
            self._quantize(node, self.stored[out])
        elif node.op_type == DEQUANTIZE and self._dequantize(node):
            self._drop(node)
        elif id(node) in self.movable and node.op_type in (CLIP, CAST):
            self._pass_on(node)
        elif id(node) in self.movable:
            self._move(node)
        else:
            self._add(node)

    def _pass_on(self, node: onnx.NodeProto) -> None:
        """What limits or casts integers goes: real numbers need neither."""
        real = self.real[node.output[0]] = self.real[node.input[0]]
        if node.op_type == CLIP:
            self.taken.notes.append((real, "it uses less than all steps: the rest is used now"))
        self._drop(node)

    def _drop(self, node: onnx.NodeProto) -> None:
        self.taken.nodes[node.op_type] += 1
        self.gone.add(node.output[0])

    def _add(self, node: onnx.NodeProto, real: bool = False) -> None:
        """The node, reading what took the place of its inputs."""
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.op_type in (QUANTIZE, DEQUANTIZE):
            copy.domain = ""  # Microsoft's have the same meaning
        for i, name in enumerate(node.input):
            moved = self.real.get(name) if real else None
            copy.input[i] = moved or self.alias.get(name, name)
        self.nodes.append(copy)
        self.made.update(dict.fromkeys(copy.output, copy))

    def _give(self, name: str, said: Given) -> None:
        said, have = said.unsigned(), self.taken.given.get(name)
        if have is None:
            self.taken.given[name] = said
        elif said.encoding is None or said.encoding in (have.encoding, *have.also):
            return
        elif said.bitwidth in (have.bitwidth, *(e.bitwidth for e in have.also)):
            reason = f"a second encoding of {said.bitwidth} bits is left out: a tensor has one of each width"
            self.taken.notes.append((name, reason))
        else:
            self.taken.given[name] = replace(have, also=(*have.also, said.encoding))

    def _quantize(self, node: onnx.NodeProto, said: Given) -> None:
        name = self._positive(self.alias.get(node.input[0], node.input[0]), said)
        self._give(name, said)
        self.real[node.output[0]] = name
        if self._only_taken(node.output[0]):
            self._drop(node)
        else:
            self._add(node)

    def _dequantize(self, node: onnx.NodeProto) -> bool:
        """Whether the node went: its result is a weight, or the tensor before its Quantize."""
        name, out = node.input[0], node.output[0]
        if name in self.constants:
            target = self._weight(node)
        else:
            target = self.real.get(name) if self._matches(node, name) else None
        if target is None:
            said = self._said(node)
            if said is not None and said.encoding is not None and said.encoding.axis is None:
                self._give(out, said)
            return False
        if out in self.inner:
            self._add(helper.make_node("Identity", [target], [out]))
        else:
            self.alias[out] = target
        return True

    def _move(self, node: onnx.NodeProto) -> None:
        for name in self._data(node):
            if name in self.constants and name not in self.real:
                said = self.stored[name]
                assert said.encoding is not None
                real = said.encoding.dequantize(self.constants[name])
                self.real[name] = self._constant(name, real, said)
        self._add(node, real=True)
        for out in node.output[: self._results(node)]:
            self.real[out] = out
            self._give(out, self.stored[out])

    # -- weights ---------------------------------------------------------------------------------------------

    def _weight(self, node: onnx.NodeProto) -> str | None:
        scale = self.constants.get(node.input[1])
        zero_name = node.input[2] if len(node.input) > 2 else ""
        zero, stored = self.constants.get(zero_name), self.constants[node.input[0]]
        if scale is None or (zero_name and zero is None) or integer_type(stored.dtype) is None:
            return None
        try:
            real = real_numbers(node, stored, scale, zero)
        except ValueError:  # scales that do not fit the data: the translator says so
            return None
        if real.shape != stored.shape:
            return None
        said = self._said(node)
        name = self.origin.get(node.input[0], node.input[0])
        if said is None:
            name = node.output[0]
            self.taken.notes.append(
                (name, "its scales are per block: the numbers stay, the encoding does not")
            )
        return self._constant(name, real, said)

    def _constant(self, name: str, real: Array, said: Given | None) -> str:
        """The name of the real constant: that of the weight in the model, unless something else needs it."""
        free = self._is_free(name)
        while not free or self.chosen.get(name, said) != said:
            name, free = f"{name}_real", True
        if name not in self.chosen:
            self.chosen[name] = said
            self.arrays[name] = real
            if said is not None:
                self.taken.given[name] = said
        return name

    def _is_free(self, name: str) -> bool:
        if name not in self.arrays:
            return False  # the result of a Constant node
        if name in self.origin.values():
            return all(r.output[0] in self.origin for r in self.readers[name])
        return self._only_taken(name)

    # -- the sign --------------------------------------------------------------------------------------------

    def _positive(self, name: str, said: Given) -> str:
        """The tensor, behind a Relu where the integers cannot be negative and the real numbers can."""
        moved = said.unsigned().encoding
        if moved is None or moved.offset != (0,) or name not in self.made or self._never_negative(name):
            return name
        only = len(self.readers.get(name, ())) == 1 and name not in self.outputs and name not in self.inner
        before, after = (f"{name}_linear", name) if only else (name, f"{name}_positive")
        if only:
            producer = self.made.pop(name)
            producer.output[list(producer.output).index(name)] = before
            self.made[before] = producer
        top = moved.scale[0] * ((1 << moved.bitwidth) - 1)
        if abs(top - SIX) < SIX * 1e-5:
            limits = [f"{after}_min", f"{after}_max"]
            self.arrays.update(zip(limits, np.asarray([0, SIX], np.float32), strict=True))
            node = helper.make_node("Clip", [before, *limits], [after], after)
        else:
            node = helper.make_node("Relu", [before], [after], after)
        self._add(node)
        return after

    def _never_negative(self, name: str, depth: int = 8) -> bool:
        given, node = self.taken.given.get(name), self.made.get(name)
        if given is not None and given.encoding is not None and given.encoding.offset == (0,):
            return True
        if node is None or depth == 0:
            return _is_from_zero(self.arrays.get(name))
        if node.op_type == "Clip" and len(node.input) > 1:
            return _is_from_zero(self.constants.get(node.input[1], self.arrays.get(node.input[1])))
        data = node.input if node.op_type not in MOVES_FIRST else node.input[:1]
        if node.op_type == "Add" and self._is_one_more(data):
            return True
        return node.op_type in POSITIVE or (
            node.op_type in KEEP_SIGN and all(self._never_negative(i, depth - 1) for i in data)
        )

    def _is_one_more(self, data: Sequence[str]) -> bool:
        kinds = [self.made[name].op_type if name in self.made else "" for name in data]
        known = [self.arrays.get(name, self.constants.get(name)) for name in data]
        more = any(c is not None and np.all(c >= 1 - ROUNDED) for c in known)
        return more and any(kind in WITHIN_ONE for kind in kinds)

    # -- outputs ---------------------------------------------------------------------------------------------

    def _name_outputs(self) -> None:
        """A graph output whose last node went: what took its place gets the name, or a node of its own."""
        names: dict[str, str] = {}
        for out in self.outputs:
            target = self.alias.get(out)
            if target is None:
                continue
            free = target in self.made and target not in self.outputs and target not in self.inner
            if free and target not in names:
                names[target] = out
            else:
                self._add(helper.make_node("Identity", [names.get(target, target)], [out]))
        for node in self.nodes:
            for names_of in (node.input, node.output):
                for i, name in enumerate(names_of):
                    names_of[i] = names.get(name, name)
        self.taken.given = {names.get(n, n): said for n, said in self.taken.given.items()}


def _is_from_zero(array: Array | None) -> bool:
    """Whether an array is known and has no negative numbers."""
    return array is not None and bool(np.all(array >= 0))
