"""The modules whose translators fill the table: a family of ATen ops each."""

from __future__ import annotations

from importlib import import_module
from typing import Final

FAMILIES: Final = (
    "activations", "attention", "conv", "creation", "elementwise", "index", "logic",
    "matmul", "norm", "pad_shuffle", "pool",
    "quant", "reduce", "refusals", "resize", "rnn", "shape", "special", "windows", "prims",
)  # fmt: skip


def load() -> None:
    for name in FAMILIES:
        import_module(f"openqnn.frontends.torch.{name}")
