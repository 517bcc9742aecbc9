"""What the built-in backend asks of the target that it simulates: how that computes in fixed point.

The rules are the target's. They are found by name, since `targets` stands above this layer and needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TypeAlias

from openqnn.ir import Encoding, Node, Value
from openqnn.ops.onnx_writer import Body

SIMULATED = "openqnn.targets.htp.arithmetic"  # a module whose ARITHMETIC is an Arithmetic

Compute: TypeAlias = Callable[[Sequence[str]], str]
"""The op itself, on the names of its operands; real numbers unless it works on stored integers."""
Kernel: TypeAlias = Callable[[Node, Body, Sequence[str], Compute], "str | None"]
"""Writes a node's stored result from its stored operands; None where rounding the real result is right."""


class Arithmetic:
    """A target that computes in real numbers and rounds every result once; others say where they differ."""

    def kernel(self, node: Node) -> Kernel | None:
        """How the target computes a node in fixed point, where that is more than rounding."""
        return None

    def by_place(self, node: Node) -> bool:
        """Whether the kernel must see the data in the axis order of the declaration."""
        return False

    def joins_layer(self, node: Node) -> bool:
        """Whether the target fuses an activation into the layer before it, by way of a Reshape, too."""
        return False

    def copies(self, node: Node) -> bool:
        """Whether stored integers are copied, whatever the encoding of the copy is."""
        return False

    def concatenates(self, node: Node) -> bool:
        """Whether the inputs are requantized to the encoding of the output that they become parts of."""
        return False

    def sources(self, node: Node) -> Sequence[Value]:
        """Inputs that may be computed in the encoding of the output in the first place."""
        return ()

    def is_direct(self, value: Value, wanted: Encoding) -> bool:
        """Whether a tensor is computed in an encoding that its readers want, and not in its own before."""
        return False


@cache
def simulated_arithmetic() -> Arithmetic:
    """The arithmetic that the built-in backend follows; imported when the first graph runs."""
    return import_module(SIMULATED).ARITHMETIC
