"""Walks an ONNX graph in order and lets the translators build the QNN graph; problems are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import onnx
from onnx import AttributeProto, helper

from openqnn.errors import ModelError, ShapeError, UnsupportedError
from openqnn.formats.encodings import Parameter
from openqnn.frontends.dimensions import UNNAMED, Dimensions, SourceInput, input_shape
from openqnn.frontends.importer import BaseImporter
from openqnn.frontends.onnx import expand, fold, placeholders
from openqnn.frontends.onnx.element_types import onnx_dtype
from openqnn.frontends.onnx.reader import OnnxModel
from openqnn.frontends.onnx.source_parameters import source_parameters
from openqnn.frontends.onnx.table import TABLE
from openqnn.frontends.signature import BASIC_KINDS, Kinds, call
from openqnn.frontends.translation import Refused, narrow_type
from openqnn.ir import DType, Port, Shape, Value

KINDS: Final[Kinds] = {**BASIC_KINDS, "onnx.GraphProto": onnx.GraphProto}


class Importer(BaseImporter[onnx.NodeProto]):
    """Translates an ONNX model."""

    framework = "onnx"

    def __init__(self, model: OnnxModel, dimensions: Dimensions, name: str) -> None:
        infos = {i.name: i for i in model.graph.input if i.name not in model.arrays}
        results = (o for n in model.graph.node for o in n.output if o)
        inputs = [source_input(i) for i in infos.values()]
        super().__init__(name, dimensions, model.arrays, inputs, (*infos, *model.arrays, *results))
        self.model = model
        self.graph.given = dict(model.taken.given)
        self.notes = model.taken.notes
        self.covered.update(model.taken.nodes)
        self._infos = infos
        self._inferred: dict[str, onnx.ValueInfoProto] | None = None  # asked for behind the first refusal
        self.opsets = {o.domain.replace("ai.onnx", "") or "": o.version for o in model.proto.opset_import}
        self.t.run_subgraph = self.run_subgraph
        if dimensions == Dimensions():  # other input shapes than the model's make its own statements stale
            self.t.declared = declared_shapes(model.graph)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return source_parameters(self.model)

    def nodes(self) -> Sequence[onnx.NodeProto]:
        return ordered(self.model.graph)

    # -- borders --------------------------------------------------

    def add_inputs(self) -> None:
        self.add_all_inputs(self._input)

    def _input(self, source: SourceInput) -> Value:
        info = self._infos[source.name]
        if not info.type.HasField("tensor_type"):
            kind = info.type.WhichOneof("value") or "untyped value"
            raise UnsupportedError(
                f"input '{info.name}' is a {kind.removesuffix('_type')}; QNN graphs take tensors only"
            )
        try:
            dtype = onnx_dtype(info.type.tensor_type.elem_type, f"input '{info.name}'")
        except Refused as e:
            raise UnsupportedError(e.message, hint=e.hint) from e
        shape = input_shape(source, self.dimensions)
        return self.graph.add_input(info.name, narrow_type(dtype), shape, Port(dtype, shape))

    def add_outputs(self) -> None:
        for info in self.model.graph.output:
            value = self.env.get(info.name)
            if isinstance(value, list) or info.type.WhichOneof("value") not in ("tensor_type", None):
                raise UnsupportedError(f"output '{info.name}' is no tensor; QNN graphs give tensors only")
            if not isinstance(value, Value):
                raise ModelError(f"output '{info.name}' is not produced by any node")
            self.add_output(info.name, value, self._port_type(info, value))

    def _port_type(self, info: onnx.ValueInfoProto, value: Value) -> DType:
        """The model's own type where it only differs in width."""
        try:
            declared = onnx_dtype(info.type.tensor_type.elem_type or 1, f"output '{info.name}'")
        except Refused as e:
            raise UnsupportedError(e.message, hint=e.hint) from e
        return declared if narrow_type(declared) is narrow_type(value.dtype) else value.dtype

    # -- nodes --------------------------------------------------

    def translate(self, node: onnx.NodeProto) -> None:
        if any(name and name not in self.env for name in node.input):
            self._behind_refused(node)
            return
        inputs = [self.env[name] if name else None for name in node.input]
        try:
            self.bind(node.output, self._translate(node, inputs), node.name)
            self.covered[node.op_type] += 1
        except (Refused, ShapeError) as e:
            self._problem(node, e.message, e.hint)
        except MemoryError as e:
            self._problem(node, f"its result does not fit into memory: {e}")

    def _problem(self, node: onnx.NodeProto, reason: str, hint: str = "") -> None:
        label = node.name or next((o for o in node.output if o), "")
        kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        self.add_problem(kind, label, reason, hint)
        self._assume(node)

    def _opset(self, domain: str) -> int:
        return self.opsets.get(domain, self.opsets.get("", 1) if not domain else 1)

    def _behind_refused(self, node: onnx.NodeProto) -> None:
        """Says that a node behind a refused one has no equivalent at all: that needs no inputs."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self._opset(domain)
        if self.translator(TABLE, node.op_type, opset, domain) or expand.has_body(node, domain, opset):
            self._assume(node)
        else:
            self._problem(node, f"{node.op_type} has no QNN equivalent")

    def _assume(self, node: onnx.NodeProto) -> None:
        """Stand-ins for the results, so that the nodes behind are looked at too."""
        if self._inferred is None:
            self._inferred = placeholders.inferred(
                self.model.proto, {v.name: v.shape for v in self.graph.inputs}
            )
        for name in node.output:
            value = placeholders.stand_in(name, self._inferred.get(name))
            if value is not None:
                self.env[name] = value

    def _check_inputs(self, node: onnx.NodeProto, inputs: list[Any]) -> None:
        if any(value is None and name for value, name in zip(inputs, node.input, strict=True)):
            raise Refused("an input has an element type that QNN does not have")

    def _translate(self, node: onnx.NodeProto, inputs: list[Any]) -> Any:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self._opset(domain)
        label = node.name or next(filter(None, node.output), node.op_type)
        self.t.begin(node.op_type, f"onnx node {label}", node.output)
        self._check_inputs(node, inputs)
        folded = fold.small(node, inputs, opset)
        if folded is not None:
            return [self.t.constant(a) for a in folded]
        translator = self.translator(TABLE, node.op_type, opset, domain)
        try:
            if translator is None:
                return self._expand(node, inputs, domain, opset)
            attributes = {a.name: self._attribute(a) for a in node.attribute}
            return call(translator, self.t, inputs, attributes, version=f"opset {opset}", kinds=KINDS)
        except Refused:
            folded = fold.anything(node, inputs, opset)
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
        body = expand.body_of(node, inputs, domain, opset)
        if body is None:
            what = f"domain '{domain}'" if domain else f"opset {opset}"
            raise Refused(
                f"{node.op_type} of {what} has no QNN equivalent",
                hint="`openqnn check` shows the whole model as a table"
                + ("; --custom_ops says in Python what an op of your own is" if domain else ""),
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


def source_input(info: onnx.ValueInfoProto) -> SourceInput:
    tensor = info.type.tensor_type
    dims = tuple(_dimension(d) for d in tensor.shape.dim)
    return SourceInput(info.name, dims if tensor.HasField("shape") else None)


def _dimension(d: onnx.TensorShapeProto.Dimension) -> int | str:
    if d.WhichOneof("value") == "dim_value" and d.dim_value >= 0:
        return d.dim_value
    return d.dim_param or UNNAMED


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
    producer = _producers(graph)
    waiting = [{producer[i] for i in n.input if i in producer} for n in graph.node]
    if all(max(producers, default=-1) < i for i, producers in enumerate(waiting)):
        return list(graph.node)
    return [graph.node[i] for i in _topological(waiting, graph)]


def _producers(graph: onnx.GraphProto) -> dict[str, int]:
    """The index of the node that produces each name; ModelError where two do."""
    known = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    producer: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for output in filter(None, node.output):
            if output in producer or output in known:
                raise ModelError(
                    f"the name '{output}' is produced twice, by node '{node.name or node.op_type}' again"
                )
            producer[output] = index
    return producer


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
