"""The browser that tests open pages with: Debian's chromium, driven by playwright, which downloads none."""

from __future__ import annotations

import shutil

import pytest

NAME = "chromium"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--font-render-hinting=none",
)  # fmt: skip
MISSING = "no chromium on the PATH, with which pages are tested (on Debian: apt-get install chromium)"


def chromium_or_skip() -> str:
    """The program; a test that needs it is skipped where it is missing, with how to get it."""
    found = shutil.which(NAME)
    if found is None:
        pytest.skip(MISSING)
    return found


def told_of_skipped(reasons: list[str]) -> str:
    """The line for the end of a run in which the browser was missing; nothing where no test missed it."""
    count = sum(MISSING in reason for reason in reasons)
    return f"{count} test(s) of pages were skipped: {MISSING}" if count else ""
