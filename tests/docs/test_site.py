"""The site that `make docs` built, in a real browser: it asks nobody, finds words, and fits the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import FLAGS, chromium_or_skip

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow
SITE = Path(__file__).parents[2] / "build" / "site"
WIDTHS = (360, 800, 1440)
SAMPLE = (
    "index", "docs/README", "docs/quantization", "docs/errors", "docs/ops", "docs/reference/README",
    "docs/reference/qnn-net-run", "docs/reference/configuration", "docs/onnx_conformance", "CHANGELOG",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    program = chromium_or_skip()
    if not (SITE / "index.html").exists():
        pytest.skip("`make docs` builds the site")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


STRANGE: list[str] = []
"""What pages asked for that is not of the site, and their errors."""


@pytest.fixture(autouse=True)
def _asks_nobody() -> Iterator[None]:
    STRANGE.clear()
    yield
    assert not STRANGE


def opened(browser: sync_api.Browser, name: str, width: int = 1200, scheme: str = "light") -> sync_api.Page:
    """A page of the site, which fails the test when it asks for anything but files of its own."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.on("request", lambda request: _check_address(request.url))
    page.on("pageerror", lambda error: STRANGE.append(str(error)))
    page.goto(f"{(SITE / name.partition('?')[0]).as_uri()}.html?{name.partition('?')[2]}")
    return page


def _check_address(url: str) -> None:
    if not url.startswith((SITE.as_uri(), "data:", "blob:")):
        STRANGE.append(url)


def test_no_page_names_an_address_to_load_from() -> None:
    """Every page, without a browser: what is loaded comes from the site itself."""
    pages = sorted(SITE.rglob("*.html"))
    if not pages:
        pytest.skip("`make docs` builds the site")
    assert len(pages) > 80
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for word in ('src="http', 'src="//', "@import", "url(http", 'rel="stylesheet" href="http'):
            assert word not in text, page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SAMPLE)
def test_pages_fit_the_window_and_are_legible(browser: sync_api.Browser, name: str, scheme: str) -> None:
    for width in WIDTHS:
        page = opened(browser, name, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert page.evaluate(CONTRAST) > 4.5
        page.context.close()


CONTRAST = """() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3)
      .map(c => c / 255).map(c => c <= 0.04 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const text = light(getComputedStyle(document.querySelector('article p')).color);
  const ground = light(getComputedStyle(document.body).backgroundColor);
  return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
}"""
"""The contrast of text and ground, by the formula of the web's accessibility guidelines."""


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("spilled", "estimate"),
        ("--htp_socs", "qnn-net-run"),
        ("vtcm_mb", "configuration"),
        ("OQ112", "errors"),
    ],
)
def test_search_finds_words_without_a_server(browser: sync_api.Browser, word: str, page: str) -> None:
    found = opened(browser, f"search?q={word}")
    found.wait_for_selector("#search-results li a", timeout=15_000)
    links = [link.get_attribute("href") or "" for link in found.query_selector_all("#search-results li a")]
    assert any(page in link for link in links), links


def test_the_sidebar_leads_to_every_section(browser: sync_api.Browser) -> None:
    page = opened(browser, "index")
    captions = page.locator(".sidebar-tree .caption").all_inner_texts()
    assert [text.capitalize() for text in captions] == [
        "Tutorials", "How-to guides", "Reference", "Explanation", "Measurements", "The project",
    ]  # fmt: skip
    page.click("text=Find the layer that loses the accuracy")
    assert "debugging" in page.url
