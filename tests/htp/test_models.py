"""The real models on libQnnHtp against the built-in backend: two small ones always, the rest if slow."""

from __future__ import annotations

import warnings

import pytest

from openqnn.errors import OpenQnnWarning
from tests.htp.models import run_model, threshold
from tests.models.fetch import model_ids

QUICK = ("mnist_conv", "silero_openvino")


def check(model: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)  # one of the models has infinite weights
        result = run_model(model)
    assert result.cosine >= threshold(model), result


@pytest.mark.parametrize("model", QUICK)
def test_small_model(model: str) -> None:
    check(model)


@pytest.mark.slow
@pytest.mark.parametrize("model", [m for m in model_ids() if m not in QUICK])
def test_model(model: str) -> None:
    check(model)
