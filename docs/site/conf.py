"""The documentation site: the Markdown of the repository by Sphinx, in the order of docs/README.md.

`make docs` builds it into build/site. The pages are plain Markdown that reads as well on GitHub: what a site
needs besides, the table of contents, is made here from the lists of links that the README files have.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
HOME, CONTENTS = "README", "docs/README"

project = "OpenQNN"
author = "The OpenQNN authors"
extensions = ["myst_parser"]
root_doc = HOME
include_patterns = [
    "README.md", "AGENTS.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md",
    "NOTICE.md", "docs/**.md", "examples/**.md", "benchmarks/README.md", "integrations/*/README.md",
]  # fmt: skip
exclude_patterns = ["build", ".venv*", "src", "tests"]
myst_heading_anchors = 4
nitpicky = True
smartquotes = False  # would make one dash of the two that options begin with

html_theme = "furo"
html_title = "OpenQNN"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_search_summary = False  # it would read pages, which a browser does not do without a server
html_show_sphinx = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "github-dark"

_LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+\.md)\)")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_contents)
    app.connect("build-finished", _copy_home)


def _add_contents(_: Sphinx, name: str, source: list[str]) -> None:
    """Give the home page and the lists of pages a table of contents that only the sidebar shows."""
    if name == HOME:
        source[0] += _home_contents()
    elif name.startswith("docs/") and name.endswith("/README") and name != CONTENTS:
        folder = name.removesuffix("README")
        source[0] += _toctree(
            "", {n: words for n, words in _links(source[0], ROOT / name).items() if n.startswith(folder)}
        )


def _home_contents() -> str:
    """A part of the sidebar for every section of the list of pages."""
    listed = ROOT / f"{CONTENTS}.md"
    sections = listed.read_text(encoding="utf-8").split("\n## ")[1:]
    made: list[str] = []
    for section in sections:
        pages = {name: words[0].upper() + words[1:] for name, words in _links(section, listed).items()}
        made.append(_toctree(section.partition("\n")[0], pages))
    return "".join([*made, _toctree("", {CONTENTS: "All pages"})])


def _links(text: str, page: Path) -> dict[str, str]:
    """The pages that a list names, from the root of the repository and without `.md`, and as what."""
    found: dict[str, str] = {}
    for words, target in _LINK.findall(text):
        path = (page.parent / target).resolve().relative_to(ROOT)
        found.setdefault(path.as_posix().removesuffix(".md"), words)
    return {name: words for name, words in found.items() if name not in (HOME, CONTENTS)}


def _toctree(caption: str, pages: dict[str, str]) -> str:
    said = f":caption: {caption}\n" if caption else ""
    listed = "\n".join(f"{words} </{name}>" for name, words in pages.items())
    return f"\n\n```{{toctree}}\n:hidden:\n{said}\n{listed}\n```\n"


def _copy_home(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        shutil.copy(app.outdir / f"{HOME}.html", app.outdir / "index.html")
