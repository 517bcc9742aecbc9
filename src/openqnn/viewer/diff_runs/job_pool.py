"""Jobs in child processes: two at a time, with how far they are, and an end when somebody wants it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from openqnn.worker.interpreter import interpreter_environment

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
OVER: Final = (DONE, FAILED, CANCELLED)
AT_A_TIME: Final = 2
GRACE: Final = 3.0  # seconds between asking a job to end and ending it
KEPT: Final = 12  # lines of a job that failed


@dataclass(slots=True)
class Job:
    """A command. `steps` are starts of lines that it prints, with the share that is done by then."""

    title: str
    command: Sequence[str]
    log: Path
    steps: tuple[tuple[str, float], ...] = ()
    state: str = WAITING
    progress: float = 0.0
    said: list[str] = field(default_factory=list[str])
    process: subprocess.Popen[str] | None = None

    def record(self) -> dict[str, Any]:
        line = self.said[-1] if self.said else ""
        tail = self.said[-KEPT:] if self.state == FAILED else []
        return {
            "title": self.title, "state": self.state, "progress": self.progress, "line": line[:500],
            "tail": [text[:500] for text in tail], "log": str(self.log),
        }  # fmt: skip

    def hear(self, line: str) -> None:
        self.said = [*self.said[-50:], line.rstrip("\n")] if line.strip() else self.said
        for start, share in self.steps:
            if line.startswith(start):
                self.progress = max(self.progress, share)


class JobPool:
    """Runs jobs in the order in which they came."""

    def __init__(self, at_a_time: int = AT_A_TIME) -> None:
        self._free = threading.Semaphore(at_a_time)
        self._lock = threading.Lock()
        self._jobs: list[Job] = []

    def start(self, jobs: Sequence[Job], then: Callable[[], None] | None = None) -> None:
        """All jobs at once, as far as there is room; `then` is called when all of them are done well."""
        self._jobs += jobs
        threads = [threading.Thread(target=self._run, args=(job,), daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        threading.Thread(target=self._after, args=(threads, jobs, then), daemon=True).start()

    def cancel(self, job: Job) -> None:
        """End a job and all that it started; one that waits never starts."""
        with self._lock:
            if job.state in OVER:
                return
            job.state = CANCELLED
            process = job.process
        if process is not None:
            _end(process)

    def close(self) -> None:
        for job in list(self._jobs):
            self.cancel(job)

    def _after(
        self, threads: Sequence[threading.Thread], jobs: Sequence[Job], then: Callable[[], None] | None
    ) -> None:
        for thread in threads:
            thread.join()
        if then is not None and all(job.state == DONE for job in jobs):
            then()

    def _run(self, job: Job) -> None:
        with self._free:
            with self._lock:
                if job.state != WAITING:
                    return
                job.state = RUNNING
                try:
                    job.process = _started(job)
                except OSError as error:
                    job.state, job.said = FAILED, [str(error)]
                    return
            code = _followed(job, job.process)
            with self._lock:
                if job.state == RUNNING:
                    job.state = FAILED if code else DONE
                    job.progress = job.progress if code else 1.0


def _started(job: Job) -> subprocess.Popen[str]:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        list(job.command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True, env=interpreter_environment(),
    )  # fmt: skip


def _followed(job: Job, process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    with job.log.open("w", encoding="utf-8") as log, process.stdout as lines:
        for line in lines:
            log.write(line)
            job.hear(line)
    return process.wait()


def _end(process: subprocess.Popen[str]) -> None:
    """The whole group of processes: a tool has children of its own."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(GRACE)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
