"""Views of files, what differs between two, and the page around them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import InputError, ModelError
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.viewer.from_graph import view_from_graph
from openqnn.viewer.match_views import match_views
from openqnn.viewer.open_views import open_views
from openqnn.viewer.page import html_page
from openqnn.viewer.read_overlays import read_overlays
from openqnn.viewer.view import Mark
from tests.cli.tool import openqnn as command
from tests.cli.tool import tool
from tests.models.fetch import model_path, static_shapes

MODEL = "mnist_conv"
NASTY = "</script><img src=x onerror=alert(1)>&\"'"


def graph(name: str = "y", op: str = "Relu") -> Graph:
    made = Graph("g")
    x = made.add_input("x", DType.FLOAT_32, (1, 4))
    y = Builder(made)(op, x)
    y.name = name
    made.add_output(y)
    return made


def page_data(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A model in every kind of file that holds a graph."""
    converted = openqnn.convert(model_path(MODEL), input_shapes=static_shapes(MODEL))
    found = {".onnx": Path(model_path(MODEL))}
    for suffix in (".oqnn", ".dlc"):
        converted.save(tmp_path / f"m{suffix}")
        found[suffix] = tmp_path / f"m{suffix}"
    openqnn.compile(converted, "htp").save(tmp_path / "m.bin")
    return found | {".bin": tmp_path / "m.bin"}


def test_every_kind_of_file_has_a_view(files: dict[str, Path]) -> None:
    kinds = {suffix: open_views(path)[0] for suffix, path in files.items()}
    assert [view.kind for view in kinds.values()] == ["ONNX", "OpenQNN graph", "DLC", "context binary"]
    assert any(node.op == "Conv2d" for node in kinds[".dlc"].nodes)
    assert kinds[".bin"].facts["backend"] == "HTP"
    for view in kinds.values():
        assert view.edges(), view.kind


def test_constants_have_statistics(files: dict[str, Path]) -> None:
    (view,) = open_views(files[".oqnn"])
    figures = [t.figures() for node in view.nodes for t in node.inputs if t.weight]
    large = [each for each in figures if each and each["elements"] > 8]
    assert large
    for each in large:
        assert sum(each["histogram"]) == each["elements"]


def test_weights_of_a_source_model_are_read_when_asked_for(files: dict[str, Path]) -> None:
    (view,) = open_views(files[".onnx"])
    figures = [t.figures() for node in view.nodes for t in node.inputs if t.weight]
    assert figures and all(each and each["elements"] > 0 for each in figures)


def test_quantized_tensors_tell_where_their_encoding_came_from() -> None:
    data = [{"x": np.random.default_rng(0).standard_normal((1, 4)).astype(np.float32)}]
    view = view_from_graph(openqnn.quantize(graph(), data, backend="cpu"), "q", "QNN graph")
    tensors = [t for node in view.nodes for t in node.outputs if t.encoding]
    assert tensors and any(t.origin for t in tensors)


def test_what_differs_is_named() -> None:
    first = view_from_graph(graph(), "a", "QNN graph")
    second = view_from_graph(graph(op="Sigmoid"), "b", "QNN graph")
    found = match_views(first, second)
    assert found["pairs"] == [(0, 0), (1, 1), (2, 2)]
    assert found["right"] == {1: ["changed", "op: Relu -> Sigmoid"]}
    other = match_views(first, view_from_graph(graph("z"), "c", "QNN graph"))
    assert other["left"][2] == ["removed"] and other["right"][2] == ["added"]


def test_an_output_has_no_mark_of_the_node_of_its_name() -> None:
    made = graph()
    made.nodes[0].name = made.outputs[0].name
    view = replace(view_from_graph(made, "a", "comparison"), marks={"y": Mark(("accuracy",), ("1 %",))})
    assert [node.name for node in view.nodes] == ["x", "y", "y"] and list(view.mark_records()) == [1]


def test_names_cannot_leave_the_data(tmp_path: Path) -> None:
    page = html_page([view_from_graph(graph(NASTY), NASTY, "QNN graph")])
    assert page.count("</script>") == 2 and "<img" not in page
    panes = page_data(page)["panes"]
    assert isinstance(panes, list) and panes[0]["title"] == NASTY


def test_the_page_asks_for_nothing() -> None:
    page = html_page([view_from_graph(graph(), "g", "QNN graph")])
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize(
    "content",
    [{"y": 3}, {"y": {"value": 3}}, {"results": {"y": {"value": 3}}}, {"graph": {"results": {"y": 3}}}],
)
def test_overlays_of_several_forms(tmp_path: Path, content: object) -> None:
    (tmp_path / "error.json").write_text(json.dumps(content))
    (overlay,) = read_overlays(tmp_path / "error.json")
    assert (overlay.title, overlay.values) == ("error", {"y": 3.0})


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"y": []}', '{"layers": [{"entire_db": null}]}'])
def test_overlays_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "o.json").write_text(text)
    with pytest.raises(InputError, match=r"o\.json"):
        read_overlays(tmp_path / "o.json")


def test_files_that_cannot_be_shown(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"junk")
    for name in ("m.onnx", "missing.onnx"):
        with pytest.raises(ModelError, match=name):
            open_views(tmp_path / name)


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    target = tmp_path / "v.html"
    shape = ",".join(map(str, next(iter(static_shapes(MODEL).values()), ()))) or "1,1,28,28"
    done = command(
        "view", model_path(MODEL), "--converted", "--input_shape", f"Input3={shape}", "--html", target
    )
    assert done.code == 0, done.err
    panes = page_data(target.read_text())["panes"]
    assert isinstance(panes, list) and [pane["kind"] for pane in panes] == ["ONNX", "QNN graph"]


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "v.html").write_text("mine")
    done = command("view", model_path(MODEL), "--html", tmp_path / "v.html")
    assert done.code == 1 and "is not a page of this viewer" in done.err
    assert (tmp_path / "v.html").read_text() == "mine"


def test_weights_that_are_not_there_are_no_activations(tmp_path: Path) -> None:
    """A net.json without its .bin tells of weights, which take no room among activations."""
    words = ("-i", model_path(MODEL), "-o", tmp_path / "model.cpp")
    assert tool("qnn-onnx-converter", *words).code == 0
    with_weights = open_views(tmp_path / "model_net.json")[0]
    (tmp_path / "model.bin").unlink()
    (view,) = open_views(tmp_path / "model_net.json")
    alive, wanted = (
        next(o for o in v.overlays if o.title == "VTCM: activations alive") for v in (view, with_weights)
    )
    assert alive.values == wanted.values and min(alive.values.values()) > 0
