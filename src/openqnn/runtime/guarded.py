"""The child process behind `openqnn.runtime.guard`: `python -m openqnn.runtime.guarded <socket> <parent>`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection

from openqnn.errors import BackendError, OpenQnnError, OutputError
from openqnn.runtime.guard import Finished, Refused, Reporter, Task


def _perform(task: Task, reporter: Reporter) -> Finished | Refused:
    try:
        return Finished(task.function(*task.arguments, reporter))
    except OpenQnnError as error:
        return Refused(type(error), error.message, error.hint)
    except OSError as error:
        return Refused(OutputError, f"{error.filename or 'output'}: {error.strerror or error}", "")
    except MemoryError as error:
        return Refused(BackendError, f"not enough memory{f': {error}' if str(error) else ''}", "")
    except Exception as error:
        traceback.print_exc()  # ends up in the log that the parent shows
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        return Refused(BackendError, f"this is a bug in openqnn; please report it: {said}", "")


def _leave_with(parent: int) -> None:
    """Do not outlive the parent: a library that hangs would never notice that the socket is closed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends this process
    descriptor, parent = int(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    connection = Connection(descriptor)
    connection.send(_perform(connection.recv(), Reporter(connection)))


if __name__ == "__main__":
    main()
