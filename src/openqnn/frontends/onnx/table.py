"""The op table of the ONNX frontend; the families fill it."""

from __future__ import annotations

from typing import Final

from openqnn.frontends.registry import Registry

TABLE: Final = Registry()
MICROSOFT: Final = "com.microsoft"

translates = TABLE.translates
rows = TABLE.rows
