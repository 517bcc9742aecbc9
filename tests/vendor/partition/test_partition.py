"""Graphs on several backends: who takes what, at what cost, and the numbers of the whole."""

from __future__ import annotations

import itertools
import random
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import openqnn
from openqnn import Graph, Session
from openqnn.errors import UnsupportedError, UsageError
from openqnn.ir.graph_text import parse_graph
from openqnn.ir.subgraph import subgraph
from openqnn.runtime.metrics import cosine
from openqnn.vendor.partition.choices import choices_of, read_choices
from openqnn.vendor.partition.min_cut import min_cut
from openqnn.vendor.partition.partitioned_executable import PartitionedExecutable
from openqnn.vendor.partition.plan import plan_partition
from tests.cli.tool import assert_refused
from tests.cli.tool import openqnn as command
from tests.libraries import need
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs

OLD_CHIP = "SM8350"  # its HTP computes no floats


def converted(model: str) -> Graph:
    return openqnn.convert(model_path(model), input_shapes=static_shapes(model))


def in_part(model: str) -> Graph:
    """A model in fixed point but for some nodes, which the old chip refuses."""
    graph = converted(model)
    names = [node.name for node in graph.nodes]
    return openqnn.quantize(
        graph, [sample_inputs(model)], algorithms=(), act_bw=8, widths={names[len(names) // 2]: 0}
    )


def test_a_cut_is_the_cheapest_of_all() -> None:
    rng = random.Random(0)
    for _ in range(40):
        items = list(range(rng.randint(1, 7)))
        first, second = ({i: inf if rng.random() < 0.2 else rng.random() for i in items} for _ in range(2))
        ties = [(a, b, rng.random()) for a, b in itertools.combinations(items, 2) if rng.random() < 0.5]

        def price(side: set[int], *, a: Any = first, b: Any = second, t: Any = ties, i: Any = items) -> float:
            nodes = sum(a[x] if x in side else b[x] for x in i)
            return nodes + sum(p for x, y, p in t if (x in side) != (y in side))

        best = min(price(set(s)) for n in range(len(items) + 1) for s in itertools.combinations(items, n))
        if best < inf:
            assert price(min_cut(first, second, ties)) == pytest.approx(best)


def test_parts_of_a_graph_put_together_are_the_graph() -> None:
    graph, inputs = converted("mnist_conv"), sample_inputs("mnist_conv")
    half = len(graph.nodes) // 2
    front, back = subgraph(graph, graph.nodes[:half]), subgraph(graph, graph.nodes[half:])
    with Session(graph) as whole, Session(front) as one, Session(back) as two:
        found = two.run({k: v for k, v in one.run(inputs).items() if k in two.input_names})
        for name, array in whole.run(inputs).items():
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model", ["mtcnn_onet", "ppocr_cls"])
def test_a_model_that_htp_refuses_in_part_runs(model: str) -> None:
    need("libQnnHtp.so")
    graph, inputs = in_part(model), sample_inputs(model)
    thrifty = {"constraints": {"power_critical": True}}
    with Session(graph, "auto", soc=OLD_CHIP, timeout=300, partition=thrifty) as auto, Session(graph) as cpu:
        found, wanted = auto.run(inputs), cpu.run(inputs)
        plan = auto.plan
    assert plan is not None
    assert [part.backend for part in plan.parts] == ["htp", "builtin", "htp"]
    assert "htp" not in plan.single
    assert plan.cost <= min(plan.single.values())
    assert any("computes no floats" in cut.reason for cut in plan.cuts)
    assert all(cut.reason for cut in plan.cuts)
    for name, array in wanted.items():
        assert cosine(found[name], array) >= 0.999


@pytest.mark.parametrize("model", ["mnist_conv", "mtcnn_onet", "silero_seq", "ppocr_cls", "aecmos_gru"])
def test_it_never_costs_more_than_one_backend(model: str) -> None:
    need("libQnnHtp.so")
    plan = plan_partition(converted(model))
    assert plan.single
    assert plan.cost <= min(plan.single.values())
    assert sum(len(part.nodes) for part in plan.parts) == len(converted(model).nodes)


def test_pins_and_constraints_count(tmp_path: Path) -> None:
    need("libQnnHtp.so")
    graph, inputs = converted("mnist_conv"), sample_inputs("mnist_conv")
    file = tmp_path / "partition.yaml"
    file.write_text(yaml.safe_dump({"pins": {"op:Conv2d": "htp", "op:PoolMax2d": "cpu"}}))
    with Session(graph, "auto", partition=file) as session, Session(graph) as cpu:
        found, wanted = session.run(inputs), cpu.run(inputs)
        assert session.plan is not None
        places = session.plan.places
    for node in graph.nodes:
        assert {"Conv2d": "htp", "PoolMax2d": "cpu"}.get(node.op, places[node.name]) == places[node.name]
    assert cosine(found["Plus214_Output_0"], wanted["Plus214_Output_0"]) > 0.999
    small = plan_partition(
        graph, choices_of({"backends": ["htp", "builtin"], "constraints": {"memory_mb": 0.02}})
    )
    assert "builtin" in {part.backend for part in small.parts}
    thrifty = plan_partition(converted("mtcnn_onet"), choices_of({"constraints": {"power_critical": True}}))
    assert {part.backend for part in thrifty.parts} == {"htp"}


def test_circles_are_cut_apart() -> None:
    graph = parse_graph("""
graph "diamond" {
  input %x: float32[1,8]
  %a: float32[1,8] = Relu(%x)
  %b: float32[1,8] = Tanh(%a)
  %c: float32[1,8] = ElementWiseAdd(%a, %b)
  output %c
}
""")
    plan = plan_partition(
        graph, choices_of({"pins": {"op:Tanh": "builtin", "op:Relu": "cpu", "op:ElementWiseAdd": "cpu"}})
    )
    assert [part.backend for part in plan.parts] == ["cpu", "builtin", "cpu"]
    assert len(plan.cuts) == 3
    x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(1, 8)
    executable = PartitionedExecutable(graph, plan, None, 60)
    found = executable.run({"x": x}, ["c", "b"])
    executable.close()
    np.testing.assert_allclose(found["c"], np.maximum(x, 0) + np.tanh(np.maximum(x, 0)), rtol=1e-5)
    assert executable.ran == [("cpu", 1), ("builtin", 1), ("cpu", 1)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"pin": {}}, "there is no key 'pin'"),
        ({"pins": {"x": "npu"}}, "pins.x: there is no backend 'npu'"),
        ({"pins": ["x"]}, "pins: expected names with values"),
        ({"constraints": {"memory": 3}}, "constraints: there is no key 'memory'"),
        ({"constraints": {"memory_mb": -1}}, "constraints.memory_mb is -1"),
        ({"constraints": {"power_critical": True, "performance_critical": True}}, "exclude each other"),
        ({"backends": "htp"}, "backends: expected a list"),
    ],
)
def test_files_that_make_no_sense(content: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UsageError) as raised:
        read_choices(tmp_path / "p.yaml")
    assert words in raised.value.message


def test_pins_that_cannot_be() -> None:
    need("libQnnHtp.so")
    graph = converted("mnist_conv")
    with pytest.raises(UsageError, match="no node is called 'nobody'"):
        plan_partition(graph, choices_of({"pins": {"nobody": "htp"}}))
    with pytest.raises(UsageError, match="pinned to htp, which refuses it"):
        plan_partition(graph, choices_of({"pins": {"op:Conv2d": "htp"}}), OLD_CHIP)
    with pytest.raises(UnsupportedError, match="no backend takes"):
        plan_partition(graph, choices_of({"backends": ["htp"]}), OLD_CHIP)
    with pytest.raises(UsageError, match="a partition goes with several backends"):
        Session(graph, partition={})


def test_the_command(tmp_path: Path) -> None:
    need("libQnnHtp.so")
    graph = in_part("mtcnn_onet")
    graph.save(tmp_path / "m.oqnn")
    target = tmp_path / "partition.yaml"
    done = command("partition", tmp_path / "m.oqnn", "--soc", OLD_CHIP, "-o", target, "--power_critical")
    assert done.code == 0, done.err
    assert "cut: '" in done.out
    assert "cost: " in done.out
    again = command("partition", tmp_path / "m.oqnn", "--soc", OLD_CHIP, "--partition", target, "--json")
    assert again.code == 0, again.err
    assert_refused(command("partition", tmp_path / "m.oqnn", "-o", target), "exists")
    assert read_choices(target).pins.keys() == {node.name for node in graph.nodes}
