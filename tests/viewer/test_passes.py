"""The pass explorer: graphs before and after each pass, and the decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from openqnn.passes import PASSES
from openqnn.viewer.pass_views import BORDERS, PassLog, log_passes, pass_page_data
from tests.cli.tool import openqnn as command
from tests.models.fetch import model_path, static_shapes
from tests.viewer.test_views import page_data

MODEL = "ppocr_cls"


@pytest.fixture(scope="module")
def log() -> PassLog:
    return log_passes(model_path(MODEL), {"input_shapes": static_shapes(MODEL)})


def test_every_pass_is_a_step(log: PassLog) -> None:
    assert [step.name for step in log.steps] == [*(step.name for step in PASSES), BORDERS]
    changed = {step.name: (step.before, step.after) for step in log.steps if step.before != step.after}
    assert {"activations", "minimise_transposes", "fold_affine"} <= set(changed)
    assert all(after == before + 1 for before, after in changed.values())
    assert not any(e.applied for step in log.steps if step.before == step.after for e in step.events)


def test_decisions_name_nodes_of_their_graphs(log: PassLog) -> None:
    for step in log.steps:
        graphs = (log.graphs[step.before], log.graphs[step.after])
        names = {n for g in graphs for n in (*(x.name for x in g.nodes), *(v.name for v in g.values()))}
        unknown = [e.name for e in step.events if e.name and e.name not in names]
        # A decision may be about a node that an earlier decision of the same pass made.
        assert len(unknown) <= len(step.events) / 2, (step.name, unknown[:5])


def test_shared_nodes_are_there_once(log: PassLog) -> None:
    data = pass_page_data(model_path(MODEL), log)
    shown = sum(len(pane["nodes"]) for pane in data["panes"])
    assert len(data["pool"]) < shown / 2
    assert len(data["diffs"]) == len(log.graphs) - 1


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    done = command("view", model_path("mnist_conv"), "--passes", "--html", tmp_path / "p.html")
    assert done.code == 0, done.err
    steps = page_data((tmp_path / "p.html").read_text())["passes"]
    assert isinstance(steps, list) and any(step["events"] for step in steps)


@pytest.mark.parametrize(
    ("more", "said"), [(("x.onnx",), "one model at a time"), (("--converted",), "exclude")]
)
def test_what_does_not_go_together(more: tuple[str, ...], said: str) -> None:
    done = command("view", model_path("mnist_conv"), *more, "--passes", "--html", "p.html")
    assert done.code != 0 and said in done.err
