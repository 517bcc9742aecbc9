"""Compose, finalize and execute a graph on a vendor library, in this process.

A library can crash or hang on a bad configuration and take the process with it; `openqnn.qnn.isolated` does
the same in a child process.
"""

from __future__ import annotations

import ctypes as c
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from os import PathLike
from types import TracebackType
from typing import Any, Self

import numpy as np

from openqnn.errors import BackendError, InputError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.api import Api
from openqnn.qnn.library import Library, load_library
from openqnn.qnn.marshal import Arena, scalar, set_buffer
from openqnn.qnn.net import Array, Net, NetNode, NetScalar, NetTensor, TensorKind

DEFAULT_SOC = 57
"""SM8650. Without a SoC, HTP prepares for its oldest architecture, which lacks much that newer ones run."""

Progress = Callable[[str], None]


class VendorSession:
    """A backend with its device, and one graph at a time on it. Handles are freed on `close`, in every case.

    `progress` hears of each step before it is taken, so that a step which never returns can be named.
    """

    def __init__(
        self,
        library: str | PathLike[str] | Library,
        soc: int | None = None,
        *,
        capture: bool = True,
        log_level: int = abi.LOG_WARN,
        progress: Progress | None = None,
    ) -> None:
        loaded = library if isinstance(library, Library) else load_library(library)
        self.api = Api(loaded, capture=capture)
        self._progress = progress or _ignore
        self._handles, self._arena = ExitStack(), Arena()
        self._graph: _Graph | None = None
        if soc is not None and self.api.backend_id != abi.BACKEND_HTP:
            raise UsageError(f"a SoC can only be chosen for HTP, not for {loaded.name}")
        with ExitStack() as on_failure:
            on_failure.push(self._handles)
            self._open(soc, log_level)
            on_failure.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def compose(self, net: Net, validate: bool = True) -> None:
        """Build the graph, node by node; a graph that was composed before is freed first.

        With `validate` each node is put to the library before it is added, which gives the better reasons.
        """
        self._drop_graph()
        self._progress(f"create graph '{net.name}'")
        self._graph = _Graph(self.api, self._backend, self._device, net, self._progress)
        try:
            self._graph.compose(validate=validate)
        except BaseException:
            self._drop_graph()  # libraries crash on half a graph
            raise

    def finalize(self) -> None:
        """Let the library compile the composed graph."""
        self._composed().finalize()

    def execute(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Arrays have the stored type: integers for fixed-point tensors."""
        return self._composed().execute(inputs)

    def execute_many(self, inputs: Mapping[str, Array], repeat: int) -> float:
        """Seconds per inference over `repeat` runs, after one that warms up."""
        return self._composed().execute_many(inputs, repeat)

    def close(self) -> None:
        """Free every handle; calling it again does nothing."""
        try:
            self._drop_graph()
        finally:
            self._handles.close()

    def _open(self, soc: int | None, log_level: int) -> None:
        self._progress(f"create backend {self.api.library.name}")
        self._logger = self._create("logCreate", "logFree", self.api.log.callback, log_level)
        self._backend = self._create("backendCreate", "backendFree", self._logger, None)
        self._device: c.c_void_p | None = None
        if self.api.backend_id == abi.BACKEND_HTP:
            config = self._arena.custom_config(abi.HTP_DEVICE_SOC, DEFAULT_SOC if soc is None else soc)
            self._device = self._create("deviceCreate", "deviceFree", self._logger, config)

    def _create(self, create: str, free: str, *arguments: Any) -> c.c_void_p:
        handle = c.c_void_p()
        self.api.call(create, *arguments, c.byref(handle))
        self._handles.callback(self.api.call, free, handle)
        return handle

    def _composed(self) -> _Graph:
        if self._graph is None:
            raise BackendError("no graph: call compose() first")
        return self._graph

    def _drop_graph(self) -> None:
        graph, self._graph = self._graph, None
        if graph is not None:
            self._progress("free context")
            graph.free()


class _Graph:
    """One context with one graph in it."""

    def __init__(
        self, api: Api, backend: c.c_void_p, device: c.c_void_p | None, net: Net, progress: Progress
    ) -> None:
        self._api, self._backend, self._net, self._progress = api, backend, net, progress
        self._arena = Arena()
        self._tensors: dict[str, abi.Tensor] = {}
        self._finalized = False
        self._context, self._graph = c.c_void_p(), c.c_void_p()
        api.call("contextCreate", backend, device, None, c.byref(self._context))
        name = net.name.encode()
        try:
            api.call("graphCreate", self._context, name, self._config(), c.byref(self._graph))
        except BackendError:
            self.free()
            raise

    def compose(self, *, validate: bool) -> None:
        for name in self._net.inputs:
            self._named(name, "the graph's inputs")
        for node in self._net.nodes:
            self._add(node, validate)
        for name in self._net.outputs:
            if name not in self._tensors:
                raise BackendError(f"output '{name}' of graph '{self._net.name}' is produced by no node")

    def finalize(self) -> None:
        self._progress(f"finalize graph '{self._net.name}'")
        self._api.call("graphFinalize", self._graph, None, None, subject=f"graph '{self._net.name}'")
        self._finalized = True

    def execute(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        run = self._bind(inputs)
        self._progress(f"execute graph '{self._net.name}'")
        self._api.call("graphExecute", *run.arguments, subject=f"graph '{self._net.name}'")
        return run.outputs

    def execute_many(self, inputs: Mapping[str, Array], repeat: int) -> float:
        if repeat < 1:
            raise UsageError(f"repeat must be at least 1, not {repeat}")
        run = self._bind(inputs)
        function = self._api.function("graphExecute")
        mark = self._api.log.mark()
        self._progress(f"execute graph '{self._net.name}'")
        with self._api.quiet():
            failed = function(*run.arguments)
            start = time.perf_counter()
            for _ in range(repeat):
                failed = failed or function(*run.arguments)
            seconds = time.perf_counter() - start
        if failed:
            raise self._api.failure("graphExecute", failed, f"graph '{self._net.name}'", mark)
        return seconds / repeat

    def free(self) -> None:
        self._api.call("contextFree", self._context, None)

    def _config(self) -> Any:
        """HTP computes float graphs in half precision and wants to be told so."""
        tensors = self._net.tensors.values()
        if self._api.backend_id == abi.BACKEND_HTP and any(t.dtype == abi.FLOAT_32 for t in tensors):
            return self._arena.custom_config(abi.HTP_GRAPH_PRECISION, abi.PRECISION_FLOAT16)
        return None

    def _add(self, node: NetNode, validate: bool) -> None:
        self._progress(f"create tensors of {node}")
        config = self._arena.op_config(
            node,
            [self._input(node, index, name) for index, name in enumerate(node.inputs)],
            [self._named(name, str(node)) for name in node.outputs],
            [(name, self._param(node, name, value)) for name, value in node.params],
        )
        if validate:
            self._progress(f"validate {node}")
            self._api.call("backendValidateOpConfig", self._backend, config, subject=str(node))
        self._progress(f"add {node}")
        self._api.call("graphAddNode", self._graph, config, subject=str(node))

    def _input(self, node: NetNode, index: int, name: str | None) -> abi.Tensor:
        if name is not None:
            return self._named(name, str(node))
        return self._create(self._arena.absent(f"{node.name}_absent_{index}"), str(node))

    def _param(self, node: NetNode, name: str, value: NetScalar | NetTensor) -> abi.Tensor | abi.Scalar:
        if isinstance(value, NetScalar):
            return scalar(value)
        # Parameters of different nodes may carry one name ("stride"); a graph takes each name once.
        taken = not value.name or value.name in self._tensors or value.name in self._net.tensors
        unique = f"{node.name}_{name}" if taken else value.name
        struct = self._create(self._arena.tensor(value, unique), f"{node}, parameter {name}")
        self._tensors[unique] = struct
        return struct

    def _named(self, name: str, user: str) -> abi.Tensor:
        if name not in self._tensors:
            if name not in self._net.tensors:
                raise BackendError(f"{user}: graph '{self._net.name}' has no tensor '{name}'")
            struct = self._arena.tensor(self._net.tensors[name])
            self._tensors[name] = self._create(struct, f"{user}, tensor '{name}'")
        return self._tensors[name]

    def _create(self, struct: abi.Tensor, subject: str) -> abi.Tensor:
        self._api.call("tensorCreateGraphTensor", self._graph, c.byref(struct), subject=subject)
        return struct

    def _bind(self, inputs: Mapping[str, Array]) -> _Run:
        if not self._finalized:
            raise BackendError(f"graph '{self._net.name}' is not finalized: call finalize() first")
        return _Run(self._net, self._graph, self._tensors, inputs)


class _Run:
    """The arguments of one graphExecute, and the arrays behind them."""

    def __init__(
        self, net: Net, graph: c.c_void_p, tensors: Mapping[str, abi.Tensor], inputs: Mapping[str, Array]
    ) -> None:
        unknown = sorted(set(inputs) - set(net.inputs))
        if unknown:
            raise InputError(f"graph '{net.name}' has no input {unknown}; its inputs are {list(net.inputs)}")
        self._inputs = {name: _checked(net, name, inputs) for name in net.inputs}
        self.outputs = {name: _empty(net.tensors[name]) for name in net.outputs}
        written = _bound(tensors, self._inputs)
        read = _bound(tensors, self.outputs)
        self.arguments = (graph, written, len(written), read, len(read), None, None)


def _bound(tensors: Mapping[str, abi.Tensor], arrays: Mapping[str, Array]) -> c.Array[abi.Tensor]:
    structs = (abi.Tensor * len(arrays))(*(tensors[name] for name in arrays))
    for struct, array in zip(structs, arrays.values(), strict=True):
        set_buffer(struct, array)
    return structs


def _checked(net: Net, name: str, inputs: Mapping[str, Array]) -> Array:
    tensor = net.tensors[name]
    if name not in inputs:
        raise InputError(f"graph '{net.name}' needs an array for input '{name}'")
    array, wanted = inputs[name], abi.numpy_dtype(tensor.dtype)
    if array.dtype != wanted or array.shape != tensor.dims:
        expected = f"{wanted} {list(tensor.dims)}"
        raise InputError(f"input '{name}' is {expected}, but the array is {array.dtype} {list(array.shape)}")
    return np.ascontiguousarray(array)


def _empty(tensor: NetTensor) -> Array:
    if tensor.kind is not TensorKind.APP_READ:
        raise BackendError(f"output '{tensor.name}' is of kind {tensor.kind.name}, not APP_READ")
    return np.zeros(tensor.dims, abi.numpy_dtype(tensor.dtype))


def _ignore(step: str) -> None:
    del step
