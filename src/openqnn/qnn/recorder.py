"""Note down the graphs that somebody else composes: a model library, or the reader of DLC files.

Both are given an interface table by value and call it for each tensor and node. The table here keeps a record
of every call, and forwards it to a real backend or answers by itself.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterable
from itertools import count
from typing import Any

from openqnn.errors import ModelError, OpenQnnError
from openqnn.qnn import abi
from openqnn.qnn.api import Api
from openqnn.qnn.net import Net, NetNode, NetScalar, NetTensor, TensorKind
from openqnn.qnn.read_structs import read_scalar, read_tensor, text

_P = c.c_void_p
_GRAPH_CREATE = c.CFUNCTYPE(c.c_uint64, _P, c.c_char_p, _P, c.POINTER(_P))
_CREATE_TENSOR = c.CFUNCTYPE(c.c_uint64, _P, c.POINTER(abi.Tensor))
_ADD_NODE = c.CFUNCTYPE(c.c_uint64, _P, abi.OpConfig)
_VALIDATE = c.CFUNCTYPE(c.c_uint64, _P, abi.OpConfig)

_REFUSED = 1000  # QNN_COMMON_ERROR_NOT_SUPPORTED: what a composer hears when a record cannot be made


class Recorder:
    """An interface table over a real backend. Compose with `interface`, then read `nets`.

    Validations are answered with yes: a graph can be read whatever the backend thinks of it. With
    `forward=False` the backend hears of no graph, tensor or node: none takes all that a graph may have. With
    `borrow` large weights are not copied: the records refer to the composer's own memory, which must stay.
    """

    def __init__(self, api: Api, *, forward: bool = True, borrow: bool = False) -> None:
        self._api, self._forward, self._borrow = api, forward, borrow
        self._numbers = count(1)
        self._graphs: dict[int, _Draft] = {}
        self.error: OpenQnnError | None = None
        """Why a call was refused by the recorder itself; the composer only reports a number."""
        # Held here, since ctypes frees a callback that only a table of addresses refers to.
        self._callbacks = {
            "graphCreate": _GRAPH_CREATE(self._graph_create),
            "tensorCreateGraphTensor": _CREATE_TENSOR(self._create_graph_tensor),
            "tensorCreateContextTensor": _CREATE_TENSOR(self._create_context_tensor),
            "graphAddNode": _ADD_NODE(self._add_node),
            "backendValidateOpConfig": _VALIDATE(self._validate),
        }

    @property
    def interface(self) -> Any:
        """The table, to be passed by value; valid as long as the recorder lives."""
        addresses = {name: c.cast(function, _P).value or 0 for name, function in self._callbacks.items()}
        return self._api.interface(addresses)

    def handle(self, graph: str) -> int:
        """The backend's own handle of a graph."""
        return next(handle for handle, draft in self._graphs.items() if draft.name == graph)

    def tensor_ids(self, graph: str) -> dict[str, int]:
        """The numbers that the backend gave to the graph's tensors."""
        return self._graphs[self.handle(graph)].ids

    def nets(self, order: dict[str, tuple[list[str], list[str]]] | None = None) -> list[Net]:
        """The graphs so far; `order` gives the order of inputs and outputs, where the composer tells it."""
        if self.error is not None:
            raise self.error
        return [draft.net(*(order or {}).get(draft.name, ([], []))) for draft in self._graphs.values()]

    def _graph_create(self, context: int, name: bytes, config: int, out: Any) -> int:
        code = 0
        if self._forward:
            code = int(self._api.function("graphCreate")(context, name, config, out))
        else:
            out[0] = next(self._numbers)
        if not code:
            self._graphs[out[0]] = _Draft(text(name), self._borrow)
        return code

    def _create_graph_tensor(self, graph: int, tensor: Any) -> int:
        return self._create_tensor("tensorCreateGraphTensor", graph, tensor, [self._graphs[graph]])

    def _create_context_tensor(self, context: int, tensor: Any) -> int:
        return self._create_tensor("tensorCreateContextTensor", context, tensor, self._graphs.values())

    def _create_tensor(self, entry: str, owner: int, tensor: Any, drafts: Iterable[_Draft]) -> int:
        if self._forward:
            code = int(self._api.function(entry)(owner, tensor))
            if code:
                return code
        else:
            tensor[0].body.v1.id = next(self._numbers)
        try:
            record = read_tensor(tensor[0], self._borrow)
        except OpenQnnError as error:
            return self._refuse(error)
        for draft in drafts:
            draft.tensors[record.name] = record
            draft.ids[record.name] = tensor[0].body.v1.id
        return 0

    def _add_node(self, graph: int, config: abi.OpConfig) -> int:
        code = int(self._api.function("graphAddNode")(graph, config)) if self._forward else 0
        if code:
            return code
        try:
            self._graphs[graph].add(config.v1)
        except OpenQnnError as error:
            return self._refuse(error)
        return 0

    def _validate(self, backend: int, config: abi.OpConfig) -> int:
        del backend, config
        return 0

    def _refuse(self, error: OpenQnnError) -> int:
        self.error = self.error or error
        return _REFUSED


class _Draft:
    """A graph that is being composed."""

    def __init__(self, name: str, borrow: bool) -> None:
        self.name, self._borrow = name, borrow
        self.tensors: dict[str, NetTensor] = {}
        self.ids: dict[str, int] = {}
        self._nodes: list[NetNode] = []
        self._param_names: set[str] = set()

    def add(self, config: abi.OpConfigV1) -> None:
        inputs = tuple(_operand(config.inputs[i]) for i in range(config.input_count))
        outputs = tuple(text(config.outputs[i].body.v1.name) for i in range(config.output_count))
        params = tuple(self._param(config.params[i]) for i in range(config.param_count))
        name, package, op = text(config.name), text(config.package), text(config.type)
        self._nodes.append(NetNode(name, package, op, inputs, outputs, params))

    def net(self, inputs: list[str], outputs: list[str]) -> Net:
        used = {name for node in self._nodes for name in (*node.inputs, *node.outputs)}
        only_params = self._param_names - used
        tensors = {
            name: tensor
            for name, tensor in self.tensors.items()
            if name not in only_params and tensor.kind is not TensorKind.NULL
        }
        unknown = sorted(name for name in used if name is not None and name not in tensors)
        if unknown:
            raise ModelError(f"graph '{self.name}' uses tensors that it never declares: {', '.join(unknown)}")
        return Net(
            self.name,
            tensors,
            _ordered(tensors, TensorKind.APP_WRITE, inputs),
            _ordered(tensors, TensorKind.APP_READ, outputs),
            tuple(self._nodes),
        )

    def _param(self, param: abi.Param) -> tuple[str, NetScalar | NetTensor]:
        name = text(param.name)
        if param.type == abi.PARAM_SCALAR:
            return name, read_scalar(param.value.scalar)
        tensor = read_tensor(param.value.tensor, self._borrow)
        known = self.tensors.get(tensor.name)
        self._param_names.add(tensor.name)
        # A composer may pass the data once, when it creates the tensor, and only the name from then on.
        return name, known if tensor.data is None and known is not None else tensor


def _operand(struct: abi.Tensor) -> str | None:
    body = struct.body.v1
    return None if body.type == TensorKind.NULL else text(body.name)


def _ordered(tensors: dict[str, NetTensor], kind: TensorKind, wanted: list[str]) -> tuple[str, ...]:
    names = [name for name, tensor in tensors.items() if tensor.kind is kind]
    return tuple(wanted) if sorted(wanted) == sorted(names) else tuple(names)
