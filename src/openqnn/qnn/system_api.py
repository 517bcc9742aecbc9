"""libQnnSystem's interface table: what reads context binaries and DLC files, and writes profiling logs."""

from __future__ import annotations

import ctypes as c
from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from openqnn.errors import LibraryError
from openqnn.qnn import abi
from openqnn.qnn import abi_system as sys_abi
from openqnn.qnn.api import Table
from openqnn.qnn.library import Library, load_library

_P, _U32, _U64, _STR = c.c_void_p, c.c_uint32, c.c_uint64, c.c_char_p

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "systemContextCreate": (_P,),
    "systemContextGetMetaData": (_P, _P, _U64, _P),
    "systemContextGetBinaryInfo": (_P, _P, _U64, _P, _P),
    "systemContextFree": (_P,),
    "systemLogCreate": (abi.LogCallback, _U32, _P),
    "systemLogFree": (_P,),
    "systemDlcCreateFromFile": (_P, _STR, _P),
    "systemDlcFree": (_P,),
    "systemProfileCreateSerializationTarget": (sys_abi.SerializationTarget, _P, _U32, _P),
    "systemProfileSerializeEventData": (_P, _P, _U32),
    "systemProfileFreeSerializationTarget": (_P,),
}


class SystemApi(Table):
    """The functions of libQnnSystem."""

    def __init__(self, library: str | PathLike[str] | Library = "system", *, capture: bool = True) -> None:
        loaded = library if isinstance(library, Library) else load_library(library)
        self._provider = _provider(loaded)
        entries = sys_abi.SYSTEM_ENTRIES
        super().__init__(loaded, entries, self._provider.table, _SIGNATURES, capture=capture)

    @property
    def version(self) -> tuple[int, int, int]:
        version = self._provider.version
        return version.major, version.minor, version.patch

    def describe(self, code: int) -> str:
        symbol = sys_abi.ERRORS.get(code)
        return f"{symbol} ({code})" if symbol else super().describe(code)

    @contextmanager
    def logger(self, level: int = abi.LOG_WARN) -> Generator[c.c_void_p, None, None]:
        """A logger that feeds `log`."""
        handle = c.c_void_p()
        self.call("systemLogCreate", self.log.callback, level, c.byref(handle))
        try:
            yield handle
        finally:
            self.call("systemLogFree", handle)

    def compose_function(self, interface: Any) -> Any:
        """systemDlcComposeGraphs for an interface of just this length: it is passed by value."""
        kind = c.CFUNCTYPE(_U64, _P, _P, _U32, _P, _P, type(interface), _U32, _P, _P)
        return kind(self.address("systemDlcComposeGraphs"))


def _provider(library: Library) -> sys_abi.SystemProvider:
    try:
        get_providers = library.handle.QnnSystemInterface_getProviders
    except AttributeError as error:
        raise LibraryError(f"{library.path} is not libQnnSystem") from error
    providers, count = c.POINTER(c.POINTER(sys_abi.SystemProvider))(), c.c_uint32()
    get_providers.restype = c.c_uint64
    code = get_providers(c.byref(providers), c.byref(count))
    if code or not count.value:
        name = "QnnSystemInterface_getProviders"
        raise LibraryError(f"{library.path} offers no interface ({name} answered {code})")
    return providers[0][0]
