"""Pages in the Chromium that is installed, with all that a page says as a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser import FLAGS, chromium_or_skip

sync_api = pytest.importorskip("playwright.sync_api")
WAIT = 60_000  # milliseconds


@contextmanager
def chromium() -> Iterator[Any]:
    program = chromium_or_skip()
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def page_of(browser: Any, html: str, folder: Path, **settings: Any) -> Iterator[Any]:
    """A page from a file. It may ask for nothing, open no dialog, and have no error."""
    (folder / "v.html").write_text(html, encoding="utf-8")
    opened = browser.new_page(**({"viewport": {"width": 1280, "height": 800}} | settings))
    opened.set_default_timeout(WAIT)
    said: list[str] = []
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: said.append(dialog.message))
    opened.on("request", lambda asked: said.append(asked.url))
    opened.goto((folder / "v.html").as_uri())
    opened.wait_for_function("performance.getEntriesByName('graph drawn').length > 0")
    yield opened
    opened.close()
    assert not [text for text in said if not text.startswith(("file:", "blob:", "data:"))]
