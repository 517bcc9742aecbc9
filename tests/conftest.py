"""Settings for the whole test suite."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from openqnn.api import custom_ops
from tests.browser import told_of_skipped

# Examples of property tests create ONNX Runtime sessions: a time limit per example would only be noise.
settings.register_profile("openqnn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("openqnn")

# In the background of a shell interrupts are ignored; there are tests that need them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Child processes are asked for functions of the tests, and look for modules where this says.
_ROOT = str(Path(__file__).resolve().parent.parent)
os.environ["PYTHONPATH"] = os.pathsep.join([_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])

HANGS = 1800  # seconds: the longest test takes a few minutes, on a busy machine several times as much
GRACE = 60  # seconds more for a test that sits in a library, where no Python runs


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test that hangs fails, and the others go on; without this nothing would say which one it is."""

    def give_up(*_: object) -> None:
        pytest.fail(f"{item.nodeid} has not ended after {HANGS} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANGS)
    faulthandler.dump_traceback_later(HANGS + GRACE, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def no_files_of_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of operations that a test read are not told to the processes that later tests start."""
    monkeypatch.setattr(custom_ops, "_FILES", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Skipped tests are a letter among thousands: what a missing browser left out is said at the end."""
    line = told_of_skipped([str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())])
    if line:
        terminalreporter.section("no browser")
        terminalreporter.line(line)
