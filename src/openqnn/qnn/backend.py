"""A vendor library ready for work: its log, backend and device handles."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from contextlib import ExitStack
from os import PathLike
from types import TracebackType
from typing import Any, Self

from openqnn.errors import UsageError
from openqnn.qnn import abi
from openqnn.qnn.api import Api
from openqnn.qnn.library import Library, load_library, unload_library
from openqnn.qnn.marshal import Arena
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.read_structs import text
from openqnn.qnn.soc import ARCHITECTURES, DEFAULT_SOC, Soc, find_soc, soc_of_arch

Progress = Callable[[str], None]


class Backend:
    """Handles are freed on `close`, in every case; contexts must be freed before.

    `progress` hears of each step before it is taken, so that a step which never returns can be named.
    """

    def __init__(
        self,
        library: str | PathLike[str] | Library,
        device: DeviceOptions | None = None,
        *,
        capture: bool = True,
        log_level: int = abi.LOG_WARN,
        progress: Progress | None = None,
    ) -> None:
        loaded = library if isinstance(library, Library) else load_library(library)
        self.api = Api(loaded, capture=capture)
        self.progress: Progress = progress or _ignore
        self.packages: list[str] = []
        """Libraries of op packages that were registered, for messages."""
        self._arena, self._handles = Arena(), ExitStack()
        # Saver writes the end of its files when it is unloaded.
        self._unloads = loaded if self.api.backend_id == abi.BACKEND_SAVER else None
        if device is not None and not self.is_htp:
            raise UsageError(f"a SoC can only be chosen for HTP, not for {loaded.name}")
        self.soc = _soc(device or DeviceOptions(DEFAULT_SOC)) if self.is_htp else None
        with ExitStack() as on_failure:
            on_failure.push(self._handles)
            self._open(device or DeviceOptions(DEFAULT_SOC), log_level)
            on_failure.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_htp(self) -> bool:
        return self.api.backend_id == abi.BACKEND_HTP

    def close(self) -> None:
        """Free every handle; calling it again does nothing."""
        self._handles.close()
        if self._unloads is not None:
            unload_library(self._unloads)
            self._unloads = None

    def operations(self) -> list[tuple[str, str]]:
        """Package and name of every operation that the library reports."""
        count, names = c.c_uint32(), c.POINTER(abi.OperationName)()
        self.api.call("backendGetSupportedOperations", self.handle, c.byref(count), c.byref(names))
        return [(text(names[i].package), text(names[i].name)) for i in range(count.value)]

    def _open(self, device: DeviceOptions, log_level: int) -> None:
        self.progress(f"create backend {self.api.library.name}")
        self.logger = self._create("logCreate", "logFree", self.api.log.callback, log_level)
        self.handle = self._create("backendCreate", "backendFree", self.logger, None)
        self.device: c.c_void_p | None = None
        if self.is_htp:
            config = self._arena.config_list(self._arena.htp_configs(device.records()))
            self.device = self._create("deviceCreate", "deviceFree", self.logger, config)

    def _create(self, create: str, free: str, *arguments: Any) -> c.c_void_p:
        handle = c.c_void_p()
        self.api.call(create, *arguments, c.byref(handle))
        self._handles.callback(self.api.call, free, handle)
        return handle


def _soc(device: DeviceOptions) -> Soc | None:
    """The chip that graphs are compiled for, where it can be told."""
    if device.soc is not None:
        return find_soc(device.soc)
    return soc_of_arch(device.arch) if device.arch in ARCHITECTURES else None


def _ignore(step: str) -> None:
    del step
