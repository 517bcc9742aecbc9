"""Context binaries across the versions of Qualcomm's libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import BackendError
from tests.htp.models import converted, inputs_of
from tests.providers import OURS

OLD, NEW = OURS
pytestmark = [*OLD.marks, *NEW.marks]


@pytest.fixture
def binaries(tmp_path: Path) -> dict[str, Path]:
    for provider in OURS:
        openqnn.compile(converted("mnist_conv"), provider.htp).save(tmp_path / f"{provider.id}.bin")
    return {provider.id: tmp_path / f"{provider.id}.bin" for provider in OURS}


def test_a_newer_library_runs_the_binary_of_an_older_one(binaries: dict[str, Path]) -> None:
    found = []
    for provider in OURS:
        with openqnn.Session(binaries[OLD.id], backend=provider.htp) as session:
            found.append(session.run(inputs_of("mnist_conv"))["Plus214_Output_0"])
    np.testing.assert_array_equal(found[0], found[1])


def test_an_older_library_says_that_a_binary_is_too_new(binaries: dict[str, Path]) -> None:
    with (
        openqnn.Session(binaries[NEW.id], backend=OLD.htp) as session,
        pytest.raises(BackendError, match="newer context binary on old SDK"),
    ):
        session.run(inputs_of("mnist_conv"))
