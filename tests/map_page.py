"""docs/map.md: every folder and module of the package with the first sentence of its docstring.

`python -m tests.map_page` writes it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "openqnn"
PAGE = ROOT / "docs" / "map.md"
HEAD = """# Map

Where is what? Every folder and module with what belongs in it, from the modules' own docstrings.
`python -m tests.map_page` writes this page; a test compares.
The [architecture](architecture.md) says how the parts hold together.
"""


def first_sentence(path: Path) -> str:
    """What a module says of itself, up to the first full stop or blank line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.;])\s+(?=[A-Z])", paragraph)[0]


def folders() -> list[Path]:
    return sorted({path.parent for path in PACKAGE.rglob("*.py")})


def row(path: Path) -> str:
    said = first_sentence(path).replace("|", "\\|")
    return f"| `{path.stem}` | {said} |"


def page() -> str:
    parts = [HEAD]
    for folder in folders():
        name = folder.relative_to(PACKAGE.parent)
        start = folder / "__init__.py"
        parts.append(f"\n## {name}\n\n{first_sentence(start) if start.exists() else ''}\n")
        modules = [path for path in sorted(folder.glob("*.py")) if path != start]
        if modules:
            parts.append("| module | what belongs in it |\n| --- | --- |")
            parts += [
                f"| `{path.stem}` | {first_sentence(path).replace('|', chr(92) + '|')} |" for path in modules
            ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
