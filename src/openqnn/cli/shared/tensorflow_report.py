"""What converters tell about TensorFlow models: nodes that nothing consumes, and how far numbers differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from openqnn.frontends.tensorflow.run_tensorflow import TensorflowAnswer
    from openqnn.ir import Graph

PERCENTILE = 90
LEAST = 1e-6  # numbers below this count as this, so that an error can be said in percent of them


@dataclass
class TensorflowReport:
    """Told while a model is read and once it is converted."""

    unconsumed: bool = False
    validate: bool = False
    answers: list[TensorflowAnswer] = field(default_factory=list)

    def source_options(self, tag: str, signature: str) -> dict[str, Any]:
        return {
            "tag": tag, "signature": signature, "validate": self.validate, "on_answer": self.answers.append,
        }  # fmt: skip

    def tell(self, graph: Graph) -> None:
        """Prints what was asked for about a model that became this graph."""
        if not self.answers:
            return
        answer = self.answers[-1]
        if self.unconsumed:
            print(f"{len(answer.unconsumed)} unconsumed nodes{':' if answer.unconsumed else ''}")
            for node in answer.unconsumed:
                print(f"  {node}")
        if self.validate:
            self._validate(graph, answer)

    def _validate(self, graph: Graph, answer: TensorflowAnswer) -> None:
        from openqnn.api.session import Session

        ones = {
            v.name: np.ones(graph.ports[v.name].shape, graph.ports[v.name].dtype.numpy) for v in graph.inputs
        }
        with Session(graph) as session:
            found = session.run(ones)
        for name, wanted in answer.reference.items():
            if name in found:
                average, most = percent_apart(found[name], wanted)
                print(f"{name}: average error {average:.4g} %, {PERCENTILE}th percentile {most:.4g} %")


def percent_apart(found: Any, wanted: Any) -> tuple[float, float]:
    """The average error in percent of the wanted numbers, and the 90th percentile of the errors."""
    real = np.asarray(wanted, np.float64).ravel()
    errors = 100 * np.abs(np.asarray(found, np.float64).ravel() - real) / np.maximum(np.abs(real), LEAST)
    return float(errors.mean()), float(np.percentile(errors, PERCENTILE))
