"""Screens of the viewer against pictures of them, with room for other fonts and versions of the browser.

`screens/` is the record; delete a file and run the test to write it anew, then look at it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import openqnn
from openqnn.viewer.from_graph import view_from_graph
from openqnn.viewer.open_views import open_views
from openqnn.viewer.page import html_of, html_page
from openqnn.viewer.pass_views import log_passes, pass_page_data
from tests.models.fetch import model_path, static_shapes
from tests.viewer.chromium import chromium, page_of

SCREENS = Path(__file__).parent / "screens"
SIZE = (640, 400)  # of the record
LOOK = (64, 40)  # as small as the pictures are made to be compared: letters are gone, boxes are there
MEAN, WORST = 3.0, 55.0  # of 255
NAMED = "effword_fp32"
FLAT = "ppocr_cls"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@cache
def two_panes() -> str:
    converted = openqnn.convert(model_path(NAMED), input_shapes=static_shapes(NAMED))
    return html_page([*open_views(model_path(NAMED)), view_from_graph(converted, "converted", "QNN graph")])


def one_graph() -> str:
    converted = openqnn.convert(model_path(FLAT), input_shapes=static_shapes(FLAT))
    return html_page([view_from_graph(converted, "converted", "QNN graph")])


def passes() -> str:
    return html_of(
        pass_page_data(model_path(FLAT), log_passes(model_path(FLAT), {"input_shapes": static_shapes(FLAT)}))
    )


def walk_differences(page: Any) -> None:
    page.click("#next")
    page.click("#next")


def find_a_node(page: Any) -> None:
    page.fill("#find", "layer3.4/conv2")
    page.press("#find", "Enter")
    page.press("#find", "Escape")


def lay_overlays(page: Any) -> None:
    page.select_option("#overlay", "MACs")
    page.select_option("#overlay", "bytes read and written")
    page.locator("canvas.graph").focus()
    page.keyboard.press("w")


def choose_a_pass(page: Any) -> None:
    page.click("#passes button:has-text('fold_affine')")
    page.click("#passes .applied >> nth=0")


CASES: dict[str, tuple[Callable[[], str], Callable[[Any], None], str]] = {
    "start": (two_panes, lambda page: None, "light"),
    "differences": (two_panes, walk_differences, "dark"),
    "found": (two_panes, find_a_node, "light"),
    "overlays": (one_graph, lay_overlays, "light"),
    "passes": (passes, choose_a_pass, "dark"),
}


def small(picture: Image.Image) -> NDArray[np.float32]:
    return np.asarray(picture.convert("RGB").resize(LOOK, Image.Resampling.BOX), dtype=np.float32)


@pytest.mark.parametrize("name", CASES)
def test_a_screen_looks_as_recorded(browser: Any, tmp_path: Path, name: str) -> None:
    make, act, scheme = CASES[name]
    with page_of(browser, make(), tmp_path, color_scheme=scheme) as page:
        act(page)
        page.wait_for_timeout(400)
        taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    record = SCREENS / f"{name}.png"
    if not record.exists():
        SCREENS.mkdir(exist_ok=True)
        taken.resize(SIZE, Image.Resampling.LANCZOS).quantize(64).save(record, optimize=True)
        pytest.fail(f"{record.name} was written: look at it and run again")
    difference = np.abs(small(taken) - small(Image.open(record)))
    assert difference.mean() < MEAN and difference.max() < WORST, (difference.mean(), difference.max())


def test_records_differ_from_each_other() -> None:
    """What is allowed is less than what tells one screen from another."""
    looks = [small(Image.open(path)) for path in SCREENS.glob("*.png")]
    assert len(looks) == len(CASES)
    for one, other in combinations(looks, 2):
        difference = np.abs(one - other)
        assert difference.mean() > MEAN or difference.max() > WORST
