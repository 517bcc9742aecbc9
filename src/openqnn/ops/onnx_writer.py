"""The ONNX body that ops write themselves into when the built-in backend runs them.

Few commands run it, and every command imports the ops: onnx waits until a node is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from openqnn.ir import Array, Value

if TYPE_CHECKING:
    import onnx

HUGE = 3 << 22  # float32 numbers of this size are integers: what is added to it comes out rounded


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of products before it is rounded, in float32 and in units of `unit / cut`.

    It may lack something, so that rounding cuts it down. `cut_by` computes it anew for another cut.
    """

    cut_by: Callable[[Array], tuple[str, Array | None]]
    unit: Array  # what an integer stands for, per channel
    steps: Array  # how many steps of `step` that is where nothing follows, both in float32
    step: Array
    cut: Array  # of `name`
    name: str
    lack: Array | None
    axis: int  # of channels
    channels: int
    shared: bool = False  # several ops read what it is rounded to
    bare: bool = False  # the kernel for it computes no activation but Relu,
    zero_first: bool = False  # or a Relu only where zero is the first step
    folded: bool = False  # the kernel has the data of one row in several, and clips for itself


class Body:
    """Collects ONNX nodes and constants under fresh names. Names that ops pass around are ONNX value
    names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.sums: dict[str, Sum] = {}  # by the name of the stored integers that they were rounded to
        self.wide: dict[str, tuple[str, Array]] = {}  # the same in 16 bits: a sum, and what one of it is
        self.gates: dict[
            str, tuple[str, str, str]
        ] = {}  # of bytes, by their sigmoid: both as real numbers, too
        self.sigmoids: dict[str, str] = {}  # 16-bit data, by their sigmoid
        self.scaled: dict[str, tuple[str, Value, Array]] = {}  # bytes, by what a constant times them gave
        self.tables: dict[str, tuple[str, Array]] = {}  # bytes, by the name of what a table made of them
        self._count = 0
        self._small: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def fresh(self, stem: str = "t") -> str:
        self._count += 1
        return f"{stem}.{self._count}"

    def op(self, kind: str, *inputs: str, domain: str = "", **attrs: Any) -> str:
        """Adds a node with one output and names it. Trailing absent inputs ("") are dropped."""
        return self.ops(kind, *inputs, count=1, domain=domain, **attrs)[0]

    def ops(self, kind: str, *inputs: str, count: int, domain: str = "", **attrs: Any) -> list[str]:
        """Adds a node with `count` outputs."""
        from onnx import helper

        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        outputs = [self.fresh() for _ in range(count)]
        node = helper.make_node(kind, given, outputs, domain=domain)
        node.attribute.extend(helper.make_attribute(k, v) for k, v in attrs.items() if v is not None)
        self.nodes.append(node)
        return outputs

    def const(self, data: Any, dtype: Any = None) -> str:
        """A constant; small ones that are equal share a name."""
        array = np.asarray(data, dtype)
        if array.nbytes > 256:
            return self._keep(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._small:
            self._small[key] = self._keep(array)
        return self._small[key]

    def _keep(self, array: Array) -> str:
        name = self.fresh("c")
        self.constants[name] = array
        return name

    def ints(self, *values: int) -> str:
        """A 1-D int64 constant, as ONNX wants shapes, axes and pads."""
        return self.const(values, np.int64)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        return self.op("Reshape", x, self.ints(*shape), allowzero=1)

    def transpose(self, x: str, perm: Sequence[int]) -> str:
        return x if list(perm) == sorted(perm) else self.op("Transpose", x, perm=list(perm))

    def cast(self, x: str, dtype: Any) -> str:
        from onnx import helper

        return self.op("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
