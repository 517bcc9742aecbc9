"""The page of results: the Pareto front, and what a real browser shows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from openqnn.evaluation.comparators import COMPARATORS
from openqnn.evaluation.evaluate_model import FAILED, SUCCESS, Row
from openqnn.evaluation.inference import all_options
from openqnn.evaluation.results_page import pareto_front, results_page
from tests.browser import FLAGS, chromium_or_skip


def test_the_front_is_what_nothing_beats_in_both() -> None:
    points = {"a": (1.0, 90.0), "b": (2.0, 95.0), "c": (2.0, 94.0), "d": (3.0, 95.0), "e": (4.0, 99.0)}
    assert pareto_front(points, higher=True) == ["a", "b", "e"]
    assert pareto_front(points, higher=False) == ["a"]


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """It asks for nothing, has a dot for each row that can be plotted, and its tables sort."""
    sync_api = pytest.importorskip("playwright.sync_api")
    program = chromium_or_skip()
    options = all_options("htp", "x86_64-linux-clang", 8, 8)
    rows = [
        Row(each, SUCCESS, {"out<b>": 90.0 + i}, 90.0 + i, {"top1": 0.5 + i / 100}, 10.0 - i % 3, 1.0)
        for i, each in enumerate(options[:8])
    ]
    rows.append(Row(options[8], FAILED, message="<script>alert(1)</script>"))
    (tmp_path / "p.html").write_text(results_page("a <model>", rows, COMPARATORS["cos"]), encoding="utf-8")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on(
            "request", lambda asked: said.append(asked.url) if not asked.url.startswith("file:") else None
        )
        page.goto((tmp_path / "p.html").as_uri())
        assert page.locator("svg").count() == 2
        assert page.locator("svg").first.locator("circle").count() == 8
        table = page.locator("table").first
        first = lambda: table.locator("tr").nth(1).locator("td").nth(2).inner_text()
        header = table.locator("th").nth(2)
        assert header.inner_text() == "cos"
        header.click()
        assert first() == "90.0"
        header.click()
        assert first() == "97.0"
        assert "<script>alert(1)</script>" in page.locator("table").last.inner_text()
        browser.close()
    assert not said
