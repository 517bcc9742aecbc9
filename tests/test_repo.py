"""What the repository promises of itself: examples run, functions are short, imports point down."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.browser import MISSING, told_of_skipped

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES, FUNCTION_LINES, RECIPE_LINES = 500, 60, 10
SOURCES = sorted((ROOT / "src").rglob("*.py"))

# Written in pieces, so that this file does not find itself.
FOREIGN = {
    "a path of the machine it was written on": r"(?<![\w.])/" + r"(?:work|root|home/\w+)/",
    "a file outside the repository": r"\.\./" + r"(?:shared|reference)\b",
    "the number of an issue": r"\bissue" + r"s? #?\d",
    "the address of a registry": r"pypi\.org/" + r"simple|files\.python" + r"hosted|index" + r"-url",
}


def blocks(document: str, language: str) -> list[str]:
    """The fenced code blocks of one language in a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command with the tools of this environment first on the path."""
    tools = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command, cwd=cwd, env=os.environ | tools, capture_output=True, text=True, check=False
    )


def test_readme_example_runs(tmp_path: Path) -> None:
    prepared = next(block for block in blocks("README.md", "sh") if "openqnn models fetch" in block)
    assert run("bash", "-e", "-c", prepared, cwd=tmp_path).returncode == 0
    (tmp_path / "example.py").write_text("\n".join(blocks("README.md", "python")), encoding="utf-8")
    done = run(sys.executable, "-W", "error", "example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the digit is 2" in done.stdout


@pytest.mark.parametrize(
    "example", sorted({path.parent for path in (ROOT / "examples").glob("[0-9]*/*.py")}), ids=lambda p: p.name
)
def test_example_with_scripts_runs(example: Path) -> None:
    if "libQnn" in (example / "README.md").read_text(encoding="utf-8") and not find_spec("onnxruntime_qnn"):
        pytest.skip("the wheel onnxruntime-qnn is not installed")
    done = run(sys.executable, "examples/run.py", example.relative_to(ROOT))
    assert done.returncode == 0, done.stdout + done.stderr


def test_recipes_are_short() -> None:
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert len(recipes) >= 5
    for recipe in recipes:
        title, *lines = recipe.splitlines()
        assert len([line for line in lines if line.strip()]) <= RECIPE_LINES, title


def tracked_files() -> list[Path]:
    done = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if done.returncode:
        pytest.skip("this is not a git checkout")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize("what", FOREIGN)
def test_repository_stands_alone(what: str) -> None:
    pattern = re.compile(FOREIGN[what], re.M)
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked_files()
        if (match := pattern.search(path.read_text(encoding="utf-8", errors="replace")))
    ]
    assert not found, f"{what} is mentioned in: " + ", ".join(found)


def test_no_large_file_is_committed() -> None:
    large = [str(path.relative_to(ROOT)) for path in tracked_files() if path.stat().st_size > 1_000_000]
    assert not large


def test_modules_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert not {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MODULE_LINES}


def test_functions_are_short() -> None:
    lengths = dict(function for path in SOURCES for function in functions(path))
    assert not {name: n for name, n in lengths.items() if n > FUNCTION_LINES}


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function of a module with its number of lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_imports_point_down() -> None:
    done = run("lint-imports", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_missing_browsers_are_told_of() -> None:
    """Tests of pages are skipped without a browser: the end of the run says so, with how to get one."""
    assert not told_of_skipped(["Skipped: npm is not installed"])
    line = told_of_skipped([f"('x.py', 3, 'Skipped: {MISSING}')"] * 2)
    assert "2 test(s)" in line and "apt-get install chromium" in line
    assert "apt-get install -y -qq --no-install-recommends chromium" in (ROOT / ".ci" / "run").read_text()


def test_the_layers_are_those_of_the_architecture() -> None:
    """The page's table and the contract that `lint-imports` checks name one order."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    checked = [set(re.findall(r"\w+", layer)) for layer in contract["layers"] if layer != "__main__"]
    table = (ROOT / "docs/architecture.md").read_text().partition("| layer |")[2].partition("\n## ")[0]
    cells = (line.replace("\\|", "").split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert [set(re.findall(r"\w+", cell)) for cell in cells] == checked
