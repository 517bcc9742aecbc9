"""Attention models that nothing was tuned on are accurate in 16/8, on libQnnHtp as in the simulation."""

from __future__ import annotations

import pytest

from tests.htp.attention_models import LEAST, MODELS, ODD, REASONS, WITHIN, folder, measure
from tests.qnn.nets import needs_htp

pytestmark = [pytest.mark.slow, needs_htp]


@pytest.mark.parametrize("name", MODELS)
def test_accuracy(name: str) -> None:
    path = folder() / f"{name}.onnx"
    if not path.exists():
        pytest.skip("make attention exports it")
    rows = {row.recipe: row for row in measure(path)}
    assert name in REASONS or rows["16/8"].all >= LEAST, rows
    assert rows["16/8"].all >= rows["8/8"].all - WITHIN, "more bits never lose"
    for row in (rows["16/8"], rows["8/8"]):
        assert name in ODD or abs(row.simulated - row.htp) <= WITHIN, row
