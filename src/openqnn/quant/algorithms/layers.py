"""Layers as products of matrices: rows of data times a weight, in groups that do not meet.

A convolution is such a product too, of its patches. That is the only form that rounding and bias correction
know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array, Encoding, Node
from openqnn.ops import Kind, kind_of
from openqnn.ops.conv import pads_of, per_dim

Floats = NDArray[np.float32]
_PRODUCTS = (Kind.CONVOLUTION, Kind.DENSE, Kind.MATRIX_PRODUCT)


def is_layer(node: Node) -> bool:
    """Whether `rows` and `matrix` know the node, and its weight is a constant."""
    if kind_of(node) not in _PRODUCTS or not node.has(1):
        return False
    weight, data = node.x(1), node.x(0)
    if weight.data is None or data.is_constant:
        return False
    return kind_of(node) is not Kind.MATRIX_PRODUCT or (
        weight.size == weight.shape[-1] * weight.shape[-2] and not node.flag("transpose_in0")
    )


@dataclass(frozen=True, slots=True)
class Layer:
    """A node whose output is `rows(data) @ matrix(weight)` plus a bias."""

    node: Node

    @property
    def _convolves(self) -> bool:
        return kind_of(self.node) is Kind.CONVOLUTION

    @property
    def groups(self) -> int:
        if self.node.op.startswith("DepthWise"):
            return self.node.x(0).shape[-1]
        return self.node.int("group") if "group" in self.node.params else 1

    def matrix(self, weight: Array) -> Array:
        """The weight as [group, inner, outer]."""
        if self._convolves:
            outer = weight.shape[-1] // self.groups
            return weight.reshape(-1, self.groups, outer).transpose(1, 0, 2)
        flat = weight.reshape(weight.shape[-2:])
        return (flat.T if self._is_turned else flat)[None]

    def weight(self, matrix: Array) -> Array:
        """The reverse of `matrix`."""
        shape = self.node.x(1).shape
        if self._convolves:
            return np.ascontiguousarray(matrix.transpose(1, 0, 2).reshape(shape))
        return np.ascontiguousarray((matrix[0].T if self._is_turned else matrix[0]).reshape(shape))

    def scales(self, encoding: Encoding) -> NDArray[np.float64]:
        """The scales of the weight as [group, 1, outer], of one in blocks as [group, inner, outer]."""
        if encoding.blocks is not None:
            shape = self.node.x(1).shape
            return self.matrix(np.broadcast_to(encoding.steps(shape), shape))
        outer = self.outer
        full = np.broadcast_to(np.asarray(encoding.scale, np.float64), (self.groups * outer,))
        return full.reshape(self.groups, 1, outer)

    @property
    def outer(self) -> int:
        return self.node.out.shape[-1] // self.groups

    @property
    def inner(self) -> int:
        return self.node.x(1).size // (self.groups * self.outer)

    @property
    def _is_turned(self) -> bool:
        return kind_of(self.node) is Kind.DENSE or self.node.flag("transpose_in1")

    @property
    def positions(self) -> int:
        """How many rows one sample gives."""
        return self.node.out.size // self.node.out.shape[-1]

    def rows(self, data: Array, places: NDArray[np.intp]) -> Floats:
        """The rows of one sample at some of its output positions, [group, place, inner]."""
        if not self._convolves:
            return data.reshape(-1, self.inner)[places][None].astype(np.float32)
        patches = self._patches(data, places)
        split = patches.reshape(len(places), -1, self.groups, data.shape[-1] // self.groups)
        return np.ascontiguousarray(split.transpose(2, 0, 1, 3).reshape(self.groups, len(places), -1))

    def _patches(self, data: Array, places: NDArray[np.intp]) -> Floats:
        """What the filter sees at each place, [place, taps..., channels]."""
        node = self.node
        dims = data.ndim - 2
        pads, stride, dilation = (
            pads_of(node, dims),
            per_dim(node, "stride", dims),
            per_dim(node, "dilation", dims),
        )
        kernel, spatial = node.x(1).shape[:dims], node.out.shape[1:-1]
        padded = np.pad(
            data.astype(np.float32), [(0, 0), *(cast("tuple[int, int]", tuple(p)) for p in pads), (0, 0)]
        )
        batch, *where = np.unravel_index(places, (data.shape[0], *spatial))
        index: list[NDArray[np.intp]] = [batch.reshape(-1, *(1,) * dims)]
        for axis in range(dims):
            taps = where[axis][:, None] * stride[axis] + np.arange(kernel[axis]) * dilation[axis]
            index.append(taps.reshape(len(places), *(kernel[axis] if a == axis else 1 for a in range(dims))))
        return padded[tuple(index)]
