"""TensorFlow's SavedModels and frozen graphs as views, as they stand in the file, read without TensorFlow.

Functions are shown in place of their calls, with the name of the call in front of their nodes' names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from openqnn.errors import ModelError
from openqnn.frontends.tensorflow.graph_messages import read_message, type_name
from openqnn.frontends.tensorflow.kinds import SAVED_MODEL_FILES
from openqnn.viewer.from_graph import INPUT
from openqnn.viewer.readers.tensor_words import ends_with, shortened
from openqnn.viewer.readers.tensorflow_constants import constant_figures
from openqnn.viewer.view import View, ViewNode, ViewTensor

MOST: Final = 200_000  # nodes, with those of functions in place of their calls
DEEPEST: Final = 64
HIDDEN: Final = ("_output_shapes", "_XlaMustCompile", "config", "config_proto", "executor_type")
CALLS: Final = re.compile(r"(?<=PartitionedCall)_\d+/")
INIT: Final = "__saved_model_init_op"
VARIABLE: Final = "VarHandleOp"
READ_VARIABLE: Final = "ReadVariableOp"
PLACEHOLDERS: Final = ("Placeholder", "PlaceholderWithDefault")


def saved_model_views(path: Path) -> list[View]:
    """A view of each signature of a SavedModel, or the one of a frozen graph."""
    if path.is_dir():
        path = next(path / name for name in SAVED_MODEL_FILES if (path / name).is_file())
    try:
        return _views(path)
    except _TooLargeError as error:
        raise ModelError(f"{path}: {error}") from error


class _TooLargeError(Exception):
    """Functions in place of their calls make too much."""


def _views(path: Path) -> list[View]:
    if path.name not in SAVED_MODEL_FILES:
        graph = read_message(path, "Graph")
        return [_frozen(graph, path.name)]
    found: list[View] = []
    for meta in read_message(path, "SavedModel").meta_graphs:
        known = [name for name in meta.signature_def if name != INIT]
        found += [_signature(meta, name, path.parent.name) for name in sorted(known)]
    if not found:
        raise ModelError(f"{path}: it has no signature that could be shown", hint="save it with signatures")
    return found


@dataclass(slots=True)
class _Flat:
    """Nodes with the names of the tensors that they read; `alias` leads from a name to where it is made."""

    functions: Mapping[str, Any]
    nodes: dict[str, tuple[Any, list[str]]] = field(default_factory=dict[str, tuple[Any, list[str]]])
    alias: dict[str, str] = field(default_factory=dict[str, str])
    seen: int = 0

    def add(self, nodes: Iterable[Any], prefix: str, names: Mapping[str, str], depth: int = 0) -> None:
        for node in nodes:
            self.seen += 1
            if self.seen > MOST or depth > DEEPEST:
                raise _TooLargeError(f"its functions make more than {MOST:,} nodes, or call themselves")
            read = [_reference(text, prefix, names) for text in node.input if not text.startswith("^")]
            function = self._called(node)
            if function is None:
                self.nodes[prefix + node.name] = (node, read)
            else:
                self._inline(function, prefix + node.name, read, depth)

    def _called(self, node: Any) -> Any:
        name = node.attr["f"].func.name if "f" in node.attr else node.op
        return self.functions.get(name)

    def _inline(self, function: Any, call: str, read: list[str], depth: int) -> None:
        arguments = [arg.name for arg in function.signature.input_arg]
        known = dict(zip(arguments, read, strict=False))
        self.add(function.node_def, f"{call}/", known, depth + 1)
        for index, arg in enumerate(function.signature.output_arg):
            self.alias[f"{call}:{index}"] = _reference(function.ret[arg.name], f"{call}/", known)

    def settled(self, name: str) -> str:
        """The tensor itself behind the results of calls."""
        for _ in range(DEEPEST):
            if name not in self.alias:
                return name
            name = self.alias[name]
        return name


def _reference(text: str, prefix: str, names: Mapping[str, str]) -> str:
    """`conv`, `conv:1` or a function's `conv:output:0` with a number; an argument is what is given."""
    if text in names:
        return names[text]
    parts = text.split(":")
    return f"{prefix}{parts[0]}:{parts[-1] if len(parts) > 1 else '0'}"


def _is_input(node: Any) -> bool:
    kind = node.op
    return kind in PLACEHOLDERS


def _is_constant(node: Any) -> bool:
    kind = node.op
    return kind == "Const"


def _flat(graph: Any) -> _Flat:
    flat = _Flat({function.signature.name: function for function in graph.library.function})
    flat.add(graph.node, "", {})
    return flat


def _frozen(graph: Any, title: str) -> View:
    flat = _flat(graph)
    read = {flat.settled(name).rpartition(":")[0] for _, inputs in flat.nodes.values() for name in inputs}
    ends = [f"{name}:0" for name, (node, _) in flat.nodes.items() if name not in read]
    nodes = _nodes(flat, flat.nodes)
    nodes += [ends_with(_tensor(name, flat)) for name in ends if not _is_input(flat.nodes[name[:-2]][0])]
    return View(title, "TensorFlow graph", tuple(nodes), {"nodes": f"{len(flat.nodes):,}"})


def _signature(meta: Any, name: str, title: str) -> View:
    """What the outputs of a signature depend on; the nodes that save and restore are left out."""
    flat = _flat(meta.graph_def)
    outputs = {key: flat.settled(_reference(info.name, "", {})) for key, info in _sorted(meta, name)}
    waiting = [tensor.rpartition(":")[0] for tensor in outputs.values()]
    needed: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node in needed or node not in flat.nodes:
            continue
        needed.add(node)
        waiting += [flat.settled(text).rpartition(":")[0] for text in flat.nodes[node][1]]
    nodes = _nodes(flat, [node for node in flat.nodes if node in needed])
    given = {info.name: f"{INPUT}:{key}" for key, info in meta.signature_def[name].inputs.items()}
    nodes = [replace(n, keys=(*n.keys, given[n.keys[0]])) if n.keys[0] in given else n for n in nodes]
    nodes += [ends_with(_tensor(tensor, flat), key) for key, tensor in outputs.items()]
    facts = {"signature": name, "tags": ", ".join(meta.meta_info_def.tags)}
    facts |= {"TensorFlow": meta.meta_info_def.tensorflow_version, "nodes": f"{len(needed):,}"}
    return View(f"{title}: {name}", "SavedModel", tuple(nodes), facts)


def _sorted(meta: Any, name: str) -> list[tuple[str, Any]]:
    return sorted(meta.signature_def[name].outputs.items())


def _nodes(flat: _Flat, chosen: Iterable[str]) -> list[ViewNode]:
    """Nodes with the results that somebody reads; constants and variables stand at their readers."""
    made: dict[str, list[str]] = {}
    names = list(chosen)
    for name in names:
        for text in flat.nodes[name][1]:
            tensor = flat.settled(text)
            made.setdefault(tensor.rpartition(":")[0], []).append(tensor)
    shown = [name for name in names if not _is_held(name, flat)]
    return [_node(name, flat, sorted({*made.get(name, ()), f"{name}:0"})) for name in shown]


def _is_held(name: str, flat: _Flat) -> bool:
    """Whether a node only gives what the model holds: a constant, a variable, or its value."""
    node = flat.nodes[name][0]
    return _is_constant(node) or node.op == VARIABLE or _variable(name, flat) is not None


def _variable(name: str, flat: _Flat) -> Any:
    """The variable whose value a node reads; None for other nodes."""
    node, read = flat.nodes[name]
    if node.op != READ_VARIABLE or not read:
        return None
    maker = flat.nodes.get(flat.settled(read[0]).rpartition(":")[0])
    return maker[0] if maker is not None and maker[0].op == VARIABLE else None


def _node(name: str, flat: _Flat, outputs: list[str]) -> ViewNode:
    node, read = flat.nodes[name]
    op = INPUT if _is_input(node) else node.op
    params = {key: _shown(value) for key, value in sorted(node.attr.items()) if key not in HIDDEN}
    inputs = tuple(_tensor(flat.settled(text), flat) for text in read)
    made = tuple(_tensor(text, flat) for text in outputs)
    own = CALLS.sub("/", name)  # by it the node is found in another signature, which has a call of its own
    keys = (*outputs, *dict.fromkeys((name, own)), *((f"{INPUT}:{name}",) if op == INPUT else ()))
    return ViewNode(name, op, "", params, inputs, made, keys)


def _tensor(name: str, flat: _Flat) -> ViewTensor:
    """Type and shape as far as the node that makes it tells them."""
    maker, _, place = name.rpartition(":")
    node = flat.nodes[maker][0] if maker in flat.nodes else None
    if node is None:
        return ViewTensor(name, "")
    variable = _variable(maker, flat)
    if variable is not None:
        return ViewTensor(
            variable.name, type_name(variable.attr["dtype"].type), _dims(variable.attr["shape"].shape)
        )
    attr, index = node.attr, int(place) if place.isdecimal() else 0
    dtype = next((attr[key].type for key in ("dtype", "T", "DstT") if key in attr), 0)
    shape: tuple[int | str, ...] | None = None
    if _is_constant(node):
        held = attr["value"].tensor
        figures = partial(constant_figures, held)
        return ViewTensor(name, type_name(held.dtype), _dims(held.tensor_shape), weight=figures)
    if "_output_shapes" in attr and index < len(attr["_output_shapes"].list.shape):
        shape = _dims(attr["_output_shapes"].list.shape[index])
    elif "shape" in attr:
        shape = _dims(attr["shape"].shape)
    return ViewTensor(name, type_name(dtype), shape)


def _dims(shape: Any) -> tuple[int | str, ...]:
    return tuple(int(d.size) if d.size >= 0 else "?" for d in shape.dim)


def _shown(value: Any) -> str:
    """An attribute in words; numbers of a constant are left in the file."""
    kinds = value.ListFields()
    if not kinds:
        return "0"
    kind, content = kinds[0][0].name, kinds[0][1]
    if kind == "list":
        each = content.ListFields()
        items = [_plain(each[0][0].name, item) for item in each[0][1]] if each else []
        return shortened(f"[{', '.join(items)}]")
    return shortened(_plain(kind, content))


def _plain(kind: str, content: Any) -> str:
    if kind == "type":
        return type_name(content)
    if kind == "shape":
        return str(list(_dims(content)))
    if kind == "tensor":
        return f"{type_name(content.dtype)} {list(_dims(content.tensor_shape))}"
    if kind == "func":
        return content.name
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content)
