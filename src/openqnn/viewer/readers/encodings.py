"""Encodings files as views: every tensor that they speak of, coloured by its width and its step."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from openqnn.errors import OpenQnnWarning
from openqnn.formats.encodings import TensorEncoding, read_encodings
from openqnn.viewer.readers.tensor_words import scales_words
from openqnn.viewer.view import Overlay, View, ViewNode, ViewTensor

KIND = "encodings file"
SECTIONS = {"activation_encodings", "param_encodings", "encodings"}


def are_encodings(content: Any) -> bool:
    return isinstance(content, dict) and not SECTIONS.isdisjoint(content)


def encodings_view(path: Path) -> View:
    """A list without edges: the file says how tensors are stored, and not which node makes them."""
    with warnings.catch_warnings(action="ignore", category=OpenQnnWarning):
        file = read_encodings(path)
    tensors = list(file.tensors.values())
    kinds = {kind: sum(t.kind.name.lower() == kind for t in tensors) for kind in _kinds(tensors)}
    facts = {"version": file.version, "tensors": f"{len(tensors):,}"}
    facts |= {kind: f"{count:,}" for kind, count in kinds.items()}
    steps = {t.name: max(t.scales) for t in tensors if t.scales}
    widths = {t.name: float(t.bitwidth) for t in tensors}
    ranges = {t.name: _span(t) for t in tensors if t.limits()}
    overlays = (Overlay("bit width", widths), Overlay("step", steps), Overlay("range", ranges))
    return View(path.name, KIND, tuple(_node(t) for t in tensors), facts, overlays)


def _kinds(tensors: list[TensorEncoding]) -> list[str]:
    return list(dict.fromkeys(t.kind.name.lower() for t in tensors))


def _span(tensor: TensorEncoding) -> float:
    limits = tensor.limits()
    return max(high for _, high in limits) - min(low for low, _ in limits)


def _node(tensor: TensorEncoding) -> ViewNode:
    form = "float" if tensor.is_float else "int" if tensor.signed else "uint"
    dtype = f"{form}{tensor.bitwidth}"
    params = {"kind": tensor.kind.name.lower(), "symmetric": "yes" if tensor.symmetric else "no"}
    if tensor.limits():
        low, high = min(a for a, _ in tensor.limits()), max(b for _, b in tensor.limits())
        params["range"] = f"{low:.6g} to {high:.6g}"
    if tensor.blocks is not None:
        params["blocks"] = str(tensor.blocks)
    shown = ViewTensor(tensor.name, dtype, None, _words(tensor), "the encodings file")
    return ViewNode(tensor.name, dtype, "", params, outputs=(shown,), keys=(tensor.name,))


def _words(tensor: TensorEncoding) -> str:
    bits = f"{tensor.bitwidth} bits"
    if not tensor.scales:
        return f"{bits}, without a scale"
    if tensor.channels == 1:
        return f"{bits}, scale {tensor.scales[0]:.6g}, offset {tensor.offsets[0]:g}"
    return f"{bits}, {scales_words(tensor.scales, f'axis {tensor.axis}')}"
