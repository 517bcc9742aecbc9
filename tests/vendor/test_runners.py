"""Intermediate tensors of a real model: on Qualcomm's libraries, the built-in backend and ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import BackendError, InputError, ModelError, UsageError
from openqnn.ir import Array
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.onnx_runner import OnnxRuntimeRunner
from openqnn.runtime.runner import ALL, Runner
from openqnn.vendor.executables import ContextExecutable, GraphExecutable
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs
from tests.qnn.nets import needs_cpu, needs_htp

LIBRARIES = [pytest.param("cpu", 1e-4, marks=needs_cpu), pytest.param("htp", 2e-2, marks=needs_htp)]
MODEL = "mnist_conv"


def converted() -> tuple[openqnn.Graph, dict[str, Array]]:
    graph = openqnn.convert(model_path(MODEL), input_shapes=static_shapes(MODEL))
    return graph, accepted(graph, sample_inputs(MODEL))


def distance(found: Array, wanted: Array) -> float:
    """Largest difference by the largest number."""
    apart = np.abs(found.astype(np.float64) - wanted)
    return float(apart.max() / max(np.abs(wanted).max(), 1e-6))


@pytest.mark.parametrize(("library", "tolerance"), LIBRARIES)
def test_every_tensor_is_that_of_the_built_in_backend(library: str, tolerance: float) -> None:
    graph, feed = converted()
    theirs, ours = GraphExecutable(graph, library, None, 120.0), CpuExecutable(graph)
    try:
        assert set(theirs.tensor_names) >= {v.name for v in graph.outputs}
        assert len(theirs.tensor_names) > len(graph.nodes) / 2
        found, wanted = theirs.run(feed, ALL), ours.run(feed, ALL)
        assert list(found) == theirs.tensor_names
        for name, array in found.items():
            assert (array.shape, array.dtype) == (wanted[name].shape, wanted[name].dtype), name
            assert distance(array, wanted[name]) < tolerance, name
    finally:
        theirs.close()
        ours.close()


@needs_htp
def test_fixed_point_tensors_come_as_real_numbers() -> None:
    sample = sample_inputs(MODEL)
    graph = openqnn.quantize(model_path(MODEL), [sample])
    inner = [v.name for node in graph.nodes for v in node.outputs if v.dtype.is_fixed][1]
    with openqnn.Session(graph) as ours, openqnn.Session(graph, "htp", timeout=120) as theirs:
        wanted = ours.run(sample, [inner])[inner]
        found = theirs.run(sample, [inner])[inner]
        stored = theirs.run(accepted(graph, sample), [inner], native=True)[inner]
    assert found.dtype == np.float32
    assert stored.dtype.kind in "iu"
    assert distance(found, wanted) < 2e-2


@pytest.mark.parametrize(("library", "tolerance"), LIBRARIES)
def test_others_can_be_asked_for_and_the_outputs_again(library: str, tolerance: float) -> None:
    graph, feed = converted()
    runner = GraphExecutable(graph, library, None, 120.0)
    try:
        (output,) = [v.name for v in graph.outputs]
        first, second = [name for name in runner.tensor_names if name != output][:2]
        plain = runner.run(feed)
        assert list(plain) == [output]
        assert list(runner.run(feed, [second, first])) == [second, first]
        assert [list(found) for found in runner.run_many([feed, feed], [first])] == [[first], [first]]
        assert distance(runner.run(feed)[output], plain[output]) < tolerance
        with pytest.raises(InputError, match="'nothing' cannot be shown here"):
            runner.run(feed, ["nothing"])
        with pytest.raises(UsageError, match="a list of names"):
            runner.run(feed, first)
    finally:
        runner.close()


@needs_cpu
def test_a_context_binary_shows_its_outputs(tmp_path: Path) -> None:
    graph, feed = converted()
    openqnn.compile(graph, "cpu").save(tmp_path / "c.bin")
    with openqnn.Session(tmp_path / "c.bin", "libQnnCpu.so") as session:
        given = dict(zip(session.input_names, feed.values(), strict=True))
        outputs = session.output_names
    runner: Runner = ContextExecutable(tmp_path / "c.bin", "cpu", None, 60.0)
    try:
        assert runner.tensor_names == outputs
        assert list(runner.run(given, ALL)) == outputs
        with pytest.raises(InputError, match="cannot be shown"):
            runner.run(given, ["inner"])
    finally:
        runner.close()


def test_the_source_model_in_onnx_runtime() -> None:
    path, sample = model_path(MODEL), sample_inputs(MODEL)
    runner: Runner = OnnxRuntimeRunner(path)
    with openqnn.Session(path) as session:
        (output,) = session.output_names
        found = runner.run(sample, ALL)
        assert list(found) == list(runner.tensor_names)
        assert len(found) > 5
        np.testing.assert_allclose(session.run(sample)[output], found[output], rtol=1e-3, atol=1e-3)
    inner = runner.tensor_names[1]
    (again,) = runner.run_many([sample], [inner])
    np.testing.assert_array_equal(again[inner], found[inner])
    assert list(runner.run(sample)) == [output]
    with pytest.raises(InputError, match="'nothing' cannot be shown"):
        runner.run(sample, ["nothing"])
    with pytest.raises(BackendError, match="ONNX Runtime failed"):
        runner.run({})
    runner.close()
    with pytest.raises(BackendError, match="closed"):
        runner.run(sample)


def test_what_is_no_onnx_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        OnnxRuntimeRunner(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(ModelError, match="not an ONNX model"):
        OnnxRuntimeRunner(tmp_path / "text.onnx")
