"""Reports look like the viewer, sort their tables, and lead to the nodes of the viewer's page beside them."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from openqnn.analysis.palette import DARK, LIGHT, node_link
from openqnn.analysis.plain_page import page, table
from tests.browser import FLAGS, chromium_or_skip
from tests.viewer.test_views import NASTY


@pytest.mark.parametrize(("start", "colours"), [(":root {", LIGHT), (":root.dark {", DARK)])
def test_the_graph_page_has_the_same_colours(start: str, colours: dict[str, str]) -> None:
    css = files("openqnn.viewer").joinpath("static", "viewer.css").read_text(encoding="utf-8")
    block = css[css.index(start) :].partition("}")[0]
    assert dict(re.findall(r"--(\w+): (#\w+)", block)).items() >= colours.items()


def test_a_name_does_nothing_in_a_link() -> None:
    link = node_link(NASTY, "model.html")
    assert "<img" not in link and link.count('"') == 2 and "#node=" in link
    assert node_link(NASTY, "") == link.partition(">")[2].removesuffix("</a>")


def test_a_reports_layers_lead_to_their_nodes(kinds: dict[str, Path], tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    program = chromium_or_skip()
    rows = [("b", 10), ("a", 9), ("c", 100)]
    (tmp_path / "plain.html").write_text(page("Plain", [table(("name", "us"), rows)]))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        opened = browser.new_page(color_scheme="dark")
        said: list[str] = []
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.goto((tmp_path / "plain.html").as_uri())
        opened.click("th >> nth=1")
        assert opened.locator("tbody td:first-child").all_inner_texts() == ["a", "b", "c"]
        opened.press("th >> nth=1", "Enter")
        assert opened.locator("tbody td:first-child").all_inner_texts() == ["c", "b", "a"]
        back = opened.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back == "rgb(20, 24, 31)"
        opened.goto((kinds["debugger result"] / "debug.html").as_uri())
        name = opened.inner_text("#all a >> nth=0")
        opened.click("#all a >> nth=0")
        opened.wait_for_selector("#panel h3")
        assert name in opened.inner_text("#panel") and "error, added" in opened.inner_text("#panel")
        browser.close()
    assert not said
