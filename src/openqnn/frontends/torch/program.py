"""An exported program as records: what a .pt2 file and torch's own objects are both read into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openqnn.ir import Array, DType


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor or a number of the program, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What the program says of a tensor. A dimension is a number or the text of an expression."""

    dtype: DType | str
    dims: tuple[int | str, ...]

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape where every dimension is a number."""
        return tuple(int(d) for d in self.dims) if all(isinstance(d, int) for d in self.dims) else None


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a node: `value` is a number, a string, a DType, a Ref, a Program, None, or a list."""

    name: str
    value: Any
    positional: bool = True


@dataclass(frozen=True, slots=True)
class ProgramNode:
    """A call of an overload. `outputs` are names, "" where nobody reads the result."""

    target: str
    arguments: tuple[Argument, ...]
    outputs: tuple[str, ...]
    trace: str = ""  # the stack of the user's Python, outermost first
    modules: str = ""  # the stack of modules, outermost first


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """An input of the graph: from outside, a constant of the state by name, or a plain number."""

    name: str
    state: str = ""
    number: Any = None
    is_number: bool = False
    mutable: bool = False  # a buffer that the program writes to
    label: str = ""  # what the user calls it

    @property
    def outside(self) -> str:
        """The name that it has as an input of the graph."""
        return self.state or self.label or self.name


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """An output of the graph. `state` names the buffer, or `target` the input, that takes the new value."""

    value: Any
    state: str = ""
    target: str = ""


@dataclass(frozen=True)
class Program:
    """A graph with its inputs, outputs, nodes, and the state that it reads."""

    name: str
    inputs: tuple[ProgramInput, ...]
    outputs: tuple[ProgramOutput, ...]
    nodes: tuple[ProgramNode, ...]
    tensors: Mapping[str, TensorInfo]
    arrays: Mapping[str, Array] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)  # numbers of the graph by their expressions
    foreign: Mapping[str, str] = field(default_factory=dict)  # state that cannot be read, and why
    input_names: Sequence[str] = ()  # what the user calls the inputs
