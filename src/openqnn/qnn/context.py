"""A context: one or more graphs that are compiled, saved and loaded together."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from openqnn.errors import BackendError, ModelError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.binding import Slot
from openqnn.qnn.context_info import ContextInfo, IoTensor
from openqnn.qnn.graph import Composer, Graph, graph_records
from openqnn.qnn.marshal import Arena
from openqnn.qnn.net import Array, Net
from openqnn.qnn.options import ContextOptions, GraphOptions
from openqnn.qnn.tensor_structs import TensorStructs

_UNREGISTERED: Final = (
    "the binary has ops of a package that is not registered, if it was made with one: --op_packages"
    " PATH:PROVIDER, or Session(op_packages=...)"
)


class Context:
    """Graphs by name, in `graphs`. Use it as a context manager, or call `free`."""

    def __init__(self, backend: Backend, options: ContextOptions | None = None) -> None:
        self._backend, self._arena = backend, Arena()
        self.graphs: dict[str, Graph] = {}
        self._handle: c.c_void_p | None = c.c_void_p()
        configs = self._configs(options)
        backend.api.call("contextCreate", backend.handle, backend.device, configs, c.byref(self._handle))

    @classmethod
    def from_binary(
        cls,
        backend: Backend,
        blob: Array | bytes,
        info: ContextInfo,
        options: ContextOptions | None = None,
        profile: c.c_void_p | None = None,
    ) -> Self:
        """Load a context binary; `info` is what libQnnSystem says about it."""
        self = cls.__new__(cls)
        self._backend, self._arena, self.graphs = backend, Arena(), {}
        self._handle = c.c_void_p()
        if info.backend_id != backend.api.backend_id:
            name = backend.api.library.name
            raise ModelError(
                f"the context binary is for {abi.backend_name(info.backend_id)}, and {name} is not that one",
                hint="give the library that made it, or compile the model for this one",
            )
        # The library may read from the memory for as long as the context lives.
        memory = self._arena.keep(np.frombuffer(blob, np.uint8))
        backend.progress("load context binary")
        backend.api.call(
            "contextCreateFromBinary", backend.handle, backend.device, self._configs(options),
            memory.ctypes.data, memory.nbytes, c.byref(self._handle), profile, subject="context binary",
        )  # fmt: skip
        try:
            for graph in info.graphs:
                self._retrieve(graph.name, graph.inputs, graph.outputs)
        except BaseException:
            self.free()
            raise
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()

    @property
    def handle(self) -> c.c_void_p:
        if self._handle is None:
            raise BackendError("the context has been freed")
        return self._handle

    def compose(
        self,
        net: Net,
        *,
        validate: bool = True,
        options: GraphOptions | None = None,
        extra: Sequence[Any] = (),
        draft: TensorStructs | None = None,
    ) -> Graph:
        """Add a graph; `extra` are configuration structs for other backends than HTP.

        If it fails, free the context: libraries crash on half a graph.
        """
        if net.name in self.graphs:
            raise UsageError(f"the context has a graph '{net.name}' already")
        records = graph_records(self._backend, net, options)
        configs = self._arena.config_list([*self._arena.htp_configs(records), *extra])
        composer = Composer(self._backend, self.handle, net, configs, self._arena, draft)
        self.graphs[net.name] = graph = composer.compose(validate=validate)
        return graph

    def adopt(self, net: Net, handle: int, ids: Mapping[str, int]) -> Graph:
        """Take in a graph that somebody else composed in this context; `ids` are its tensors' numbers."""
        slots = [
            [self._slot(IoTensor(ids[name], net.tensors[name])) for name in names]
            for names in (net.inputs, net.outputs)
        ]
        graph = Graph(
            self._backend, net.name, c.c_void_p(handle), *slots, finalized=False, subject=net.subject
        )
        self.graphs[net.name] = graph
        return graph

    def binary(self, memory_of: Callable[[int], Array] | None = None) -> Array:
        """The compiled context as bytes, in memory of its own or in what `memory_of` has for that size."""
        api, size, written = self._backend.api, c.c_uint64(), c.c_uint64()
        self._backend.progress("serialise the context")
        api.call("contextGetBinarySize", self.handle, c.byref(size))
        memory = memory_of(size.value) if memory_of else np.empty(size.value, np.uint8)
        api.call("contextGetBinary", self.handle, memory.ctypes.data, size.value, c.byref(written))
        return memory[: written.value]

    def free(self) -> None:
        """Give everything back; calling it again does nothing."""
        handle, self._handle = self._handle, None
        self.graphs = {}
        if handle:
            packages = self._backend.packages
            self._backend.progress(
                "free context" + (f" with op package {', '.join(packages)}" if packages else "")
            )
            self._backend.api.call("contextFree", handle, None)

    def _configs(self, options: ContextOptions | None) -> Any:
        if options is None:
            return None
        records = options.records()
        if records and not self._backend.is_htp:
            raise BackendError(f"{self._backend.api.library.name} takes no HTP context options")
        configs = self._arena.htp_configs(records)
        if options.queue_depth is not None:
            depth = abi.QueueDepthConfig(option=abi.CONTEXT_QUEUE_DEPTH, type=0, depth=options.queue_depth)
            configs.append(self._arena.keep(depth))
        for option, value in options.numbers().items():
            configs.append(self._arena.keep(abi.NumberConfig(option=option, value=value)))
        return self._arena.config_list(configs)

    def _retrieve(self, name: str, inputs: Sequence[IoTensor], outputs: Sequence[IoTensor]) -> None:
        handle = c.c_void_p()
        subject = f"graph '{name}'"
        self._backend.api.call("graphRetrieve", self.handle, name.encode(), c.byref(handle), subject=subject)
        slots = [[self._slot(item) for item in items] for items in (inputs, outputs)]
        packages = self._backend.packages
        if packages:
            subject += f" with op package {', '.join(packages)}"
        self.graphs[name] = Graph(
            self._backend, name, handle, *slots, finalized=True, subject=subject, advice=_UNREGISTERED
        )

    def _slot(self, item: IoTensor) -> Slot:
        struct = self._arena.tensor(item.tensor)
        struct.body.v1.id = item.id
        return Slot(item.tensor, struct)
