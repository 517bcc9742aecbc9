"""Graphs in fixed point on libQnnCpu, which needs biases and takes one scale for a matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import OpenQnnWarning
from tests.cli.test_published_scripts import network
from tests.qnn.nets import needs_cpu


@needs_cpu
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("per_channel", [True, False])
def test_layers_without_a_bias_and_matrices_with_scales_by_row(
    bias: bool, per_channel: bool, tmp_path: Path
) -> None:
    x = {"input": np.random.default_rng(1).random((1, 3, 32, 32)).astype(np.float32)}
    graph = openqnn.convert(network(tmp_path / "m.onnx", bias=bias), batch=1)
    fixed = openqnn.quantize(graph, [x], act_bw=8, algorithms=(), per_channel=per_channel)
    wanted = openqnn.Session(graph).run(x)["output"]
    with pytest.warns(OpenQnnWarning, match="one scale for all rows"):
        session = openqnn.Session(fixed, "libQnnCpu.so")
    with session:
        np.testing.assert_allclose(session.run(x)["output"], wanted, atol=0.1)
