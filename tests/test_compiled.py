"""The Python API on compiled graphs: compile, save, and sessions on every kind of file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import ModelError, UsageError
from openqnn.qnn.net import qnn_name
from tests.cli.running import converted
from tests.models.samples import sample_inputs
from tests.qnn.nets import needs_cpu, needs_htp


@pytest.mark.parametrize(
    "backend", [pytest.param("libQnnCpu.so", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]
)
def test_graph_dlc_and_context_give_the_same_bits(backend: str, tmp_path: Path) -> None:
    graph = converted("mnist_conv")
    inputs = sample_inputs("mnist_conv")
    compiled = openqnn.compile(graph, backend)
    compiled.save(tmp_path / "m.bin")
    graph.save(tmp_path / "m.dlc")
    assert compiled.graphs == (qnn_name(graph.name),)
    found = []
    for source in (graph, tmp_path / "m.dlc", tmp_path / "m.bin"):
        with openqnn.Session(source, backend=backend) as session:
            arrays = dict(zip(session.input_names, inputs.values(), strict=True))
            found.append(next(iter(session.run(arrays).values())))
    for array in found[1:]:
        np.testing.assert_array_equal(array, found[0])


@needs_htp
def test_the_soc_is_chosen(tmp_path: Path) -> None:
    graph = converted("mnist_conv")
    assert openqnn.compile(graph, soc="SM8550").info.soc_model == 43
    assert openqnn.compile(graph).info.soc_model == 57
    openqnn.compile(graph).save(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size > 50_000


@needs_cpu
def test_what_cannot_be(tmp_path: Path) -> None:
    graph = converted("mnist_conv")
    openqnn.compile(graph, "libQnnCpu.so").save(tmp_path / "m.bin")
    with pytest.raises(UsageError, match="runs on the library that made it"):
        openqnn.Session(tmp_path / "m.bin")
    with pytest.raises(UsageError, match="only be chosen for HTP"):
        openqnn.compile(graph, "libQnnCpu.so", soc="SM8650")
    with pytest.raises(UsageError, match="only be chosen for HTP"):
        openqnn.Session(graph, soc="SM8650")
    (tmp_path / "bad.bin").write_bytes(b"\0" * 100)
    with pytest.raises(ModelError, match="context binary"):
        openqnn.Session(tmp_path / "bad.bin", backend="libQnnCpu.so")
