"""From a graph to QNN artifacts: one lowering, many printers."""

from openqnn.emit.net import lower

__all__ = ["lower"]
