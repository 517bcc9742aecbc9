"""QNNDebugger: how long each layer of a model takes, which are the slowest, and what would help."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from openqnn.api.files import open_graph
from openqnn.emit import lower
from openqnn.errors import InputError, UsageError
from openqnn.qnn.profile import node_costs
from openqnn.runtime.boundary import accepted
from openqnn.vendor.execute_events import execute_events
from openqnn.vendor.trust import trusting

SLOW = 10.0  # milliseconds
_CONVOLUTIONS = ("conv2d", "conv3d", "transposeconv2d")
_DENSE = ("fullyconnected", "matmul", "dense")


class QNNDebugger:
    """Milliseconds of each layer: measured by libQnnCpu on this machine, or with `backend="htp"` estimated
    for SM8650 by libQnnHtp's cost model, which wants a model in fixed point. A model library is code, and
    naming it here runs it; `trust=False` refuses files that are code."""

    def __init__(
        self, model_path: str | os.PathLike[str], backend: str = "cpu", *, trust: bool = True
    ) -> None:
        if backend not in CLOCKS:
            raise UsageError(f"layers are timed on {' or '.join(map(repr, CLOCKS))}, not on {backend!r}")
        self.model_path = os.fspath(model_path)
        self.backend = backend
        self.layer_timings: dict[str, float] = {}
        with trusting(trust):
            self._graph = open_graph(model_path)
        self._net = lower(self._graph)
        self._kinds = {node.name: node.op.lower() for node in self._net.nodes}

    def get_layer_names(self) -> list[str]:
        return list(self._kinds)

    def profile_layers(self, input_data: Any = None) -> dict[str, float]:
        """Milliseconds by layer; a layer that the library joined with another is not among them.

        The estimate for HTP needs no data.
        """
        self.layer_timings = CLOCKS[self.backend](self, input_data)
        return self.layer_timings

    def analyze_bottlenecks(self, most: int = 5) -> list[tuple[str, float]]:
        """Print the slowest layers."""
        slowest = sorted(self._timings().items(), key=lambda item: -item[1])[:most]
        print(f"Top {most} slowest layers:")
        for layer, milliseconds in slowest:
            print(f"  {layer}: {milliseconds:.2f} ms")
        return slowest

    def suggest_optimizations(self, slow: float = SLOW) -> list[str]:
        """A line for each layer that takes longer than `slow` milliseconds and has a known remedy."""
        found: list[str] = []
        for layer, milliseconds in self._timings().items():
            words = (layer.lower(), self._kinds.get(layer, ""))
            if milliseconds <= slow:
                continue
            if words[1] in _CONVOLUTIONS or "conv" in words[0]:
                found.append(f"Consider depthwise separable conv for {layer}")
            elif words[1] in _DENSE or "dense" in words[0]:
                found.append(f"Consider quantization for {layer}")
        return found

    def _timings(self) -> dict[str, float]:
        if not self.layer_timings:
            raise UsageError("no layer has been timed", hint="call profile_layers(input_data) first")
        return self.layer_timings

    def estimated(self, _: Any = None) -> dict[str, float]:
        """Milliseconds by layer for SM8650, by libQnnHtp's cost model."""
        from openqnn.analysis.chip_fits import CHIPS
        from openqnn.analysis.estimate import node_costs as estimated

        fit = next(chip for chip in CHIPS if chip.chip == "SM8650")
        return {cost.name: fit.slope * cost.cycles / 1e6 for cost in estimated(self._graph)}

    def measured(self, input_data: Any) -> dict[str, float]:
        """Milliseconds by layer on libQnnCpu."""
        names = [value.name for value in self._graph.inputs]
        if not isinstance(input_data, Mapping) and len(names) != 1:
            raise InputError(f"the model has {len(names)} inputs", hint="give arrays by name")
        given = input_data if isinstance(input_data, Mapping) else {names[0]: input_data}
        events = execute_events(self._graph, accepted(self._graph, given), "libQnnCpu.so", runs=3)
        return {name: cost / 1000 for name, cost in node_costs(events).items()}


CLOCKS: Mapping[str, Callable[[QNNDebugger, Any], dict[str, float]]] = {
    "cpu": QNNDebugger.measured,
    "htp": QNNDebugger.estimated,
}
