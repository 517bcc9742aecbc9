"""Opens ONNX models: opset 7 to the newest that the installed onnx package knows."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import onnx

from openqnn.errors import ModelError, OpenQnnWarning
from openqnn.frontends.custom_ops import custom_translator
from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.onnx import (
    activations,
    attention,
    control,
    conv,
    deform,
    einsum,
    elementwise,
    gather,
    matmul,
    norm,
    pad,
    pool,
    quant,
    reduce,
    refusals,
    resize,
    rnn,
    sample,
    shape,
    signal,
)
from openqnn.frontends.onnx.check import check_structure
from openqnn.frontends.onnx.dynamic_quant import say_large_sums
from openqnn.frontends.onnx.importer import Importer
from openqnn.frontends.onnx.packed_weights import unpacked_model
from openqnn.frontends.onnx.reader import OnnxModel, read_model
from openqnn.frontends.onnx.strip_qdq import take_encodings
from openqnn.frontends.onnx.truncate import cut_at

OLDEST_OPSET = 7
FAMILIES = (  # importing them fills the op table
    activations, attention, control, conv, deform, einsum, elementwise, gather, matmul, norm, pad, pool,
    quant, reduce, refusals, resize, rnn, sample, shape, signal,
)  # fmt: skip


def open_onnx(source: str | os.PathLike[str] | onnx.ModelProto) -> OnnxModel:
    """Reads a model, checks its opset and inlines its own functions."""
    model = read_model(source)
    try:
        _check_opset(model)
        if model.proto.functions:
            model.proto = _inlined(model.proto)
        check_structure(model.graph)
    except ModelError as e:
        raise ModelError(f"{model.path}: {e.message}" if model.path else e.message, hint=e.hint) from e
    return model


def _check_opset(model: OnnxModel) -> None:
    opset = next((o.version for o in model.proto.opset_import if o.domain in ("", "ai.onnx")), None)
    newest = onnx.defs.onnx_opset_version()
    if opset is not None and opset > newest:
        raise ModelError(
            f"the model uses opset {opset}; the installed onnx {onnx.__version__} knows up to {newest}",
            hint="pip install --upgrade onnx, or export with an older opset",
        )
    if opset is None and any(n.domain in ("", "ai.onnx") for n in model.graph.node):
        raise ModelError("the model names no opset", hint="the file may be truncated; export it again")
    if opset is not None and opset < 1:
        raise ModelError(f"the model uses opset {opset}, which does not exist")
    if opset is not None and opset < OLDEST_OPSET:
        message = f"opset {opset} is older than {OLDEST_OPSET}, the oldest that is tested"
        warnings.warn(message, OpenQnnWarning, stacklevel=2)


def _inlined(proto: onnx.ModelProto) -> onnx.ModelProto:
    from onnx import inliner

    _check_growth(proto)
    try:
        keys = [(f.domain, f.name) for f in proto.functions]
        declared = [(domain, name) for domain, name in keys if custom_translator(name, domain)]
        if declared:  # the user's word on an op counts more than its body
            return inliner.inline_selected_functions(proto, declared, exclude=True)
        return inliner.inline_local_functions(proto)
    except Exception as e:  # C++ exceptions of several kinds
        raise ModelError(f"the model's functions cannot be inlined: {e}") from e


def open_importer(
    source: str | os.PathLike[str] | onnx.ModelProto,
    dimensions: Dimensions | None = None,
    outputs: Sequence[str] = (),
    *,
    prune: bool = True,
    keep_quant_nodes: bool = True,
) -> Importer:
    """An importer for a model, not yet run. `outputs` ends the model at these tensors, see `cut_at`.

    Without its quantize nodes the graph is in floating point, and has their encodings as `given`.
    """
    model = open_onnx(source)
    if outputs:
        model = cut_at(model, outputs, prune=prune)
    name = model.path.stem if model.path else model.graph.name or "graph"
    if keep_quant_nodes:
        model = unpacked_model(model)
    else:
        model = take_encodings(model)
        say_large_sums(model)
    return Importer(model, dimensions or Dimensions(), Path(name).name)


def has_declared_ops(path: str | os.PathLike[str]) -> bool:
    """Whether a model has operations that the user declares, which ONNX Runtime then does not know."""
    try:
        nodes = onnx.load(path, load_external_data=False).graph.node
    except Exception:  # what is wrong with the file is told where it is opened
        return False
    return any(node.domain and custom_translator(node.op_type, node.domain) for node in nodes)


MOST_NODES = 1 << 20  # of a model whose functions are written out


def _check_growth(proto: onnx.ModelProto) -> None:
    """ModelError where functions make more nodes of each other than any model has, or call themselves."""
    bodies = {(f.domain, f.name): f.node for f in proto.functions}
    sizes: dict[tuple[str, str], int] = {}
    open_calls: set[tuple[str, str]] = set()

    def size_of(nodes: Sequence[onnx.NodeProto]) -> int:
        return sum(called(key) if (key := (n.domain, n.op_type)) in bodies else 1 for n in nodes)

    def called(key: tuple[str, str]) -> int:
        if key in open_calls:
            raise ModelError(f"the model's function '{key[1]}' calls itself")
        if key not in sizes:
            open_calls.add(key)
            sizes[key] = min(size_of(bodies[key]), MOST_NODES)
            open_calls.discard(key)
        return sizes[key]

    try:
        total = size_of(proto.graph.node)
    except RecursionError as e:
        raise ModelError("the model's functions call each other too deep") from e
    if total >= MOST_NODES:
        raise ModelError(f"the model's functions, written out, have more than {MOST_NODES:,} nodes")
