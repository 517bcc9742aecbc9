"""The changelog keeps the form of Keep a Changelog, and knows the version that is built."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
RELEASE = re.compile(r"## \[(?P<version>Unreleased|\d+\.\d+\.\d+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?")


def releases() -> list[re.Match[str]]:
    found = [(line, RELEASE.fullmatch(line)) for line in LINES if line.startswith("## ")]
    wrong = [line for line, match in found if match is None]
    assert not wrong, f"no heading of a release: {wrong}"
    return [match for _, match in found if match]


def test_releases_are_dated_and_newest_first() -> None:
    first, *rest = releases()
    assert first["version"] == "Unreleased"
    assert not first["date"]
    assert all(each["date"] for each in rest)
    numbers = [tuple(map(int, each["version"].split("."))) for each in rest]
    assert numbers == sorted(numbers, reverse=True)


def test_the_version_that_is_built_has_an_entry() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    dates = {each["version"]: each["date"] for each in releases()}
    assert version in dates
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {version}\ndate-released: {dates[version]}\n" in citation


def test_every_heading_is_one_of_the_form() -> None:
    assert {line[4:] for line in LINES if line.startswith("### ")} <= KINDS


def test_every_line_stands_where_it_belongs() -> None:
    """A heading has blank lines around it, and a list has items and their continuations only."""
    faults = []
    for number, (before, line) in enumerate(pairwise(LINES), start=2):
        heading = line.startswith("#") or before.startswith("#")
        if heading and before and line:
            faults.append(f"line {number}: a heading without a blank line: {line}")
        elif before.startswith(("- ", "  ")) and line and not line.startswith(("- ", "  ")):
            faults.append(f"line {number}: glued to a list: {line}")
    assert not faults


def test_a_release_has_one_list_of_each_kind() -> None:
    """Merges leave a second `### Fixed`, or the end of an item below another."""
    faults, seen = [], set[str]()
    for number, (before, line) in enumerate(pairwise(LINES), start=2):
        if line.startswith("## "):
            seen.clear()
        if line.startswith("### "):
            faults += [f"line {number}: again {line}"] if line in seen else []
            seen.add(line)
        if before.endswith(".") and line[:2] == "  " and line[2:3].islower():
            faults.append(f"line {number}: continues an item that has ended: {line}")
    assert not faults
