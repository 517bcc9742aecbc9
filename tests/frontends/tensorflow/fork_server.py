"""The converter of TensorFlow models in forks of one process, so that thousands of files take minutes.

    python fork_server.py SOCKET CONVERTER     # by a Python that has TensorFlow
    python fork_server.py SOCKET               # the client: stands in for that Python, whatever it is asked

It is for tests only. A fork that hangs is ended, and one that crashes gives its signal as the code.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path

PATIENCE = 120.0  # seconds
MEMORY = 16 << 30  # bytes of address space


def serve(name: str, converter: str) -> None:
    import tensorflow

    assert tensorflow.__version__
    spec = importlib.util.spec_from_file_location("convert_to_tflite", converter)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        while True:
            with listening.accept()[0] as connection:
                request = connection.recv(4096).decode()
                connection.send(str(_forked(module.main, request)).encode())


def _forked(main: object, request: str) -> int:
    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        sys.argv = ["convert_to_tflite.py", request]
        try:
            main()  # type: ignore[operator]
        finally:
            os._exit(0)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 99


def ask(name: str, request: str) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(name)
        connection.send(request.encode())
        return int(connection.recv(64))


if __name__ == "__main__":
    if len(sys.argv) == 3 and Path(sys.argv[2]).name == "convert_to_tflite.py":
        serve(sys.argv[1], sys.argv[2])
    sys.exit(ask(sys.argv[1], sys.argv[-1]) % 256)
