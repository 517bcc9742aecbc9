"""A QNN graph as plain records: what a lowering produces, and what printers and backends consume.

Nothing here knows about files, libraries or the IR. Tensors are named by strings, as in every QNN artefact,
and each name appears once in `Net.tensors`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final, TypeAlias

import numpy as np

_NAMED: Final = 3  # ops of others' packages that a message names
BUILTIN_PACKAGE: Final = "qti.aisw"

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class TensorKind(IntEnum):
    """Who fills a tensor; the numbers are QNN's own."""

    APP_WRITE = 0
    APP_READ = 1
    NATIVE = 3
    STATIC = 4
    NULL = 5


@dataclass(frozen=True, slots=True)
class NetQuant:
    """real = (stored + offset) * scale; one pair per channel when `axis` is given.

    `bitwidth` is set only where fewer bits are used than the data type stores (4-bit weights in bytes).
    `multiples` are those of blocks, channel by channel: a block's scale is its channel's times its multiple.
    """

    scales: tuple[float, ...]
    offsets: tuple[int, ...]
    axis: int | None = None
    bitwidth: int | None = None
    multiples: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.scales) != len(self.offsets):
            raise ValueError(f"{len(self.scales)} scales but {len(self.offsets)} offsets")
        if self.axis is None and len(self.scales) != 1:
            raise ValueError(f"a per-tensor encoding has one scale, not {len(self.scales)}")

    @property
    def block_count(self) -> int:
        """The blocks of a channel."""
        return len(self.multiples) // len(self.scales)

    @property
    def multiple_storage(self) -> int:
        """The bits that a multiple is stored in."""
        return 8 if max(self.multiples) < 1 << 8 else 16


def block_axis(axis: int) -> int:
    """Where blocks lie, which QNN leaves unsaid: along the input channels, beside the output channels."""
    return axis - 1 if axis else 1


@dataclass(frozen=True, slots=True, eq=False)
class NetTensor:
    """One tensor; `dtype` is the QNN data type code, `data` the stored values of a static tensor.

    It is `overridden` where a file of the user's says how it is stored: for readers only, QNN does not know.
    """

    name: str
    kind: TensorKind
    dtype: int
    dims: tuple[int, ...]
    quant: NetQuant | None = None
    data: Array | None = None
    overridden: bool = False

    # The generated comparison would ask an array for its truth value.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NetTensor):
            return NotImplemented
        return self._key() == other._key() and _same_data(self.data, other.data)

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.name, self.kind, self.dtype, self.dims, self.quant


@dataclass(frozen=True, slots=True)
class NetScalar:
    """A scalar parameter; backends insist on the exact `dtype`."""

    dtype: int
    value: int | float | bool


@dataclass(frozen=True, slots=True)
class NetNode:
    """One operation. An input of None is an optional operand that is left out.

    `source` says where the operation came from in the user's model, for error messages.
    """

    name: str
    package: str
    op: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    params: tuple[tuple[str, NetScalar | NetTensor], ...] = ()
    source: str = ""

    def __str__(self) -> str:
        op = self.op if self.package == BUILTIN_PACKAGE else f"{self.package}::{self.op}"
        return f"{op} '{self.name}'" + (f" ({self.source})" if self.source else "")


@dataclass(frozen=True, slots=True)
class Net:
    """A whole graph: nodes in execution order, and every tensor that they name."""

    name: str
    tensors: dict[str, NetTensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[NetNode, ...]

    @property
    def subject(self) -> str:
        """What messages call it: its name, and the ops of others' packages, which may be at fault."""
        others = [f"{n.package}::{n.op} '{n.name}'" for n in self.nodes if n.package != BUILTIN_PACKAGE]
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        return f"graph '{self.name}'" + (f" with {', '.join(others[:_NAMED])}{more}" if others else "")


def without_idle(net: Net) -> Net:
    """The graph without inputs that no node reads.

    libQnnHtp and libQnnCpu forget them and refuse to be given them, and libQnnIr crashes.
    """
    read = {*net.outputs, *(name for node in net.nodes for name in node.inputs)}
    idle = [name for name in net.inputs if name not in read]
    if not idle:
        return net
    tensors = {name: tensor for name, tensor in net.tensors.items() if name not in idle}
    return replace(net, tensors=tensors, inputs=tuple(name for name in net.inputs if name in read))


def qnn_name(name: str) -> str:
    """QNN's rule for names: other characters become `_`, and a leading digit gets one in front."""
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
    return f"_{clean}" if clean[0].isdigit() else clean


def _same_data(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and np.array_equal(a, b)
