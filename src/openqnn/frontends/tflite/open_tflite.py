"""Opens TFLite models: the subgraph of the signature that is named, and what of it is wanted."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from openqnn.errors import ModelError, UsageError
from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.tflite import (
    activations,
    cells,
    control,
    conv,
    detection,
    elementwise,
    gather,
    quant,
    reduce,
    refusals,
    resize,
    shape,
    stablehlo,
    stablehlo_places,
    stablehlo_windows,
)
from openqnn.frontends.tflite.importer import Importer
from openqnn.frontends.tflite.model import Operator, Subgraph, TfliteModel, read_tflite

FAMILIES = (  # importing them fills the op table
    activations, cells, control, conv, detection, elementwise, gather, quant, reduce, refusals,
    resize, shape, stablehlo, stablehlo_places, stablehlo_windows,
)  # fmt: skip


def open_importer(
    source: str | os.PathLike[str] | bytes,
    dimensions: Dimensions,
    outputs: Sequence[str],
    *,
    prune: bool,
    keep_quant_nodes: bool,
    signature: str = "",
    signature_names: bool = False,
    names: Mapping[str, str] | None = None,
) -> Importer:
    """An importer for a model, not yet run. With `signature_names` its inputs and outputs have the
    signature's names instead of those of the tensors; `names` gives some tensors others."""
    model = read_tflite(source)
    subgraph = choose(model, signature)
    for tensor in subgraph.tensors:
        tensor.name = (names or {}).get(tensor.name, tensor.name)
    if signature_names:
        _rename(model, subgraph, signature)
    wanted = _wanted(subgraph, outputs) if outputs else list(subgraph.outputs)
    if not wanted:
        raise ModelError("the model has no outputs", hint="the file may be damaged; export it again")
    operators = _needed(subgraph, wanted) if outputs and prune else subgraph.operators
    name = model.path.stem if model.path else "graph"
    return Importer(
        model, subgraph, operators, wanted, dimensions, Path(name).name, keep_quant_nodes=keep_quant_nodes
    )


def choose(model: TfliteModel, signature: str) -> Subgraph:
    """The subgraph of a signature; without one the first."""
    if not signature:
        return model.subgraphs[0]
    for found in model.signatures:
        if found.key == signature:
            return model.subgraphs[found.subgraph]
    known = ", ".join(repr(s.key) for s in model.signatures)
    raise UsageError(
        f"the model has no signature '{signature}'",
        hint=f"its signatures: {known}" if known else "it has none",
    )


def _rename(model: TfliteModel, subgraph: Subgraph, signature: str) -> None:
    """Tensors by the names that a signature has for them; another tensor of that name makes way."""
    found = next(
        (s for s in model.signatures if s.subgraph == subgraph.index and signature in ("", s.key)), None
    )
    if found is None:
        return
    by_name = {t.name: t for t in subgraph.tensors}
    for name, index in (*found.inputs.items(), *found.outputs.items()):
        tensor, other = subgraph.tensors[index], by_name.get(name)
        if not name or tensor is other:
            continue
        if other is not None:
            other.name = f"{name}_{other.index}"
            by_name[other.name] = other
        by_name.pop(tensor.name, None)
        tensor.name = name
        by_name[name] = tensor


def _wanted(subgraph: Subgraph, names: Sequence[str]) -> list[int]:
    by_name = {t.name: t.index for t in subgraph.tensors}
    for name in names:
        if name not in by_name:
            near = difflib.get_close_matches(name, list(by_name), 3)
            outputs = ", ".join(repr(subgraph.tensors[i].name) for i in subgraph.outputs[:8])
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"its outputs: {outputs}"
            raise UsageError(f"the model has no tensor '{name}'", hint=hint)
    return [by_name[name] for name in dict.fromkeys(names)]


def unconsumed_operators(
    source: str | os.PathLike[str], signature: str = "", outputs: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Operators that no output depends on, with the first of their results."""
    subgraph = choose(read_tflite(source), signature)
    wanted = _wanted(subgraph, outputs) if outputs else list(subgraph.outputs)
    needed = {o.index for o in _needed(subgraph, wanted)}
    lost = [o for o in subgraph.operators if o.index not in needed]
    return [(o.title, subgraph.tensors[o.outputs[0]].name if o.outputs else "") for o in lost]


def _needed(subgraph: Subgraph, wanted: Sequence[int]) -> list[Operator]:
    """The operators that some tensors depend on; what fills variables stays."""
    read, kept = set(wanted), list[Operator]()
    for operator in reversed(subgraph.operators):
        if not operator.outputs or read.intersection(operator.outputs):
            kept.append(operator)
            read.update(operator.inputs)
    return kept[::-1]
