"""Holds what commands print with --json against the schemas that docs/schemas publishes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from tests.docs.schema_pages import FOLDER


def valid_record(command: str, text: str) -> Any:
    """The record that a command printed; it is what its schema says, in JSON as the standard has it."""
    record = json.loads(text, parse_constant=lambda word: _refuse(f"{word} is no JSON"))
    schema = json.loads((FOLDER / f"{command}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(record)
    return record


def _refuse(message: str) -> None:
    raise AssertionError(message)
