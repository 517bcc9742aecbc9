"""Constants: computed where all inputs are known, and kept once where two are equal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from openqnn.errors import OpenQnnError
from openqnn.ir import Array, Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.layout import permutation_of
from openqnn.ops.schema import Moves
from openqnn.passes.edit import bypass, sweep
from openqnn.passes.explain import Explain

LARGE = 16 << 20  # bytes; a result beyond this is only stored when its inputs are about as large
SAMPLES = 32  # elements that are compared before two large constants are read in full
MANY = 1 << 20  # elements; above this a sample is taken by index


# -- folding ------------------------------------------------------------------------------------------


def fold_constants(graph: Graph, log: Explain) -> int:
    """Views of constants at once; all other nodes on constants together, in a single session."""
    computed: dict[Value, Node] = {}
    changes = 0
    for node in list(graph.nodes):
        if not _is_known(node, computed) or not _may_fold(graph, log, node):
            continue
        view = _view(node)
        if view is not None:
            changes += _store(graph, log, node.out, view)
        else:
            computed.update(dict.fromkeys(node.outputs, node))
    return changes + _compute(graph, log, computed)


def _is_known(node: Node, computed: dict[Value, Node]) -> bool:
    given = [v for v in node.inputs if v is not None]
    return bool(given) and all(v.is_constant or v in computed for v in given)


def _may_fold(graph: Graph, log: Explain, node: Node) -> bool:
    schema = schema_of(node)
    size, given = sum(v.nbytes for v in node.outputs), sum(v.nbytes for v in node.inputs if v is not None)
    reason = ""
    if any(graph.is_output(v) for v in node.outputs):
        reason = f"'{node.out.name}' is a graph output, which needs a node"
    elif schema.lower is None and schema.compute is None:
        reason = f"the built-in backend does not run it: {schema.why_not}"
    elif size > max(LARGE, 2 * given):
        reason = f"the result has {size >> 20} MB, the inputs {given >> 20} MB"
    if reason:
        log.decline("fold_constants", node, reason)
    return not reason


def _view(node: Node) -> Array | None:
    """The result without a copy, when the node only looks at its constant in another way."""
    x, out = node.x(0), node.out
    if x.data is None or x.encoding != out.encoding:
        return None
    perm = permutation_of(node)
    if perm is not None:
        return x.data.transpose(perm)
    return x.data.reshape(out.shape) if schema_of(node).moves is Moves.VIEW else None


def _store(graph: Graph, log: Explain, old: Value, data: Array) -> int:
    node = old.producer
    assert node is not None
    new = Value(old.name, old.dtype, old.shape, old.encoding, data)
    graph.replace_uses(old, new)
    log.apply("fold_constants", node)
    return sweep(graph, [node])


def _compute(graph: Graph, log: Explain, computed: dict[Value, Node]) -> int:
    wanted = [v for v in computed if any(not _inside(u, computed) for u in v.users)]
    if not wanted:
        return 0
    from openqnn.runtime.cpu.executable import (
        run_graph,  # many models have nothing to compute: they do not wait for it
    )

    try:
        found = run_graph(constants_graph(dict.fromkeys(computed.values()), wanted), {})
    except OpenQnnError as e:
        log.decline("fold_constants", f"{len(wanted)} value(s)", e.message)
        return 0
    return sum(_store(graph, log, v, np.asarray(found[v.name]).reshape(v.shape)) for v in wanted)


def _inside(node: Node, computed: dict[Value, Node]) -> bool:
    return node.out in computed


def constants_graph(nodes: Iterable[Node], wanted: list[Value]) -> Graph:
    """A graph of its own with those nodes; copies, so that the values do not learn of new uses."""
    graph, copies = Graph("constants"), dict[Value, Value]()

    def copy(v: Value) -> Value:
        if v not in copies:
            copies[v] = Value(v.name, v.dtype, v.shape, v.encoding, v.data)
        return copies[v]

    for n in nodes:
        inputs = [None if v is None else copy(v) for v in n.inputs]
        graph.add(Node(n.op, n.name, inputs, [copy(v) for v in n.outputs], n.params, n.source, n.package))
    for value in wanted:
        graph.add_output(copies[value])
    return graph


# -- merging ------------------------------------------------------------------------------------------


def merge_constants(graph: Graph, log: Explain) -> int:
    """Equal constants become one, unless something else is given for them; only those that agree in type,
    shape and a few elements are read."""
    groups: dict[Any, list[Value]] = {}
    changes = 0
    for value in graph.constants():
        members = groups.setdefault((graph.given.get(value.name), _fingerprint(value)), [])
        same = next((m for m in members if _equal(m, value)), None)
        if same is None:
            members.append(value)
        elif bypass(graph, value, same) == "":
            log.apply("merge_constants", value, f"equal to '{same.name}'")
            changes += 1
    return changes


def _fingerprint(value: Value) -> Any:
    data = value.data
    assert data is not None
    step = max(1, data.size // SAMPLES)
    sample = data.flat[::step][:SAMPLES] if data.size <= MANY else _few(data)
    return value.dtype, value.shape, value.encoding, np.ascontiguousarray(sample).tobytes()


def _few(data: Array) -> Array:
    """Elements here and there, found by index: a slice of `flat` would walk through the whole array."""
    places = np.linspace(0, data.size - 1, SAMPLES).astype(np.int64)
    return data[np.unravel_index(places, data.shape)]


def _equal(a: Value, b: Value) -> bool:
    """Bit by bit, so that NaN equals itself and -0 does not equal 0."""
    x, y = a.data, b.data
    assert x is not None and y is not None
    if x.__array_interface__["data"] == y.__array_interface__["data"] and x.strides == y.strides:
        return True
    bits = np.dtype(f"u{x.dtype.itemsize}")
    return np.array_equal(x.view(bits), y.view(bits))
