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
from openqnn.qnn.messages import Done, Failed, Job, Step
from openqnn.qnn.session import VendorSession


def serve(connection: Connection) -> None:
    """Answer jobs until the parent hangs up."""
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_answer(job, connection))


def _answer(job: Job, connection: Connection) -> Done | Failed:
    try:
        return _run(job, connection)
    except OpenQnnError as error:
        return Failed(type(error), error.message, error.hint)


def _run(job: Job, connection: Connection) -> Done:
    def progress(step: str) -> None:
        connection.send(Step(step))

    # Nothing to capture: this process's stdout and stderr are not the user's.
    with VendorSession(job.library, job.soc, capture=False, progress=progress) as session:
        session.api.log.echo = sys.stderr.fileno()
        session.compose(job.net, job.validate)
        session.finalize()
        outputs = session.execute(job.inputs)
        seconds = session.execute_many(job.inputs, job.repeat) if job.repeat else 0.0
    return Done(outputs, seconds)


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
