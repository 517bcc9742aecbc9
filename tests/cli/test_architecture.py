"""qnn-architecture-checker and openqnn lint: what they find and what they change."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from openqnn.analysis.architecture_rules import RULES, inspect_architecture
from openqnn.api.session import Session
from openqnn.emit import lower
from openqnn.emit.graph_from_net import graph_of
from openqnn.emit.model_source import write_model_source
from openqnn.emit.read_net_json import read_net_json
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.cli.tool import openqnn, tool
from tests.models.fetch import model_path

X = np.random.default_rng(0).standard_normal((1, 8, 8, 16)).astype(np.float32)


def network(slope: float = 0.25) -> Graph:
    """x / 4, PRelu, a convolution of 16 to 48 channels."""
    graph = Graph("net")
    build = Builder(graph)
    rng = np.random.default_rng(1)
    x = graph.add_input("x", DType.FLOAT_32, X.shape)
    four = graph.constant("four", np.asarray([4.0], np.float32), DType.FLOAT_32)
    slopes = graph.constant("slopes", np.full(16, slope, np.float32), DType.FLOAT_32)
    filters = rng.standard_normal((3, 3, 16, 48)).astype(np.float32)
    weights = graph.constant("weights", filters, DType.FLOAT_32)
    y = build("Prelu", build("ElementWiseDivide", x, four), slopes)
    graph.add_output(build("Conv2d", y, weights, stride=[1, 1], pad_amount=[[1, 1], [1, 1]]))
    return graph


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    write_model_source([lower(network())], "m.cpp")
    return ["-i", "m_net.json", "-b", "m.bin", "-o", "out"]


def rows(name: str = "m") -> list[dict[str, str]]:
    with Path(f"out/{name}_architecture_checker.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_csv_names_nodes_reasons_and_neighbours(files: list[str]) -> None:
    done = tool("qnn-architecture-checker", *files)
    assert done.code == 0, done.err
    found = {row["Type"]: row for row in rows()}
    assert set(found) == {"N/A", "Conv2d", "ElementWiseDivide", "Prelu"}
    assert found["N/A"]["Graph/Node_name"] == "Graph"
    assert "fewer than 32 channels" in found["Conv2d"]["Issue"]
    assert "x:[1, 8, 8, 16]" in found["ElementWiseDivide"]["Input_tensor_name:[dims]"]
    assert json.loads(found["Prelu"]["Parameters"])["Next node"] == [found["Conv2d"]["Graph/Node_name"]]
    assert not Path("out/m_modified.cpp").exists()


def test_a_converter_checks_what_it_made(tmp_path: Path) -> None:
    """With the older way to ask, the same rows as the checker's own."""
    target = tmp_path / "made" / "net.cpp"
    words = ["-i", model_path("mtcnn_onet"), "-o", target, "--arch_checker"]
    done = tool("qnn-onnx-converter", *words)
    assert done.code == 0, done.err
    again = tool("qnn-architecture-checker", "-i", target.with_name("net_net.json"), "-o", tmp_path / "alone")
    assert again.code == 0, again.err
    (alone,) = (tmp_path / "alone").iterdir()
    first, second = (
        [row["Issue"] for row in csv.DictReader(path.read_text().splitlines())]
        for path in (target.with_name("net_architecture_checker.csv"), alone)
    )
    assert first == second
    assert len(first) > 3


def test_show_lists_changes_and_makes_none(files: list[str]) -> None:
    for words in (["-m"], ["--modify", "show"]):
        done = tool("qnn-architecture-checker", *files, *words)
        assert done.code == 0 and "elwisediv: " in done.out and "prelu: " in done.out
    assert sorted(p.name for p in Path("out").iterdir()) == ["m_architecture_checker.csv"]


def test_changes_give_the_same_numbers_and_are_not_found_again(files: list[str]) -> None:
    done = tool("qnn-architecture-checker", *files, "-m", "all")
    assert done.code == 0, done.err
    changed = read_net_json("out/m_modified_net.json", "out/m_modified.bin")
    ops = {node.op for node in changed.nodes}
    assert not ops & {"ElementWiseDivide", "Prelu"} and "ElementWiseMaximum" in ops
    assert not {f.rule for f in inspect_architecture(changed)} & {"elwisediv", "prelu"}
    with Session(network()) as before, Session(graph_of(changed)) as after:
        (wanted,) = before.run({"x": X}).values()
        (found,) = after.run({"x": X}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_one_rule_alone(files: list[str]) -> None:
    assert tool("qnn-architecture-checker", *files, "-m", "apply=elwisediv").code == 0
    info = {row["Type"]: row["Modification_info"] for row in rows()}
    assert "ElementWiseMultiply" in info["ElementWiseDivide"] and info["Prelu"] == "N/A"


def test_steep_slopes_stay(files: list[str]) -> None:
    write_model_source([lower(network(slope=1.5))], "m.cpp")
    assert tool("qnn-architecture-checker", *files, "-m", "apply=prelu").code == 0
    info = {row["Type"]: row["Modification_info"] for row in rows()}
    assert info["Prelu"] == "not changed: slopes are not all between 0 and 1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "apply=everything"], "no such change"),
        (["-m", "some"], "show, all, or apply=rule,rule"),
    ],
)
def test_changes_that_there_are_not(files: list[str], words: list[str], said: str) -> None:
    done = tool("qnn-architecture-checker", *files, *words)
    assert done.code == 2 and said in done.err and not Path("out").exists()


def test_lint_reads_any_model_and_tells_by_its_exit_code(tmp_path: Path) -> None:
    network().save(tmp_path / "m.oqnn")
    done = openqnn("lint", tmp_path / "m.oqnn", "--json")
    assert done.code == 1
    rules = {finding["rule"] for finding in json.loads(done.out)["findings"]}
    assert rules == {"openqnn.float", "channels", "elwisediv", "prelu"}


def test_a_good_network_has_no_findings(tmp_path: Path) -> None:
    graph = Graph("good")
    x = graph.add_input("x", DType.INT_32, (1, 8, 8, 32))
    graph.add_output(Builder(graph)("ElementWiseAbs", x))
    graph.save(tmp_path / "m.oqnn")
    done = openqnn("lint", tmp_path / "m.oqnn")
    assert (done.code, done.out) == (0, "No rule applies.\n")


def test_ids_are_unique_and_ours_say_so() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert {i for i in ids if not i.startswith("openqnn.")} == {
        "activation16",
        "channels",
        "elwisediv",
        "prelu",
    }
