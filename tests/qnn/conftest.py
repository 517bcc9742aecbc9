"""One worker process for all vendor library tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from openqnn.vendor.library_worker import LibraryWorker


@pytest.fixture(scope="session")
def worker() -> Iterator[LibraryWorker]:
    with LibraryWorker() as shared:
        yield shared
