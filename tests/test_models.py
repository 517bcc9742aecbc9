"""Real networks end to end: converted, saved, loaded and run, they give the numbers of ONNX Runtime."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import UnsupportedError
from openqnn.ir import Array, Graph
from tests.models.fetch import model_ids, model_path, static_shapes
from tests.models.reference import reference_outputs
from tests.models.samples import sample_inputs

COSINE, RELATIVE = 0.99999, 1e-3


@cache
def converted(model: str) -> Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", openqnn.OpenQnnWarning)  # magika masks with a constant minus infinity
        return openqnn.convert(model_path(model), input_shapes=static_shapes(model))


def assert_close(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    """Names, types and shapes are equal; errors are relative to the largest magnitude of each output."""
    assert list(found) == list(wanted)
    for name, reference in wanted.items():
        array = found[name]
        assert (array.shape, array.dtype) == (reference.shape, reference.dtype), name
        ours, theirs = array.astype(np.float64).ravel(), reference.astype(np.float64).ravel()
        assert np.isfinite(ours).all(), name
        length = np.linalg.norm(ours) * np.linalg.norm(theirs)
        cosine = ours @ theirs / length if length else 1.0
        relative = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)
        assert cosine >= COSINE and relative <= RELATIVE, (
            f"{name}: cosine {cosine}, relative error {relative}"
        )


def test_there_are_sixteen_networks() -> None:
    assert len(model_ids()) == 16


@pytest.mark.parametrize("model", model_ids())
def test_it_gives_the_numbers_of_onnx_runtime(model: str) -> None:
    with openqnn.Session(converted(model)) as session:
        assert_close(session.run(sample_inputs(model)), reference_outputs(model))


@pytest.mark.parametrize("model", model_ids())
def test_it_survives_being_saved_and_loaded(model: str, tmp_path: Path) -> None:
    graph = converted(model)
    graph.save(tmp_path / "g.oqnn")
    loaded = openqnn.load(tmp_path / "g.oqnn")
    assert str(loaded) == str(graph)
    with openqnn.Session(loaded) as session:
        assert_close(session.run(sample_inputs(model)), reference_outputs(model))


@pytest.mark.parametrize("model", model_ids())
def test_nodes_say_where_they_come_from(model: str) -> None:
    graph = converted(model)
    assert not [n for n in graph.nodes if not n.source]


def test_a_loop_is_refused_by_name() -> None:
    (model,) = model_ids("refuse")
    with pytest.raises(UnsupportedError, match=r"Loop x1: .*\(at 'Loop\.0'\)") as caught:
        openqnn.convert(model_path(model), input_shapes=static_shapes(model))
    report = openqnn.check(model_path(model), input_shapes=static_shapes(model))
    assert not report.ok
    assert [(p.op, p.node) for p in report.problems] == [("Loop", "Loop.0")]
    assert report.supported["Conv"] > 10
    assert len(caught.value.problems) == 1
