"""A session that a fork inherits: each process gets the answers to its own questions."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import BackendError
from openqnn.worker.child import Child
from openqnn.worker.messages import Task
from openqnn.worker.serve import Reporter
from tests.onnx_models import relu, save
from tests.qnn.nets import needs_cpu, needs_htp

CALLS = 40
LIBRARIES = [pytest.param("libQnnCpu.so", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]


def outcome(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def asks(session: openqnn.Session, number: float) -> bool:
    """Whether all answers are those to this number."""
    x = np.full((2, 3), number, np.float32)
    return all(np.allclose(session.run({"x": x})["y"], x, atol=1e-2) for _ in range(CALLS))


@pytest.mark.parametrize(
    "backend", [pytest.param("libQnnCpu.so", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]
)
def test_two_processes_with_one_session(backend: str, tmp_path: Path) -> None:
    graph = openqnn.convert(save(relu(), tmp_path / "relu.onnx"))
    with openqnn.Session(graph, backend) as session:
        session.run({"x": np.ones((2, 3), np.float32)})
        others = []
        for number in (1.0, 2.0):
            if pid := os.fork():
                others.append(pid)
                continue
            code = 1
            try:
                code = 0 if asks(session, number) else 2
            finally:
                os._exit(code)
        assert asks(session, 3.0)
        assert [outcome(pid) for pid in others] == [0, 0]


@needs_cpu
def test_the_copy_leaves_the_session_of_the_original_alone(tmp_path: Path) -> None:
    graph = openqnn.convert(save(relu(), tmp_path / "relu.onnx"))
    with openqnn.Session(graph, "libQnnCpu.so") as session:
        assert asks(session, 1.0)
        if not (pid := os.fork()):
            session.close()
            os._exit(0)
        assert outcome(pid) == 0
        assert asks(session, 2.0)


def said(text: str, reporter: Reporter) -> str:
    del reporter
    return text


def test_an_answer_to_another_task_is_refused() -> None:
    child = Child()
    try:
        child._connection.send(((os.getpid(), 7), Task(said, ("another's",))))
        with pytest.raises(BackendError, match="another process's task"):
            child.ask(Task(said, ("mine",)), "libX.so", 30)
    finally:
        child.end()


def garbled(reporter: Reporter) -> None:
    """Bytes of a length that are no pickle, into every socket of this process."""
    del reporter
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, (5).to_bytes(4, "big") + b"junk!")
        except OSError:
            continue


def test_garbage_in_place_of_an_answer_is_an_error() -> None:
    child = Child()
    try:
        with pytest.raises(BackendError, match="no answer"):
            child.ask(Task(garbled), "libX.so", 30)
    finally:
        child.end()
