"""One worker process for all vendor library tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from openqnn.qnn.isolated import Worker


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    with Worker() as shared:
        yield shared
