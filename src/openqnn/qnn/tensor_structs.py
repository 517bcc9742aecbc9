"""A graph's tensors as structs, made by one thread while another opens the library or hands them over."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeAlias

from openqnn.qnn import abi
from openqnn.qnn.marshal import Arena
from openqnn.qnn.net import Net, NetNode, NetTensor

_Key: TypeAlias = str | tuple[int, str]
"""A tensor's name, or which node and the name of its parameter."""


class TensorStructs:
    """The structs of all tensors of a net, weights and parameters among them.

    They are made in the order in which a composer takes them.
    """

    def __init__(self, net: Net) -> None:
        self.net, self._arena = net, Arena()
        self._records = _in_order(net)
        self._structs = {key: Future[abi.Tensor]() for key in self._records}

    def fill(self) -> None:
        """Make all of them; an error reaches whoever takes the tensor."""
        for key, struct in self._structs.items():
            try:
                struct.set_result(self._arena.tensor(self._records[key]))
            except Exception as error:
                struct.set_exception(error)

    def tensor(self, name: str) -> abi.Tensor:
        """The struct of a tensor, as soon as it is there."""
        return self._structs[name].result()

    def param(self, node: NetNode, param: str, name: str) -> abi.Tensor:
        """The struct of a parameter, under the name that the graph is to know it by."""
        struct = self._structs[id(node), param].result()
        struct.body.v1.name = name.encode()
        return struct


def _in_order(net: Net) -> dict[_Key, NetTensor]:
    found: dict[_Key, NetTensor] = {}
    for name in (*net.inputs, *net.outputs):
        if name in net.tensors:
            found[name] = net.tensors[name]
    for node in net.nodes:
        for name in (*node.inputs, *node.outputs):
            if name is not None and name in net.tensors:
                found[name] = net.tensors[name]
        for param, value in node.params:
            if isinstance(value, NetTensor):
                found[id(node), param] = value  # names of nodes may come twice
    return found
