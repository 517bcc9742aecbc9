"""What a translator of ATen sees: the Translation of all frontends, and what is known of torch's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from openqnn.errors import OpenQnnError
from openqnn.frontends.translation import Translation, narrow_type
from openqnn.ir import Array, DType, Graph, Node, Value

Term: TypeAlias = "Value | float"
_MOST_NODES = 4096  # a constant that takes more than that is none that a shape depends on


class TorchTranslation(Translation):
    """Builds QNN nodes for a node of the program.

    `static` also knows what is computed from constants alone: it is computed when a translator asks.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._computed: dict[Value, Array] = {}
        self.keep_nodes = False  # whether quantize nodes stay
        self.notes: list[tuple[str, str]] = []  # what of the program's quantization was left out

    def static(self, value: Value | None, what: str) -> Array:
        if value is not None and value.data is None and value.size:
            found = self._evaluated(value)
            if found is not None:
                return found
        return super().static(value, what)

    def is_static(self, value: Value) -> bool:
        return value.data is not None or self._evaluated(value) is not None

    def settled(self, value: Value) -> Value:
        """The value as a constant where it is computed from constants alone, else itself."""
        if value.data is not None:
            return value
        found = self._evaluated(value)
        return value if found is None else self.constant(found, value.name)

    def _evaluated(self, value: Value) -> Array | None:
        if value in self._computed:
            return self._computed[value]
        nodes = _constant_nodes(value)
        if nodes is None:
            return None
        from openqnn.passes.fold_constants import constants_graph
        from openqnn.runtime.cpu.executable import run_graph  # heavy, and few models need it here

        try:
            found = run_graph(constants_graph(nodes, [value]), {})
        except OpenQnnError:
            return None
        self._computed[value] = np.asarray(found[value.name]).reshape(value.shape)
        return self._computed[value]

    def type_of(self, dtype: DType | str) -> DType:
        """A type that QNN computes with: bfloat16 becomes float32, which has all of its numbers."""
        if not isinstance(dtype, DType):
            self.refuse(f"element type {dtype} has no QNN equivalent")
        return DType.FLOAT_32 if dtype is DType.BFLOAT_16 else narrow_type(dtype)

    def number(self, term: Any, what: str) -> float:
        """A number that must be known, also where it is given as a tensor of one element."""
        if isinstance(term, Value):
            data = self.static(term, what)
            if data.size != 1:
                self.refuse(f"{what} should be one number, not {list(data.shape)}")
            return data.reshape(()).item()
        if not isinstance(term, int | float):
            self.refuse(f"{what} should be a number, not {type(term).__name__}")
        return term

    def axes(self, dim: int | Sequence[int] | None, rank: int) -> list[int]:
        """Axes from 0 up; all of them where none is named."""
        if dim is None or (not isinstance(dim, int) and not len(dim)):
            return list(range(rank))
        listed = [dim] if isinstance(dim, int) else list(dim)
        found = [self.axis(d, rank) for d in listed] if rank else []
        if len(set(found)) != len(found):
            self.refuse(f"dim={listed} names an axis twice")
        return sorted(found)


def _constant_nodes(value: Value) -> list[Node] | None:
    """The nodes that a value is computed by, producers first, where all of them start from constants."""
    order: list[Node] = []
    done: set[int] = set()
    stack: list[tuple[Node | None, bool]] = [(value.producer, False)]
    while stack:
        node, expanded = stack.pop()
        if node is None or len(done) > _MOST_NODES:
            return None
        if expanded:
            order.append(node)
            continue
        if id(node) in done:
            continue
        done.add(id(node))
        stack.append((node, True))
        stack += [(v.producer, False) for v in node.inputs if v is not None and v.data is None]
    return order
