"""The table of Caffe's layers: which function translates which type.

A translator's inputs are the layer's bottoms; its keywords are the fields of the layer's parameters, with
Caffe's defaults, and `blobs`, the layer's weights. A field that is declared as a list may be repeated.
"""

from __future__ import annotations

from typing import Any

from openqnn.frontends.registry import Registry

TABLE = Registry()
translates, rows = TABLE.translates, TABLE.rows


def field(message: dict[str, list[Any]] | None, name: str, default: Any) -> Any:
    """A field of a nested message that is not repeated."""
    return ((message or {}).get(name) or [default])[-1]
