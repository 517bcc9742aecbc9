"""libQnnHtp compiles every graph that the quantizer makes of the real models."""

from __future__ import annotations

import pytest

from tests.htp.accepted import CHOICES, compile_model
from tests.models.fetch import model_ids
from tests.qnn.nets import needs_htp

QUICK = ("mnist_conv", "mtcnn_onet", "ppocr_cls", "silero_openvino")


@needs_htp
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(
    "model", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in model_ids()]
)
def test_it_compiles(model: str, choice: str) -> None:
    result = compile_model(model, choice)
    assert not result.failure, result.failure
    assert result.nodes and result.real - result.meant <= 1
