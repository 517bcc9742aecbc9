"""The built-in backend: the whole graph as one ONNX model in ONNX Runtime."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import cycle, islice, pairwise
from math import ceil
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime as ort
import onnxruntime.capi.onnxruntime_pybind11_state as state
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from openqnn.errors import BackendError
from openqnn.ir import Array, Graph, Shape, Value
from openqnn.ops import schema_of
from openqnn.ops.onnx_writer import Body
from openqnn.runtime.cpu.drop_byte_casts import stay_real
from openqnn.runtime.cpu.keep_nchwc import keep_blocked
from openqnn.runtime.cpu.tile_rows import in_rows, second_cache
from openqnn.runtime.cpu.to_onnx import Lowered, NumpyStep, to_onnx
from openqnn.runtime.runner import ALL, Outputs, chosen
from openqnn.worker.c_function import usable_processors

OPSET = 21
# what a run can raise: ONNX Runtime's exceptions share no ancestor of their own
FAILURES = (
    RuntimeError,
    ValueError,
    state.Fail,
    state.InvalidArgument,
    state.RuntimeException,
    state.EPFail,
)
# It quantizes float weights between quantized activations by a scheme of its own: other numbers than the
# graph's.
_DISABLED = ["WeightBiasQuantization"]
# They move factors into the weights: sums of integers would no longer be exact.
_NOT_WITH_INTEGERS = ["ConvMulFusion", "ConvAddFusion", "ConvBNFusion"]
MOST_WEIGHTS = 256 << 20  # bytes in a graph that is optimised apart, for which they are copied
LEAST_MACS = 300_000  # in a convolution that several threads share: 4 us of one of them, which meeting takes
LEAST_TASK = 6_000_000  # in samples that a thread gets at once: 0.4 ms, of which hearing of it takes a tenth
MOST_TOGETHER = 16  # samples in a task
EMBED_BELOW = 1024  # bytes; larger constants are handed to ONNX Runtime by reference


@dataclass(slots=True)
class OnnxStep:
    """A stretch of ONNX nodes in a session of its own."""

    session: ort.InferenceSession
    inputs: list[str]
    outputs: list[str]
    keep: list[Any]  # arrays that the session reads without owning them


class CpuExecutable:
    """A compiled graph. `run` takes and returns arrays by value name, in the graph's own types and axis
    order. One for `many` samples is compiled for `run_many` alone."""

    def __init__(
        self, graph: Graph, *, threads: int = 0, extra: Sequence[Value] = (), many: bool = False
    ) -> None:
        self._graph = graph
        self._remade = partial(CpuExecutable, graph, threads=threads, many=many)
        self._variants: dict[tuple[str, ...], CpuExecutable] = {}
        self.lowered = to_onnx(graph, extra)
        self.output_names = list(self.lowered.outputs)
        self._feeds = {v.name: name for name, v in self.lowered.inputs.items()}
        self._blocks = Blocks(self.lowered) if _is_blocked_well(self.lowered) else None
        self._workers = threads or usable_processors()
        self._together = min(MOST_TOGETHER, ceil(LEAST_TASK / max(1, sum(_macs(graph)))))
        self._pool: ThreadPoolExecutor | None = None
        few = self._blocks is not None and not _is_enough_for_threads(graph, self._blocks.found.nodes)
        self._threads = 1 if many or (few and not threads) else threads
        self._results = [self.lowered.outputs[n] for n in self.output_names]
        self._alone: CpuExecutable | None = None
        self._compile()

    def _compile(self) -> None:
        body = self._blocks.body(in_parts=self._threads == 1) if self._blocks else self.lowered
        self._steps = compile_steps(body, self._threads, ready=self._blocks is not None)
        first = self._steps[0] if len(self._steps) == 1 else None
        self._single = first if isinstance(first, OnnxStep) else None

    @property
    def tensor_names(self) -> list[str]:
        """All that it can show: outputs, and what the nodes compute."""
        made = (value.name for node in self._graph.nodes for value in node.outputs)
        return list(dict.fromkeys([*self.output_names, *made]))

    def showing(self, outputs: Outputs) -> tuple[CpuExecutable, list[str]]:
        """The executable that has these outputs, and their names. The last one with others is kept."""
        shown = [value.name for value in self._graph.values()] if outputs else []
        names = chosen(outputs, self.output_names, self.tensor_names if outputs == ALL else shown)
        extra = tuple(name for name in names if name not in self.output_names)
        if not extra:
            return self, names
        if extra not in self._variants:
            values = {value.name: value for value in self._graph.values()}
            made = [values[name] for name in (*self.output_names, *extra)]
            self._close_variants()
            self._variants[extra] = self._remade(extra=made)
        return self._variants[extra], names

    def _close_variants(self) -> None:
        for variant in self._variants.values():
            variant.close()
        self._variants = {}

    def run(self, arrays: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        if outputs is not None:
            executable, names = self.showing(outputs)
            found = executable.run(arrays)
            return {name: found[name] for name in names}
        feeds = {self._feeds[name]: array for name, array in arrays.items()}
        try:
            results = self._run_single(feeds) if self._single else self._run_steps(feeds)
        except FAILURES as e:
            raise failed(e) from e
        return dict(zip(self.output_names, results, strict=True))

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        """Results of sample after sample, in order."""
        if outputs is None:
            return self._run_beside(samples)
        executable, names = self.showing(outputs)
        return ({name: found[name] for name in names} for found in executable._run_beside(samples))

    def _run_beside(self, samples: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
        """Runs samples beside each other, each in a thread of its own, and gives their results in order.

        That is sooner done than one after the other with all threads for each, which wait for one another
        at every node. Whoever takes the results is one of the threads. Samples are taken as results are: few
        of either are held. A thread gets several of a small graph at once.
        """
        if self._workers == 1:
            yield from map(self.run, samples)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers - 1)
        run, source = self._in_one_thread().run, iter(samples)
        waiting = deque[list[Mapping[str, Array]] | Future[list[dict[str, Array]]]]()
        try:
            for turn in cycle(range(self._workers)):
                if together := list(islice(source, self._together)):
                    waiting.append(self._pool.submit(_each, run, together) if turn else together)
                if len(waiting) == 2 * self._workers or (waiting and not together):
                    task = waiting.popleft()
                    yield from task.result() if isinstance(task, Future) else _each(run, task)
                elif not together:
                    return
        finally:
            for task in waiting:
                if isinstance(task, Future):
                    task.cancel()

    def _in_one_thread(self) -> CpuExecutable:
        if self._threads == 1:
            return self
        if self._alone is None:
            self._alone = copy(self)
            self._alone._threads = 1
            self._alone._compile()
        return self._alone

    def close(self) -> None:
        """Frees the sessions."""
        self._close_variants()
        self._steps, self._single, self._alone = [], None, None
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _run_single(self, feeds: dict[str, Array]) -> list[Array]:
        assert self._single is not None
        used = {n: feeds[n] for n in self._single.inputs}
        return cast("list[Array]", self._single.session.run(self._results, used))

    def _run_steps(self, feeds: dict[str, Array]) -> list[Array]:
        known: dict[str, Array] = {**self.lowered.body.constants, **feeds}
        for step in self._steps:
            known.update(zip(step.outputs, _run_step(step, known), strict=True))
        return [known[n] for n in self._results]


def _each(
    run: Callable[[Mapping[str, Array]], dict[str, Array]], samples: list[Mapping[str, Array]]
) -> list[dict[str, Array]]:
    return [run(sample) for sample in samples]


def run_graph(graph: Graph, arrays: Mapping[str, Array], extra: Sequence[Value] = ()) -> dict[str, Array]:
    """Compiles and runs once."""
    return CpuExecutable(graph, threads=1, extra=extra).run(arrays)


def _run_step(step: OnnxStep | NumpyStep, known: dict[str, Array]) -> Sequence[Array]:
    if isinstance(step, OnnxStep):
        feeds = {n: known[n] for n in step.inputs}
        return cast("list[Array]", step.session.run(step.outputs, feeds)) if step.outputs else []
    return run_numpy(step, known)


def run_numpy(step: NumpyStep, known: Mapping[str, Array]) -> list[Array]:
    """The results of an op that ONNX cannot say, from the arrays that it reads."""
    compute = schema_of(step.node).compute
    assert compute is not None
    results = compute(step.node, [known[n] if n else None for n in step.inputs])
    return [
        np.ascontiguousarray(r, v.dtype.numpy).reshape(v.shape)
        for r, v in zip(results, step.node.outputs, strict=True)
    ]


def failed(error: BaseException) -> BackendError:
    return BackendError(f"ONNX Runtime failed: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:300]


# -- building the sessions -----------------------------------------------------------------------------------


def compile_steps(
    lowered: Lowered, threads: int, cuts: Iterable[int] = (), *, shared: bool = False, ready: bool = False
) -> list[OnnxStep | NumpyStep]:
    """A session for each stretch of nodes. Stretches end where numpy computes, and at the given `cuts`.

    `shared` sessions take their memory from one arena instead of keeping one each. Nodes that are `ready`
    have been optimised before.
    """
    ends: list[tuple[int, NumpyStep | None]] = [(s.position, s) for s in lowered.steps]
    ends = sorted([*ends, *((cut, None) for cut in cuts)], key=lambda end: end[0])
    borders = [0, *(position for position, _ in ends), len(lowered.body.nodes)]
    stretches = [lowered.body.nodes[a:b] for a, b in pairwise(borders)]
    between = [step for _, step in ends]
    steps: list[OnnxStep | NumpyStep] = []
    for nodes, wanted, step in zip(
        stretches, _needed_later(lowered, stretches, between), [*between, None], strict=True
    ):
        if nodes:
            steps.append(_session(lowered, nodes, wanted, _options(threads, shared, ready)))
        if step is not None:
            steps.append(step)
    return steps


@dataclass(frozen=True, slots=True)
class Optimized:
    """Nodes as ONNX Runtime would run them. Of constants the graph tells types and shapes only."""

    graph: onnx.GraphProto
    constants: dict[str, Array]


def optimized(lowered: Lowered) -> Optimized:
    """The nodes as they are best run on this processor."""
    options = _options(1)
    options.add_session_config_entry("session.disable_prepacking", "1")  # nothing will run here
    # Large ones in a message would be copied three times until they are arrays.
    apart = "session.optimized_model_external_initializers"
    options.add_session_config_entry(f"{apart}_file_name", "large")
    options.add_session_config_entry(f"{apart}_min_size_in_bytes", str(EMBED_BELOW))
    with tempfile.TemporaryDirectory() as folder:
        path, large = Path(folder, "optimized.onnx"), Path(folder, "large")
        options.optimized_model_filepath = str(path)
        _session(lowered, lowered.body.nodes, _made(lowered), options)
        graph = onnx.load(path, load_external_data=False).graph
        data = np.fromfile(large, np.uint8) if large.exists() else np.empty(0, np.uint8)
    return Optimized(graph, {tensor.name: _read(tensor, data) for tensor in graph.initializer})


def _read(tensor: TensorProto, data: NDArray[np.uint8]) -> Array:
    """A constant that is in its message, or else a part of the data."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    where = {entry.key: entry.value for entry in tensor.external_data}
    start, size = int(where["offset"]), int(where["length"])
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return data[start : start + size].view(dtype).reshape(tuple(tensor.dims))


def _made(lowered: Lowered) -> list[str]:
    """The outputs that nodes make: constants are none."""
    made = {o for node in lowered.body.nodes for o in node.output}
    return [n for n in dict.fromkeys(lowered.outputs.values()) if n in made]


def _is_blocked_well(lowered: Lowered) -> bool:
    """Whether it pays to keep the blocks of convolutions: in fixed point, where much lies between them."""
    kinds = {node.op_type for node in lowered.body.nodes}
    weights = sum(a.nbytes for a in lowered.body.constants.values())
    return not lowered.steps and kinds >= {"Conv", "QuantizeLinear"} and weights <= MOST_WEIGHTS


class Blocks:
    """Nodes that are ready to run, and numbers in the order that convolutions have them."""

    def __init__(self, lowered: Lowered) -> None:
        ready = optimized(lowered)
        plain = _model(lowered, lowered.body.nodes, _made(lowered)).proto
        self.lowered, self.constants = lowered, ready.constants
        self.found = keep_blocked(ready.graph, ready.constants, plain, _block_size())

    def body(self, *, in_parts: bool) -> Lowered:
        """The graph for many threads, or with wide layers in parts for one."""
        outputs, found = set(self.lowered.outputs.values()), self.found
        if in_parts:
            found = in_rows(found, self.constants, outputs, _block_size(), second_cache())
        body = Body()
        constants = self.constants | found.constants
        body.nodes, more = stay_real(found.nodes, constants, outputs)
        body.constants = constants | more
        return replace(self.lowered, body=body)


def _is_enough_for_threads(graph: Graph, nodes: Iterable[onnx.NodeProto]) -> bool:
    """Whether several threads compute convolutions in less time than they take to meet for each."""
    convolutions = sum(node.op_type in ("Conv", "Gemm", "MatMul") for node in nodes)
    return sum(_macs(graph)) >= LEAST_MACS * convolutions


def _macs(graph: Graph) -> Iterator[int]:
    return (macs(node) for node in graph.nodes if (macs := schema_of(node).macs) is not None)


@cache
def _block_size() -> int:
    """How many channels this processor's convolutions keep together: to so many it fills up a single one."""
    body = Body()
    made = body.op("Conv", "in.0", body.const(np.ones((1, 64, 1, 1), np.float32)))
    small = Lowered(body, {}, {"out": made}, [], {"in.0": (np.dtype(np.float32), (1, 64, 4, 4))})
    return max(len(weights) for weights in optimized(small).constants.values())


def _needed_later(
    lowered: Lowered, stretches: list[list[onnx.NodeProto]], between: list[NumpyStep | None]
) -> list[list[str]]:
    """For each stretch the names that something behind it reads."""
    needed = dict.fromkeys(lowered.outputs.values())
    wanted: list[list[str]] = []
    for nodes, step in zip(stretches[::-1], [None, *between[::-1]], strict=True):
        if step is not None:
            needed.update(dict.fromkeys(n for n in step.inputs if n))
        made = {o for n in nodes for o in n.output}
        wanted.append([n for n in needed if n in made])
        needed.update(dict.fromkeys(n for node in nodes for n in node.input if n))
    return wanted[::-1]


@dataclass(frozen=True, slots=True)
class _Model:
    proto: onnx.ModelProto
    inputs: list[str]
    large: dict[str, Array]  # constants that it only names


def _session(
    lowered: Lowered, nodes: list[onnx.NodeProto], outputs: list[str], options: ort.SessionOptions
) -> OnnxStep:
    model = _model(lowered, nodes, outputs)
    keep = [ort.OrtValue.ortvalue_from_numpy(a) for a in model.large.values()]
    if keep:
        options.add_external_initializers(list(model.large), keep)
    return OnnxStep(_open(model.proto, options), model.inputs, outputs, [keep, model.large])


def _read_from_outside(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """The names that the nodes read and none of them produces, in the order of the first read."""
    made = {o for n in nodes for o in n.output} | {""}
    return list(dict.fromkeys(i for n in nodes for i in n.input if i not in made))


def _model(lowered: Lowered, nodes: list[onnx.NodeProto], outputs: list[str]) -> _Model:
    used = _read_from_outside(nodes)
    constants = {n: lowered.body.constants[n] for n in used if n in lowered.body.constants}
    inputs = [n for n in used if n not in constants]
    small, large = _split(constants)
    initializers = [_embedded(n, a) for n, a in small.items()] + [_external(n, a) for n, a in large.items()]
    graph = helper.make_graph(
        nodes,
        "graph",
        [_info(n, *_type_of(lowered, n)) for n in inputs],
        [_bare(n) for n in outputs],
        initializers,
    )
    domains = sorted({"com.microsoft", *(n.domain for n in nodes)} - {""})
    opsets = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(d, 1) for d in domains)]
    return _Model(helper.make_model(graph, opset_imports=opsets, ir_version=10), inputs, large)


def _open(model: onnx.ModelProto, options: ort.SessionOptions) -> ort.InferenceSession:
    try:
        return _create(model, options)
    except state.NotImplemented:
        from openqnn.runtime.cpu.missing_kernels import (
            with_known_kernels,  # reads the registry of all kernels: only when it is needed
        )

        wide = with_known_kernels(model)
    except Exception as e:  # ONNX Runtime raises a dozen unrelated classes here
        raise BackendError(f"ONNX Runtime refuses the graph: {_first_line(e)}") from e
    try:
        return _create(wide, options)
    except Exception as e:
        raise BackendError(f"ONNX Runtime refuses the graph: {_first_line(e)}") from e


def _create(model: onnx.ModelProto, options: ort.SessionOptions) -> ort.InferenceSession:
    fixed = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    disabled = _DISABLED + _NOT_WITH_INTEGERS * fixed
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
    )


def _options(threads: int, shared: bool = False, ready: bool = False) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_DISABLE_ALL if ready else level.ORT_ENABLE_ALL
    # Its integer kernels saturate sums of two products to 16 bits on processors without VNNI, and round by
    # rules of their own: dequantized integers in float32 are exact where it counts.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    if shared:
        _register_arena()
        options.add_session_config_entry("session.use_env_allocators", "1")
    return options


@cache
def _register_arena() -> None:
    """The arena of all sessions that ask for it. It grows by what is needed, not to the next power of two."""
    where = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    with suppress(state.Fail):  # the program has registered one of its own, which serves as well
        ort.create_and_register_allocator(where, ort.OrtArenaCfg(0, 1, -1, -1))


def _split(constants: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Small constants are embedded. ONNX Runtime reads large ones in place, for which they must lie in C
    order."""
    small = {n: a for n, a in constants.items() if a.nbytes < EMBED_BELOW}
    large = {n: np.require(a, requirements=["C", "A"]) for n, a in constants.items() if n not in small}
    return small, large


def _onnx_type(dtype: np.dtype[Any]) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype)


def _embedded(name: str, array: Array) -> TensorProto:
    data = np.ascontiguousarray(array).tobytes()
    return TensorProto(name=name, data_type=_onnx_type(array.dtype), dims=array.shape, raw_data=data)


def _external(name: str, array: Array) -> TensorProto:
    tensor = TensorProto(name=name, data_type=_onnx_type(array.dtype), dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="memory")
    return tensor


def _type_of(lowered: Lowered, name: str) -> tuple[np.dtype[Any], Shape]:
    return lowered.types[name]


def _info(name: str, dtype: np.dtype[Any], shape: Iterable[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, _onnx_type(dtype), list(shape))


def _bare(name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name)
