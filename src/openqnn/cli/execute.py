"""What every command has: exit codes, warnings, and one message for whatever stops it.

Exit codes: 0 done, 1 the user's problem, 2 usage, 3 ours (with a traceback).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial

from openqnn.cli.pipes import refusing_pipes
from openqnn.cli.streams import plain_streams
from openqnn.errors import OpenQnnError, OpenQnnWarning, ResourceError, UsageError

DONE, USER, USAGE, OURS = 0, 1, 2, 3
OUR_BUG = "OQ900"
BY_SIGNAL = 128  # and the signal's number, as shells say it


class Ended(KeyboardInterrupt):
    """The system or a caller with a time limit ends the command: what is half done goes, as with Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def execute(command: Callable[[], int]) -> int:
    """The exit code of a command, with its warnings and whatever stops it in our form."""
    import numpy  # noqa: F401  (it makes another error of an interrupt while it is imported)

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # `openqnn.cli.start` has left it so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with warnings.catch_warnings(), plain_streams():
        # also under -W error: a warning never stops a command
        warnings.simplefilter("always", OpenQnnWarning)
        warnings.showwarning = partial(_show_warning, set())
        with _endings(), refusing_pipes():
            return _run(command)


_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def _endings() -> Generator[None]:
    """Signals that ask for an end become an exception, where nobody else has a use for them."""
    asked = [number for number in _ENDS if _is_free(number)]
    for number in asked:
        signal.signal(number, _end)
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    _heard.clear()
    if ours:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        for number in asked:
            signal.signal(number, signal.SIG_DFL)
        if ours:
            signal.signal(signal.SIGINT, before)


def _is_free(number: int) -> bool:
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and signal.getsignal(number) is signal.SIG_DFL


def _end(number: int, _: object) -> None:
    _heard.append(number)
    raise Ended(number)


def _interrupt(number: int, _: object) -> None:
    _heard.append(number)
    raise KeyboardInterrupt


_heard: list[int] = []
"""Signals that asked for an end: a library that was being imported may have made another error of one."""


def _run(command: Callable[[], int]) -> int:
    """The command's exit code; whatever stops it is said in one message."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except UsageError as e:
        return _fail(e, USAGE)
    except OpenQnnError as e:
        return _fail(e, USER)
    except Ended as e:
        return _fail(_ended_by(e.number), BY_SIGNAL + e.number)
    except KeyboardInterrupt:
        return _fail(ResourceError("interrupted"), BY_SIGNAL + signal.SIGINT)
    except BrokenPipeError:
        _drop_output()  # the reader went away: nothing more to say
        return DONE
    except OSError as e:  # the machine's or the user's: a name too long, a device that is full
        _drop_output()
        return _fail(ResourceError(f"{e.filename or 'output'}: {e.strerror or e}"), USER)
    except MemoryError as e:
        return _fail(ResourceError(": ".join(filter(None, ("not enough memory", str(e))))), USER)
    except Exception:
        if _heard:
            return _fail(_ended_by(_heard[0]), BY_SIGNAL + _heard[0])
        traceback.print_exc()
        return _fail(_Bug("this is a bug in openqnn; please report it with the traceback above"), OURS)


class _Bug(OpenQnnError):
    """What nobody foresaw."""

    id = OUR_BUG


def _ended_by(number: int) -> ResourceError:
    return ResourceError(f"ended by {signal.Signals(number).name}")


def _drop_output() -> None:
    """What is still buffered goes nowhere, so that the interpreter does not complain when it ends."""
    with suppress(OSError, ValueError):  # no real file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: OpenQnnError, code: int) -> int:
    print(error.told(), file=sys.stderr)
    return code


def _show_warning(told: set[str], message: Warning | str, *_: object, **__: object) -> None:
    """Prints a warning, but for one that is told already: a command may read its model twice."""
    if str(message) not in told:
        told.add(str(message))
        print(f"warning: {message}", file=sys.stderr)
