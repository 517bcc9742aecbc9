"""The op table of the TFLite frontend; the families fill it."""

from __future__ import annotations

from typing import Final

from openqnn.frontends.registry import Registry

TABLE: Final = Registry()
CUSTOM_DOMAIN: Final = "custom"  # of operators that are not TFLite's own

translates = TABLE.translates
rows = TABLE.rows
