"""Where two backends part is told tensor by tensor."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import openqnn
from openqnn.analysis.compare_backends import Gap
from openqnn.errors import InputError, OpenQnnWarning, UsageError
from tests.analysis.test_half_precision import attention
from tests.cli.tool import assert_refused
from tests.cli.tool import openqnn as command
from tests.frontends.onnx.against_ort import model_of, node, rand
from tests.qnn.nets import needs_cpu, needs_htp

SAMPLES = [{"x": rand(1, 3, 8, 8, seed=n)} for n in range(8)]


def small_network() -> onnx.ModelProto:
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("Add", "r one", "s"),
    ]  # fmt: skip
    return model_of(nodes, {"x": rand(1, 3, 8, 8)}, {"w": rand(4, 3, 3, 3), "one": np.float32(1.0)}, 17)


@needs_htp
def test_the_first_node_that_overflows_is_named() -> None:
    """Half precision cannot hold what the first product makes: what follows is not to blame."""
    found = openqnn.compare(openqnn.convert(attention(3e4)), [{"x": rand(4, 16)}])
    assert not found.agree
    assert found.parting[0].name == "q" and "65504" in found.parting[0].half
    assert "part first at 'q'" in str(found)
    assert [t.name for t in found.tensors] == ["q", "logits", "y"]


@needs_htp
def test_fixed_point_agrees_with_its_simulation() -> None:
    fixed = openqnn.quantize(openqnn.convert(small_network()), SAMPLES)
    found = openqnn.compare(fixed, SAMPLES, samples=2)
    assert found.agree and found.parting == () and found.samples == 2
    assert all(t.sqnr > 50 for t in found.tensors) and found.hidden == ()


@needs_cpu
def test_any_two_backends() -> None:
    found = openqnn.compare(openqnn.convert(small_network()), SAMPLES, "libQnnCpu.so")
    assert found.agree and all(t.sqnr > 100 for t in found.tensors)
    assert {t.name for t in found.tensors} >= {"r", "s"}


def test_nothing_to_compare() -> None:
    graph = openqnn.convert(small_network())
    with pytest.raises(UsageError, match="against itself"):
        openqnn.compare(graph, SAMPLES, "cpu")
    with pytest.raises(InputError, match="no samples"), pytest.warns(OpenQnnWarning, match="NaN"):
        openqnn.compare(graph, [{"x": np.full((1, 3, 8, 8), np.nan, np.float32)}], "libQnnCpu.so")


def test_what_is_infinite_only_on_one_is_lost() -> None:
    gap = Gap()
    gap.add(np.array([1.0, -np.inf]), np.array([1.0, 0.0]))
    assert gap.sqnr == np.inf and gap.reach == 1.0
    gap.add(np.array([1.0, 2.0]), np.array([1.0, np.inf]))
    assert gap.sqnr == -np.inf


@needs_htp
def test_the_command(tmp_path: Path) -> None:
    onnx.save(attention(3e4), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", rand(4, 16))
    table = tmp_path / "t.csv"
    result = command("compare", tmp_path / "m.onnx", "--data", tmp_path / "x.npy", "--csv", table)
    assert (result.code, result.err) == (1, "")
    assert "They part first at FullyConnected 'q'" in result.out and "infinite beyond 65504" in result.out
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [(r["name"], r["parts"]) for r in rows] == [("q", "True"), ("logits", "False"), ("y", "False")]
    found = command("compare", tmp_path / "m.onnx", "--data", tmp_path / "x.npy", "--json")
    record = json.loads(found.out)
    assert record["parting"] == ["q"] and not record["agree"] and record["tensors"][0]["sqnr"] < 10
    same = command("compare", tmp_path / "m.onnx", "--data", tmp_path / "x.npy", "--backend", "cpu")
    assert_refused(same, "against itself", code=2)
