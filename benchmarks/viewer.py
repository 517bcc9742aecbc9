"""The viewer's page in Chromium: time to the first picture of large graphs, and frames while they move.

Pages are opened from local files. Frames are counted while the page is panned and zoomed in every frame, and
held against those of an empty page in the same browser, which a machine without a display paces as it likes.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from math import isqrt
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import Section, Verdict
from openqnn.viewer.page import html_page
from openqnn.viewer.view import View, ViewNode, ViewTensor

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
OPS = (
    "Conv2d",
    "Relu",
    "DepthWiseConv2d",
    "HardSwish",
    "Conv2d",
    "ElementWiseAdd",
    "Reshape",
    "MatMul",
    "Softmax",
)
LIMITS = {8_000: 2.0, 25_000: 5.0}  # seconds to the first picture, by nodes
LEAST_FRAMES = 50
FRAMES = 150
MODULES, FLAT, WIDE = "modules", "flat", "wide"
TURNS = 3

EMPTY = "<!doctype html><title>empty</title>"
COUNT = """async (frames) => {
  const canvas = document.querySelector("canvas.graph");
  const middle = canvas ? [canvas.clientWidth / 2, canvas.clientHeight / 2] : [0, 0];
  const send = (kind, name, more) => canvas && canvas.dispatchEvent(new kind(name,
    { bubbles: true, cancelable: true, pointerId: 1, ...more }));
  const at = (dx, dy) => ({ clientX: middle[0] + dx, clientY: middle[1] + dy });
  if (canvas) canvas.setPointerCapture = () => {};
  const times = [];
  await new Promise((done) => {
    let last = 0;
    const frame = (now) => {
      if (last) times.push(now - last);
      last = now;
      const turn = times.length;
      if (turn >= frames) return done();
      if (turn < frames / 2) {
        if (turn === 1) send(PointerEvent, "pointerdown", at(0, 0));
        send(PointerEvent, "pointermove", at(60 * Math.sin(turn / 9), 90 * Math.sin(turn / 7)));
      } else {
        if (turn === Math.ceil(frames / 2)) send(PointerEvent, "pointerup", at(0, 0));
        send(WheelEvent, "wheel", { ...at(0, 0), deltaY: turn % 40 < 20 ? 40 : -40 });
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  return times;
}"""
DRAWN = """() => new Promise((done) => {
  const look = () => {
    const found = performance.getEntriesByName("graph drawn")[0];
    if (found) done(found.startTime); else setTimeout(look, 10);
  };
  look();
})"""


def large_view(count: int, form: str) -> View:
    """A network of so many nodes: a chain with skips, its names with modules or without any structure, or as
    many branches beside each other as each has nodes."""
    picked = random.Random(count)
    nodes: list[ViewNode] = []
    step = isqrt(count) if form == WIDE else 1
    for index in range(count):
        name = f"stage{index // 1000}/block{index // 20}/op_{index}" if form == MODULES else f"op_{index}"
        op = OPS[index % len(OPS)] if form == MODULES else picked.choice(OPS)
        reads = {index - step, index - step * picked.randint(2, 9)} if index % 5 == 0 else {index - step}
        inputs = tuple(ViewTensor(f"t{i}", "float32", (1, 56, 56, 64)) for i in sorted(reads) if i >= 0)
        out = ViewTensor(
            f"t{index}", "float32", (1, 56, 56, 64), "8 bits, scale 0.0123, offset -3", "min-max"
        )
        params = {"stride": "(1, 1)", "pad_amount": "((1, 1), (1, 1))"}
        nodes.append(ViewNode(name, op, f"onnx node {name}", params, inputs, (out,), (out.name, name)))
    return View(f"{count} nodes", "test", tuple(nodes))


def measure() -> Section:
    from playwright.sync_api import sync_playwright

    section = Section(
        "viewer: large graphs in Chromium",
        ("nodes", "form", "view", "MB", "first picture, s", "frames a second", "of an empty page's"),
    )
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        (Path(folder) / "empty.html").write_text(EMPTY)
        empty = _frames(_opened(browser, Path(folder) / "empty.html"))
        for count, limit in LIMITS.items():
            for form in (MODULES, FLAT, WIDE):
                _measure_graph(section, browser, Path(folder), count, form, limit, empty)
        browser.close()
    return section


def _measure_graph(
    section: Section, browser: Any, folder: Path, count: int, form: str, limit: float, empty: float
) -> None:
    file = folder / f"{count}-{form}.html"
    file.write_text(html_page([large_view(count, form)]), encoding="utf-8")
    size = round(file.stat().st_size / 1e6, 1)
    pages = [_opened(browser, file, keep=turn == TURNS - 1) for turn in range(TURNS)]
    drawn = median(seconds for _, seconds in pages)
    page = pages[-1][0]
    section.verdicts.append(
        Verdict(f"{count} nodes, {form}: seconds to the first picture", drawn, limit, False)
    )
    for view, act in (("at the start", ""), ("the whole", "fit"), ("the whole, all open", "open")):
        if act == "open" and form != MODULES:
            continue
        for key in ("o", "0") if act == "open" else ("0",) if act else ():
            page.keyboard.press(key)
            page.wait_for_timeout(1500)
        rate = _frames((page, 0.0), close=False)
        section.rows.append(
            (count, form, view, size, round(drawn, 2), round(rate, 1), round(rate / empty, 2))
        )
        least = min(LEAST_FRAMES, 0.8 * empty)
        section.verdicts.append(Verdict(f"{count} nodes, {form}, {view}: frames a second", rate, least, True))
    page.close()


def _opened(browser: Any, file: Path, *, keep: bool = True) -> tuple[Any, float]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(file.as_uri())
    seconds = page.evaluate(DRAWN) / 1000 if file.stat().st_size > len(EMPTY) else 0.0
    if not keep:
        page.close()
    return page, seconds


def _frames(opened: tuple[Any, float], *, close: bool = True) -> float:
    """Frames a second by the median time between two."""
    page = opened[0]
    times = [time for _ in range(2) for time in page.evaluate(COUNT, FRAMES)]
    if close:
        page.close()
    return 1000 / median(times)
