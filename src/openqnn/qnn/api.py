"""A library's interface table, called by name; a failing call becomes an error that gives the reason.

The libraries answer bare numbers. Their symbolic names come from the library itself, and the actual reason is
only in its log, so the log is always captured and its last lines go into the error.
"""

from __future__ import annotations

import ctypes as c
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from openqnn.errors import BackendError, LibraryError
from openqnn.qnn import abi
from openqnn.qnn.library import Library
from openqnn.worker.c_function import c_function
from openqnn.worker.capture import captured_output

_P, _U32, _U64, _STR = c.c_void_p, c.c_uint32, c.c_uint64, c.c_char_p

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "backendCreate": (_P, _P, _P),
    "backendGetBuildId": (_P,),
    "backendRegisterOpPackage": (_P, _STR, _STR, _STR),
    "backendGetSupportedOperations": (_P, _P, _P),
    "backendValidateOpConfig": (_P, abi.OpConfig),
    "backendFree": (_P,),
    "contextCreate": (_P, _P, _P, _P),
    "contextCreateFromBinary": (_P, _P, _P, _P, _U64, _P, _P),
    "contextGetBinarySize": (_P, _P),
    "contextGetBinary": (_P, _P, _U64, _P),
    "contextFree": (_P, _P),
    "graphCreate": (_P, _STR, _P, _P),
    "graphSetConfig": (_P, _P),
    "graphAddNode": (_P, abi.OpConfig),
    "graphFinalize": (_P, _P, _P),
    "graphRetrieve": (_P, _STR, _P),
    "graphExecute": (_P, _P, _U32, _P, _U32, _P, _P),
    "graphExecuteAsync": (_P, _P, _U32, _P, _U32, _P, _P, _P, _P),
    "tensorCreateContextTensor": (_P, _P),
    "tensorCreateGraphTensor": (_P, _P),
    "logCreate": (abi.LogCallback, _U32, _P),
    "logFree": (_P,),
    "profileCreate": (_P, _U32, _P),
    "profileSetConfig": (_P, _P),
    "profileGetEvents": (_P, _P, _P),
    "profileGetSubEvents": (_U64, _P, _P),
    "profileGetEventData": (_U64, _P),
    "profileGetExtendedEventData": (_U64, _P),
    "profileFree": (_P,),
    "deviceCreate": (_P, _P, _P),
    "deviceFree": (_P,),
    "errorGetMessage": (_U64, _P),
}

# For libraries that do not name them: libQnnSystem has no function for it, and libQnnSaver notes the question
# down instead of answering it.
_NAMES: dict[int, str] = {
    1000: "QNN_COMMON_ERROR_NOT_SUPPORTED", 1002: "QNN_COMMON_ERROR_MEM_ALLOC",
    1003: "QNN_COMMON_ERROR_SYSTEM", 1004: "QNN_COMMON_ERROR_INVALID_ARGUMENT",
    1005: "QNN_COMMON_ERROR_OPERATION_NOT_PERMITTED", 1006: "QNN_COMMON_ERROR_PLATFORM_NOT_SUPPORTED",
    1007: "QNN_COMMON_ERROR_SYSTEM_COMMUNICATION", 1008: "QNN_COMMON_ERROR_INCOMPATIBLE_BINARIES",
    1009: "QNN_COMMON_ERROR_LOADING_BINARIES", 1010: "QNN_COMMON_ERROR_RESOURCE_UNAVAILABLE",
    1011: "QNN_COMMON_ERROR_SYSTEM_COMMUNICATION_FATAL", 1100: "QNN_COMMON_ERROR_GENERAL",
    4950: "QNN_SAVER_ERROR_DUMMY_RETVALUE", 4951: "QNN_SAVER_ERROR_ALREADY_INSTANTIATED",
}  # fmt: skip
_LOG_LINES_KEPT = 200
_LOG_LINES_SHOWN = 8
_LINE_BYTES = 4096


class Log:
    """What a library logged, newest last. One per library, alive as long as the process.

    A library may keep the callback beyond the handle that it was given with, so it is never released.
    """

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_LOG_LINES_KEPT)
        self.echo: int | None = None
        """A file descriptor that gets every line at once, for a process that may not live to tell."""
        self.callback = abi.LogCallback(self._on_message)
        self._count = 0

    def mark(self) -> int:
        """A position, for `since`."""
        return self._count

    def since(self, mark: int) -> list[str]:
        """The last lines that came after the mark, as many as an error should show."""
        fresh = min(self._count - mark, _LOG_LINES_SHOWN)
        return list(self.lines)[-fresh:] if fresh else []

    def _on_message(self, template: bytes, level: int, timestamp: int, arguments: int) -> None:
        del level, timestamp
        text = c.create_string_buffer(_LINE_BYTES)
        _vsnprintf(text, _LINE_BYTES, template, c.c_void_p(arguments))
        line = text.value.decode(errors="replace").strip()
        self.lines.append(line)
        self._count += 1
        if self.echo is not None:
            _write_line(self.echo, line)


class Table:
    """Functions of a library, by name. `capture=False` leaves the process's stdout and stderr as they are."""

    def __init__(
        self,
        library: Library,
        entries: Sequence[str],
        addresses: Sequence[int | None],
        signatures: Mapping[str, tuple[Any, ...]],
        *,
        capture: bool,
    ) -> None:
        self.library = library
        self.printed: deque[str] = deque(maxlen=_LOG_LINES_KEPT)
        self.log = _log_of(library)
        self._capture = capture
        self._addresses = dict(zip(entries, addresses, strict=True))
        self._signatures = signatures
        self._functions: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        """The time spent in each entry that was called by `call`."""

    def has(self, name: str) -> bool:
        """Whether the library offers the function at all."""
        return bool(self._addresses.get(name))

    def address(self, name: str) -> int:
        """Where the function is."""
        address = self._addresses.get(name)
        if not address:
            raise BackendError(f"{self.library.name} has no {name}")
        return address

    def function(self, name: str) -> Any:
        """The entry as a callable; ctypes' own type, hence Any."""
        if name not in self._functions:
            kind = c.CFUNCTYPE(c.c_uint64, *self._signatures[name])
            self._functions[name] = kind(self.address(name))
        return self._functions[name]

    def call(self, name: str, *arguments: Any, subject: str = "") -> None:
        """Call an entry; on failure raise an error that starts with `subject`, the node or tensor at hand."""
        function = self.function(name)
        mark, start = self.log.mark(), time.perf_counter()
        if self._capture:
            with captured_output(self.printed):
                code = function(*arguments)
        else:
            code = function(*arguments)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        if code:
            raise self.failure(name, code, subject, mark)

    def failure(self, name: str, code: int, subject: str, mark: int) -> BackendError:
        """The error for a call that answered `code`; the reason is among the log lines since `mark`."""
        parts = [subject, f"{self.library.name}: {name} failed with {self.describe(code)}"]
        log = "".join(f"\n  log: {line}" for line in self.log.since(mark))
        return BackendError(": ".join(part for part in parts if part) + log)

    def describe(self, code: int) -> str:
        """The code in words; the bare number where there are none."""
        if code in _NAMES:
            return f"{_NAMES[code]} ({code})"
        return f"error {code} ({code:#x})"

    @contextmanager
    def quiet(self) -> Generator[None, None, None]:
        """Keep the library's prints off the user's terminal; they are added to `printed`."""
        with captured_output(self.printed) if self._capture else nullcontext():
            yield


class Api(Table):
    """A backend's interface."""

    def __init__(self, library: Library, *, capture: bool = True) -> None:
        self._provider = _provider(library)
        entries = abi.INTERFACE_ENTRIES
        super().__init__(library, entries, self._provider.table, _SIGNATURES, capture=capture)

    @property
    def backend_id(self) -> int:
        return int(self._provider.backend_id)

    @property
    def core_version(self) -> tuple[int, int, int]:
        core = self._provider.core
        return core.major, core.minor, core.patch

    @property
    def build_id(self) -> str:
        """The library's build, such as v2.47.0.260601114230."""
        text = c.c_char_p()
        self.call("backendGetBuildId", c.byref(text))
        return (text.value or b"").decode()

    def interface(self, replaced: Mapping[str, int] | None = None) -> Any:
        """The whole interface as a struct to pass by value, with some entries replaced by other functions."""
        length = abi.interface_length(self.core_version[1])
        kind = abi.interface_type(length)
        copy = kind.from_buffer_copy((c.c_byte * c.sizeof(kind)).from_address(c.addressof(self._provider)))
        for name, address in (replaced or {}).items():
            copy.table[abi.INTERFACE_ENTRIES.index(name)] = address
        return copy

    def describe(self, code: int) -> str:
        """`QNN_GRAPH_ERROR_INVALID_NAME (6003): ...` in the library's own words, or the bare number."""
        text = c.c_char_p()
        function = self.function("errorGetMessage") if self.has("errorGetMessage") else None
        if function is None or function(code, c.byref(text)) or not text.value:
            return super().describe(code)
        symbol, _, sentence = text.value.decode(errors="replace").partition(":")
        return f"{symbol} ({code}):{sentence}" if sentence else f"{symbol} ({code})"


_vsnprintf = c_function("_vsnprintf" if sys.platform == "win32" else "vsnprintf")
_logs: dict[str, Log] = {}
_logs_lock = threading.Lock()


def _log_of(library: Library) -> Log:
    with _logs_lock:
        return _logs.setdefault(str(library.path), Log())


def _provider(library: Library) -> abi.Provider:
    try:
        get_providers = library.handle.QnnInterface_getProviders
    except AttributeError as error:
        hint = "give a backend library such as libQnnCpu.so or libQnnHtp.so"
        raise LibraryError(f"{library.path} is not a QNN backend", hint=hint) from error
    providers, count = c.POINTER(c.POINTER(abi.Provider))(), c.c_uint32()
    get_providers.restype = c.c_uint64
    code = get_providers(c.byref(providers), c.byref(count))
    if code or not count.value:
        raise LibraryError(f"{library.path} offers no interface (QnnInterface_getProviders answered {code})")
    return providers[0][0]


def _write_line(descriptor: int, line: str) -> None:
    os.write(descriptor, f"{line}\n".encode())
