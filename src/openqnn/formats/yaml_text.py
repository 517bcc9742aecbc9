"""YAML from files that people write: whatever keeps it from being read is a YAMLError."""

from __future__ import annotations

from typing import Any

import yaml

_ODD = (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError)


def parse_yaml(text: str, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """What the text says; YAMLError where it is no YAML, or nested beyond all measure."""
    try:
        return yaml.load(text, loader)
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deep") from error
    except _ODD as error:  # of the parser's own constructors: a number of 5,000 digits, !!bool of a word
        raise yaml.YAMLError(f"a value that cannot be read: {error}") from error
