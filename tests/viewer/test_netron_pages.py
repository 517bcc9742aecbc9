"""The pages of qnn-netron in a real browser: a comparison from the form to the nodes that differ."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from openqnn.cli.tools.qnn_netron import tool_command
from openqnn.viewer.diff_runs.netron_pages import NetronPages
from openqnn.viewer.server import LARGEST, ViewServer
from tests.browser import FLAGS, chromium_or_skip
from tests.viewer.axe import serious
from tests.viewer.diff_forms import MODEL, folder_with_model
from tests.viewer.test_views import NASTY, graph

sync_api = pytest.importorskip("playwright.sync_api")


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    program = chromium_or_skip()
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def served(kinds: dict[str, Path], tmp_path: Path) -> Iterator[ViewServer]:
    folder_with_model(kinds, tmp_path)
    np.ones_like(np.fromfile(tmp_path / "x.raw", dtype=np.float32)).tofile(tmp_path / "ones.raw")
    (tmp_path / "other.txt").write_text(f"{tmp_path / 'ones.raw'}\n{tmp_path / 'ones.raw'}\n")
    graph(NASTY).save(tmp_path / "<img src=x onerror=alert(1)>.oqnn")
    pages = NetronPages(tmp_path, tool_command)
    server = ViewServer(pages, takes=pages.take)
    pages.ends_with(server)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server
    if thread.is_alive():
        server.close()
    pages.close()
    thread.join(10)


@pytest.fixture
def page(browser: sync_api.Browser, served: ViewServer) -> Iterator[sync_api.Page]:
    """The start page, with every message of a page as a failure."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    said: list[str] = []
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: said.append(dialog.message))
    opened.goto(served.address)
    yield opened
    opened.close()
    assert not said


def fill_form(page: sync_api.Page) -> None:
    page.click("text=Diff...")
    for prefix in ("one", "two"):
        for name, value in {**MODEL, "input_list": "list.txt"}.items():
            page.fill(f"[id='field-{prefix}.{name}']", value)
    page.select_option("[id='field-two.runtime']", "htp")
    page.fill("[id='field-working_directory']", "work")


def test_a_comparison_from_the_form_to_the_nodes(page: sync_api.Page, tmp_path: Path) -> None:
    fill_form(page)
    page.fill("[id='field-save']", "kept")
    page.click("text='Run'")
    page.click("text=Show the differences", timeout=120_000)
    page.click("#next")
    first = page.inner_text("#panel")
    assert "DIFF" in first and "Run 1:" in first and "% Error" in first
    page.click("#next")
    assert page.inner_text("#panel") != first
    page.go_back()
    page.select_option("#use_case", "Golden vs Inference")
    page.wait_for_selector("text=Golden Outputs")
    page.reload()
    page.select_option("#saved", "kept/run_config.json")
    page.wait_for_selector("#said:has-text('saved fields')")
    assert page.input_value("[id='field-two.runtime']") == "htp"
    assert json.loads((tmp_path / "kept" / "run_config.json").read_text())["fields"]["two.runtime"] == "htp"
    page.click("#to-start")
    page.click("#recent a")
    assert "Inference vs Inference" in page.inner_text("#panel")


def test_each_bad_field_has_its_message_beside_it(page: sync_api.Page) -> None:
    page.click("text=Diff...")
    page.fill("[id='field-one.model_cpp']", "/etc/passwd")
    page.fill("[id='field-accuracy_threshold']", "<b>much</b>")
    page.click("text='Run'")
    page.wait_for_selector("[id='problem-one.model_json']:has-text('is needed')")
    assert "is outside of" in page.inner_text("[id='problem-one.model_cpp']")
    assert "<b>much</b> is no number" in page.inner_text("[id='problem-accuracy_threshold']")
    assert page.evaluate("document.activeElement.name") == "one.model_json"
    page.select_option("[id='field-one.target_device']", "on-device")
    page.click("text='Run'")
    page.wait_for_selector("[id='problem-one.device_id']:has-text('Device ID is needed')")
    assert "for Android" in page.inner_text("[id='problem-one.architecture']")
    assert page.locator("[id='field-one.runtime'] option").all_inner_texts()[-1] == "dspv79"
    page.select_option("[id='field-one.architecture']", "aarch64-linux")
    assert page.locator("[id='field-one.ndk_path']").count() == 0
    page.click("text='Run'")
    page.wait_for_selector("[id='problem-one.engine_path']:has-text('onnxruntime-qnn')")


def test_parameters_follow_the_verifier_by_keyboard_alone(page: sync_api.Page) -> None:
    page.focus("#to-diff")
    page.keyboard.press("Enter")
    page.wait_for_selector("[id='field-verifier']").focus()
    page.keyboard.type("Adj")
    page.wait_for_selector("text=Number of Levels")
    assert page.input_value("[id='field-verifier.AdjustedRtolAtol.levels_num']") == "256"
    assert page.evaluate("document.activeElement.name") == "verifier"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "verifier.AdjustedRtolAtol.levels_num"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: sync_api.Browser, served: ViewServer, scheme: str) -> None:
    """On each of the pages: start, form, messages beside fields, jobs, and the differences."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page.goto(served.address)
    assert not serious(page)
    page.click("text=Diff...")
    page.click("text='Run'")
    page.wait_for_selector("[id='problem-one.model_json']:has-text('is needed')")
    assert not serious(page)
    page.click("#to-start")
    fill_form(page)
    for prefix in ("one", "two"):
        page.select_option(f"[id='field-{prefix}.runtime']", "built-in")
    page.fill("[id='field-two.input_list']", "other.txt")
    page.click("text='Run'")
    page.wait_for_selector(".job")
    assert not serious(page)
    page.click("text=Show the differences", timeout=120_000)
    page.click("#next")
    assert "DIFF" in page.inner_text("#panel")
    assert not serious(page)
    page.close()


def test_a_run_is_cancelled(page: sync_api.Page) -> None:
    fill_form(page)
    page.click("text='Run'")
    page.click("[aria-label='Cancel Inference Two']")
    page.wait_for_selector(".job.cancelled:has-text('Inference Two')")
    page.wait_for_selector("h3:has-text('cancelled')", timeout=120_000)
    assert page.locator("text=Show the differences").count() == 0


def test_quit_ends_the_server(page: sync_api.Page, served: ViewServer) -> None:
    page.click("#quit")
    page.wait_for_selector("text=has ended")
    page.wait_for_timeout(900)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(served.address, timeout=5)


def post(server: ViewServer, path: str, body: bytes, kind: str = "application/json", token: str = "") -> int:
    address = server.address.replace("/?", f"/{path}?")
    if token:
        address = f"{address.partition('=')[0]}={token}"
    request = urllib.request.Request(address, body, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_what_is_sent_is_bounded_and_has_the_token(served: ViewServer) -> None:
    assert post(served, "run", b"{}") == 200
    assert post(served, "run", b"{}", token="wrong") == 403
    assert post(served, "run", b"a=b", "application/x-www-form-urlencoded") == 415
    assert post(served, "nothing", b"{}") == 404
    with pytest.raises((urllib.error.URLError, AssertionError)):
        assert post(served, "run", b" " * (LARGEST + 1)) == 200
    for body in (
        b"",
        b"[",
        b"[1]",
        b'{"fields": 3}',
        b'{"run": -1, "job": 0}',
        b'{"path": "../../etc/passwd"}',
    ):
        for path in ("run", "cancel", "save", "load"):
            assert post(served, path, body) == 200
