"""A graph that runs again gives results of its own, whatever a library keeps of the first run."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn import Session
from openqnn.errors import UnsupportedError
from openqnn.ops import OPS
from tests.libraries import need
from tests.ops.database import Case
from tests.ops.harness import all_cases, build

LIBRARY = "libQnnCpu.so"
RUN = [case for case in all_cases() if (OPS[case.op].lower or OPS[case.op].compute) and not case.xfail]
CASES = [case for case in RUN if build(case)[1]]
REFUSED = {"Dequantize-bits16", "Dequantize-bits32"}  # see openqnn.targets.cpu


@pytest.fixture(autouse=True)
def _library() -> None:
    need(LIBRARY)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_other_data_in_between_changes_nothing(case: Case) -> None:
    graph, arrays = build(case)
    rng = np.random.default_rng(1)
    others = {name: rng.permutation(a.ravel()).reshape(a.shape) for name, a in arrays.items()}
    if case.id in REFUSED:
        with pytest.raises(UnsupportedError, match="in its first run only"):
            Session(graph, LIBRARY)
        return
    with Session(graph, LIBRARY, timeout=60) as session, Session(graph, LIBRARY, timeout=60) as fresh:
        session.run(others, native=True)
        again, first = session.run(arrays, native=True), fresh.run(arrays, native=True)
    for name, wanted in first.items():
        np.testing.assert_array_equal(again[name], wanted)
