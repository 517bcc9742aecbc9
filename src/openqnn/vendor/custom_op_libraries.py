"""Libraries that stand in for Python functions of custom ops: shapes by a converter op package, numbers by an
op package on libQnnCpu. Both are called in child processes only."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.emit import lower
from openqnn.errors import LibraryError, ShapeError
from openqnn.ir import Array, DType, Graph, Node, Shape, Value, dtype_of
from openqnn.ops.custom import custom_ops, declare, provide_compute
from openqnn.qnn.library import can_fork
from openqnn.qnn.load_errors import explain_load
from openqnn.qnn.op_package_library import OpPackageLibrary
from openqnn.qnn.op_package_probe import probe_op_package
from openqnn.vendor.remote import CompiledNet
from openqnn.vendor.target_setup import Target, resolved
from openqnn.worker.run_once import run_once
from openqnn.worker.serve import Reporter

ENTRY = "OpenQnn_inferOutputs"
MOST_AXES = 8
TIMEOUT = 60.0  # seconds


class _Tensor(c.Structure):
    _fields_ = [("dtype", c.c_uint32), ("rank", c.c_uint32), ("dims", c.c_uint32 * MOST_AXES)]


def use_converter_libraries(paths: Sequence[str]) -> None:
    """Lets libraries say what shapes and types the results of declared custom ops have."""
    for path in paths:
        if not Path(path).is_file():
            raise LibraryError(f"converter op package {path}: no such file")
    for op in custom_ops():
        if not op.seen:
            declare(replace(op, inferred=partial(_inferred, tuple(paths), op.declared.name)))


def _inferred(paths: Sequence[str], op: str, node: Node) -> list[tuple[Shape, DType]]:
    """By the first library that knows the op."""
    given = [(int(v.dtype), v.shape) for v in node.inputs if v is not None]
    for path in paths:
        found = run_once(
            _ask, str(Path(path).absolute()), op, given, max(1, len(node.outputs)),
            name=Path(path).name, fork=can_fork(), timeout=TIMEOUT,
        )  # fmt: skip
        if found is not None:
            return [(tuple(shape), DType(dtype)) for dtype, shape in found]
    names = ", ".join(Path(p).name for p in paths)
    raise ShapeError(f"{node.where}: {names} does not say what shape its result has")


def _ask(
    path: str, op: str, given: Sequence[tuple[int, Shape]], count: int, reporter: Reporter
) -> list[tuple[int, list[int]]] | None:
    reporter.step(f"{Path(path).name}: shapes of {op}")
    try:
        library = c.CDLL(path)
        function = getattr(library, ENTRY)
    except OSError as e:
        reason, hint = explain_load(path, str(e))
        raise LibraryError(f"{path} cannot be loaded: {reason}", hint=hint) from e
    except AttributeError as e:
        hint = "qnn-op-package-generator -cop writes one"
        raise LibraryError(f"{path}: it has no {ENTRY}, so it is no converter op package", hint=hint) from e
    inputs = (_Tensor * len(given))()
    for tensor, (dtype, shape) in zip(inputs, given, strict=True):
        tensor.dtype, tensor.rank = dtype, len(shape)
        tensor.dims[: len(shape)] = list(shape)
    outputs = (_Tensor * count)()
    if function(op.encode(), inputs, c.c_uint32(len(given)), outputs, c.c_uint32(count)):
        return None
    return [(int(t.dtype), list(t.dims[: min(t.rank, MOST_AXES)])) for t in outputs]


def use_op_package_libraries(packages: Sequence[OpPackageLibrary]) -> None:
    """Lets libQnnCpu compute custom ops that have no Python function, with packages that it registers."""
    library = resolved("cpu")
    for package in packages:
        if not package.is_for(library):
            continue
        path = package.path
        probed = run_once(
            probe_op_package, path, package.provider, name=Path(path).name, fork=can_fork(), timeout=TIMEOUT
        )
        target = Target(library, packages=(package,))
        for name in probed.ops:
            provide_compute(probed.name, name, partial(_computed, target))


def _computed(target: Target, node: Node, arrays: Sequence[Array | None]) -> list[Array]:
    """A node alone on the library, on real numbers: what is in fixed point is rounded around it."""
    graph, feeds, inputs = Graph("alone"), dict[str, Any](), list[Value | None]()
    for i, (v, a) in enumerate(zip(node.inputs, arrays, strict=True)):
        if v is None or a is None:
            inputs.append(None)
        elif v.is_constant:
            inputs.append(Value(f"in{i}", dtype_of(a.dtype), v.shape, data=np.asarray(a)))
        else:
            inputs.append(graph.add_input(f"in{i}", dtype_of(a.dtype), v.shape))
            feeds[f"in{i}"] = np.ascontiguousarray(a)
    types = [DType.FLOAT_32 if v.dtype.is_fixed else v.dtype for v in node.outputs]
    outputs = [Value(f"out{i}", types[i], v.shape) for i, v in enumerate(node.outputs)]
    graph.add(Node(node.op, "alone", inputs, outputs, dict(node.params), node.source, node.package))
    for value in outputs:
        graph.add_output(value)
    compiled = CompiledNet(lower(graph), target, timeout=TIMEOUT)
    try:
        found = compiled.run(feeds)
    finally:
        compiled.close()
    return [found[v.name].reshape(v.shape) for v in outputs]
