"""axe-core, which finds what keeps people from using a page, out of a package of PyPI that holds it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from openqnn.models.fetch import cache_directory

PACKAGE = "axe-playwright-python==0.1.8"
MEMBER = "axe_playwright_python/axe.min.js"
_VIOLATIONS = "r => r.violations.map(v => [v.impact, v.id, ...v.nodes.slice(0, 3).map(n => n.html)])"


def axe_script() -> str:
    """The script, kept where the models are; a test is skipped where it cannot be fetched."""
    script = cache_directory() / f"{PACKAGE.replace('==', '-')}.js"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=script.parent) as folder:
            _fetch(Path(folder), script)
    return script.read_text(encoding="utf-8")


def _fetch(folder: Path, script: Path) -> None:
    words = ("-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", str(folder))
    if subprocess.run([sys.executable, *words, PACKAGE], timeout=120, check=False).returncode:
        pytest.skip(f"pip could not fetch {PACKAGE}, which holds axe-core")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (folder / "axe.js").write_bytes(archive.read(MEMBER))
    os.replace(folder / "axe.js", script)


def serious(page: Any, part: str = "") -> list[list[str]]:
    """What is serious or critical on a page, or on a part of it, with the first elements that are meant.
    Their policies keep scripts of others out: open the page with `bypass_csp`."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(content=axe_script())
    asked = f"axe.run({part!r})" if part else "axe.run()"
    found: list[list[str]] = page.evaluate(f"{asked}.then({_VIOLATIONS})")
    return [each for each in found if each[0] in ("serious", "critical")]
