"""State of a model: resource variables and variable tensors, which become inputs and outputs of the graph."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from openqnn.errors import OpenQnnWarning
from openqnn.frontends.tflite.encodings import encoding_of, is_quantized, real_constant
from openqnn.frontends.tflite.model import Operator, Tensor
from openqnn.frontends.tflite.translation import Variable
from openqnn.frontends.translation import Refused
from openqnn.ir import Array, Value

if TYPE_CHECKING:
    from openqnn.frontends.tflite.importer import Importer


class States:
    """Variables by name: what they hold now, and the tensors that say their types."""

    def __init__(self, importer: Importer) -> None:
        self.importer = importer
        self.now: dict[str, Value] = {}
        self.records: dict[str, Tensor] = {}
        self.written: set[str] = set()
        self.starts: dict[str, Array] = {}  # what an initialisation subgraph puts into them
        self.read_first: list[str] = []

    def read(self, name: str, tensor: Tensor) -> Value:
        """What a variable holds; the first time that is an input of the graph."""
        if name not in self.now and name in self.starts and name not in self._changed():
            self.now[name] = self.importer.t.constant(self.starts[name], name)
            return self.now[name]
        if name not in self.now:
            outside = self._name(name)
            self.now[name] = self.importer.outside(tensor, tensor.shape, outside)
            self.read_first.append(name)
        self.records.setdefault(name, tensor)
        return self.now[name]

    def _changed(self) -> set[str]:
        """Variables that an inference assigns; the others are constants."""
        operators = self.importer.subgraph.operators
        handles = {o.outputs[0]: variable_name(o) for o in operators if o.op == "VAR_HANDLE" and o.outputs}
        assigned = (o.inputs[0] for o in operators if o.op == "ASSIGN_VARIABLE" and o.inputs)
        return {handles[i] for i in assigned if i in handles}

    def _name(self, name: str) -> str:
        taken = {v.name for v in self.importer.graph.inputs}
        return f"{name}_state" if name in taken or not name else name

    def write(self, name: str, value: Value, tensor: Tensor | None) -> None:
        self.now[name] = value
        self.written.add(name)
        if tensor is not None:
            self.records.setdefault(name, tensor)

    def run_once(self, index: int) -> None:
        """An initialisation: constants that are put into variables, before the first inference."""
        subgraphs = self.importer.model.subgraphs
        if not 0 <= index < len(subgraphs):
            raise Refused(f"it calls subgraph {index}; there are {len(subgraphs)}")
        body = subgraphs[index]
        handles: dict[int, str] = {}
        for node in body.operators:
            if node.op == "VAR_HANDLE" and node.outputs:
                handles[node.outputs[0]] = variable_name(node)
            elif node.op == "ASSIGN_VARIABLE" and len(node.inputs) == 2 and node.inputs[0] in handles:
                tensor = body.tensors[node.inputs[1]]
                if tensor.data is None:
                    raise Refused("its initialisation computes what variables start as")
                self.starts[handles[node.inputs[0]]] = real_constant(tensor, body.tensors).data
            else:
                raise Refused(f"its initialisation does more than fill variables: {node.title}")

    def add_outputs(self) -> None:
        """What variables hold in the end, for the next inference."""
        if not self.read_first and not self.written:
            return
        for name in self.now:
            if name in self.written and name in self.records:
                outside = self.importer.graph.unique(f"{self._plain(name)}_out")
                self.importer.add_result(self.records[name], self.now[name], outside)
        warnings.warn(self._word(), OpenQnnWarning, stacklevel=4)

    def _plain(self, name: str) -> str:
        return name or "state"

    def _word(self) -> str:
        known = [n for n in self.read_first if n in self.written]
        starts = [self._start(n) for n in known]
        each = "; ".join(f"'{n}' starts as {start}" for n, start in zip(known, starts, strict=True))
        how = f"all start as {starts[0]}" if len(set(starts)) == 1 else each
        names = ", ".join(f"'{n}'" for n in self.read_first)
        return (
            f"the model keeps state: {names} became inputs, and outputs that end in '_out',"
            f" to be handed from one inference to the next{'; ' + how if starts else ''}"
        )

    def _start(self, name: str) -> str:
        start = self.starts.get(name)
        if start is None or not np.any(start):
            tensor = self.records[name]
            encoding = encoding_of(tensor) if is_quantized(tensor) else None
            return (
                f"zeros (stored as {-encoding.offset[0]})"
                if encoding is not None and encoding.offset[0]
                else "zeros"
            )
        return (
            f"{start.flat[0]:.6g}"
            if np.all(start == start.flat[0])
            else "the numbers of the model's initialisation"
        )


def variable_name(node: Operator) -> str:
    return str(node.options.get("shared_name") or f"variable_{node.outputs[0]}")


def handle_of(value: object) -> Variable:
    if not isinstance(value, Variable):
        raise Refused("its first input is no variable")
    return value
