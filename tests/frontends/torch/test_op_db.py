"""torch's samples of its own ops: as many right as ever, none wrong."""

from __future__ import annotations

import json
from collections import Counter

import pytest

pytest.importorskip("torch", reason="the samples are torch's")
pytest.importorskip("expecttest", reason="torch's samples need expecttest")

from tests.frontends.torch import op_db

FEW = ["add", "nn.functional.conv2d", "index_put", "var", "cummax", "nn.functional.max_pool2d"]


def test_a_few_ops_on_a_few_samples() -> None:
    found = op_db.sweep(FEW, 2)
    assert len(found) == len(FEW)
    assert not [n for n, o in found.items() if o.wrong]


@pytest.mark.slow
def test_all_ops() -> None:
    known = json.loads(op_db.COUNTS.read_text())
    found = op_db.sweep([], op_db.MOST_SAMPLES)
    counts = Counter(o.verdict for o in found.values())
    assert not [n for n, o in found.items() if o.wrong]
    assert counts["right"] >= known["right"]
