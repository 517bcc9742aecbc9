"""Links between the pages lead somewhere, to the heading too, and every page is on the list of all pages."""

from __future__ import annotations

import re
import runpy
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from tests.test_repo import ROOT, tracked_files

PAGES = sorted(path for path in tracked_files() if path.suffix == ".md" and ".github" not in path.parts)
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = [target for target in links(page) if not leads_somewhere(page, target)]
    assert not broken


def test_every_page_is_listed() -> None:
    """Lists of pages are docs/README.md and those that it leads to, such as the list of decision records."""
    home = ROOT / "docs" / "README.md"
    listed, waiting = {ROOT / "README.md", home}, [home]
    while waiting:
        found = {(waiting[0].parent / target).resolve() for target in links(waiting[0])}
        new = {path for path in found if path.suffix == ".md"} - listed
        waiting = [*waiting[1:], *(path for path in new if path.name == "README.md")]
        listed |= new
    missing = [str(page.relative_to(ROOT)) for page in PAGES if page not in listed]
    assert not missing, "add them to docs/README.md"


def test_every_page_is_part_of_the_site() -> None:
    patterns = runpy.run_path(str(ROOT / "docs" / "site" / "conf.py"))["include_patterns"]
    names = [page.relative_to(ROOT).as_posix() for page in PAGES]
    outside = [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)]
    assert not outside, "docs/site/conf.py: include_patterns"


def links(page: Path) -> list[str]:
    """The links of a page, but those to other sites."""
    found = _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in found if "://" not in target and not target.startswith("mailto:")]


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    return path.is_file() and (not anchor or anchor in headings(path))


@cache
def headings(page: Path) -> set[str]:
    """The anchors that GitHub gives to headings."""
    text = _CODE.sub(lambda found: found[0] if found[0].count("\n") == 0 else "", page.read_text("utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}
