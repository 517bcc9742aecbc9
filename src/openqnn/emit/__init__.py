"""From a graph to QNN artifacts: one lowering, many printers."""

from openqnn.emit.lower import lower

__all__ = ["lower"]
