"""The models that tests use, fetched by `openqnn.models`."""

from __future__ import annotations

from openqnn.errors import FetchError
from openqnn.models.fetch import Entry, cache_directory, entries, model_ids, model_path, static_shapes

__all__ = ["Entry", "FetchError", "cache_directory", "entries", "model_ids", "model_path", "static_shapes"]
