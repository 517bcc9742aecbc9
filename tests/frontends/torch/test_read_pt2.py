"""Programs of torch.export are read without torch, and give torch's numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import DynamicShapeError, UnsupportedError

PROGRAMS = Path(__file__).parent / "programs"
SHAPES = {"dynamic": {"x": (2, 5, 8)}}


def expected(name: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    with np.load(PROGRAMS / f"{name}.npz") as found:
        inputs = {k.removeprefix("in_"): found[k] for k in found.files if k.startswith("in_")}
        return inputs, [found[k] for k in sorted(found.files) if k.startswith("out_")]


@pytest.mark.parametrize("name", ["cnn", "attention", "dynamic", "recurrent", "image", "writes"])
def test_numbers_are_those_of_torch(name: str) -> None:
    inputs, outputs = expected(name)
    graph = openqnn.convert(PROGRAMS / f"{name}.pt2", input_shapes=SHAPES.get(name))
    got = list(openqnn.Session(graph).run(inputs).values())
    assert len(got) == len(outputs)
    for a, b in zip(got, outputs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_torch_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert openqnn.convert(PROGRAMS / "cnn.pt2").outputs[0].name == "softmax"


def test_nodes_name_the_users_line_and_module() -> None:
    graph = openqnn.convert(PROGRAMS / "cnn.pt2")
    sources = [n.source for n in graph.nodes]
    assert any("make_programs.py" in s and "Block.forward" in s and "first.norm" in s for s in sources), (
        sources
    )


def test_weights_have_the_names_of_the_module() -> None:
    graph = openqnn.convert(PROGRAMS / "cnn.pt2")
    assert "head.weight" in {v.name for v in graph.constants()}


def test_open_dimensions_are_asked_for() -> None:
    with pytest.raises(DynamicShapeError, match="input 'x' has dynamic dimensions"):
        openqnn.convert(PROGRAMS / "dynamic.pt2")
    assert openqnn.convert(PROGRAMS / "dynamic.pt2", batch=3).outputs[0].shape == (3, 5, 8)


def test_written_buffers_are_inputs_and_outputs() -> None:
    with pytest.warns(openqnn.OpenQnnWarning, match=r"writes to 'seen'.*feed it back"):
        graph = openqnn.convert(PROGRAMS / "cache.pt2")
    session = openqnn.Session(graph)
    seen = np.zeros((1, 4), np.float32)
    for step in range(3):
        got = session.run({"x": np.full((1, 1), step + 1, np.float32), "seen": seen})
        seen = got["seen.out"]
    assert seen.tolist() == [[0, 1, 2, 3]] and got["sum_1"].tolist() == [6]


def test_all_problems_are_listed_with_their_lines() -> None:
    with pytest.raises(UnsupportedError) as caught:
        openqnn.convert(PROGRAMS / "unknown.pt2")
    text = str(caught.value)
    assert "aten.special_bessel_j0" in text and "aten.masked_select" in text
    assert "make_programs.py:" in text and "Unknown.forward" in text
