"""What README.md shows is what happens: its session, its picture and its figures."""

from __future__ import annotations

import re
import tomllib

import pytest

from benchmarks.accuracy_figure import FIGURE, figures, lead, svg
from openqnn import __version__
from openqnn.analysis.chip_fits import CHIPS
from openqnn.cli.registry import tool_names
from tests.docs.readme_session import README, session, shown_session
from tests.libraries import need
from tests.test_repo import ROOT

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
IN_WORDS = {8: "eight", 9: "nine", 10: "ten"}


@pytest.mark.slow
def test_session_is_what_the_commands_print() -> None:
    """The words are the same, and the numbers within 1 %: they depend a little on the processor."""
    need("libQnnHtp.so")
    found, shown = session(), shown_session()
    assert NUMBER.sub("N", found) == NUMBER.sub("N", shown), "python -m tests.docs.readme_session"
    pairs = zip(NUMBER.findall(found), NUMBER.findall(shown), strict=True)
    far = [(a, b) for a, b in pairs if abs(number(a) - number(b)) > 0.01 * max(number(b), 1)]
    assert not far, "python -m tests.docs.readme_session"


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_picture_has_the_measured_figures() -> None:
    assert FIGURE.read_text(encoding="utf-8") == svg(), "python -m benchmarks.accuracy_figure"
    assert len(figures()) >= 17
    assert FIGURE.relative_to(ROOT).as_posix() in README.read_text(encoding="utf-8")


def test_figures_are_those_of_the_pages() -> None:
    text = README.read_text(encoding="utf-8")
    assert f"{lead(sorted(figures().items())):.1f} dB" in text
    onnx = re.search(r"Of (\d+) cases (\d+) pass", page("onnx_conformance.md"))
    htp = re.search(r"(\d+) pass as they are; (\d+) more", " ".join(page("htp_conformance.md").split()))
    torch = re.search(r"^(\d+) ops give torch's numbers", page("torch_ops.md"), re.M)
    tflite = re.search(r"Of (\d+) builtin operators\s+(\d+) are", page("tflite.md"))
    ops = re.search(r"^(\d+) operations", page("ops.md"), re.M)
    assert onnx and htp and torch and tflite and ops
    more = re.search(r"(\d+) more pass", page("onnx_conformance.md"))
    assert more
    for figure in (
        f"{int(onnx[2]) + int(more[1]):,} of {int(onnx[1]):,} ONNX node tests",
        f"{int(htp[1]) + int(htp[2]):,} of them on HTP", f"{torch[1]} of torch's ops",
        f"{tflite[2]} of {tflite[1]} TFLite operators", f"{ops[1]} QNN operations",
        f"{len(tool_names())} tools", f"{IN_WORDS[len(CHIPS)]} chips",
    ):  # fmt: skip
        assert figure in text, figure


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_file_tells_the_same_version() -> None:
    project = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    cited = re.search(r"^version: (.+)", (ROOT / "CITATION.cff").read_text(), re.M)
    assert project and cited
    assert project[1] == cited[1] == __version__


def test_every_dependency_is_in_the_notices() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in extras if name != "dev" for each in extras[name])]
    named = {re.split(r"[^\w-]", requirement)[0] for requirement in wanted}
    notices = (ROOT / "NOTICE.md").read_text(encoding="utf-8")
    missing = {name for name in named if f"| {name} |" not in notices}
    assert len(named) > 8
    assert not missing


@pytest.mark.parametrize("name", ["README.md", "llms.txt"])
def test_pages_are_named_in_short_lists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "docs/README.md" in text and "docs/errors.md" in text and "docs/reference" in text
