"""Walks an ONNX graph in order and lets the translators build the QNN graph; problems are collected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper

from openqnn.errors import DynamicShapeError, ModelError, ShapeError, UnsupportedError
from openqnn.frontends.onnx import assume, calls, evaluate, functions, registry
from openqnn.frontends.onnx.inputs import Dimensions, input_shape
from openqnn.frontends.onnx.reader import OnnxModel
from openqnn.frontends.onnx.translation import Refused, Translation, narrow_type, onnx_dtype
from openqnn.ir import DType, Graph, Port, Shape, Value, dtype_of


@dataclass(frozen=True, slots=True)
class Problem:
    """One node that cannot be translated."""

    op: str
    node: str
    reason: str
    hint: str = ""


class Importer:
    """Translates a model. `problems` holds every refusal; what lies behind a refused node is not reported."""

    def __init__(self, model: OnnxModel, dimensions: Dimensions, name: str) -> None:
        self.model = model
        self.dimensions = dimensions
        self.graph = Graph(name)
        self.graph.given = dict(model.taken.given)
        self.env: dict[str, Value | list[Value] | None] = {}
        self.problems: list[Problem] = []
        self.covered: Counter[str] = Counter(model.taken.nodes)
        self._named: set[Value] = set()
        self._inferred: dict[str, onnx.ValueInfoProto] | None = None  # asked for behind the first refusal
        self.on_node: Callable[[int, int], None] | None = None  # told how many nodes of how many are done
        self.opsets = {o.domain.replace("ai.onnx", "") or "": o.version for o in model.proto.opset_import}
        self.t = Translation(self.graph, self.opsets.get("", 1))
        self.t.run_subgraph = self.run_subgraph
        if dimensions == Dimensions():  # other input shapes than the model's make its own statements stale
            self.t.declared = declared_shapes(model.graph)

    def run(self) -> Graph:
        source = self.model.graph
        self.graph.reserve(o for n in source.node for o in n.output if o)
        self._inputs(source)
        nodes = ordered(source)
        for index, node in enumerate(nodes):
            self._node(node)
            if self.on_node is not None:
                self.on_node(index + 1, len(nodes))
        if self.problems:
            raise unsupported(self.problems)
        for info in source.output:
            self._output(info)
        self._name_constants()
        return self.graph

    def _name_constants(self) -> None:
        """A weight keeps its name, also when it was turned; only a second one of that name gets a number."""
        constants = self.graph.constants()
        taken = {v.name for v in self.graph.values() if not v.is_constant}
        for value in constants:
            count, stem = 1, value.name
            while value.name in taken:
                count += 1
                value.name = f"{stem}_{count}"
            taken.add(value.name)
        self.graph.reserve(taken)

    # -- borders --------------------------------------------------

    def _inputs(self, source: onnx.GraphProto) -> None:
        for name, array in self.model.arrays.items():
            self.env[name] = self._initializer(name, array)
        dynamic: list[DynamicShapeError] = []
        for info in source.input:
            if info.name not in self.env:
                try:
                    self.env[info.name] = self._input(info)
                except DynamicShapeError as e:
                    dynamic.append(e)
        if dynamic:
            raise DynamicShapeError.of_all(dynamic)

    def _initializer(self, name: str, array: np.ndarray[Any, Any]) -> Value | None:
        try:
            return Value(name, dtype_of(array.dtype), array.shape, data=array)
        except (ValueError, TypeError):
            return None  # a type that QNN does not have: whoever uses it is refused

    def _input(self, info: onnx.ValueInfoProto) -> Value:
        if not info.type.HasField("tensor_type"):
            kind = info.type.WhichOneof("value") or "untyped value"
            raise UnsupportedError(
                f"input '{info.name}' is a {kind.removesuffix('_type')}; QNN graphs take tensors only"
            )
        try:
            dtype = onnx_dtype(info.type.tensor_type.elem_type, f"input '{info.name}'")
        except Refused as e:
            raise UnsupportedError(e.message, hint=e.hint) from e
        shape = input_shape(info, self.dimensions)
        return self.graph.add_input(info.name, narrow_type(dtype), shape, Port(dtype, shape))

    def _output(self, info: onnx.ValueInfoProto) -> None:
        value = self.env.get(info.name)
        if isinstance(value, list) or info.type.WhichOneof("value") not in ("tensor_type", None):
            raise UnsupportedError(f"output '{info.name}' is no tensor; QNN graphs give tensors only")
        if not isinstance(value, Value):
            raise ModelError(f"output '{info.name}' is not produced by any node")
        port = Port(self._port_type(info, value), value.shape)
        value = self.t.operand(value) or value
        taken = any(value is v for v in (*self.graph.outputs, *self.graph.inputs))
        if taken or value.is_constant or value.name != info.name:
            value = self._own_output(value, info.name)
        self.graph.add_output(value, port)

    def _port_type(self, info: onnx.ValueInfoProto, value: Value) -> DType:
        """The model's own type where it only differs in width."""
        try:
            declared = onnx_dtype(info.type.tensor_type.elem_type or 1, f"output '{info.name}'")
        except Refused as e:
            raise UnsupportedError(e.message, hint=e.hint) from e
        return declared if narrow_type(declared) is narrow_type(value.dtype) else value.dtype

    def _own_output(self, value: Value, name: str) -> Value:
        """A value of its own for an output that is an input, a constant or another output too."""
        self.t.builder.source, self.t.builder.stem = f"onnx output {name}", name
        copy = self.t.copy(value)
        copy.name = (
            name if name not in {v.name for v in (*self.graph.inputs, *self.graph.outputs)} else copy.name
        )
        return copy

    # -- nodes --------------------------------------------------

    def _node(self, node: onnx.NodeProto) -> None:
        if any(name and name not in self.env for name in node.input):
            self._behind_refused(node)
            return
        inputs = [self.env[name] if name else None for name in node.input]
        try:
            self._bind(node, self._translate(node, inputs))
            self.covered[node.op_type] += 1
        except (Refused, ShapeError) as e:
            self._problem(node, e.message, e.hint)
        except MemoryError as e:
            self._problem(node, f"its result does not fit into memory: {e}")

    def _problem(self, node: onnx.NodeProto, reason: str, hint: str = "") -> None:
        label = node.name or next((o for o in node.output if o), "")
        kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        self.problems.append(Problem(kind, label, reason, hint))
        self._assume(node)

    def _behind_refused(self, node: onnx.NodeProto) -> None:
        """Its inputs are not known; that it has no equivalent at all can be said all the same."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self.t.opset
        if registry.find(domain, node.op_type, opset) or functions.has_body(node, domain, opset):
            self._assume(node)
        else:
            self._problem(node, f"{node.op_type} has no QNN equivalent")

    def _assume(self, node: onnx.NodeProto) -> None:
        """Stand-ins for the results, so that the nodes behind are looked at too."""
        if self._inferred is None:
            self._inferred = assume.inferred(self.model.proto, {v.name: v.shape for v in self.graph.inputs})
        for name in node.output:
            value = assume.stand_in(name, self._inferred.get(name))
            if value is not None:
                self.env[name] = value

    def _translate(self, node: onnx.NodeProto, inputs: list[Any]) -> Any:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self.opsets.get(domain, self.opsets.get("", 1) if not domain else 1)
        self.t.begin(node, opset)
        if any(v is None and n for v, n in zip(inputs, node.input, strict=True)):
            raise Refused("an input has an element type that QNN does not have")
        folded = evaluate.small(node, inputs, opset)
        if folded is not None:
            return [self.t.constant(a) for a in folded]
        translator = registry.find(domain, node.op_type, opset)
        try:
            if translator is None:
                return self._expand(node, inputs, domain, opset)
            attributes = {a.name: self._attribute(a) for a in node.attribute}
            return calls.call(translator, self.t, inputs, attributes)
        except Refused:
            folded = evaluate.anything(node, inputs, opset)
            if folded is None:
                raise
            return [self.t.constant(a) for a in folded]

    def _attribute(self, attribute: onnx.AttributeProto) -> Any:
        if attribute.type == AttributeProto.TENSOR:
            return self.model.tensor(attribute.t)
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.UNDEFINED):
            return attribute.g
        value = helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value

    def _expand(self, node: onnx.NodeProto, inputs: list[Any], domain: str, opset: int) -> Any:
        """An op without a translator: by the function that ONNX defines it with, where there is one."""
        body = functions.body_of(node, inputs, domain, opset)
        if body is None:
            what = f"domain '{domain}'" if domain else f"opset {opset}"
            raise Refused(
                f"{node.op_type} of {what} has no QNN equivalent",
                hint="`openqnn check` shows the whole model as a table",
            )
        stated = {name: self.t.output_shape(i) for i, name in enumerate(body.outputs)}
        env = dict(zip(body.inputs, inputs, strict=False))
        fixed, self.t.fixed = self.t.fixed, True  # the body is ONNX's: users know the node, not what is in it
        try:
            return self.run_nodes(body.nodes, env, body.outputs, body.opsets, stated)
        finally:
            self.t.fixed = fixed

    def run_nodes(
        self,
        nodes: Sequence[onnx.NodeProto],
        env: Mapping[str, Any],
        outputs: Sequence[str],
        opsets: dict[str, int],
        stated: Mapping[str, Shape | None],
    ) -> list[Any]:
        """Translates a body in an environment of its own; `stated` are shapes known of its results."""
        outer, place = (self.env, self.opsets), self.t.place()
        self.env, self.opsets, self.t.declared = dict(env), {**self.opsets, **opsets}, stated
        try:
            for inner in nodes:
                self._inner(inner)
            return [self.env.get(o) for o in outputs]
        finally:
            self.env, self.opsets = outer
            self.t.restore(place)

    def _inner(self, node: onnx.NodeProto) -> None:
        """A node of a body: its results keep generated names."""
        inputs = [self.env.get(n) if n else None for n in node.input]
        try:
            results = self._translate(node, inputs)
        except Refused as e:
            raise Refused(f"in its body, {node.op_type}: {e.message}", hint=e.hint) from e
        results = list(results) if isinstance(results, list | tuple) else [results]
        self.env.update({n: r for n, r in zip(node.output, results, strict=False) if n})

    def run_subgraph(self, subgraph: onnx.GraphProto, bound: Mapping[str, Any] | None = None) -> list[Any]:
        """Inlines a branch of control flow; it sees the values around it."""
        env = {**self.env, **(bound or {})}
        for tensor in subgraph.initializer:
            env[tensor.name] = self.t.constant(self.model.tensor(tensor), tensor.name)
        return self.run_nodes(ordered(subgraph), env, [o.name for o in subgraph.output], self.opsets, {})

    def _bind(self, node: onnx.NodeProto, results: Any) -> None:
        results = list(results) if isinstance(results, list | tuple) else [results]
        for name, value in zip(node.output, results, strict=False):
            if name:
                self._name(value, name, node)
                self.env[name] = value

    def _name(self, value: Any, name: str, node: onnx.NodeProto) -> None:
        """A fresh result takes the name that the user's model has for it."""
        if isinstance(value, Value) and value.producer is not None and value not in self._named:
            self._named.add(value)
            if value is value.producer.outputs[0]:
                value.producer.name = node.name or name
            value.name = name


def declared_shapes(graph: onnx.GraphProto) -> dict[str, Shape]:
    """The shapes that a model states in full."""
    found: dict[str, Shape] = {}
    for info in (*graph.value_info, *graph.output):
        tensor = info.type.tensor_type
        dims = [d.dim_value if d.WhichOneof("value") == "dim_value" else -1 for d in tensor.shape.dim]
        if tensor.HasField("shape") and min(dims, default=0) >= 0:
            found[info.name] = tuple(dims)
    return found


def ordered(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Nodes so that producers come first. Models are usually sorted; a cycle is the model's fault."""
    known = {i.name for i in graph.input} | {i.name for i in graph.initializer} | {""}
    producer: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for output in node.output:
            if output and (output in producer or output in known):
                raise ModelError(
                    f"the name '{output}' is produced twice, by node '{node.name or node.op_type}' again"
                )
            producer[output] = index
    waiting = [{producer[i] for i in n.input if i in producer and i} for n in graph.node]
    if all(not w or max(w) < i for i, w in enumerate(waiting)):
        return list(graph.node)
    return [graph.node[i] for i in _topological(waiting, graph)]


def _topological(waiting: list[set[int]], graph: onnx.GraphProto) -> list[int]:
    followers: list[list[int]] = [[] for _ in waiting]
    for index, before in enumerate(waiting):
        for b in before:
            followers[b].append(index)
    ready = [i for i, w in enumerate(waiting) if not w]
    order: list[int] = []
    for index in ready:
        order.append(index)
        for f in followers[index]:
            waiting[f].discard(index)
            if not waiting[f]:
                ready.append(f)
    if len(order) < len(waiting):
        stuck = next(i for i, w in enumerate(waiting) if w)
        node = graph.node[stuck]
        raise ModelError(
            f"the graph has a cycle through node '{node.name or node.output[0]}' ({node.op_type})"
        )
    return order


def unsupported(problems: Sequence[Problem]) -> UnsupportedError:
    """All refusals in one message: grouped by op and reason, with counts and the first places."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for p in problems:
        groups.setdefault((p.op, p.reason), []).append(p)
    lines = [f"{len(problems)} node(s) cannot be converted:"]
    for (op, reason), members in groups.items():
        places = ", ".join(f"'{m.node}'" for m in members[:3]) + (" ..." if len(members) > 3 else "")
        lines.append(f"  {op} x{len(members)}: {reason} (at {places})")
    hint = next((p.hint for p in problems if p.hint), "")
    return UnsupportedError("\n".join(lines), hint=hint, problems=problems)
