"""Rewrites of the graph, in one order: `run_passes(graph, explain)`."""

from openqnn.passes.explain import Explain
from openqnn.passes.order import PASSES, run_passes

__all__ = ["PASSES", "Explain", "run_passes"]
