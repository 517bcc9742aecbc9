"""Reads a .pt2 file, as torch.export.save writes it, without torch.

The graph is JSON, the weights are raw bytes that stay in the mapped file. The file's pickle, the sample
inputs, is not opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from openqnn.errors import ModelError
from openqnn.frontends.torch.archive import Archive
from openqnn.frontends.torch.program import (
    Argument,
    Program,
    ProgramInput,
    ProgramNode,
    ProgramOutput,
    Ref,
    TensorInfo,
)
from openqnn.frontends.torch.scalar_types import scalar_type
from openqnn.ir import Array, DType

Json = Any
_KEYWORD = 2
_STRIDED = 7
_SYMBOL = re.compile(r"Symbol\('([^']+)'[^)]*\)")
_DEEPEST = 64


def read_pt2(archive: Archive, model: str = "") -> Program:
    """The program of an archive; `model` chooses one where there are several."""
    names = sorted(
        n.removeprefix("models/").removesuffix(".json")
        for n in archive.entries
        if n.startswith("models/") and n.endswith(".json")
    )
    chosen = model or ("model" if "model" in names else names[0])
    if chosen not in names:
        raise ModelError(f"{archive.path}: no model '{chosen}'", hint=f"those that exist: {', '.join(names)}")
    if archive.entries.get("byteorder", b"little") != b"little":
        raise ModelError(f"{archive.path}: written on a big-endian machine")
    try:
        return _Reader(archive, chosen).program()
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as e:
        what = f"{type(e).__name__}: {e}"
        raise ModelError(
            f"{archive.path}: the graph of '{chosen}' is not as torch writes it: {what}",
            hint="export it again with torch 2.9 or newer",
        ) from e


class _Reader:
    def __init__(self, archive: Archive, model: str) -> None:
        self.archive = archive
        self.model = model
        self.arrays: dict[str, Array] = {}
        self.foreign: dict[str, str] = {}

    def program(self) -> Program:
        parsed = self._json(f"models/{self.model}.json")
        self._read_state("weights")
        self._read_state("constants")
        module = parsed["graph_module"]
        return self._graph(module["graph"], Path(self.archive.path).stem, module["signature"])

    def _json(self, name: str) -> Json:
        try:
            return json.loads(bytes(self.archive.entry(name)))
        except (ValueError, RecursionError) as e:
            raise ModelError(f"{self.archive.path}: '{name}' is no JSON: {e}") from e

    # -- state --------------------------------------------------

    def _read_state(self, kind: str) -> None:
        config = f"data/{kind}/{self.model}_{kind}_config.json"
        if config not in self.archive.entries:
            return
        for name, payload in self._json(config)["config"].items():
            if payload["use_pickle"] or payload.get("tensor_meta") is None:
                self.foreign[name] = "it is stored as a pickle, which is not opened"
            else:
                self._read_tensor(name, f"data/{kind}/{payload['path_name']}", payload["tensor_meta"])

    def _read_tensor(self, name: str, entry: str, meta: Json) -> None:
        dtype = scalar_type(meta["dtype"])
        if not isinstance(dtype, DType):
            self.foreign[name] = f"it has element type {dtype}"
            return
        if meta.get("layout", _STRIDED) != _STRIDED:
            self.foreign[name] = "it is no dense tensor"
            return
        raw = self.archive.entry(entry)
        sizes, strides = (tuple(int(d["as_int"]) for d in meta[k]) for k in ("sizes", "strides"))
        offset = int(meta["storage_offset"]["as_int"])
        self.arrays[name] = self._strided(name, raw, dtype, sizes, strides, offset)

    def _strided(
        self, name: str, raw: memoryview, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...],
        offset: int,
    ) -> Array:  # fmt: skip
        width = dtype.numpy.itemsize
        bad = len(sizes) != len(strides) or min((*sizes, *strides, offset, 0)) < 0
        if bad or not prod(sizes):
            if bad:
                raise ModelError(f"{self.archive.path}: weight '{name}' has sizes that cannot be")
            return np.zeros(sizes, dtype.numpy)
        last = offset + sum((d - 1) * s for d, s in zip(sizes, strides, strict=True))
        if (last + 1) * width > len(raw):
            raise ModelError(
                f"{self.archive.path}: weight '{name}' needs {(last + 1) * width} bytes, its entry has"
                f" {len(raw)}",
                hint="was it written to the end?",
            )
        flat = np.frombuffer(raw[: len(raw) // width * width], dtype.numpy)[offset:]
        found = np.lib.stride_tricks.as_strided(flat, sizes, tuple(s * width for s in strides))
        found.flags.writeable = False
        return found

    # -- graph --------------------------------------------------

    def _graph(self, graph: Json, name: str, signature: Json | None, depth: int = 0) -> Program:
        if depth > _DEEPEST:
            raise ModelError(f"{self.archive.path}: graphs within graphs, more than {_DEEPEST} deep")
        read = lambda arg: self._argument(arg, depth)
        inputs, outputs = _borders(graph, signature, read)
        symbols = {
            n: str(v["as_expr"]["expr_str"])
            for n, v in graph.get("sym_int_values", {}).items()
            if "as_expr" in v
        }
        return Program(
            name, inputs, outputs, tuple(self._node(n, depth) for n in graph["nodes"]),
            {n: tensor_info(m) for n, m in graph["tensor_values"].items()},
            self.arrays, symbols, self.foreign,
        )  # fmt: skip

    def _node(self, node: Json, depth: int) -> ProgramNode:
        arguments = tuple(
            Argument(str(a["name"]), self._argument(a["arg"], depth), a.get("kind") != _KEYWORD)
            for a in node["inputs"]
        )
        outputs: list[str] = []
        for output in node["outputs"]:
            found = self._argument(output, depth)
            flat = cast("list[Any]", found) if isinstance(found, list) else [found]
            outputs += [v.name if isinstance(v, Ref) else "" for v in flat]
        said = node.get("metadata") or {}
        return ProgramNode(
            str(node["target"]), arguments, tuple(outputs), str(said.get("stack_trace", "")),
            str(said.get("nn_module_stack", "")),
        )  # fmt: skip

    def _argument(self, arg: Json, depth: int) -> Any:
        kind, value = _member(arg)
        if kind == "as_graph":
            return self._graph(value["graph"], str(value["name"]), None, depth + 1)
        if kind not in _ARGUMENTS:
            raise ValueError(f"an argument of kind '{kind}'")
        return _ARGUMENTS[kind](value)


def _member(union: Json) -> tuple[str, Json]:
    """The one member of a union that is set."""
    ((kind, value),) = ((k, v) for k, v in union.items() if v is not None or len(union) == 1)
    return kind, value


def _ref(value: Json) -> Ref:
    return Ref(str(value["name"]))


def _number(value: Json) -> Any:
    kind, found = _member(value)
    return Ref(str(found)) if kind == "as_name" else found


def _optional(value: Json) -> Ref | None:
    kind, found = _member(value)
    return _ref(found) if kind == "as_tensor" else None


def _each(read: Callable[[Json], Any]) -> Callable[[Json], list[Any]]:
    return lambda values: [read(v) for v in values]


_same = lambda value: value
_nothing = lambda value: None
_ARGUMENTS: Final[Mapping[str, Callable[[Json], Any]]] = {
    "as_none": _nothing,
    "as_tensor": _ref,
    "as_tensors": _each(_ref),
    "as_int": int,
    "as_ints": _each(int),
    "as_float": lambda v: float(v),
    "as_floats": _each(float),
    "as_string": str,
    "as_strings": _each(str),
    "as_sym_int": _number,
    "as_sym_ints": _each(_number),
    "as_scalar_type": scalar_type,
    "as_memory_format": _nothing,
    "as_layout": _nothing,
    "as_device": _nothing,
    "as_bool": bool,
    "as_bools": _each(bool),
    "as_sym_bool": _number,
    "as_sym_bools": _each(_number),
    "as_optional_tensors": _each(_optional),
    "as_custom_obj": lambda v: f"object {v['class_fqn']}",
    "as_operator": str,
    "as_sym_float": _number,
    "as_sym_floats": _each(_number),
    "as_optional_tensor": _optional,
    "as_complex": lambda v: complex(v["real"], v["imag"]),
    "as_nested_tensors": _each(_each(_ref)),
    "as_int_lists": _each(_each(int)),
    "as_float_lists": _each(_each(float)),
    "as_string_to_argument": _nothing,
}


def tensor_info(meta: Json) -> TensorInfo:
    return TensorInfo(scalar_type(meta["dtype"]), tuple(_dimension(d) for d in meta["sizes"]))


def _dimension(size: Json) -> int | str:
    kind, value = _member(size)
    return int(value) if kind == "as_int" else _SYMBOL.sub(r"\1", str(value["expr_str"]))


def _borders(
    graph: Json, signature: Json | None, read: Callable[[Json], Any]
) -> tuple[tuple[ProgramInput, ...], tuple[ProgramOutput, ...]]:
    if signature is None:
        inputs = tuple(ProgramInput(read(a).name) for a in graph["inputs"])
        return inputs, tuple(ProgramOutput(read(a)) for a in graph["outputs"])
    outputs = tuple(_output(*_member(s), read) for s in signature["output_specs"])
    written = {o.state for o in outputs if o.state}
    return tuple(_input(*_member(s), read, written) for s in signature["input_specs"]), outputs


def _input(kind: str, spec: Json, read: Callable[[Json], Any], written: set[str]) -> ProgramInput:
    if kind == "user_input":
        found = read(spec["arg"])
        return (
            ProgramInput(found.name)
            if isinstance(found, Ref)
            else ProgramInput("", number=found, is_number=True)
        )
    if kind == "constant_input":
        return ProgramInput(str(spec["name"]), number=_member(spec["value"])[1], is_number=True)
    if kind == "token":
        return ProgramInput(str(spec["arg"]["name"]), is_number=True)
    state = str(spec[_STATE[kind]])
    return ProgramInput(str(spec["arg"]["name"]), state, mutable=state in written)


_STATE: Final = {
    "parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name",
    "custom_obj": "custom_obj_name",
}  # fmt: skip


def _output(kind: str, spec: Json, read: Callable[[Json], Any]) -> ProgramOutput:
    if kind == "user_output":
        return ProgramOutput(read(spec["arg"]))
    if kind == "buffer_mutation":
        return ProgramOutput(_ref(spec["arg"]), state=str(spec["buffer_name"]))
    if kind == "parameter_mutation":
        return ProgramOutput(_ref(spec["arg"]), state=str(spec["parameter_name"]))
    if kind == "user_input_mutation":
        return ProgramOutput(_ref(spec["arg"]), target=str(spec["user_input_name"]))
    if kind == "token":
        return ProgramOutput(None)
    raise ValueError(f"an output of kind '{kind}': a program of a training step")
