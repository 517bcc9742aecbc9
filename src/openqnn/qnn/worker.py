"""The child process behind `openqnn.qnn.isolated`: `python -m openqnn.qnn.worker <socket> <parent>`.

Jobs come and answers go over an inherited socket; stdout and stderr are a file of the parent's, where it
finds the last words of a child that crashed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from multiprocessing.connection import Connection

from openqnn.errors import OpenQnnError
from openqnn.qnn import tasks
from openqnn.qnn.messages import Done, Failed, Job, Partial, Step


def serve(connection: Connection) -> None:
    """Answer jobs until the parent hangs up."""
    reporter = tasks.Reporter(
        step=lambda text: connection.send(Step(text)),
        partial=lambda value: connection.send(Partial(value)),
    )
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_answer(job, reporter))


def _answer(job: Job, reporter: tasks.Reporter) -> Done | Failed:
    try:
        return Done(getattr(tasks, job.task)(reporter, **job.arguments))
    except OpenQnnError as error:
        return Failed(type(error), error.message, error.hint)


def _leave_with(parent: int) -> None:
    """Do not outlive the parent: a library that hangs would never notice that the socket is closed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    descriptor, parent = int(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    serve(Connection(descriptor))


if __name__ == "__main__":
    main()
