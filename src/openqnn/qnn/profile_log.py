"""Write a profiling log through libQnnSystem, for Qualcomm's own viewers to read."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from openqnn.errors import OutputError
from openqnn.qnn import abi, marshal
from openqnn.qnn import abi_system as sys_abi
from openqnn.qnn.profile import ProfileEvent
from openqnn.qnn.system_api import SystemApi

_FILE, _HEADER = 1, 1
_PLAIN, _EXTENDED = 0, 1  # kinds of events


class Method(IntEnum):
    """What was going on while the events were measured."""

    NONE = 0
    EXECUTE = 1
    FINALIZE = 2
    EXECUTE_ASYNC = 3
    CREATE_FROM_BINARY = 4
    DEINIT = 5
    CONTEXT_CREATE = 6
    COMPOSE_GRAPHS = 7
    EXECUTE_IPS = 8
    GRAPH_COMPONENT = 9
    BACKEND_LIB_LOAD = 10
    APPLY_BINARY_SECTION = 11
    CONTEXT_FINALIZE = 12


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes the log: application, its version and the backend's build."""

    app: str
    app_version: str
    backend_version: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Events of one call; times in microseconds since the epoch."""

    method: Method
    events: Sequence[ProfileEvent]
    graph: str = ""
    start: int = 0
    stop: int = 0


class ProfileLog:
    """A log that is being written. Closing it finishes the file."""

    def __init__(self, system: SystemApi, path: Path, author: Author) -> None:
        self._system, self._path, self._arena = system, path, marshal.Arena()
        self._handle: c.c_void_p | None = c.c_void_p()
        if not path.parent.is_dir():
            raise OutputError(f"cannot write {path}: there is no folder {path.parent}")
        path.unlink(missing_ok=True)  # the library would append to it
        target = sys_abi.SerializationTarget(
            type=_FILE, file_name=path.name.encode(), directory=str(path.parent).encode()
        )
        header = sys_abi.SerializationHeader(
            type=_HEADER,
            app_name=author.app.encode(),
            app_version=author.app_version.encode(),
            backend_version=author.backend_version.encode(),
        )
        system.call(
            "systemProfileCreateSerializationTarget", target, c.byref(header), 1, c.byref(self._handle),
            subject=str(path),
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, measured: Measured) -> None:
        """Append what was measured."""
        events = self._events(measured.events)
        data = sys_abi.ProfileData(
            version=1,
            start_time=measured.start,
            stop_time=measured.stop,
            method=int(measured.method),
            graph_name=measured.graph.encode(),
            events=c.addressof(events) if events else None,
            event_count=len(measured.events),
        )
        pointers = (c.c_void_p * 1)(c.addressof(data))
        self._system.call(
            "systemProfileSerializeEventData", self._handle, pointers, 1, subject=str(self._path)
        )

    def close(self) -> None:
        """Finish the file; calling it again does nothing."""
        handle, self._handle = self._handle, None
        if handle:
            self._system.call("systemProfileFreeSerializationTarget", handle, subject=str(self._path))

    def _events(self, events: Sequence[ProfileEvent]) -> c.Array[sys_abi.ProfileEvent] | None:
        if not events:
            return None
        return self._arena.keep((sys_abi.ProfileEvent * len(events))(*(self._event(e) for e in events)))

    def _event(self, event: ProfileEvent) -> sys_abi.ProfileEvent:
        children = self._events(event.children)
        below = c.addressof(children) if children else None, len(event.children)
        name = event.identifier.encode()
        if event.content:
            found = sys_abi.ProfileEvent(type=_EXTENDED, sub_events=below[0], sub_event_count=below[1])
            found.body.object = self._object(event, name)
            return found
        found = sys_abi.ProfileEvent(type=_PLAIN, sub_events=below[0], sub_event_count=below[1])
        found.body.plain = abi.EventData(event.type, event.unit or 0, int(event.value), name)
        return found

    def _object(self, event: ProfileEvent, name: bytes) -> abi.ObjectEventData:
        buffer = self._arena.keep(c.create_string_buffer(event.content, len(event.content)))
        return abi.ObjectEventData(
            version=1, type=event.type, unit=event.unit or 0, address=c.addressof(buffer),
            size=len(event.content), object_name=event.object_name.encode(),
            timestamp=event.timestamp or 0, identifier=name,
        )  # fmt: skip
