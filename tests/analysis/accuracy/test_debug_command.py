"""openqnn debug from the command line, and its page in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.analysis.accuracy.faults import plant, subject_of
from tests.browser import FLAGS, chromium_or_skip
from tests.cli.tool import Result, openqnn
from tests.models.fetch import model_path

MODEL = "mnist_conv"
TENTH = 2  # the seed of a range that is cut to a tenth


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples, and a graph with a fault."""
    made = tmp_path_factory.mktemp("debug")
    subject = subject_of(MODEL, 3)
    (made / "data").mkdir()
    for number, sample in enumerate(subject.samples):
        np.savez(made / "data" / f"{number}.npz", **{k: np.asarray(v) for k, v in sample.items()})  # pyright: ignore[reportArgumentType]
    plant(subject, TENTH).fixed.save(made / "planted.oqnn")
    return made


def debug(folder: Path, *more: str) -> Result:
    return openqnn("debug", str(model_path(MODEL)), "--data", str(folder / "data"), *more)


def test_a_planted_fault_is_told_and_mended(folder: Path) -> None:
    fix = folder / "fix.json"
    done = debug(folder, "--quantized", str(folder / "planted.oqnn"), "--fix", str(fix), "--no_attribution")
    assert done.code == 1
    assert "saturation" in done.out
    assert ": better" in done.out
    assert json.loads(fix.read_text())["activation_encodings"]
    words = ("--samples", "1", "--fix", str(fix), "--no_attribution", "--json")
    again = debug(folder, "--quantized", str(folder / "planted.oqnn"), *words)
    assert json.loads(again.out)["broken"] and f"{fix}: " in again.err


def test_the_worst_layers_on_the_library(folder: Path) -> None:
    done = debug(folder, "--confirm", "--prefix", "--json", "--no_attribution", "--quiet", "--layers", "3")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    by_name = {y["tensor"]: y["isolated_db"] for y in record["layers"]}
    assert record["confirmed_db"]
    for name, db in record["confirmed_db"].items():
        assert abs(db - by_name[name]) < 3, name
    assert any("tapping" in note for note in record["notes"])
    assert any("up to" in note and "nothing tapped" in note for note in record["notes"])


def test_the_report_as_json_and_files(folder: Path) -> None:
    done = debug(folder, "--report", str(folder / "out"), "--json", "--samples", "2", "--quiet")
    assert done.code == 0
    record = json.loads(done.out)
    assert record["samples"] == 2
    assert sorted(p.name for p in (folder / "out").iterdir()) == [
        "debug.csv",
        "debug.html",
        "debug.json",
        "model.html",
        "stored",
    ]
    again = debug(folder, "--report", str(folder / "out"), "--json", "--samples", "2", "--quiet")
    assert again.out == done.out


def test_few_samples_of_many_are_no_fault(folder: Path) -> None:
    """Ranges are those of all samples: what one of them leaves unused is not too wide."""
    done = debug(folder, "--samples", "1", "--json", "--no_attribution", "--quiet")
    assert (done.code, json.loads(done.out)["broken"]) == (0, [])


def test_bad_input_is_told(folder: Path) -> None:
    other = model_path("mtcnn_onet")
    wrong = openqnn(
        "debug",
        str(other),
        "--batch",
        "1",
        "--data",
        str(folder / "data"),
        "--quantized",
        str(folder / "planted.oqnn"),
    )
    assert wrong.code == 1
    assert "in common" in wrong.err
    (folder / "mine").mkdir()
    (folder / "mine" / "debug.csv").write_text("mine")
    assert "no report" in debug(folder, "--report", str(folder / "mine")).err
    assert (folder / "mine" / "debug.csv").read_text() == "mine"
    assert "nothing to compare on" in openqnn("debug", str(model_path(MODEL))).err


def test_the_page_in_a_browser(folder: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    program = chromium_or_skip()
    debug(folder, "--quantized", str(folder / "planted.oqnn"), "--report", str(folder / "page"))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda asked: said.append(asked.url))
        address = (folder / "page" / "debug.html").as_uri()
        page.goto(address)
        assert "saturation" in page.inner_text(".card")
        assert page.locator("#course circle").count() > 5
        place = page.locator("#all tbody tr:first-child td", has_text="saturation").bounding_box()
        assert place is not None
        assert place["x"] + place["width"] < 1280, "the cause is seen without scrolling"
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        first = page.inner_text("#all tbody tr:first-child td:nth-child(3)")
        page.click("#all th:nth-child(2)")
        assert page.inner_text("#all tbody tr:first-child td:nth-child(2)") == "0"
        page.fill("#find", first)
        assert page.locator("#all tbody tr:visible").count() >= 1
        browser.close()
    assert said == [address]
