"""InferenceSession with the QNN provider's options, on Qualcomm's libraries directly."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from openqnn.api.files import open_graph
from openqnn.api.session import Session
from openqnn.errors import ModelError, OpenQnnWarning, UsageError
from openqnn.ir import Array, Graph, Value
from openqnn.ir.clone import clone_graph
from openqnn.ort_qnn.dumped_graphs import dump_graph
from openqnn.ort_qnn.op_packages import convert_packaged, libraries_of
from openqnn.ort_qnn.provider_options import ProviderOptions
from openqnn.ort_qnn.provider_options import provider_options as _options
from openqnn.ort_qnn.session_options import context_entries
from openqnn.ort_qnn.shared_contexts import (
    WaitingGraph,
    binary_of,
    put_aside,
    remember_binary,
    write_shared,
)
from openqnn.runtime.boundary import accepted, outside_dtype

QNN, CPU = "QNNExecutionProvider", "CPUExecutionProvider"
TIMEOUT = 600.0
PROFILE = "qnn-profiling-data.csv"
SETTINGS_ALONE = "leave vtcm_mb, htp_graph_finalization_optimization_mode and enable_htp_fp16_precision out"
_TYPES = {"float32": "float", "float64": "double", "bool": "bool"}


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output: name, shape and type as ONNX Runtime writes it, such as tensor(float)."""

    name: str
    shape: list[int]
    type: str


class InferenceSession:
    """A model in ONNX (floats, QDQ or EPContext), or any file that `openqnn.Session` takes.

    Without providers, or with the CPU provider alone, it runs on the built-in backend. With the QNN provider
    a QDQ model runs in the integers that its pairs stand for, and a model in floats in half precision on HTP.
    With `ep.context_enable` the context model is written when the session is made, as <model>_ctx.onnx.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: Any = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._names, self._given = _providers(providers, provider_options)
        self._options = _options(self._given[QNN]) if QNN in self._given else None
        self._profiled = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._entries = context_entries(sess_options)
        self._session_options = sess_options
        with tempfile.TemporaryDirectory() as folder:
            self._path = "" if isinstance(path_or_bytes, bytes) else os.fspath(path_or_bytes)
            file = self._path
            if isinstance(path_or_bytes, bytes):
                file = str(Path(folder) / "model.onnx")
                Path(file).write_bytes(path_or_bytes)
            self._session = self._opened(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_session"):
            self.close()

    def close(self) -> None:
        self._session.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # -- ONNX Runtime's methods ------------------------------------------------------------------------------

    def get_inputs(self) -> list[NodeArg]:
        return [_arg(self._session.graph, value) for value in self._session.graph.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [_arg(self._session.graph, value) for value in self._session.graph.outputs]

    def get_providers(self) -> list[str]:
        return list(self._names)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {k: str(v) for k, v in self._given[name].items()} for name in self._names}

    def get_session_options(self) -> Any:
        return self._session_options

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Array]:
        """Outputs in order, or those that are named."""
        del run_options
        names = list(output_names or self._session.output_names)
        found = self._session.run(input_feed, names)
        self._profile(input_feed)
        return [found[name] for name in names]

    # -- opening ---------------------------------------------------------------------------------------------

    def _opened(self, file: str) -> Session:
        if self._options is None:
            if self._entries.enable:
                raise UsageError(f"contexts are made by the QNN provider: providers=[{QNN!r}]")
            return Session(_graph(file))
        options = self._options
        for key, why in options.idle.items():
            warnings.warn(f"{key} has no effect: {why}", OpenQnnWarning, stacklevel=4)
        if _is_context_model(file):
            return self._on_context(file)
        made = convert_packaged(options.op_packages, file) if options.op_packages else _graph(file)
        graph = _fixed(made, options)
        dump_graph(graph, options, Path(self._path or file).stem)
        if self._entries.enable:
            self._write_context(graph, options)
        return Session(
            graph, options.library, soc=options.soc, settings=options.settings or None, timeout=TIMEOUT,
            op_packages=libraries_of(options.op_packages),
        )  # fmt: skip

    def _on_context(self, model: str) -> Session:
        """The graphs of the model's own nodes, out of the binary that it has, names or shares."""
        assert self._options is not None
        if self._entries.enable:
            raise UsageError("the model is a context already", hint="give the model that it was made of")
        file, names = self._binary(model)
        session = Session(
            file, self._options.library, soc=self._options.soc, timeout=TIMEOUT,
            op_packages=libraries_of(self._options.op_packages),
        )  # fmt: skip
        # A binary of one graph runs whatever its node is called, as in the provider.
        if len(session.graphs) > 1:
            mine = tuple(graph for graph in session.graphs if graph.name in names)
            if not mine:
                session.close()
                raise ModelError(f"{model}: its binary has no graph {', '.join(names)}")
            session.graphs, session.graph = mine, mine[0]
        return session

    def _binary(self, model: str) -> tuple[Path, tuple[str, ...]]:
        from openqnn.emit.epcontext import graphs_without_binary, read_epcontext
        from openqnn.vendor.executables import borders_of

        if self._entries.share and (names := graphs_without_binary(model)):
            return binary_of(names, model), names
        found = read_epcontext(model)
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "context.bin"
        file.write_bytes(found.binary())
        if self._entries.share and found.file is not None:
            remember_binary(tuple(graph.name for graph in borders_of(found.file)), found.file)
        return file, found.partitions

    def _write_context(self, graph: Graph, options: ProviderOptions) -> None:
        from openqnn.api.compile import compile
        from openqnn.emit.epcontext import write_epcontext

        if self._entries.share and options.settings:
            raise UsageError("graphs that share a context have no settings of their own", hint=SETTINGS_ALONE)
        target = self._entries.target(self._path)
        if self._path and target.exists() and target.samefile(self._path):
            raise UsageError(
                f"{target} is the model itself", hint="name another file with ep.context_file_path"
            )
        if target.exists():
            raise UsageError(f"{target} exists", hint="remove it, or name another with ep.context_file_path")
        if self._entries.prefix:
            graph = clone_graph(graph)
            graph.name = f"{self._entries.prefix}{graph.name}"
        if self._entries.share:
            put_aside(WaitingGraph(graph, target, options.library, options.soc))
            if self._entries.stop_share:
                write_shared()
            return
        made = compile(graph, options.library, soc=options.soc, settings=options.settings or None)
        write_epcontext(target, made.blob, made.info, embed=self._entries.embed)

    def _profile(self, feed: Mapping[str, Any]) -> None:
        """The library measures the first run: the provider measures them all, which costs as much again."""
        options, graph = self._options, self._session.graph
        if self._profiled or options is None or options.profiling is None or not graph.nodes:
            return
        self._profiled = True
        from openqnn.ort_qnn.profile_csv import append_profile
        from openqnn.vendor.execute_events import execute_events

        events = execute_events(graph, accepted(graph, feed), options.library, options.soc, options.profiling)
        append_profile(options.profiling_file or PROFILE, events)


def _providers(
    names: Sequence[str | tuple[str, Mapping[str, Any]]] | None, options: Sequence[Mapping[str, Any]] | None
) -> tuple[list[str], dict[str, Mapping[str, Any]]]:
    """Names in order, and what each provider is told."""
    listed = [CPU] if names is None else list(names)
    if options is not None and len(options) != len(listed):
        raise UsageError(f"{len(listed)} providers and {len(options)} provider_options: one for each")
    told: dict[str, Mapping[str, Any]] = {}
    for index, item in enumerate(listed):
        name, own = item if isinstance(item, tuple) else (item, options[index] if options else {})
        if name not in (QNN, CPU):
            raise UsageError(f"there is no provider {name!r}", hint=f"{QNN} or {CPU}")
        told[name] = own
    return list(told), told


def _graph(file: str) -> Graph:
    if not Path(file).is_file():
        raise ModelError(f"{file}: no such file")
    return open_graph(file)


def _fixed(graph: Graph, options: ProviderOptions) -> Graph:
    """A QDQ model in the integers that its pairs stand for."""
    if not graph.given:
        return graph
    from openqnn.api.quantize import quantize

    return quantize(graph, float_fallback=True, algorithms=(), soc=options.soc)


def _is_context_model(file: str) -> bool:
    """Whether a file is an EPContext model."""
    if Path(file).suffix != ".onnx":
        return False
    import onnx

    try:
        model = onnx.load(file, load_external_data=False)
    except Exception as error:  # protobuf's own, which the frontend says better
        if not Path(file).is_file():
            raise ModelError(f"{file}: no such file") from error
        return False
    return any(node.op_type == "EPContext" for node in model.graph.node)


def _arg(graph: Graph, value: Value) -> NodeArg:
    port = graph.ports[value.name]
    label = np.dtype(outside_dtype(port).numpy).name
    return NodeArg(value.name, list(port.shape), f"tensor({_TYPES.get(label, label)})")
