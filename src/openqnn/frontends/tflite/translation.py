"""What a translator of a TFLite operator sees beyond the graph: the tensors' records, variables, bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from openqnn.frontends.tflite.model import Operator, Tensor
from openqnn.frontends.translation import Translation
from openqnn.ir import Graph, Value


@dataclass(frozen=True, slots=True)
class Variable:
    """A handle of a resource variable."""

    name: str


class TfliteTranslation(Translation):
    """Builds QNN nodes for the operator at hand."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.operator: Operator
        self.sources: Sequence[Tensor | None] = ()  # records of the operator's inputs
        self.results: Sequence[Tensor | None] = ()
        self.read_state: Callable[[str, Tensor], Value]
        self.write_state: Callable[[str, Value, Tensor | None], None]
        self.run_body: Callable[[int, Sequence[Any]], list[Any]]
        self.run_once: Callable[[int], None]
        self.sole_operator: Callable[[int], Operator | None]
        self.replaces: Callable[[int], bool]

    def result(self, index: int = 0) -> Tensor:
        found = self.results[index] if index < len(self.results) else None
        if found is None:
            self.refuse(f"its result {index} is missing")
        return found

    def source(self, index: int) -> Tensor:
        found = self.sources[index] if index < len(self.sources) else None
        if found is None:
            self.refuse(f"its input {index} is missing")
        return found
