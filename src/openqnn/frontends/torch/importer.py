"""Walks an exported program in order and lets the translators build the QNN graph."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openqnn.errors import ModelError, OpenQnnWarning, ShapeError, UnsupportedError
from openqnn.formats.encodings import Parameter
from openqnn.frontends.custom_ops import custom_translator
from openqnn.frontends.dimensions import UNNAMED, Dimensions, SourceInput, input_shape
from openqnn.frontends.importer import BaseImporter
from openqnn.frontends.registry import Translator
from openqnn.frontends.signature import call as custom_call
from openqnn.frontends.torch import decompose, families, numbers
from openqnn.frontends.torch.aliases import RESHAPING, Aliases, View, is_write, op_of, without_write, written
from openqnn.frontends.torch.arguments import call
from openqnn.frontends.torch.program import (
    Argument,
    Program,
    ProgramInput,
    ProgramNode,
    Ref,
    TensorInfo,
)
from openqnn.frontends.torch.source_line import describe_source
from openqnn.frontends.torch.table import find, split_target
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.frontends.torch.weight_axes import weight_axes
from openqnn.frontends.translation import Refused, narrow_type
from openqnn.ir import Array, DType, Port, Value

_DEEPEST = 8  # decompositions of decompositions
_WRAPPERS = {
    f"torch.ops.higher_order.{name}"
    for name in ("wrap_with_set_grad_enabled", "wrap_with_autocast", "wrap_activation_checkpoint", "wrap")
}

families.load()


class Importer(BaseImporter[ProgramNode]):
    """Translates an exported program."""

    framework = "torch"

    def __init__(self, program: Program, dimensions: Dimensions, keep_quant_nodes: bool = False) -> None:
        state = {i.state for i in program.inputs if i.state and not i.mutable}
        arrays = {n: computable(a) for n, a in program.arrays.items() if n in state}
        self._outside = [i for i in program.inputs if not i.is_number and (not i.state or i.mutable)]
        self._infos = {i.outside: program.tensors.get(i.name) for i in self._outside}
        inputs = [source_input(name, info) for name, info in self._infos.items()]
        inner = {i.name for i in program.inputs if i.outside != i.name}
        names = {*program.tensors, *arrays, *self._infos} - (inner - self._infos.keys())
        super().__init__(program.name, dimensions, arrays, inputs, names)
        self.program = program
        self.t: TorchTranslation = TorchTranslation(self.graph)
        self.t.keep_nodes = keep_quant_nodes
        self.notes = self.t.notes
        self.aliases = Aliases()
        self.without_row: set[str] = set()  # ops that the table lacks
        self._depth = 0

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return weight_axes(self.program, self.arrays)

    def nodes(self) -> Sequence[ProgramNode]:
        return self.program.nodes

    # -- borders --------------------------------------------------

    def add_inputs(self) -> None:
        for source in self.program.inputs:
            if source.is_number:
                self.env[source.name] = source.number
        self.add_all_inputs(self._input)
        values = {source.name: self.env[source.outside] for source in self._outside}
        self.env |= values
        for source in self.program.inputs:
            if source.state and not source.mutable:
                self._bind_state(source)

    def _bind_state(self, source: ProgramInput) -> None:
        if source.state in self.arrays:
            self.env[source.name] = self.env[source.state]
        elif source.state in self.program.foreign:
            self.env[source.name] = None
        elif source.state:
            raise ModelError(f"the program reads '{source.state}', which the file does not have")

    def _input(self, source: SourceInput) -> Value:
        info = self._infos[source.name]
        dtype = DType.FLOAT_32 if info is None else info.dtype
        if not isinstance(dtype, DType):
            raise UnsupportedError(f"input '{source.name}' has element type {dtype}, which QNN does not have")
        shape = input_shape(source, self.dimensions)
        dtype = DType.FLOAT_32 if dtype is DType.BFLOAT_16 else dtype
        return self.graph.add_input(source.name, narrow_type(dtype), shape, Port(dtype, shape))

    def add_outputs(self) -> None:
        for output in self.program.outputs:
            if output.state or output.target:
                self._mutation(output.state or output.target, self._resolved(output.value))
            elif isinstance(output.value, Ref):
                self._user_output(output.value.name)
        if not self.graph.outputs:
            raise ModelError("the program has no output that is a tensor")

    def _mutation(self, name: str, value: Any) -> None:
        """A buffer that the program writes to is an input, and its new value an output."""
        info = self._infos.get(name)
        if not isinstance(value, Value) or (info is None and name not in self.env):
            raise ModelError(f"the program writes '{name}', which is not among its inputs")
        result = f"{name}.out"
        warnings.warn(
            f"the model writes to '{name}': it is an input of the graph, and its new value the output"
            f" '{result}'; feed it back between runs",
            OpenQnnWarning,
            stacklevel=2,
        )
        self.add_output(result, value, self._port_type(info, value))

    def _user_output(self, name: str) -> None:
        value = self._resolved(Ref(name))
        if isinstance(value, bool | int | float):
            value = self.t.constant(np.asarray(value))
        if not isinstance(value, Value):
            raise ModelError(f"output '{name}' is not produced by any node")
        self.add_output(name, value, self._port_type(self.program.tensors.get(name), value))

    def _port_type(self, info: TensorInfo | None, value: Value) -> DType:
        """The model's own type where it only differs in width."""
        declared = value.dtype if info is None or not isinstance(info.dtype, DType) else info.dtype
        return declared if narrow_type(declared) is narrow_type(value.dtype) else value.dtype

    # -- nodes --------------------------------------------------

    def translate(self, node: ProgramNode) -> None:
        op = op_label(node.target)
        label = next((o for o in node.outputs if o), op)
        if not self._is_known(node):
            known = self._has_row(node.target) or node.target.removesuffix(".default") in _WRAPPERS
            if not known and not numbers.knows(node.target):
                self.add_problem(op, describe_source(node, label), f"{op} has no QNN equivalent")
            self._assume(node)
            return
        if not self.attempt(op, describe_source(node, label), lambda: self._run(node, label)):
            self._assume(node)

    def _has_row(self, target: str) -> bool:
        plain = without_write(target) if is_write(target) else target
        return self._declared(target) is not None or find(plain) is not None

    def _is_known(self, node: ProgramNode) -> bool:
        return all(ref.name in self.env for a in node.arguments for ref in refs_of(a.value))

    def _assume(self, node: ProgramNode) -> None:
        """Stand-ins for the results, so that the nodes behind are looked at too."""
        for name in node.outputs:
            info = self.program.tensors.get(name)
            if info is not None and info.shape is not None and isinstance(info.dtype, DType):
                self.env[name] = Value(name, self.t.type_of(info.dtype), info.shape)

    def _run(self, node: ProgramNode, label: str) -> None:
        self.t.begin(split_target(node.target)[1], describe_source(node, label), node.outputs)
        arguments = self._arguments(node)
        if numbers.knows(node.target):
            results = numbers.evaluate(self.t, node.target, [a.value for a in arguments])
        else:
            results = self._translated(node, arguments)
        if is_write(node.target):
            self._write(node, arguments, results)
            return
        self.bind(node.outputs, results, "")
        self.aliases.learn(node, self.env)

    def _write(self, node: ProgramNode, arguments: Sequence[Argument], results: Any) -> None:
        """An op that writes into its first argument, which it also returns."""
        target, first = arguments[0].value, node.arguments[0].value
        found = results[0] if isinstance(results, list) else results
        if not isinstance(first, Ref) or not isinstance(target, Value) or not isinstance(found, Value):
            raise Refused("it writes into something that is no tensor")
        if op_of(node) in RESHAPING:
            self.bind(node.outputs, found, "")
            self.env[first.name] = found
            self.aliases.views.pop(first.name, None)
            return
        found = written(self.t, target, found)
        self.bind(node.outputs, found, "")
        self.aliases.write(self.t, self.env, first.name, found)
        for name in node.outputs:
            self.aliases.views[name] = View(first.name, None)

    def _translated(self, node: ProgramNode, arguments: Sequence[Argument]) -> Any:
        """By the table; what it does not have, or refuses, by torch's decomposition where torch is there."""
        declared = self._declared(node.target)
        if declared is not None:
            return self._call_custom(declared, arguments)
        if node.target.removesuffix(".default") in _WRAPPERS:
            return self._inlined(arguments)
        target = without_write(node.target) if is_write(node.target) else node.target
        translator = find(target)
        try:
            if translator is None:
                self.without_row.add(op_label(target))
                raise Refused(
                    f"{op_label(target)} has no QNN equivalent",
                    hint="`openqnn check` shows the whole model as a table",
                )
            return call(translator, self.t, arguments)
        except Refused as e:
            body = None if self._depth > _DEEPEST else decompose.body_of(target, arguments)
            if body is None:
                raise
            return self._run_body(body, e)

    def _run_body(self, body: decompose.Body, refusal: Refused) -> list[Any]:
        """Nodes that an op comes to; they have the names and the source of the op."""
        outer, place, fixed = (self.env, self.aliases), self.t.place(), self.t.fixed
        self.env, self.aliases, self.t.fixed = dict(body.inputs), Aliases(), True
        self.env |= {name: self.t.constant(computable(a)) for name, a in body.arrays.items()}
        self._depth += 1
        try:
            for node in body.nodes:
                self._inner(node)
            return [self._resolved(r) for r in body.results]
        except (Refused, ShapeError) as e:
            if refusal.hint and "has no QNN equivalent" not in refusal.message:
                raise refusal from e
            raise Refused(f"{refusal.message}: in its decomposition, {e.message}", hint=e.hint) from e
        finally:
            self.env, self.aliases = outer
            self.t.fixed = fixed
            self._depth -= 1
            self.t.restore(place)

    def _inlined(self, arguments: Sequence[Argument]) -> list[Any]:
        """A body that is called once, with gradients or mixed precision switched around it."""
        at = next((i for i, a in enumerate(arguments) if isinstance(a.value, Program)), None)
        if at is None:
            raise Refused("a wrapper without a body")
        body: Program = arguments[at].value
        given = [
            v for a in arguments[at + 1 :] for v in (a.value if isinstance(a.value, list) else [a.value])
        ]
        if len(given) != len(body.inputs):
            raise Refused(f"a body with {len(body.inputs)} inputs is called with {len(given)}")
        inputs = {i.name: v for i, v in zip(body.inputs, given, strict=True)}
        results = [o.value for o in body.outputs]
        return self._run_body(decompose.Body(inputs, {}, body.nodes, results), Refused("in its body"))

    def _inner(self, node: ProgramNode) -> None:
        self.t.op, self.t.outputs = split_target(node.target)[1], node.outputs
        arguments = self._arguments(node)
        if numbers.knows(node.target):
            results = numbers.evaluate(self.t, node.target, [a.value for a in arguments])
        else:
            results = self._translated(node, arguments)
        if is_write(node.target):
            self._write(node, arguments, results)
            return
        listed = list(results) if isinstance(results, list | tuple) else [results]
        self.env |= {n: r for n, r in zip(node.outputs, listed, strict=False) if n}
        self.aliases.learn(node, self.env)

    def _declared(self, target: str) -> Translator | None:
        """What the user declared for an op of a namespace; overloads share it."""
        domain, name = split_target(target)
        return custom_translator(name.split(".")[0], domain)

    def _call_custom(self, translator: Translator, arguments: Sequence[Argument]) -> Any:
        """Tensors are inputs, and all other arguments that are given are attributes."""
        self.t.declared = {name: self._shape(name) for name in self.t.outputs}
        tensors = [a.value for a in arguments if isinstance(a.value, Value)]
        rest = {a.name: a.value for a in arguments if not isinstance(a.value, Value) and a.value is not None}
        return custom_call(translator, self.t, tensors, rest)

    def _shape(self, name: str) -> tuple[int, ...] | None:
        info = self.program.tensors.get(name)
        return info.shape if info is not None and self.dimensions == Dimensions() else None

    def _arguments(self, node: ProgramNode) -> list[Argument]:
        return [Argument(a.name, self._resolved(a.value), a.positional) for a in node.arguments]

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolved(v) for v in value]
        if not isinstance(value, Ref):
            return value
        if value.name in self.aliases.stale:
            self._view_again(value.name)
        found = self.env.get(value.name)
        if found is None and value.name in self.env:
            self._refuse_foreign(value.name)
        return found

    def _view_again(self, name: str) -> None:
        """A view of a tensor that was written to since."""
        view = self.aliases.views[name]
        base = self._resolved(Ref(view.base))
        if view.node is None:
            self.env[name] = base
        else:
            place = self.t.place()
            self.t.begin(split_target(view.node.target)[1], self.t.builder.source, view.node.outputs)
            results = self._translated(view.node, self._arguments(view.node))
            self.t.restore(place)
            listed = list(results) if isinstance(results, list | tuple) else [results]
            self.env[name] = listed[view.index]
        self.aliases.stale.discard(name)

    def _refuse_foreign(self, name: str) -> None:
        state = next((i.state for i in self.program.inputs if i.name == name), "")
        if state in self.program.foreign:
            raise Refused(f"'{state}' cannot be read: {self.program.foreign[state]}")


def op_label(target: str) -> str:
    """An overload as people write it: aten.mean.dim."""
    return target.removeprefix("torch.ops.").removesuffix(".default")


def refs_of(value: Any) -> list[Ref]:
    if isinstance(value, list):
        return [ref for v in value for ref in refs_of(v)]
    return [value] if isinstance(value, Ref) else []


def computable(array: Array) -> Array:
    """A weight in a type that QNN computes with: bfloat16 becomes float32, which has all of its numbers."""
    return array.astype(np.float32) if array.dtype == DType.BFLOAT_16.numpy else array


def source_input(name: str, info: TensorInfo | None) -> SourceInput:
    if info is None:
        return SourceInput(name, None)
    return SourceInput(name, tuple(d if isinstance(d, int) else d or UNNAMED for d in info.dims))
