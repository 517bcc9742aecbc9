"""Converting models of any framework to QNN graphs, and checking whether that can be done."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from openqnn.errors import OpenQnnWarning, Problem, ShapeError, UsageError
from openqnn.ir import Array, Graph
from openqnn.ir.mapped_pages import release_pages

if TYPE_CHECKING:
    from openqnn.formats.custom_io import Described
    from openqnn.frontends.dimensions import Dimensions
    from openqnn.frontends.frontend import Importer
    from openqnn.passes import Explain
    from openqnn.passes.boundary.layouts import Borders
    from openqnn.passes.step import Step

Progress = Callable[[str, int, int], None]  # stage, done, total
Source: TypeAlias = "str | os.PathLike[str] | Any"  # a path, or an object of a framework
LARGEST_TENSOR = 1 << 38  # bytes
LARGEST_DIMENSION = (1 << 32) - 1
DEAD_CODE = "remove_dead_code"  # the pass without which nodes stay that no output depends on


def convert(
    model: Source,
    example_inputs: Any = None,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    batch: int | None = None,
    input_values: Mapping[str, Any] | None = None,
    outputs: Sequence[str] = (),
    borders: Borders | None = None,
    float_bits: int | None = None,
    bias_bits: int | None = None,
    keep_quant_nodes: bool = False,
    without: Collection[str] = (),
    explain: Explain | None = None,
    progress: Progress | None = None,
    frontend: str = "",
    source_options: Mapping[str, Any] | None = None,
) -> Graph:
    """The QNN graph of a model: a file, or an object of its framework.

    `example_inputs` are for objects that have no shapes of their own, such as modules: what they are called
    with. Dynamic dimensions are settled by input name (`input_shapes`), symbol (`dims`) or `batch`;
    `input_values` makes constants of inputs, as of a `k` that decides a shape. `outputs` ends the graph at
    these tensors of the model, `borders` says how inputs and outputs look from outside, `float_bits` (16 or
    32) how wide floats are, and `without` names passes that are left out. The model's quantize nodes are
    taken out: the graph computes in floating point, and `quantize` uses their encodings. With
    `keep_quant_nodes` they stay, and the graph rounds where the model does. The model's content says which
    framework it is of, unless `frontend` names it; `source_options` are that frontend's
    own. Raises UnsupportedError with every node that has no QNN equivalent, ModelError when the file is
    damaged, and DynamicShapeError when a dimension is left open.
    """
    from openqnn.frontends.dimensions import dimensions_of
    from openqnn.passes import Explain, run_passes
    from openqnn.passes.boundary.new_ends import warn_of_idle_inputs
    from openqnn.passes.step import run_steps

    _check_outputs(outputs)
    options = _with_example(source_options, example_inputs)
    more = {"prune": DEAD_CODE not in without, "keep_quant_nodes": keep_quant_nodes}
    said = dimensions_of(input_shapes, dims, batch, input_values)
    importer = _importer(model, said, outputs, frontend, options, **more)
    _warn_of_bad_weights(importer.arrays)
    graph = _translated(importer, progress)
    log = Explain() if explain is None else explain
    run_steps(_steps_before(borders), graph, log)
    run_passes(graph, log, without=without)
    run_steps(_steps_after(importer, borders, float_bits, bias_bits), graph, log)
    _check_sizes(graph)
    warn_of_idle_inputs(graph)
    return graph


def _steps_before(borders: Borders | None) -> list[Step]:
    """What is done with a translated graph in front of the passes."""
    from openqnn.passes.boundary.given_encodings import spread_given
    from openqnn.passes.boundary.layouts import arrange_borders
    from openqnn.passes.step import Step

    steps = [Step("spread_given", lambda graph, _: spread_given(graph), "tensors go, or merge, in passes")]
    if borders is not None:
        arrange = lambda graph, _: arrange_borders(graph, borders)
        steps.append(Step("arrange_borders", arrange, "passes absorb the transposes that it puts in"))
    return steps


def _steps_after(
    importer: Importer, borders: Borders | None, float_bits: int | None, bias_bits: int | None
) -> list[Step]:
    """What is done with a graph behind the passes."""
    from openqnn.passes.boundary.given_encodings import settle_given
    from openqnn.passes.boundary.layouts import type_borders
    from openqnn.passes.set_float_width import set_float_width
    from openqnn.passes.step import Step

    settle = lambda graph, log: settle_given(graph, log, importer.notes)
    tell = lambda graph, _: _tell_what_went(graph, importer)
    steps = [
        Step("settle_given", settle, "weights have the axes and numbers that they keep"),
        Step("tell_what_went", tell, "while constants have the numbers that passes gave them"),
    ]
    if float_bits is not None:
        narrow = lambda graph, _: set_float_width(graph, float_bits, bias_bits)
        steps.append(Step("set_float_width", narrow, "constants are folded in full width"))
    if borders is not None:
        typed = lambda graph, _: type_borders(graph, borders)
        steps.append(Step("type_borders", typed, "last: casts between types outside and those inside"))
    return steps


def _tell_what_went(graph: Graph, importer: Importer) -> None:
    graph.merged = _merged(graph, importer)
    graph.folded = _folded(graph, importer.arrays)


def _with_example(options: Mapping[str, Any] | None, example_inputs: Any) -> dict[str, Any]:
    return {**(options or {}), **({} if example_inputs is None else {"example_inputs": example_inputs})}


def _merged(graph: Graph, importer: Importer) -> frozenset[str]:
    """The tensors of the source that passes fused away."""
    kept = {v.name for v in graph.values()} | {i.name for i in importer.inputs}
    return frozenset(name for name in importer.names if name not in kept)


def _folded(graph: Graph, arrays: Mapping[str, Array]) -> frozenset[str]:
    """The constants that passes computed anew: views of the source are the same numbers in any order."""
    pairs = ((v.name, v.data, arrays.get(v.name)) for v in graph.constants())
    return frozenset(n for n, a, b in pairs if a is not None and b is not None and _differ(a, b))


def _differ(made: Array, source: Array) -> bool:
    if made.size == source.size and np.may_share_memory(made, source):
        return False
    size = lambda array: float(np.abs(array).sum(dtype=np.float64))
    found = made.size != source.size or not np.isclose(size(made), size(source), rtol=1e-6)
    release_pages(source)
    return found


def _check_sizes(graph: Graph) -> None:
    """QNN has no empty tensors; and a few bytes of shape can ask for more memory than any machine has."""
    for node in graph.nodes:
        for value in node.outputs:
            if 0 in value.shape:
                raise ShapeError(
                    f"{node.where}: its result '{value.name}' {list(value.shape)} has a dimension of size 0;"
                    " QNN has no empty tensors"
                )
            if max(value.shape, default=0) > LARGEST_DIMENSION:
                shape = f"its result '{value.name}' {list(value.shape)}"
                raise ShapeError(f"{node.where}: {shape} has a dimension beyond 32 bits, which QNN has not")
            if value.nbytes > LARGEST_TENSOR:
                size = f"{value.nbytes / (1 << 30):,.0f} GiB"
                raise ShapeError(f"{node.where}: its result '{value.name}' {list(value.shape)} takes {size}")


def _importer(
    model: Source,
    said: Dimensions,
    outputs: Sequence[str] = (),
    frontend: str = "",
    options: Mapping[str, Any] | None = None,
    *,
    prune: bool = True,
    keep_quant_nodes: bool = False,
) -> Importer:
    from openqnn.frontends.dimensions import check_dimensions
    from openqnn.frontends.frontend import find_frontend, get_frontend

    chosen = get_frontend(frontend) if frontend else find_frontend(model)
    found = chosen.open(
        model, said, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes, **(options or {})
    )
    check_dimensions(said, found.inputs)
    return found


def _warn_of_bad_weights(arrays: Mapping[str, Array]) -> None:
    bad: list[str] = []
    for name, array in arrays.items():
        if _is_bad(array):
            bad.append(name)
        release_pages(array)
    if bad:
        names = ", ".join(f"'{n}'" for n in bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        warnings.warn(f"weights with NaN or infinite values: {names}", OpenQnnWarning, stacklevel=3)


def _is_bad(array: Array) -> bool:
    """A sum finds almost all good tensors in one pass; only a suspicious one is looked at element by
    element."""
    if array.dtype.kind != "f" or not array.size:
        return False
    with np.errstate(all="ignore"):
        return not np.isfinite(array.sum()) and not np.isfinite(array).all() and not _is_mask(array)


def _is_mask(array: Array) -> bool:
    """Whether minus infinity stands beside zeros alone, as in a mask of attention."""
    return bool(np.isin(array, (0.0, -np.inf)).all())


@dataclass(frozen=True)
class Report:
    """What `check` found: how often each source op is translated, and every node that cannot be."""

    supported: Mapping[str, int]
    problems: Sequence[Problem]
    unused_inputs: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def check(
    model: Source,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    batch: int | None = None,
    input_values: Mapping[str, Any] | None = None,
    outputs: Sequence[str] = (),
    frontend: str = "",
    source_options: Mapping[str, Any] | None = None,
) -> Report:
    """A dry run: what is supported, what is not and why; nothing is written."""
    from openqnn.errors import UnsupportedError
    from openqnn.frontends.dimensions import dimensions_of

    said = dimensions_of(input_shapes, dims, batch, input_values)
    importer = _importer(model, said, outputs, frontend, source_options)
    try:
        importer.run()
    except UnsupportedError as e:
        if not e.problems:
            raise
    unused = [v.name for v in importer.graph.inputs if not v.users]
    return Report(dict(importer.covered), tuple(importer.problems), () if importer.problems else unused)


def describe_borders(
    model: Source,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    batch: int | None = None,
    outputs: Sequence[str] = (),
    frontend: str = "",
    source_options: Mapping[str, Any] | None = None,
) -> tuple[list[Described], list[Described]]:
    """Inputs and outputs of a model: type, what the axes seem to mean, shape."""
    from openqnn.formats.custom_io import Described
    from openqnn.frontends.dimensions import dimensions_of
    from openqnn.passes.boundary.layouts import describe_layout

    said = dimensions_of(input_shapes, dims, batch)
    graph = _importer(model, said, outputs, frontend, source_options).run()
    found = [
        [Described(v.name, graph.ports[v.name].dtype.label, describe_layout(v), v.shape) for v in values]
        for values in (graph.inputs, graph.outputs)
    ]
    return found[0], found[1]


def _check_outputs(outputs: Sequence[str]) -> None:
    if isinstance(outputs, str):
        raise UsageError(f"outputs is a list of names, not {outputs!r}", hint=f"outputs=[{outputs!r}]")


def _translated(importer: Importer, progress: Progress | None) -> Graph:
    if progress is None:
        return importer.run()
    importer.on_node = lambda done, total: progress("translate", done, total)
    graph = importer.run()
    progress("optimise", 0, 1)
    return graph
