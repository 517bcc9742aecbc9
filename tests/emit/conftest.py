"""What the emitter tests share: one worker process for direct runs, and one host program for libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openqnn.vendor.library_worker import LibraryWorker
from tests.emit.library import compile_host


@pytest.fixture(scope="session")
def worker() -> Iterator[LibraryWorker]:
    with LibraryWorker() as shared:
        yield shared


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_host(tmp_path_factory.mktemp("host"))
