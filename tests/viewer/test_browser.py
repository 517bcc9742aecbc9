"""The viewer in a real browser: what is drawn, found, chosen, compared and saved; and who gets nothing."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import openqnn
from openqnn.cli.tools.qnn_netron import tool_command
from openqnn.viewer.diff_runs.netron_pages import NetronPages
from openqnn.viewer.from_graph import view_from_graph
from openqnn.viewer.open_views import open_views
from openqnn.viewer.page import html_page
from openqnn.viewer.server import ViewServer
from tests.browser import FLAGS, chromium_or_skip
from tests.models.fetch import model_path, static_shapes
from tests.viewer.test_views import NASTY, graph

sync_api = pytest.importorskip("playwright.sync_api")
MODEL = "ppocr_cls"


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    program = chromium_or_skip()
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: sync_api.Browser, tmp_path: Path) -> Iterator[sync_api.Page]:
    """A network as it is in ONNX and as QNN graph, with every message of the page as a failure."""
    converted = openqnn.convert(model_path(MODEL), input_shapes=static_shapes(MODEL))
    views = [*open_views(model_path(MODEL)), view_from_graph(converted, "converted", "QNN graph")]
    (tmp_path / "v.html").write_text(html_page(views), encoding="utf-8")
    opened = browser.new_page(viewport={"width": 1280, "height": 800})
    said: list[str] = []
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda asked: said.append(asked.url) if not asked.url.startswith("file:") else None)
    opened.goto((tmp_path / "v.html").as_uri())
    yield opened
    opened.close()
    assert not [text for text in said if not text.startswith("blob:")]


def test_the_graph_is_drawn(page: sync_api.Page) -> None:
    counted = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    page.wait_for_timeout(200)
    for canvas in page.query_selector_all("canvas.graph"):
        assert canvas.evaluate(counted) > 20


def test_search_leads_to_a_node(page: sync_api.Page) -> None:
    page.fill("#find", "hardswish")
    assert int(page.inner_text("#hits").split()[0]) > 0
    page.press("#find", "Enter")
    assert "HardSwish" in page.inner_text("#panel")


def test_the_keyboard_alone_suffices(page: sync_api.Page) -> None:
    page.locator("canvas.graph").nth(1).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "Transpose" in page.inner_text("#panel")
    page.keyboard.press("ArrowDown")
    text = page.inner_text("#panel")
    assert "Conv2d" in text and "stride" in text and "mean" in text


def test_differences_are_walked_through(page: sync_api.Page) -> None:
    page.click("#next")
    first = page.inner_text("#panel h2")
    page.click("#next")
    assert page.inner_text("#panel h2") != first
    assert page.query_selector("#panel .changed, #panel .added, #panel .removed") is not None
    page.click("#previous")
    assert page.inner_text("#panel h2") == first


def test_overlays_colour_and_rank(page: sync_api.Page) -> None:
    page.select_option("#overlay", "MACs")
    page.click("text=Next worst")
    largest = page.inner_text("#panel")
    assert "MACs" in largest and "Conv2d" in largest
    page.click("text=Next worst")
    assert page.inner_text("#panel") != largest


def test_the_graph_can_be_saved(page: sync_api.Page) -> None:
    for button, start in (("#svg", b"<svg"), ("#png", b"\x89PNG")):
        with page.expect_download() as download:
            page.click(button)
        assert Path(download.value.path()).read_bytes().startswith(start)


def test_names_do_nothing(browser: sync_api.Browser, tmp_path: Path) -> None:
    (tmp_path / "v.html").write_text(html_page([view_from_graph(graph(NASTY), NASTY, "QNN graph")]))
    opened = browser.new_page()
    opened.on("dialog", lambda dialog: pytest.fail(dialog.message))
    opened.goto((tmp_path / "v.html").as_uri())
    opened.fill("#find", "relu")
    opened.press("#find", "Enter")
    assert NASTY in opened.inner_text("#panel")
    opened.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ViewServer]:
    for name, op in (("a", "Relu"), ("b", "Sigmoid")):
        graph(op=op).save(tmp_path / f"{name}.oqnn")
    server = ViewServer(NetronPages(tmp_path, tool_command))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server
    server.close()
    thread.join()


def test_two_files_of_a_folder_are_compared(
    browser: sync_api.Browser, served: ViewServer, tmp_path: Path
) -> None:
    opened = browser.new_page()
    opened.goto(served.address)
    for box in opened.query_selector_all("input[type=checkbox]"):
        box.check()
    opened.click("text='Open'")
    opened.click("#next")
    assert "op: Relu -> Sigmoid" in opened.inner_text("#panel")
    (tmp_path / "a.oqnn").write_bytes(b"nothing")
    opened.reload()  # the start page says what cannot be opened, and offers the rest
    assert "a.oqnn" in opened.inner_text("#problem") and opened.locator("input[type=checkbox]").count() == 2
    opened.locator("input[type=checkbox]").nth(1).check()
    opened.click("text='Open'")
    opened.click("text='Start page'")
    opened.wait_for_selector("text=Open Visualizer")
    assert opened.inner_text("#problem") == ""
    opened.close()


@pytest.mark.parametrize("path", ["", "?token=wrong", "view?file=0", "../etc/passwd"])
def test_nobody_else_gets_anything(served: ViewServer, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(served.address.split("?")[0] + path)


def test_no_page_of_others_can_be_around_it(served: ViewServer) -> None:
    with urllib.request.urlopen(served.address) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert (
        "frame-ancestors 'none'" in policy and "form-action 'self'" in policy and "base-uri 'none'" in policy
    )


def test_another_host_name_gets_nothing(served: ViewServer) -> None:
    request = urllib.request.Request(served.address, headers={"Host": "example.com"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)


@pytest.mark.parametrize("query", ["file=99", "file=../../x", "file=-1", ""])
def test_no_other_file_can_be_asked_for(served: ViewServer, query: str) -> None:
    address = served.address.replace("/?", f"/view?{query}&")
    with urllib.request.urlopen(address) as answer:
        assert "nothing was chosen" in answer.read().decode()
