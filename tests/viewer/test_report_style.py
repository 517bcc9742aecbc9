"""Reports look like the viewer, sort their tables, and lead to the nodes of the viewer's page beside them."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from openqnn.analysis.palette import DARK, LIGHT, node_link
from openqnn.analysis.plain_page import COLOURS, NodeName, page, table, treemap
from tests.browser import FLAGS, chromium_or_skip
from tests.cli.tool import openqnn as command
from tests.cli.tool import tool
from tests.viewer.axe import serious
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
    long = [(NodeName("model/conv;" * 40, "v.html"), "Conv2d", "at " + "model/relu;" * 40, "7.5%")] * 2
    heads = ("node", "kind of operation", "advice", "share")
    (tmp_path / "long.html").write_text(page("a_long_name" * 30, [table(heads, long)]))
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
        opened.goto((tmp_path / "long.html").as_uri())
        assert opened.evaluate("document.querySelector('table').offsetWidth <= innerWidth")
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (
            opened.evaluate("Math.min(...[...document.querySelectorAll('td')].map((c) => c.offsetWidth))")
            > 50
        )
        opened.goto((kinds["debugger result"] / "debug.html").as_uri())
        name = opened.inner_text("#all a >> nth=0")
        opened.click("#all a >> nth=0")
        opened.wait_for_selector("#panel h3")
        assert name in opened.inner_text("#panel") and "error, added" in opened.inner_text("#panel")
        browser.close()
    assert not said


def reports(kinds: dict[str, Path], folder: Path) -> dict[str, tuple[str, str]]:
    """Reports of the commands with what a link in them looks like, and a word of the panel that it opens."""
    made = kinds["OpenQNN graph"].parent
    data, log = str(made / "samples"), str(kinds["profiling log"])
    source, fixed = str(kinds["ONNX"]), str(made / "fixed.oqnn")
    asked = {
        "quant": ("quantize", source, "--data", data, "-o", str(folder / "q.oqnn"), "--report"),
        "estimate": ("estimate", fixed, "--html"),
        "profile": ("profile", log, "--model", source, "--html"),
        "log": ("profile", log, "--html"),
        "lint": ("lint", fixed, "--html"),
    }
    for name, words in asked.items():
        done = command(*words, str(folder / f"{name}.html"))
        assert "error" not in done.err, done.err
    assert command("evaluate", source, "--data", data, "-work_dir", str(folder / "evaluated")).code in (0, 1)
    checked = ("--model", source, "--input_list", str(made / "list.txt"), "--output_dir")
    config = folder / "config.json"
    config.write_text('{"QUANTIZATION_VARIATIONS": ["tf"], "QUANTIZATION_ALGORITHMS": []}')
    done = tool("qnn-quantization-checker", "--config_file", str(config), *checked, str(folder / "checked"))
    assert done.code == 0, done.err
    page = next(p for p in (folder / "checked").rglob("tf_*.html"))
    return {
        "quant.html": ("#all td.name a", "SQNR, entire"),
        "estimate.html": ("td a", "time, estimate"),
        "profile.html": ("td a", "time"),
        "log.html": ("td a", "median"),
        "lint.html": ("td a", "architecture findings"),
        "evaluated/metrics-info.html": ("p a >> nth=1", "Output"),
        str(page.relative_to(folder)): ("td a", "bit width"),
    }


def test_every_report_leads_to_the_nodes(kinds: dict[str, Path], tmp_path: Path) -> None:
    """Those of six commands and a tool; and axe finds nothing serious in them."""
    sync_api = pytest.importorskip("playwright.sync_api")
    program = chromium_or_skip()
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        opened = browser.new_page(bypass_csp=True)
        said: list[str] = []
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda asked: said.append(asked.url) if "file:" not in asked.url else None)
        for name, (link, word) in reports(kinds, tmp_path).items():
            opened.goto((tmp_path / name).as_uri())
            assert not serious(opened), name
            shown = opened.inner_text(link if "nth" in link else f"{link} >> nth=0")
            opened.click(link if "nth" in link else f"{link} >> nth=0")
            opened.wait_for_selector("#panel h3")
            panel = opened.inner_text("#panel")
            assert word in panel and shown.removeprefix("onnx node ") in panel, (name, shown, panel)
        browser.close()
    assert not said


def test_a_report_replaces_no_page_of_the_users(kinds: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "e.model.html").write_text("mine")
    fixed = str(kinds["OpenQNN graph"].parent / "fixed.oqnn")
    for words in (("estimate", fixed), ("lint", fixed), ("profile", str(kinds["profiling log"]))):
        done = command(*words, "--html", str(tmp_path / "e.html"))
        assert done.code == 1 and "e.model.html exists" in done.err
    assert (tmp_path / "e.model.html").read_text() == "mine" and not (tmp_path / "e.html").exists()


def test_labels_of_a_treemap_stay_in_their_areas(tmp_path: Path) -> None:
    """Also those of long names in narrow areas; kinds beyond the colours share the last one."""
    sync_api = pytest.importorskip("playwright.sync_api")
    program = chromium_or_skip()
    tiles = [(f"/model.{n}/WIDE_MWMW/Mul_output_{n}", 1.2**-n, f"Kind{n % 11}") for n in range(60)]
    drawn = treemap(tiles)
    (tmp_path / "map.html").write_text(page("Map", [drawn]))
    assert drawn.count("<i ") == len(COLOURS) and "others" in drawn
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        opened = browser.new_page()
        opened.goto((tmp_path / "map.html").as_uri())
        beyond = opened.evaluate(
            "[...document.querySelectorAll('svg g')].flatMap(g => {"
            " const r = g.querySelector('rect').getBBox();"
            " return [...g.querySelectorAll('text')].filter(t => { const b = t.getBBox();"
            " return b.x + b.width > r.x + r.width || b.y + b.height > r.y + r.height + 3; })"
            ".map(t => t.textContent); })"
        )
        assert opened.locator("svg text.on").count() > 20
        browser.close()
    assert not beyond
