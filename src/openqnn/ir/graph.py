"""Graph, Node, Value: a QNN graph in memory, with use-def chains.

A Value is produced by at most one Node and knows its uses, so a rewrite never searches. Nodes keep `source`,
the place in the user's model that they came from, through every rewrite: messages and debuggers live by it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from math import prod
from typing import Any, TypeAlias, cast

from numpy.typing import NDArray

from openqnn.errors import UsageError, VerifyError
from openqnn.ir.dtype import DType
from openqnn.ir.encoding import Encoding
from openqnn.ir.given import Given

Shape: TypeAlias = tuple[int, ...]
Array: TypeAlias = NDArray[Any]
# A parameter is a number, a flag, the name of an enum member, or a nested tuple of numbers (a tensor
# parameter).
ParamValue: TypeAlias = "int | float | bool | str | tuple[ParamValue, ...]"

BUILTIN_PACKAGE = "qti.aisw"
PACKAGE_MARK = "::"


def op_key(package: str, name: str) -> str:
    """What `Node.op` is for an op of a package: QNN's own go by their name, others by package and name."""
    return name if package == BUILTIN_PACKAGE else f"{package}{PACKAGE_MARK}{name}"


@dataclass(eq=False, slots=True)
class Value:
    """A tensor in the graph. Constant when `data` is set; `data` may be a view into the mapped source
    file."""

    name: str
    dtype: DType
    shape: Shape
    encoding: Encoding | None = None
    data: Array | None = None
    producer: Node | None = None
    users: list[Node] = field(default_factory=lambda: list[Node]())  # one entry per use

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.numpy.itemsize

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    def __repr__(self) -> str:
        return f"%{self.name}: {self.dtype.label}[{','.join(map(str, self.shape))}]"


@dataclass(eq=False, slots=True)
class Node:
    """One QNN operation. Optional inputs that are left out are None; every parameter is spelled out."""

    op: str
    name: str
    inputs: list[Value | None]
    outputs: list[Value]
    params: dict[str, ParamValue] = field(default_factory=lambda: dict[str, ParamValue]())
    source: str = ""
    package: str = BUILTIN_PACKAGE

    def __post_init__(self) -> None:
        """The op's key names its package: whoever copies a node need not."""
        if PACKAGE_MARK in self.op:
            self.package = self.op.rpartition(PACKAGE_MARK)[0]

    def x(self, index: int) -> Value:
        """Input `index`, which must be there."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise VerifyError(f"{self.where}: input {index} is missing")
        return value

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    @property
    def out(self) -> Value:
        return self.outputs[0]

    @property
    def op_name(self) -> str:
        """The op's name within its package."""
        return self.op.rpartition(PACKAGE_MARK)[2]

    @property
    def where(self) -> str:
        """How messages name this node: op, name and the place in the user's model."""
        return f"{self.op} '{self.name}'" + (f" ({self.source})" if self.source else "")

    def int(self, name: str) -> int:
        return int(cast(int, self.params[name]))

    def float(self, name: str, default: float | None = None) -> float:
        """With a default, a parameter that may be left out."""
        return float(cast(float, self.params[name] if default is None else self.params.get(name, default)))

    def flag(self, name: str) -> bool:
        return bool(self.params[name])

    def enum(self, name: str) -> str:
        return cast(str, self.params[name])

    def ints(self, name: str) -> tuple[int, ...]:
        return cast("tuple[int, ...]", self.params[name])

    def floats(self, name: str) -> tuple[float, ...]:
        return cast("tuple[float, ...]", self.params[name])

    def rows(self, name: str) -> tuple[tuple[int, ...], ...]:
        """A two-dimensional integer parameter such as pad_amount."""
        return cast("tuple[tuple[int, ...], ...]", self.params[name])

    def __repr__(self) -> str:
        return f"<{self.where}>"


@dataclass(frozen=True, slots=True)
class Port:
    """How the outside sees a graph input or output: the source model's type and shape."""

    dtype: DType
    shape: Shape


class Graph:
    """Inputs, outputs and nodes in topological order. Edits are cheap: they take effect when `nodes` is next
    read.

    `given` has the encodings that came with a model in floating point, by the name of the tensor: passes that
    give a tensor's name to another one with the same real numbers hand them on without knowing.
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.ports: dict[str, Port] = {}
        self.provenance: dict[str, str] = {}  # value name -> where the quantizer has its encoding from
        self.given: dict[str, Given] = {}
        self.merged: frozenset[str] = frozenset()  # tensors of the source model that became part of others
        self.folded: frozenset[str] = frozenset()  # its constants that have other numbers here
        self._nodes: list[Node] = []
        self._before: dict[Node | None, list[Node]] = {}
        self._anchor: dict[Node, Node | None] = {}  # where each waiting node waits
        self._dead: set[Node] = set()
        self._names: dict[str, int] = {}

    # -- reading ---------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> Sequence[Node]:
        if self._before or self._dead:
            self._nodes = list(self._merged())
            self._before, self._anchor, self._dead = {}, {}, set()
        return self._nodes

    def _merged(self) -> Iterator[Node]:
        for anchor in (*self._nodes, None):
            yield from (n for n in self._before.get(anchor, ()) if n not in self._dead)
            if anchor is not None and anchor not in self._dead:
                yield anchor

    def values(self) -> Iterator[Value]:
        """Every value once: graph inputs, then constants and results in order of first use."""
        seen: set[Value] = set()
        for value in self._all_values():
            if value not in seen:
                seen.add(value)
                yield value

    def _all_values(self) -> Iterator[Value]:
        yield from self.inputs
        for node in self.nodes:
            yield from (v for v in node.inputs if v is not None)
            yield from node.outputs
        yield from self.outputs

    def constants(self) -> list[Value]:
        return [v for v in self.values() if v.is_constant]

    def is_output(self, value: Value) -> bool:
        return any(value is v for v in self.outputs)

    # -- building --------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """`name`, or `name_2`, `name_3`... when it is taken. The result is reserved."""
        count = self._names.get(name, 0) + 1
        self._names[name] = count
        return name if count == 1 else self.unique(f"{name}_{count}")

    def reserve(self, names: Iterable[str]) -> None:
        for name in names:
            self._names.setdefault(name, 1)

    def add_input(self, name: str, dtype: DType, shape: Shape, port: Port | None = None) -> Value:
        value = Value(self.unique(name), dtype, shape)
        self.inputs.append(value)
        self.ports[value.name] = port or Port(dtype, shape)
        return value

    def add_output(self, value: Value, port: Port | None = None) -> None:
        self.outputs.append(value)
        self.ports[value.name] = port or Port(value.dtype, value.shape)

    def constant(self, name: str, data: Array, dtype: DType, encoding: Encoding | None = None) -> Value:
        return Value(self.unique(name), dtype, tuple(data.shape), encoding, data)

    def add(self, node: Node, before: Node | None = None) -> Node:
        """Puts a node in front of `before`, or last, and links it to its inputs and outputs."""
        anchor = before if before is None else self._anchor.get(before, before)
        line = self._before.setdefault(anchor, [])
        line.insert(len(line) if before is anchor else line.index(cast(Node, before)), node)
        self._anchor[node] = anchor
        for value in node.inputs:
            if value is not None:
                value.users.append(node)
        for value in node.outputs:
            value.producer = node
        return node

    # -- rewriting -------------------------------------------------------------------------------------------

    def remove(self, node: Node) -> None:
        """Takes a node out. Its outputs must have no uses left."""
        for value in node.outputs:
            if value.users or (self.is_output(value) and value.producer is node):
                raise VerifyError(f"{node.where} is still used through '{value.name}'")
            if value.producer is node:
                value.producer = None
        self._unlink(node)
        self._dead.add(node)

    def _unlink(self, node: Node) -> None:
        for value in node.inputs:
            if value is not None:
                value.users.remove(node)

    def set_input(self, node: Node, index: int, value: Value | None) -> None:
        old = node.inputs[index]
        if old is not None:
            old.users.remove(node)
        node.inputs[index] = value
        if value is not None:
            value.users.append(node)

    def replace_uses(self, old: Value, new: Value) -> None:
        """Every consumer of `old` reads `new` instead. A graph output keeps its name: see `replace`."""
        for node in list(dict.fromkeys(old.users)):
            for index, value in enumerate(node.inputs):
                if value is old:
                    self.set_input(node, index, new)

    def replace(self, old: Value, new: Value) -> None:
        """`new` takes the place of `old` everywhere; as a graph output it takes the old name, which users
        know."""
        self.replace_uses(old, new)
        if not self.is_output(old):
            return
        keeps_name = new.is_constant or new.producer is None or self.is_output(new)
        if keeps_name:
            raise VerifyError(f"output '{old.name}' cannot become '{new.name}', which has a name of its own")
        old.name, new.name = new.name, old.name
        self.outputs = [new if v is old else v for v in self.outputs]

    def sort(self) -> None:
        """Restores topological order, keeping the present order where it is free to. Raises on a cycle."""
        nodes = list(self.nodes)
        waiting = {
            n: len({v.producer for v in n.inputs if v is not None and v.producer is not None}) for n in nodes
        }
        ready = [n for n in reversed(nodes) if waiting[n] == 0]
        done: list[Node] = []
        while ready:
            node = ready.pop()
            done.append(node)
            followers = dict.fromkeys(u for v in node.outputs for u in v.users)
            for user in reversed(list(followers)):
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.append(user)
        if len(done) != len(nodes):
            stuck = next(n for n in nodes if waiting[n] > 0)
            raise VerifyError(f"the graph has a cycle through {stuck.where}")
        self._nodes = done

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph and its constants to an .oqnn or .dlc file, which `openqnn.load` reads back, or as
        an ONNX model, in fixed point with pairs of QuantizeLinear and DequantizeLinear."""
        from openqnn.ir.oqnn import save_graph  # the store reads graphs; a graph only borrows it

        given: Any = path
        if not isinstance(given, str | os.PathLike):
            raise UsageError(f"a {type(given).__name__} is no path of a file", hint="model.oqnn")
        save_graph(self, path)

    def __str__(self) -> str:
        from openqnn.ir.graph_text import (
            print_graph,  # the text form reads graphs; a graph only borrows it to be printed
        )

        return print_graph(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}: {len(self.nodes)} nodes>"

    def _repr_html_(self) -> str:
        """What a notebook shows: inputs, outputs, and how many nodes of which op."""
        rows = [
            (kind, f"{v.name}: {v.dtype.label} {list(v.shape)}")
            for kind, values in (("input", self.inputs), ("output", self.outputs))
            for v in values
        ]
        counts = Counter(node.op for node in self.nodes)
        rows += [(f"{len(self.nodes)} nodes", ", ".join(f"{n} {op}" for op, n in counts.most_common()))]
        cells = "".join(f"<tr><th>{escape(kind)}</th><td>{escape(text)}</td></tr>" for kind, text in rows)
        return f"<table><caption>{escape(self.name)}</caption>{cells}</table>"
