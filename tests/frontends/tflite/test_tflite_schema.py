"""The schema that the reader goes by is the one that LiteRT publishes."""

from __future__ import annotations

import pytest

from openqnn.frontends.tflite.flatbuffer import SCHEMA_FILE
from tests.frontends.tflite import published_schema


def test_the_schema_is_the_published_one() -> None:
    pytest.importorskip("ai_edge_litert")
    newer = "run python -m tests.frontends.tflite.published_schema"
    assert SCHEMA_FILE.read_text(encoding="utf-8") == published_schema.page(), newer
