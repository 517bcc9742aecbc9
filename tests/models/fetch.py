"""The models that tests use, fetched by `openqnn.models`."""

from __future__ import annotations

from openqnn.errors import FetchError
from openqnn.models.fetch import Entry, cache_directory, entries, model_path, static_shapes

__all__ = ["Entry", "FetchError", "cache_directory", "entries", "model_ids", "model_path", "static_shapes"]


def model_ids(use: str = "convert") -> list[str]:
    """The models that must convert; those of another use: "refuse", "quantized"."""
    return [entry.id for entry in entries().values() if entry.use == use]
