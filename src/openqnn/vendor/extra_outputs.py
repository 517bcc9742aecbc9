"""Tensors to give out besides a graph's own outputs, and which of them there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from openqnn.errors import InputError
from openqnn.qnn.net import Net, TensorKind
from openqnn.worker.serve import Reporter


@dataclass(frozen=True, slots=True)
class Wanted:
    """Tensors to give out besides the outputs: by graph ("" for any), or all of them.

    `perhaps` are names of tensors and layers from input lists, which not every graph needs to have.
    """

    tensors: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    everything: bool = False
    perhaps: tuple[str, ...] = ()


def with_wanted(nets: Sequence[Net], wanted: Wanted, reporter: Reporter) -> list[Net]:
    """The graphs with what is wanted as outputs; what an input list asks for in vain is told."""
    names = [net.name for net in nets]
    for graph in wanted.tensors:
        if graph and graph not in names:
            raise InputError(f"there is no graph '{graph}'", hint=f"the graphs: {', '.join(names)}")
    known = {name for net in nets for name in (*_layers(net), *net.outputs, *every_tensor(net))}
    for name in wanted.perhaps:
        if name not in known:
            reporter.tell(f"an input list asks for '{name}', and no graph has a tensor or layer of that name")
    return [with_outputs(net, _extra(net, wanted)) for net in nets]


def tell_compiled_in(outputs: Sequence[str], wanted: Wanted, reporter: Reporter) -> None:
    """A context binary has the outputs that it was compiled with, whatever an input list asks for."""
    for name in wanted.perhaps:
        if name not in outputs:
            reporter.tell(f"an input list asks for '{name}', and outputs are compiled into a context binary")


def _extra(net: Net, wanted: Wanted) -> list[str]:
    layers, made = _layers(net), set(every_tensor(net))
    extra = [*wanted.tensors.get(net.name, ()), *wanted.tensors.get("", ())]
    for name in wanted.perhaps:
        extra += (name,) if name in made else layers.get(name, ())
    return [*extra, *(every_tensor(net) if wanted.everything else ())]


def _layers(net: Net) -> dict[str, tuple[str, ...]]:
    return {node.name: node.outputs for node in net.nodes}


def with_outputs(net: Net, names: Sequence[str]) -> Net:
    """The net with these tensors as outputs too, behind its own."""
    tensors, added = dict(net.tensors), list[str]()
    produced = dict.fromkeys(every_tensor(net))
    for name in dict.fromkeys(names):
        if name in net.outputs:
            continue
        if name not in produced:
            near = get_close_matches(name, produced) or list(produced)[:5]
            hint = f"it computes {', '.join(near)}" + (", ..." if len(near) < len(produced) else "")
            raise InputError(f"graph '{net.name}' computes no tensor '{name}'", hint=hint)
        tensors[name] = replace(tensors[name], kind=TensorKind.APP_READ)
        added.append(name)
    return replace(net, tensors=tensors, outputs=(*net.outputs, *added))


def every_tensor(net: Net) -> list[str]:
    """Whatever the nodes compute, in their order."""
    return [name for node in net.nodes for name in node.outputs]
