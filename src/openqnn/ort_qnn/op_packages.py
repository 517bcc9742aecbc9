"""Op packages as the QNN provider takes them: which operations of a model go to which library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import ModelError, UsageError
from openqnn.formats.op_package import PREFIX, SCALAR, OpDef, OperandDef
from openqnn.ir import Graph
from openqnn.ops.custom import CustomOp, custom_ops, declare
from openqnn.qnn.op_package_library import OpPackageLibrary, op_package_libraries

if TYPE_CHECKING:
    from onnx import NodeProto

_FORM = "OP_TYPE:PATH:INTERFACE[:TARGET], separated by commas"
_PROBING = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class PackagedOp:
    """An operation of the source model, by its type, and the library that has it."""

    kind: str
    library: OpPackageLibrary


def packaged_ops(text: str) -> tuple[PackagedOp, ...]:
    """The provider's op_packages; UsageError where an entry is not of its form."""
    found: list[PackagedOp] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        op, _, rest = entry.partition(":")
        if not op or rest.count(":") not in (1, 2):
            raise UsageError(f"op_packages has {entry!r}, which is not {_FORM}")
        found.append(PackagedOp(op, *op_package_libraries(rest)))
    if not found:
        raise UsageError(f"op_packages is {text!r}: expected {_FORM}")
    return tuple(found)


def libraries_of(ops: Sequence[PackagedOp]) -> tuple[OpPackageLibrary, ...]:
    """Each library once, however many of its operations are named."""
    return tuple(dict.fromkeys(each.library for each in ops))


def convert_packaged(ops: Sequence[PackagedOp], model: str) -> Graph:
    """The graph of a model, with the operations of the packages as nodes of theirs."""
    import onnx

    from openqnn.api.convert import convert

    if Path(model).suffix != ".onnx" or not Path(model).is_file():
        raise ModelError(f"{model}: op_packages are for operations of an ONNX model")
    loaded = onnx.load(model)
    _declare(ops, model, list(loaded.graph.node))
    # What a package computes has the shape that ONNX says of the operation, or the model itself.
    return convert(onnx.shape_inference.infer_shapes(loaded))


def _declare(ops: Sequence[PackagedOp], model: str, nodes: Sequence[NodeProto]) -> None:
    """Make the operations known by what the libraries and the nodes of the model say of them.

    Inputs and outputs stand in the model's order, and attributes are parameters of their own names.
    """
    names = {library: _package(library) for library in libraries_of(ops)}
    for each in ops:
        package, known = names[each.library]
        file = Path(each.library.path).name
        if each.kind not in known:
            raise UsageError(
                f"op_packages: {file} has no operation {each.kind!r}", hint=f"it has {', '.join(known)}"
            )
        mine = [node for node in nodes if node.op_type == each.kind]
        if not mine:
            raise UsageError(f"op_packages: {model} has no node of type {each.kind!r}")
        if not any(op.package == package and op.declared.name == each.kind for op in custom_ops()):
            made = _declaration(mine)
            declare(CustomOp(package, made, domain=mine[0].domain, origin=f"op_packages of {model}"))


def _package(library: OpPackageLibrary) -> tuple[str, tuple[str, ...]]:
    """The package's name and its operations, asked in a process that may die of it."""
    from openqnn.qnn.library import can_fork
    from openqnn.qnn.op_package_probe import probe_op_package
    from openqnn.worker.run_once import run_once

    label = Path(library.path).name
    found = run_once(
        probe_op_package, library.path, library.provider, name=label, fork=can_fork(), timeout=_PROBING
    )
    return found.name, found.ops


def _declaration(nodes: Sequence[NodeProto]) -> OpDef:
    """What all nodes of a type have in common: what only some have may be left out."""
    inputs = max(len(node.input) for node in nodes)
    least = min(len([name for name in node.input if name]) for node in nodes)
    outputs = max(len(node.output) for node in nodes)
    params: dict[str, OperandDef] = {}
    for node in nodes:
        params |= {attribute.name: _parameter(node, attribute) for attribute in node.attribute}
    return OpDef(
        nodes[0].op_type,
        tuple(OperandDef(f"in{i}", mandatory=i < least, datatypes=_TENSORS) for i in range(inputs)),
        tuple(OperandDef(f"out{i}", datatypes=_TENSORS) for i in range(outputs)),
        tuple(params.values()),
    )


_TENSORS = tuple(PREFIX + name for name in ("FLOAT_32", "INT_32", "UFIXED_POINT_8", "UFIXED_POINT_16"))
_ATTRIBUTES = {1: ("FLOAT_32", True), 2: ("INT_32", True), 6: ("FLOAT_32", False), 7: ("INT_32", False)}


def _parameter(node: NodeProto, attribute: Any) -> OperandDef:
    if attribute.type not in _ATTRIBUTES:
        raise UsageError(
            f"op_packages: attribute '{attribute.name}' of '{node.name}' is no number and no list of such"
        )
    kind, scalar = _ATTRIBUTES[attribute.type]
    rank = SCALAR if scalar else "1D"
    return OperandDef(attribute.name, mandatory=False, datatypes=(PREFIX + kind,), rank=rank)
