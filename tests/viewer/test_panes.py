"""Several graphs side by side: which are shown, how they follow each other, what is drawn and exported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openqnn.viewer.open_views import open_views, side_by_side
from openqnn.viewer.page import html_page, page_data
from openqnn.viewer.view import Mark, Overlay, View, ViewNode, ViewTensor
from tests.models.fetch import model_path
from tests.viewer.axe import serious
from tests.viewer.chromium import chromium, page_of


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def chain(title: str, ops: list[str], **more: Any) -> View:
    tensors = [ViewTensor(f"t{i}", "float32", (1,)) for i in range(len(ops) + 1)]
    nodes = [
        ViewNode(f"n{i}", op, "", {}, (tensors[i],), (tensors[i + 1],), (tensors[i + 1].name, f"n{i}"))
        for i, op in enumerate(ops)
    ]
    return View(title, "test", tuple(nodes), **more)


def visible(page: Any) -> list[str]:
    return page.locator(".pane:visible .title strong").all_inner_texts()


def test_as_many_graphs_are_shown_as_fit(browser: Any, tmp_path: Path) -> None:
    views = [chain(f"g{i}", ["Relu"] * 60 + [f"Op{i}"]) for i in range(5)]
    with page_of(browser, html_page(views), tmp_path, bypass_csp=True) as page:
        assert visible(page) == ["g0", "g1", "g2"]
        assert not serious(page)
        page.uncheck("#choice input >> nth=0")
        page.check("#choice input >> nth=4")
        assert visible(page) == ["g1", "g2", "g4"]
        page.click("#next")  # leads into g0, which is hidden
        page.click("#previous")
        page.click("#previous")
        assert visible(page) != ["g1", "g2", "g4"]
        page.evaluate(
            "document.querySelectorAll('#choice input').forEach((box) => box.checked && box.click())"
        )
        assert len(visible(page)) == 1


def test_graphs_of_one_file_are_not_compared(browser: Any, tmp_path: Path) -> None:
    views = open_views(model_path("microwakeword_okay_nabu"))
    assert len(views) == 2
    with page_of(browser, html_page(views), tmp_path) as page:
        assert not page.is_visible("#diff-tools")
        assert "removed" not in page.inner_text("#panel")


def test_graphs_of_several_files_stand_beside_their_like() -> None:
    first, second = ([chain(f"{f}{i}", ["Relu"], file=f) for i in range(2)] for f in "ab")
    assert [v.title for v in side_by_side([first, second])] == ["a0", "b0", "a1", "b1"]
    assert [v.title for v in side_by_side([first, second[:1]])] == ["a0", "a1", "b0"]


def test_a_partner_stands_at_the_same_height(browser: Any, tmp_path: Path) -> None:
    views = [chain("a", ["Relu"] * 80), chain("b", ["Tanh"] * 40 + ["Relu"] * 40)]
    with page_of(browser, html_page(views), tmp_path) as page:
        page.fill("#find", "name:n50")
        page.press("#find", "Enter")
        page.press("#find", "Escape")
        page.press("#find", "Escape")
        page.wait_for_timeout(300)
        mark = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--mark').trim()")
        rows = [page.evaluate(FIRST_ROW, [index, mark]) for index in range(2)]
        assert rows[0] > 0 and rows[0] == rows[1]


FIRST_ROW = """([index, mark]) => {
  const canvas = document.querySelectorAll('canvas.graph')[index];
  const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(mark.slice(at, at + 2), 16));
  for (let y = 0; y < height; y += 1) {
    let count = 0;
    for (let x = 0; x < width; x += 1) {
      const at = 4 * (y * width + x);
      count += data[at] === r && data[at + 1] === g && data[at + 2] === b;
    }
    if (count > 80) return y;
  }
  return -1;
}"""


def test_words_are_walked_through_from_the_rarest(browser: Any, tmp_path: Path) -> None:
    words = {f"n{i}": "htp" for i in range(5)} | {"n3": "cpu"}
    view = chain("a", ["Relu"] * 6)
    with page_of(browser, html_page([view], [Overlay("backend", {}, labels=words)]), tmp_path) as page:
        page.locator("canvas.graph").focus()
        for name in ("n3", "n0", "n1"):
            page.keyboard.press("w")
            assert page.inner_text("#panel h2") == name


def test_words_beyond_the_colours_are_in_the_legend(browser: Any, tmp_path: Path) -> None:
    words = {f"n{i}": f"rule{i:02}" for i in range(12)}
    view = chain("a", ["Relu"] * 12)
    with page_of(browser, html_page([view], [Overlay("rules", {}, labels=words)]), tmp_path) as page:
        keys = page.locator(".legend .key")
        assert keys.count() == 8 and keys.last.inner_text() == "5 more"
        assert "rule11" in keys.last.get_attribute("title")


def test_a_picture_has_what_the_screen_has(browser: Any, tmp_path: Path) -> None:
    """Borders of runs that differ, strips of further overlays, and several cards for a closed group."""
    kinds = {"n1": ("accuracy", "performance"), "n2": ("performance",)}
    marks = {name: Mark(each, ("execute performance: 3.0 %",)) for name, each in kinds.items()}
    overlays = [Overlay(title, {f"n{i}": float(i) for i in range(4)}) for title in ("first", "second")]
    view = chain("a", ["Relu"] * 4, marks=marks, overlays=tuple(overlays))
    with page_of(browser, html_page([view]), tmp_path) as page:
        for overlay in overlays:
            page.select_option("#overlay", overlay.title)
        with page.expect_download() as download:
            page.click("#svg")
        svg = Path(download.value.path()).read_text(encoding="utf-8")
    assert "undefined" not in svg and "NaN" not in svg
    counts = {c: svg.count(f'stroke="{c}"') for c in ("#ea7317", "#dc2626", "#d9a400")}
    assert counts == {"#ea7317": 1, "#dc2626": 1, "#d9a400": 1}
    assert len(re.findall(r'height="5" fill="rgb', svg)) == 4


@pytest.mark.parametrize(
    ("like", "ops"),
    [
        ("Conv2d", ["CONV_2D", "aten.conv2d", "Conv", "DEPTHWISE_CONV_2D", "QLinearConv", "Convolution"]),
        ("Convert", ["Cast", "QuantizeLinear", "DEQUANTIZE", "aten._to_copy"]),
        ("MatMul", ["BATCH_MATMUL", "aten.linear", "Gemm", "InnerProduct", "FULLY_CONNECTED"]),
        ("Relu", ["HARD_SWISH", "aten.gelu", "LOGISTIC", "Softmax"]),
        ("Batchnorm", ["aten.batch_norm", "FusedBatchNormV3", "LayerNormalization"]),
        ("PoolMax2d", ["MAX_POOL_2D", "aten.max_pool2d", "RESIZE_BILINEAR"]),
    ],
)
def test_ops_of_all_frameworks_have_the_colour_of_their_kind(
    browser: Any, tmp_path: Path, like: str, ops: list[str]
) -> None:
    view = chain("a", [like, *ops])
    with page_of(browser, html_page([view]), tmp_path) as page:
        with page.expect_download() as download:
            page.click("#svg")
        svg = Path(download.value.path()).read_text(encoding="utf-8")
    fills = re.findall(r'height="42" rx="6" fill="(#\w+)"', svg)
    assert len(fills) == len(ops) + 1 and len(set(fills)) == 1, dict(zip([like, *ops], fills, strict=True))


def test_what_a_node_is_called_comes_before_where_it_came_from() -> None:
    """A node that was put before another one, of the same source, does not take that one's partner."""
    first = chain("a", ["BatchNormalization"])
    put = ViewNode("turn", "Reshape", "", {}, (), (ViewTensor("x", "float32"),), ("x", "turn", "n0"))
    second = chain("b", ["Batchnorm"])
    (pair,) = html_pairs([first, View("b", "test", (put, *second.nodes))])
    assert pair == [0, 1]


def html_pairs(views: list[View]) -> list[list[int]]:
    return [list(pair) for pair in page_data(views)["diffs"][0]["pairs"]]


def test_a_group_that_holds_nearly_everything_is_open(browser: Any, tmp_path: Path) -> None:
    tensors = [ViewTensor(f"t{i}", "float32", (1,)) for i in range(301)]
    ops = ["Conv2d", "Relu", "PoolMax2d", "MatMul", "Softmax"]
    nodes = [
        ViewNode(
            f"model/n{i}", ops[i * i % 5], "", {}, (tensors[i],), (tensors[i + 1],), (tensors[i + 1].name,)
        )
        for i in range(300)
    ]
    with page_of(browser, html_page([View("a", "test", tuple(nodes))]), tmp_path) as page:
        with page.expect_download() as download:
            page.click("#svg")
        assert "model/n150" in Path(download.value.path()).read_text(encoding="utf-8")
