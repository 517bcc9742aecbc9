"""Walks the operators of a TFLite subgraph and lets the translators build the QNN graph."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from openqnn.errors import ModelError, OpenQnnWarning, UnsupportedError
from openqnn.formats.encodings import Parameter
from openqnn.frontends.custom_ops import custom_translator
from openqnn.frontends.dimensions import Dimensions, SourceInput, input_shape
from openqnn.frontends.importer import BaseImporter
from openqnn.frontends.registry import Translator
from openqnn.frontends.signature import call, signature_of
from openqnn.frontends.tflite.activations import fused_activation
from openqnn.frontends.tflite.encodings import STORED, encoding_of, given_of, is_quantized, real_constant
from openqnn.frontends.tflite.flexbuffer import read_flexbuffer
from openqnn.frontends.tflite.fold import fold_small
from openqnn.frontends.tflite.model import CUSTOM, Operator, Subgraph, Tensor, TfliteModel
from openqnn.frontends.tflite.positive import positive_result
from openqnn.frontends.tflite.states import States
from openqnn.frontends.tflite.stored_numbers import numpy_type
from openqnn.frontends.tflite.table import CUSTOM_DOMAIN, TABLE
from openqnn.frontends.tflite.translation import TfliteTranslation
from openqnn.frontends.translation import Refused, narrow_type
from openqnn.ir import Array, DType, Encoding, Given, Port, Value, dtype_of

FUSED: Final = "fused_activation_function"
DEEPEST = 16  # subgraphs that call each other
_WEIGHTS = {  # the input that is a weight, and its axes of output and input channels
    "CONV_2D": (1, 0, 3), "DEPTHWISE_CONV_2D": (1, 3, 0), "TRANSPOSE_CONV": (1, 0, 3),
    "FULLY_CONNECTED": (1, 0, 1), "CONV_3D": (1, 4, 3),
}  # fmt: skip


class Importer(BaseImporter[Operator]):
    """Translates one subgraph of a model; `operators` are those of its own that are wanted."""

    framework = "tflite"

    def __init__(
        self,
        model: TfliteModel,
        subgraph: Subgraph,
        operators: Sequence[Operator],
        outputs: Sequence[int],
        dimensions: Dimensions,
        name: str,
        *,
        keep_quant_nodes: bool,
    ) -> None:
        self.model, self.subgraph, self.operators = model, subgraph, operators
        self.wanted = outputs
        self.keep_quant_nodes = keep_quant_nodes
        arrays, given, notes = constants_of(subgraph)
        read = {i for o in operators for i in o.inputs} | set(outputs)
        inputs = [
            SourceInput(t.name, t.shape)
            for t in (subgraph.tensors[i] for i in subgraph.inputs)
            if t.index in read or len(operators) == len(subgraph.operators)
        ]
        values = (t.name for t in subgraph.tensors if not t.is_variable and t.type != "RESOURCE")
        super().__init__(name, dimensions, arrays, inputs, values)
        self.given = given
        self.notes = notes
        self.depth = 0
        self.t: TfliteTranslation = TfliteTranslation(self.graph)
        self.t.channels_last = True
        self.states = States(self)
        self.t.read_state, self.t.write_state = self.states.read, self.states.write
        self.t.run_body, self.t.run_once = self.run_body, self.states.run_once
        self.t.sole_operator, self.t.replaces = self.sole_operator, self.replaces

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        axes: dict[str, tuple[int, int]] = {}
        for operator in self.subgraph.operators:
            index, out, into = _WEIGHTS.get(operator.op, (-1, 0, 0))
            if 0 <= index < len(operator.inputs) and operator.inputs[index] >= 0:
                axes[self.subgraph.tensors[operator.inputs[index]].name] = (out, into)
        return {
            name: Parameter(a.shape, *axes[name])
            if name in axes and a.ndim > max(axes[name])
            else Parameter(a.shape)
            for name, a in self.arrays.items()
        }

    def nodes(self) -> Sequence[Operator]:
        return self.operators

    # -- borders ---------------------------------------------------------------------------------------------

    def add_inputs(self) -> None:
        by_name = {t.name: t for t in self.subgraph.tensors}
        self.add_all_inputs(lambda source: self._input(source, by_name[source.name]))
        read = {i for o in self.operators for i in o.inputs}
        for tensor in self.subgraph.tensors:
            if tensor.is_variable and tensor.index in read and tensor.index not in self.subgraph.inputs:
                self.env[tensor.name] = self.states.read(tensor.name, tensor)

    def _input(self, source: SourceInput, tensor: Tensor) -> Value:
        if tensor.type == "RESOURCE":
            raise UnsupportedError(f"input '{tensor.name}' is a resource; QNN graphs take tensors only")
        return self.outside(tensor, input_shape(source, self.dimensions))

    def outside(self, tensor: Tensor, shape: tuple[int, ...], name: str = "") -> Value:
        """A graph input: what the model computes with, behind the type that it has outside."""
        name = name or tensor.name
        encoding = self._border(tensor)
        real = encoding is None and is_quantized(tensor)
        dtype = DType.FLOAT_32 if real else self.port_type(tensor)
        x = self.graph.add_input(name, narrow_type(dtype), shape, Port(dtype, shape))
        if encoding is None:
            self.give(x, tensor)
            return x
        self.t.begin("", f"tflite input {name}", [name])
        real = self.t.dequantize(self.t.cast(x, self._fixed(tensor), encoding), DType.FLOAT_32)
        real.name = self.graph.unique(f"{name}_real")
        self.give(real, tensor)
        return real

    def _border(self, tensor: Tensor) -> Encoding | None:
        """The encoding of an input or output that is integers outside too.

        Chips have no signed integers of 16 bits to take or give: such a tensor is real numbers outside.
        """
        encoding = encoding_of(tensor) if is_quantized(tensor) else None
        if encoding is None or encoding.bitwidth == 8:
            return encoding
        message = f"'{tensor.name}' is {tensor.type.lower()} in the model; the graph has real numbers there"
        warnings.warn(message, OpenQnnWarning, stacklevel=4)
        return None

    def _fixed(self, tensor: Tensor) -> DType:
        if tensor.type not in STORED:
            raise UnsupportedError(
                f"'{tensor.name}' is quantized {tensor.type.lower()}, which QNN cannot take or give"
            )
        return STORED[tensor.type][1]

    def port_type(self, tensor: Tensor) -> DType:
        found = numpy_type(tensor.type)
        try:
            return dtype_of(found if found is not None else "")
        except (ValueError, TypeError):
            kind = tensor.type.lower()
            raise UnsupportedError(
                f"'{tensor.name}' has element type {kind}, which QNN does not have"
            ) from None

    def add_outputs(self) -> None:
        for index in self.wanted:
            tensor = self.subgraph.tensors[index]
            value = self.env.get(tensor.name)
            if not isinstance(value, Value):
                raise ModelError(f"output '{tensor.name}' is not produced by any operator")
            self.add_result(tensor, value, tensor.name)
        self.states.add_outputs()

    def add_result(self, tensor: Tensor, value: Value, name: str) -> None:
        """An output of the graph: quantized ones leave as the integers that the model gives."""
        encoding = self._border(tensor)
        dtype = DType.FLOAT_32 if encoding is None and is_quantized(tensor) else self.port_type(tensor)
        if encoding is not None and value.dtype.is_float:
            if value.name == name and not self.graph.is_output(value):
                self._rename(value, self.graph.unique(f"{name}_real"))
            self.t.begin("", f"tflite output {name}", [name])
            value = self.t.cast(self.t.quantize(value, self._fixed(tensor), encoding), dtype)
            value.name = name
        same = narrow_type(dtype) is narrow_type(value.dtype)
        self.add_output(name, value, dtype if same else value.dtype)

    def _rename(self, value: Value, name: str) -> None:
        said = self.graph.given.pop(value.name, None)
        value.name = name
        if said is not None:
            self.graph.given[name] = said

    # -- operators -------------------------------------------------------------------------------------------

    def run(self) -> Any:
        self.graph.given.update(self.given)
        graph = super().run()
        hybrid = sum(map(self._is_hybrid, self.operators))
        if hybrid:
            layers = f"{hybrid} layers" if hybrid > 1 else "1 layer"
            warnings.warn(
                f"weights of {layers} are stored as integers beside data in floats: they are taken as the"
                " real numbers that they stand for",
                OpenQnnWarning,
                stacklevel=3,
            )
        return graph

    def _is_hybrid(self, node: Operator) -> bool:
        """Whether a layer has real data and stored weights; LiteRT rounds the data anew each time."""
        index = _WEIGHTS.get(node.op, (-1, 0, 0))[0]
        places = (0 if node.op != "TRANSPOSE_CONV" else 2, index)
        if index < 0 or any(not 0 <= p < len(node.inputs) or node.inputs[p] < 0 for p in places):
            return False
        data, weight = (self.subgraph.tensors[node.inputs[p]] for p in places)
        return data.type == "FLOAT32" and is_quantized(weight)

    def translate(self, node: Operator) -> None:
        tensors = self.subgraph.tensors
        names = [tensors[i].name if i >= 0 else "" for i in node.outputs]
        label = next((n for n in names if n), node.title)
        done = self.attempt(node.title, label, lambda: self._translate(node, names, label))
        if not done:
            for i in node.outputs:
                self._assume(tensors[i])

    def _translate(self, node: Operator, names: Sequence[str], label: str) -> None:
        tensors = self.subgraph.tensors
        lost = next(
            (tensors[i].name for i in node.inputs if i >= 0 and tensors[i].name not in self.env), None
        )
        if lost is not None:
            raise Refused(f"it reads '{lost}', which nothing gives")
        inputs = [self.env[tensors[i].name] if i >= 0 else None for i in node.inputs]
        results = self.translated(node, inputs, self.subgraph, names, label)
        results = [self._constant(v, tensors[i]) for v, i in zip(results, node.outputs, strict=False)]
        self.bind(names, results, label)
        for i, value in zip(node.outputs, results, strict=False):
            if i >= 0 and isinstance(value, Value):
                self.give(value, tensors[i])

    def _constant(self, value: Any, tensor: Tensor) -> Any:
        """A quantized result that is known already: a constant by the tensor's name, with its encoding."""
        said = given_of(tensor) if is_quantized(tensor) else None
        if said is None or not isinstance(value, Value) or value.data is None or not value.dtype.is_float:
            return value
        self.graph.given.setdefault(tensor.name, said)
        return Value(tensor.name, value.dtype, value.shape, data=value.data)

    def _assume(self, tensor: Tensor) -> None:
        """A stand-in for a result that is refused, so that the operators behind are looked at too."""
        try:
            dtype = DType.FLOAT_32 if is_quantized(tensor) else narrow_type(self.port_type(tensor))
        except UnsupportedError:
            return
        if tensor.name not in self.env and min(tensor.shape, default=1) > 0:
            self.env[tensor.name] = Value(tensor.name, dtype, tensor.shape)

    def translated(
        self, node: Operator, inputs: Sequence[Any], subgraph: Subgraph, names: Sequence[str], label: str
    ) -> list[Any]:
        """The results of an operator, with what is fused behind it."""
        t, tensors = self.t, subgraph.tensors
        t.begin(node.title, f"tflite node {label}", names)
        t.operator = node
        t.sources = [tensors[i] if i >= 0 else None for i in node.inputs]
        t.results = [tensors[i] if i >= 0 else None for i in node.outputs]
        if any(v is None and i >= 0 for v, i in zip(inputs, node.inputs, strict=True)):
            raise Refused("an input has an element type that QNN does not have")
        results = self._call(node, inputs)
        if len(results) < len(node.outputs):
            raise Refused(f"{len(node.outputs)} results are declared, it has {len(results)}")
        return [
            self._finished(v, tensors[i]) if i >= 0 else v
            for v, i in zip(results, node.outputs, strict=False)
        ]

    def _call(self, node: Operator, inputs: Sequence[Any]) -> list[Any]:
        declared = custom_translator(node.custom) if node.op == CUSTOM else None
        if declared is not None:
            return self._call_custom(declared, node, inputs)
        translator = translator_of(node)
        options = options_of(node)
        folded = fold_small(node.op, inputs, options, self.t)
        if folded is not None:
            return folded
        signature = signature_of(translator)
        known = signature.attributes
        attributes = {k: v for k, v in options.items() if k in known and v is not None}
        results = call(translator, self.t, without_tail(inputs, signature.needed), attributes)
        found = list(results) if isinstance(results, list | tuple) else [results]
        if FUSED in options and FUSED not in known and found:
            found[0] = fused_activation(self.t, found[0], options[FUSED])
        return found

    def _call_custom(self, translator: Translator, node: Operator, inputs: Sequence[Any]) -> list[Any]:
        """An operator that the user declared: its options are its attributes."""
        self.t.declared = {r.name: r.shape for r in self.t.results if r is not None}
        self.t.outputs = [r.name if r is not None else "" for r in self.t.results]
        return list(call(translator, self.t, inputs, custom_options(node)))

    def _finished(self, value: Any, tensor: Tensor) -> Any:
        """A quantized result is positive where its integers are, and rounded where the graph shall round."""
        if not isinstance(value, Value) or not is_quantized(tensor) or not value.dtype.is_float:
            return value
        encoding = encoding_of(tensor)
        if encoding is None or value.data is not None:
            return value
        if self.keep_quant_nodes:
            fixed = self.t.quantize(value, self._fixed(tensor), encoding)
            return self.t.dequantize(fixed, DType.FLOAT_32)
        return positive_result(self.t, value, tensor, self.graph.given)

    def give(self, value: Value, tensor: Tensor) -> None:
        """Notes the encoding of a result; one that it has in common with another tensor stays the first."""
        said = given_of(tensor) if is_quantized(tensor) else None
        if said is not None and value.dtype.is_float and not self.keep_quant_nodes and value.data is None:
            self.graph.given.setdefault(value.name, said.unsigned())

    # -- bodies ----------------------------------------------------------------------------------------------

    def run_body(self, index: int, inputs: Sequence[Any]) -> list[Any]:
        """The results of another subgraph, inlined."""
        body = self._body(index)
        if len(inputs) != len(body.inputs):
            raise Refused(f"subgraph {index} takes {len(body.inputs)} inputs, {len(inputs)} are given")
        if self.depth >= DEEPEST:
            raise Refused("subgraphs call each other without end")
        place, fixed, sources, results = self.t.place(), self.t.fixed, self.t.sources, self.t.results
        self.depth, self.t.fixed = self.depth + 1, True
        try:
            env: dict[int, Any] = dict(zip(body.inputs, inputs, strict=True))
            for node in body.operators:
                self._inner(node, body, env)
            return [self._value(body, env, i) for i in body.outputs]
        finally:
            self.depth, self.t.fixed, self.t.sources, self.t.results = self.depth - 1, fixed, sources, results
            self.t.restore(place)

    def _body(self, index: int) -> Subgraph:
        if not 0 <= index < len(self.model.subgraphs):
            raise Refused(f"it calls subgraph {index}; there are {len(self.model.subgraphs)}")
        return self.model.subgraphs[index]

    def replaces(self, index: int) -> bool:
        """Whether a subgraph of two inputs gives the second and computes nothing."""
        body = self._body(index)
        return not body.operators and len(body.inputs) == 2 and body.outputs == body.inputs[1:]

    def sole_operator(self, index: int) -> Operator | None:
        """The operator of a subgraph that has one, on its first two inputs in order; None of any other."""
        body = self._body(index)
        if len(body.operators) != 1 or body.operators[0].outputs != body.outputs:
            return None
        return body.operators[0] if body.operators[0].inputs == body.inputs[:2] else None

    def _inner(self, node: Operator, body: Subgraph, env: dict[int, Any]) -> None:
        inputs = [self._value(body, env, i) if i >= 0 else None for i in node.inputs]
        try:
            results = self.translated(node, inputs, body, [""] * len(node.outputs), node.title)
        except Refused as e:
            raise Refused(f"in its body, {node.title}: {e.message}", hint=e.hint) from e
        for i, value in zip(node.outputs, results, strict=False):
            env[i] = value
            if isinstance(value, Value) and i >= 0:
                self.give(value, body.tensors[i])

    def _value(self, body: Subgraph, env: dict[int, Any], index: int) -> Any:
        if index not in env:
            tensor = body.tensors[index]
            if tensor.data is None:
                raise Refused(f"'{tensor.name}' of subgraph {body.index} is not produced by any operator")
            real = real_constant(tensor, body.tensors)
            env[index] = self.t.constant(real.data, tensor.name)
        return env[index]


def options_of(node: Operator) -> dict[str, Any]:
    source = custom_options(node) if node.op == CUSTOM else node.options
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in source.items()}


def without_tail(inputs: Sequence[Any], needed: int) -> Sequence[Any]:
    """Inputs that are left out at the end are as good as not there."""
    while len(inputs) > needed and inputs[-1] is None:
        inputs = inputs[:-1]
    return inputs


def custom_options(node: Operator) -> dict[str, Any]:
    if not node.custom_options:
        return {}
    try:
        found = read_flexbuffer(node.custom_options)
    except ValueError as e:
        raise Refused(f"the options of '{node.custom}' are no FlexBuffer: {e}") from e
    if not isinstance(found, dict):
        raise Refused(f"the options of '{node.custom}' are no map of attributes")
    return cast("dict[str, Any]", found)


def translator_of(node: Operator) -> Translator:
    domain = CUSTOM_DOMAIN if node.op == CUSTOM else ""
    found = TABLE.find(node.title, domain=domain)
    if found is None:
        raise _unknown(node)
    return found


def _unknown(node: Operator) -> Refused:
    if node.op == CUSTOM:
        return Refused(
            f"the custom operator '{node.custom}' has no QNN equivalent",
            hint="say what it is with --custom_ops my_ops.py, describe it in an op package, or end the model"
            " before it with --out_node",
        )
    return Refused(
        f"{node.op} has no QNN equivalent", hint="`openqnn check` shows the whole model as a table"
    )


def constants_of(subgraph: Subgraph) -> tuple[dict[str, Array], dict[str, Given], list[tuple[str, str]]]:
    """Real numbers of constants by name, the encodings that they have, and what was lost of these."""
    arrays: dict[str, Array] = {}
    given: dict[str, Given] = {}
    notes: list[tuple[str, str]] = []
    for tensor in subgraph.tensors:
        if tensor.data is None or tensor.is_variable:
            continue
        real = real_constant(tensor, subgraph.tensors)
        arrays[tensor.name] = real.data
        if real.given is not None:
            given[tensor.name] = real.given
        if real.note:
            notes.append((tensor.name, real.note))
    return arrays, given, notes
