"""Profiling: what a library measured while it compiled or ran a graph."""

from __future__ import annotations

import ctypes as c
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Any, Self

from openqnn.errors import BackendError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.read_structs import read_scalar, text


class Level(IntEnum):
    """How much is measured; linting is HTP's own: where operations wait for each other."""

    BASIC = 1
    DETAILED = 2
    LINTING = 7001


class Unit(IntEnum):
    MICROSECONDS = 1
    BYTES = 2
    CYCLES = 3
    COUNT = 4
    OBJECT = 5
    NONE = 6


EVENT_NAMES: dict[int, str] = {
    100: "INIT", 300: "FINALIZE", 400: "EXECUTE", 404: "NODE", 405: "EXECUTE QUEUE WAIT",
    406: "EXECUTE PREPROCESS", 407: "EXECUTE DEVICE", 408: "EXECUTE POSTPROCESS", 500: "DE-INIT",
    600: "TRACE",
}  # fmt: skip
"""The types that all backends share; numbers from 1000 on are a backend's own."""

NODE_EVENT = 404
_NODE = re.compile(r"(?P<name>.+?)(?::| )OpId_(?P<id>\d+) \(cycles\)")


@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """One measurement; `children` are its parts. `unit` is None where a library invents one."""

    type: int
    unit: Unit | None
    value: int | float
    identifier: str
    children: tuple[ProfileEvent, ...] = ()
    timestamp: int | None = None
    content: bytes = b""
    """The bytes of an opaque object, such as the timeline of an optrace."""
    object_name: str = ""

    def walk(self) -> Iterator[ProfileEvent]:
        """The event and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


class Profile:
    """A measurement in progress: give `handle` to finalize or execute, then ask for the `events`."""

    def __init__(self, backend: Backend, level: Level = Level.DETAILED, *, optrace: bool = False) -> None:
        self._api = backend.api
        self.handle: c.c_void_p = c.c_void_p()
        self._api.call("profileCreate", backend.handle, int(level), c.byref(self.handle))
        if optrace:
            try:
                self._enable_optrace()
            except BackendError:
                self.free()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()

    def events(self) -> tuple[ProfileEvent, ...]:
        """What has been measured so far."""
        return tuple(self._event(number) for number in self._numbers("profileGetEvents", self.handle))

    def free(self) -> None:
        """Give the handle back; calling it again does nothing."""
        handle, self.handle = self.handle, c.c_void_p()
        if handle:
            self._api.call("profileFree", handle)

    def _enable_optrace(self) -> None:
        config = abi.CustomConfig(option=abi.PROFILE_OPTRACE, custom=1)
        configs = (c.c_void_p * 2)(c.addressof(config), None)
        self._api.call("profileSetConfig", self.handle, configs, subject="optrace")

    def _numbers(self, entry: str, of: Any) -> list[int]:
        numbers, count = c.POINTER(c.c_uint64)(), c.c_uint32()
        self._api.call(entry, of, c.byref(numbers), c.byref(count))
        return [numbers[i] for i in range(count.value)]

    def _event(self, number: int) -> ProfileEvent:
        children = tuple(self._event(child) for child in self._numbers("profileGetSubEvents", number))
        data = abi.EventData()
        failed = self._api.function("profileGetEventData")(number, c.byref(data))
        if not failed and data.unit == Unit.OBJECT:
            return self._object(number, children)
        if not failed:
            return ProfileEvent(data.type, _unit(data.unit), data.value, text(data.identifier), children)
        return self._extended(number, children)

    def _extended(self, number: int, children: tuple[ProfileEvent, ...]) -> ProfileEvent:
        """libQnnCpu has its events in this form only."""
        data = abi.ExtendedEventData(version=1)
        self._api.call("profileGetExtendedEventData", number, c.byref(data))
        if data.unit == Unit.OBJECT:
            return self._object(number, children)
        name, unit = text(data.identifier), _unit(data.unit)
        value = read_scalar(data.value).value
        return ProfileEvent(data.type, unit, value, name, children, data.timestamp)

    def _object(self, number: int, children: tuple[ProfileEvent, ...]) -> ProfileEvent:
        """An opaque object: its bytes are copied, as they are gone with the profile."""
        data = abi.ObjectEventData(version=1)
        self._api.call("profileGetExtendedEventData", number, c.byref(data))
        content = c.string_at(data.address, data.size) if data.address and data.size else b""
        names = text(data.identifier), text(data.object_name)
        return ProfileEvent(
            data.type, Unit.OBJECT, 0, names[0], children, data.timestamp, content, object_name=names[1]
        )


def node_costs(events: Sequence[ProfileEvent]) -> dict[str, int]:
    """What each node took: cycles on HTP (summed where it made several of one), microseconds on the CPU."""
    costs: dict[str, int] = {}
    for event in (each for root in events for each in root.walk()):
        if event.type == NODE_EVENT:
            name = _node_name(event)
            costs[name] = costs.get(name, 0) + int(event.value)
    return costs


def _node_name(event: ProfileEvent) -> str:
    """HTP writes `conv:OpId_30 (cycles)`, the CPU library `_conv`."""
    match = _NODE.fullmatch(event.identifier.strip())
    return match["name"] if match else event.identifier.removeprefix("_")


def _unit(number: int) -> Unit | None:
    return Unit(number) if number in set(Unit) else None
