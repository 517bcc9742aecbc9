"""What readers of JSON configurations share: the file, keys that there are not, messages with the place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from openqnn.errors import InputError
from openqnn.formats.json_text import parse_json


class ConfigReader:
    """Reads one file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def _load(self) -> dict[str, Any]:
        """The object that the file is."""
        try:
            content = parse_json(self._file.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{self._file}: {error.strerror or error}") from error
        except ValueError as error:
            raise InputError(f"{self._file} is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise self._error("the whole", "must be an object")
        return cast("dict[str, Any]", content)

    def _known(self, entry: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
        for key in entry:
            if key not in keys:
                raise self._error(f"{where}{key}", "there is no such key", f"known: {', '.join(keys)}")

    def _error(self, key: str, reason: str, hint: str = "") -> InputError:
        return InputError(f"{self._file}: {key}: {reason}", hint=hint)
