"""Edits at the border of a graph: another input under a known name, a node behind an output."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from openqnn.errors import OpenQnnWarning
from openqnn.ir import DType, Graph, Port, Shape, Value
from openqnn.ops import Builder


def new_input(graph: Graph, old: Value, dtype: DType, shape: Shape) -> tuple[Value, Builder]:
    """An input under the name of the old one, and a builder for what stands between them."""
    name, index = old.name, next(i for i, v in enumerate(graph.inputs) if v is old)
    new = Value(name, dtype, shape)
    graph.inputs[index] = new
    graph.ports[name] = Port(graph.ports[name].dtype, shape)
    builder = Builder(graph, f"input {name}", before=next(iter(graph.nodes), None))
    builder.stem = f"{name}_border"
    return new, builder


def warn_of_idle_inputs(graph: Graph) -> None:
    """The graph keeps them, for arrays that the model is given; what is made of it for a device does not."""
    idle = ", ".join(f"'{v.name}'" for v in graph.inputs if not v.users and not graph.is_output(v))
    if idle:
        message = f"no node reads {idle}: QNN's files and libraries leave such inputs out"
        warnings.warn(message, OpenQnnWarning, stacklevel=3)


def take_over(graph: Graph, old: Value, new: Value, name: str) -> None:
    """What read the old input reads `new`, under a name of its own; the old one is gone."""
    graph.replace_uses(old, new)
    new.name = graph.unique(name)
    if new.producer is not None:
        new.producer.name = new.name


def new_output(graph: Graph, old: Value, inner: str, make: Callable[[Builder], Value]) -> Value:
    """What is made of an output takes its place and name; the old one is called `inner` from then on."""
    name, port = old.name, graph.ports[old.name]
    builder = Builder(graph, old.producer.source if old.producer else f"output {name}")
    old.name = graph.unique(inner)
    if old.producer is not None and old.producer.name == name:
        old.producer.name = old.name
    builder.stem = f"{name}_border"
    new = make(builder)
    new.name = name
    if new.producer is not None:
        new.producer.name = name
    graph.outputs = [new if v is old else v for v in graph.outputs]
    graph.ports[name] = Port(port.dtype, new.shape)
    return new
