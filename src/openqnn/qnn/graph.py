"""One graph inside a context: composed from records, or found in a context binary."""

from __future__ import annotations

import ctypes as c
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from openqnn.errors import BackendError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.binding import Binding, Slot
from openqnn.qnn.marshal import Arena, scalar
from openqnn.qnn.net import Array, Net, NetNode, NetScalar, NetTensor
from openqnn.qnn.options import GraphOptions
from openqnn.qnn.soc import no_floats
from openqnn.qnn.tensor_structs import TensorStructs

_CURVES = frozenset({"ElementWiseNeuron", "Gelu", "Sigmoid", "Tanh"})


class Graph:
    """A graph that the library knows; once it is compiled, it can be run."""

    def __init__(
        self,
        backend: Backend,
        name: str,
        handle: c.c_void_p,
        inputs: Sequence[Slot],
        outputs: Sequence[Slot],
        *,
        finalized: bool,
        subject: str = "",
        advice: str = "",
    ) -> None:
        """`subject` is what messages call it; `advice` is for errors of compiling and running it."""
        self.name, self._backend, self.handle, self._advice = name, backend, handle, advice
        self.subject = subject or f"graph '{name}'"
        self._slots, self._finalized = (tuple(inputs), tuple(outputs)), finalized

    @property
    def inputs(self) -> tuple[NetTensor, ...]:
        return tuple(slot.tensor for slot in self._slots[0])

    @property
    def outputs(self) -> tuple[NetTensor, ...]:
        return tuple(slot.tensor for slot in self._slots[1])

    def finalize(self, profile: c.c_void_p | None = None) -> None:
        """Let the library compile the graph."""
        self._backend.progress(f"finalize {self.subject}")
        try:
            self._backend.api.call("graphFinalize", self.handle, profile, None, subject=self.subject)
        except BackendError as error:
            raise BackendError(error.message, hint=self._advice) from error
        self._finalized = True

    def bind(self, inputs: Mapping[str, Array]) -> Binding:
        """Arrays for the inputs, and new ones for the outputs, to run on as often as one likes."""
        if not self._finalized:
            raise BackendError(f"graph '{self.name}' is not finalized: call finalize() first")
        return Binding(self._backend.api, self.handle, self.subject, self._slots, inputs, advice=self._advice)

    def execute(self, inputs: Mapping[str, Array], profile: c.c_void_p | None = None) -> dict[str, Array]:
        """Run once. Arrays have the stored type: integers for fixed-point tensors."""
        binding = self.bind(inputs)
        self._backend.progress(f"execute {self.subject}")
        return binding.run(profile)


class Composer:
    """Builds a graph from records; the arena keeps what the library may still read.

    A draft has the structs of the tensors, or will have them.
    """

    def __init__(
        self,
        backend: Backend,
        context: c.c_void_p,
        net: Net,
        configs: Any,
        arena: Arena,
        draft: TensorStructs | None = None,
    ) -> None:
        self._backend, self._api, self._net, self._arena = backend, backend.api, net, arena
        self._draft = arena.keep(draft)
        self._tensors: dict[str, abi.Tensor] = {}
        self.handle = c.c_void_p()
        backend.progress(f"create graph '{net.name}'")
        name = net.name.encode()
        subject = f"graph '{net.name}'"
        self._api.call("graphCreate", context, name, configs, c.byref(self.handle), subject=subject)

    def compose(self, *, validate: bool) -> Graph:
        """Add everything; with `validate` each node is put to the library first."""
        net = self._net
        made = {*net.inputs, *(name for node in net.nodes for name in node.outputs)}
        for name in (*net.inputs, *net.outputs):
            if name not in made:
                raise BackendError(f"output '{name}' of graph '{net.name}' is produced by no node")
            # Before the nodes: a context binary lists outputs in the order in which they were created.
            self._named(name, f"graph '{net.name}'")
        for node in net.nodes:
            self.add(node, validate=validate)
        slots = [self._slots(names) for names in (net.inputs, net.outputs)]
        advice = _advice(self._backend, net)
        return Graph(
            self._backend, net.name, self.handle, *slots, finalized=False, subject=net.subject, advice=advice
        )

    def add(self, node: NetNode, *, validate: bool) -> None:
        config = self.config(node)
        if validate:
            self.validate(node, config)
        self._backend.progress(f"add {node}")
        self._api.call("graphAddNode", self.handle, config, subject=str(node))

    def config(self, node: NetNode) -> abi.OpConfig:
        """The struct of a node, its tensors created where they are new."""
        self._backend.progress(f"create tensors of {node}")
        return self._arena.op_config(
            node,
            [self._input(node, index, name) for index, name in enumerate(node.inputs)],
            [self._named(name, str(node)) for name in node.outputs],
            [(name, self._param(node, name, value)) for name, value in node.params],
        )

    def validate(self, node: NetNode, config: abi.OpConfig) -> None:
        """Ask the library whether it takes the node."""
        self._backend.progress(f"validate {node}")
        self._api.call("backendValidateOpConfig", self._backend.handle, config, subject=str(node))

    def _slots(self, names: Sequence[str]) -> list[Slot]:
        return [Slot(self._net.tensors[name], self._tensors[name]) for name in names]

    def _input(self, node: NetNode, index: int, name: str | None) -> abi.Tensor:
        if name is not None:
            return self._named(name, str(node))
        absent = self._arena.absent(f"{node.name}_absent_{index}")
        if (
            self._api.backend_id == abi.BACKEND_IR
        ):  # it takes no undefined types, and keeps empty ones as absent
            absent.body.v1.dtype, absent.body.v1.rank = abi.FLOAT_32, 1
            absent.body.v1.dims = self._arena.keep((c.c_uint32 * 1)(0))
        return self._create(absent, str(node))

    def _param(self, node: NetNode, name: str, value: NetScalar | NetTensor) -> abi.Tensor | abi.Scalar:
        if isinstance(value, NetScalar):
            return scalar(value)
        # Parameters of different nodes may carry one name ("stride"); a graph takes each name once.
        taken = not value.name or value.name in self._tensors or value.name in self._net.tensors
        unique = f"{node.name}_{name}" if taken else value.name
        draft = self._draft
        struct = draft.param(node, name, unique) if draft else self._arena.tensor(value, unique)
        self._tensors[unique] = self._create(struct, f"{node}, parameter {name}")
        return struct

    def _named(self, name: str, user: str) -> abi.Tensor:
        if name not in self._tensors:
            if name not in self._net.tensors:
                raise BackendError(f"{user}: graph '{self._net.name}' has no tensor '{name}'")
            draft = self._draft
            struct = draft.tensor(name) if draft else self._arena.tensor(self._net.tensors[name])
            self._tensors[name] = self._create(struct, f"{user}, tensor '{name}'")
        return self._tensors[name]

    def _create(self, struct: abi.Tensor, subject: str) -> abi.Tensor:
        self._api.call("tensorCreateGraphTensor", self.handle, c.byref(struct), subject=subject)
        return struct


def float_nodes(net: Net) -> list[NetNode]:
    """Nodes that compute floats from floats; not those that begin or end a part in fixed point."""
    floats = {tensor.name for tensor in net.tensors.values() if tensor.dtype in (abi.FLOAT_16, abi.FLOAT_32)}
    return [node for node in net.nodes if floats & {*node.inputs} and floats & {*node.outputs}]


def _advice(backend: Backend, net: Net) -> str:
    """What to do where the library takes all nodes of a graph and then fails to compile it."""
    if backend.soc is not None and not backend.soc.has_floats and float_nodes(net):
        return no_floats(backend.soc)
    return "`openqnn reduce` finds the smallest part of the graph that still fails, and writes it to a file"


def _has_float_curves(net: Net) -> bool:
    """In a graph that is all in floats: what HTP does with curves in fixed point is as it should be."""
    in_floats = not any(tensor.quant for tensor in net.tensors.values())
    return in_floats and any(node.op in _CURVES for node in net.nodes)


def graph_records(backend: Backend, net: Net, options: GraphOptions | None) -> list[tuple[int, int, int]]:
    """HTP's options for a graph. HTP computes float graphs in half precision and wants to be told so.

    A curve that it joins to the layer before is coarse there: the Tanh of small numbers is off by 3 %. So in
    graphs of floats it stays apart, unless the options say otherwise.
    """
    chosen = options or GraphOptions()
    if backend.is_htp and chosen.advanced_activation_fusion is None and _has_float_curves(net):
        chosen = replace(chosen, advanced_activation_fusion=False)
    records = chosen.records()
    if not backend.is_htp:
        if records:
            raise BackendError(f"{backend.api.library.name} takes no HTP graph options")
        return []
    if chosen.float16 is None and any(t.dtype == abi.FLOAT_32 for t in net.tensors.values()):
        records.append((abi.HTP_GRAPH_PRECISION, abi.PRECISION_FLOAT16, 0))
    return records
