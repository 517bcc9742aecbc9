"""Files of every kind, made once for all tests of the viewer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.viewer.every_kind import every_kind


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return every_kind(tmp_path_factory.mktemp("kinds"))
