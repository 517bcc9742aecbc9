from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from openqnn.frontends.custom_ops import forget_composites
from openqnn.ops.custom import forget_custom_ops
from tests.op_packages.sample import LIBRARY, built, generated


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where my_ops.py, MyPackage and its library are."""
    place = tmp_path_factory.mktemp("package")
    built(generated(place), CXXFLAGS="-O1 -Wall -Wextra")
    assert (place / LIBRARY).is_file()
    return place


@pytest.fixture(autouse=True)
def _nothing_declared() -> Generator[None]:
    forget_custom_ops()
    forget_composites()
    yield
    forget_custom_ops()
    forget_composites()
