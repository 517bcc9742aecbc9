"""Child processes of both kinds: what comes back, and what a crash, a hang or an error looks like."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import BackendError, OutputError, Problem, UnsupportedError
from openqnn.worker import child as child_module
from openqnn.worker.child import Child
from openqnn.worker.messages import Done, Failed, Task
from openqnn.worker.serve import Board, Reporter
from tests.cli.tool import environment
from tests.qnn.nets import needs_cpu


def work(kind: str, reporter: Reporter) -> object:
    """What the children of these tests are asked to do."""
    reporter.step(f"step of {kind}")
    match kind:
        case "answer":
            reporter.tell("half way")
            return np.arange(3), os.getpid()
        case "crash":
            print("the last words", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(60)
        case "open and hang":
            reporter.opened()
            time.sleep(60)
        case "refuse":
            raise UnsupportedError("no", hint="another way", problems=[Problem("Op", "n", "why")])
        case "write":
            raise OSError(28, "No space left on device", "out.bin")
        case "bug":
            raise KeyError("x")
    return None


@pytest.fixture(params=["forked", "spawned"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


class Asked:
    """A child with a task of `work`."""

    def __init__(self, kind: str, what: str) -> None:
        self.task, self.kind = Task(work, (what,)), kind
        self.child = Child(self.task if kind == "forked" else None)
        self.heard: list[object] = []

    def answer(self, timeout: float | None = 30, opening: float | None = None) -> Done | Failed:
        if self.kind == "forked":
            return self.child.answer("libX.so", timeout, self.heard.append, opening)
        return self.child.ask(self.task, "libX.so", timeout, self.heard.append, opening)


@pytest.fixture
def asked(kind: str) -> Iterator[list[Asked]]:
    made: list[Asked] = []
    yield made
    for each in made:
        each.child.end()
        with pytest.raises(ProcessLookupError):
            os.kill(each.child.pid, 0)


def test_an_answer_with_a_word_on_the_way(kind: str, asked: list[Asked]) -> None:
    asked.append(one := Asked(kind, "answer"))
    answer = one.answer()
    assert isinstance(answer, Done)
    array, pid = answer.value
    np.testing.assert_array_equal(array, [0, 1, 2])
    assert pid == one.child.pid != os.getpid()
    assert one.heard == ["half way"]


def test_a_crash_names_the_signal_the_step_and_the_last_words(kind: str, asked: list[Asked]) -> None:
    asked.append(one := Asked(kind, "crash"))
    with pytest.raises(BackendError) as caught:
        one.answer()
    assert caught.value.message.startswith("libX.so crashed (SIGSEGV); last step: step of crash")
    assert "log: the last words" in caught.value.message


def test_a_hang_is_a_message(kind: str, asked: list[Asked]) -> None:
    asked.append(one := Asked(kind, "hang"))
    with pytest.raises(BackendError, match=r"gave no answer in 2 s; last step: (step of hang|start)"):
        one.answer(timeout=2)


def test_who_waits_is_told_of_a_long_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "_GLANCE", 0.2)
    monkeypatch.setattr(child_module, "_PATIENCE", 0.5)
    told: list[str] = []
    child = Child(Task(work, ("hang",)))
    with pytest.raises(BackendError, match="gave no answer"):
        child.answer("a library", 2.5, tell=told.append)
    child.end()
    assert told == ["a library has been at one step for 0.5 s: step of hang; Ctrl-C ends it"]


def test_time_to_open_is_a_limit_of_its_own(kind: str, asked: list[Asked]) -> None:
    asked.append(late := Asked(kind, "hang"))
    with pytest.raises(BackendError, match="gave no answer in 2 s"):
        late.answer(timeout=30, opening=2)
    asked.append(opened := Asked(kind, "open and hang"))
    with pytest.raises(BackendError, match="gave no answer in 3 s"):
        opened.answer(timeout=3, opening=1000)


def test_errors_come_back_whole(kind: str, asked: list[Asked]) -> None:
    asked.append(one := Asked(kind, "refuse"))
    answer = one.answer()
    assert isinstance(answer, Failed) and isinstance(answer.error, UnsupportedError)
    assert (answer.error.message, answer.error.hint) == ("no", "another way")
    assert answer.error.problems == (Problem("Op", "n", "why"),)


def test_a_full_disk_and_a_bug_are_told_apart(kind: str, asked: list[Asked]) -> None:
    asked += [disk := Asked(kind, "write"), bug := Asked(kind, "bug")]
    full, ours = disk.answer(), bug.answer()
    assert isinstance(full, Failed) and isinstance(full.error, OutputError)
    assert full.error.message == "out.bin: No space left on device"
    assert isinstance(ours, Failed) and "this is a bug in openqnn" in ours.error.message
    assert "Traceback" in bug.child.log


def test_a_forked_child_that_answered_is_collected_by_the_next() -> None:
    first = Asked("forked", "answer")
    first.answer()
    first.child.end(wait=False)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{first.child.pid}/stat").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
        Asked("forked", "answer").child.end()
    with pytest.raises(ProcessLookupError):
        os.kill(first.child.pid, 0)


def test_a_forked_child_leaves_our_streams_alone(capfd: pytest.CaptureFixture[str]) -> None:
    print("before")
    one = Asked("forked", "crash")
    with pytest.raises(BackendError):
        one.answer()
    one.child.end()
    print("after", file=sys.stderr)
    assert capfd.readouterr() == ("before\n", "after\n")


ALONE = """
import threading
from openqnn.qnn.library import can_fork
assert can_fork()
done = threading.Event()
thread = threading.Thread(target=done.wait)
thread.start()
assert not can_fork()
done.set()
thread.join()
assert can_fork()
"""
LOADED = """
from openqnn.qnn.library import can_fork
from openqnn.qnn.library import load_library
load_library("cpu")
assert not can_fork()
"""


def test_only_a_process_of_one_thread_is_copied() -> None:
    subprocess.run([sys.executable, "-c", ALONE], env=environment(), check=True)


@needs_cpu
def test_a_process_with_a_library_is_not_copied() -> None:
    subprocess.run([sys.executable, "-c", LOADED], env=environment(), check=True)


def test_a_board_keeps_the_newest_step_however_long() -> None:
    board = Board()
    assert board.read() == ""
    board.write("é" * Board.SIZE)
    assert board.read().startswith("é" * 1000)
    board.write("short")
    assert board.read() == "short"
