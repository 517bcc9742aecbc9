"""BackendSelector: which backend suits a model, by points for operations, sizes, power and speed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from openqnn.api.files import open_graph
from openqnn.errors import OpenQnnError, UsageError
from openqnn.ir import Graph
from openqnn.targets.registry import target_of_library

_MEGABYTE = 1 << 20
OPERATIONS, SIZE, POWER, PERFORMANCE = 30, 25, 25, 20
"""Points that a backend gets."""


class BackendSelector:
    """`backend_capabilities` may be changed. `describe` makes the facts about a real model.

    With these, Qualcomm's libraries have said which nodes they take, and their word counts instead of the
    table's. `openqnn partition` goes further: it places every node.
    """

    def __init__(self) -> None:
        self.backend_capabilities: dict[str, dict[str, Any]] = {
            "htp": {
                "supported_ops": ["Conv2d", "Dense", "BatchNorm", "ReLU"],
                "max_tensor_size": 8 * _MEGABYTE,
                "preferred_precision": "int8",
                "power_efficiency": 0.9,
            },
            "gpu": {
                "supported_ops": ["Conv2d", "Dense", "ReLU", "Softmax"],
                "max_tensor_size": 64 * _MEGABYTE,
                "preferred_precision": "fp16",
                "power_efficiency": 0.6,
            },
            "cpu": {
                "supported_ops": ["*"],
                "max_tensor_size": 512 * _MEGABYTE,
                "preferred_precision": "fp32",
                "power_efficiency": 0.4,
            },
        }

    def describe(self, model: Graph | str | os.PathLike[str], soc: str | int | None = None) -> dict[str, Any]:
        """Operations, size of the largest tensor, precision, and what each backend refuses."""
        graph = model if isinstance(model, Graph) else open_graph(model)
        values = [v for v in graph.values() if not v.is_constant]
        return {
            "operations": sorted({node.op for node in graph.nodes}),
            "max_tensor_size": max((v.nbytes for v in values), default=0),
            "precision": _precision(graph),
            "refused": {name: _refused(graph, name, soc) for name in self.backend_capabilities},
        }

    def scores(self, model_info: Mapping[str, Any], constraints: Mapping[str, Any]) -> dict[str, float]:
        """The points of each backend."""
        for key in ("operations", "max_tensor_size"):
            if key not in model_info:
                raise UsageError(f"model_info lacks {key!r}", hint="describe(model) gives all of it")
        return {name: self._score(name, model_info, constraints) for name in self.backend_capabilities}

    def select_optimal_backend(self, model_info: Mapping[str, Any], constraints: Mapping[str, Any]) -> str:
        """The backend with most points."""
        found = self.scores(model_info, constraints)
        return max(found, key=lambda name: found[name])

    def _score(self, name: str, info: Mapping[str, Any], constraints: Mapping[str, Any]) -> float:
        able = self.backend_capabilities[name]
        score = 0.0
        if self._takes(name, info):
            score += OPERATIONS
        if info["max_tensor_size"] <= able["max_tensor_size"]:
            score += SIZE
        if constraints.get("power_critical", False):
            score += able["power_efficiency"] * POWER
        if constraints.get("performance_critical", False) and target_of_library(name).compiles:
            score += PERFORMANCE
        return score

    def _takes(self, name: str, info: Mapping[str, Any]) -> bool:
        refused = info.get("refused", {}).get(name)
        if refused is not None:
            return not refused
        known = self.backend_capabilities[name]["supported_ops"]
        return "*" in known or all(op in known for op in info["operations"])


def _precision(graph: Graph) -> str:
    kinds = {v.dtype for node in graph.nodes for v in node.outputs}
    widths = [kind.bits for kind in kinds if kind.is_fixed]
    return f"int{min(widths)}" if widths else "fp16" if any(k.bits == 16 for k in kinds) else "fp32"


def _refused(graph: Graph, name: str, soc: str | int | None) -> list[str]:
    """Operations that the library refuses; all of them where it is missing or does not start."""
    from openqnn.analysis.validation import validate_graph

    try:
        found = validate_graph(graph, name, soc if target_of_library(name).compiles else None)
    except OpenQnnError:
        return sorted({node.op for node in graph.nodes})
    return sorted({problem.op for problem in found.refused})
