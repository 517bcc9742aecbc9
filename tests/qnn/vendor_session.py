"""Compose, finalize and execute a graph on a vendor library, in the process of the tests."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from types import TracebackType
from typing import Self

from openqnn.errors import BackendError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend, Progress
from openqnn.qnn.binding import Binding
from openqnn.qnn.context import Context
from openqnn.qnn.graph import Graph
from openqnn.qnn.library import Library
from openqnn.qnn.net import Array, Net
from openqnn.qnn.options import ContextOptions, DeviceOptions, GraphOptions


class VendorSession:
    """A backend with its device, and one graph at a time on it. Handles are freed on `close`, in every case.

    For several graphs in one context, context binaries and profiling see `Backend` and `Context`.
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
        device = None if soc is None else DeviceOptions(soc)
        self.backend = Backend(library, device, capture=capture, log_level=log_level, progress=progress)
        self.api = self.backend.api
        self._context: Context | None = None
        self._graph: Graph | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def compose(
        self,
        net: Net,
        validate: bool = True,
        *,
        options: GraphOptions | None = None,
        context_options: ContextOptions | None = None,
    ) -> None:
        """Build the graph, node by node; a graph that was composed before is freed first.

        With `validate` each node is put to the library before it is added, which gives the better reasons.
        """
        self._drop_graph()
        self._context = Context(self.backend, context_options)
        try:
            self._graph = self._context.compose(net, validate=validate, options=options)
        except BaseException:
            self._drop_graph()  # libraries crash on half a graph
            raise

    def finalize(self) -> None:
        """Let the library compile the composed graph."""
        self._composed().finalize()

    def bind(self, inputs: Mapping[str, Array]) -> Binding:
        """Arrays to run on as often as one likes."""
        return self._composed().bind(inputs)

    def execute(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Arrays have the stored type: integers for fixed-point tensors."""
        return self._composed().execute(inputs)

    def execute_many(self, inputs: Mapping[str, Array], repeat: int) -> float:
        """Seconds per inference over `repeat` runs, after one that warms up."""
        if repeat < 1:
            raise UsageError(f"repeat must be at least 1, not {repeat}")
        binding = self.bind(inputs)
        binding.run()
        return binding.run_many(repeat)

    def close(self) -> None:
        """Free every handle; calling it again does nothing."""
        try:
            self._drop_graph()
        finally:
            self.backend.close()

    def _composed(self) -> Graph:
        if self._graph is None:
            raise BackendError("no graph: call compose() first")
        return self._graph

    def _drop_graph(self) -> None:
        context, self._context, self._graph = self._context, None, None
        if context is not None:
            context.free()
