"""The words of compositions: `q.mul(q.log(x), 2)` instead of nodes by the names of their ops.

Whoever builds nodes speaks them: the Builder that passes use, and the Translation of a frontend. A word has
the operands and parameters of its op, which is named here once for all compositions. An operand of arithmetic
may be a plain number: a constant of the type of the other one.

Not every op has a word: one that only its own translator or rule makes is made by its name there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from openqnn.ir import DType, Encoding, Value

Term: TypeAlias = "Value | float"
Ints: TypeAlias = Sequence[int]
Rows: TypeAlias = Sequence[Sequence[int]]


class Vocabulary(ABC):
    """All words, in terms of `__call__`, which makes a node by the name of its op."""

    @abstractmethod
    def __call__(self, op: str, *inputs: Value | None, **params: Any) -> Value:
        """One node, its first output."""

    @abstractmethod
    def many(self, op: str, *inputs: Value | None, **params: Any) -> list[Value]:
        """One node, all outputs."""

    @abstractmethod
    def scalar(self, number: float, like: Value) -> Value:
        """A one-element constant of the type of another value."""

    @abstractmethod
    def constant(self, data: Any, name: str = "") -> Value:
        """A constant of an array, of 32 bits at most."""

    # -- arithmetic ------------------------------------------------------------------------------------------

    def _pair(self, op: str, a: Term, b: Term) -> Value:
        if not isinstance(a, Value):
            assert isinstance(b, Value), "two numbers make no node"
            a = self.scalar(a, like=b)
        return self(op, a, b if isinstance(b, Value) else self.scalar(b, like=a))

    def add(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseAdd", a, b)

    def sub(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseSubtract", a, b)

    def mul(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseMultiply", a, b)

    def div(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseDivide", a, b)

    def mod(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseMod", a, b)

    def pow(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWisePower", a, b)

    def maximum(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseMaximum", a, b)

    def minimum(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseMinimum", a, b)

    def square(self, x: Value) -> Value:
        return self.mul(x, x)

    def abs(self, x: Value) -> Value:
        return self("ElementWiseAbs", x)

    def neg(self, x: Value) -> Value:
        return self("ElementWiseNeg", x)

    def sign(self, x: Value) -> Value:
        return self("ElementWiseSign", x)

    def round(self, x: Value) -> Value:
        return self("ElementWiseRound", x)

    def floor(self, x: Value) -> Value:
        return self("ElementWiseFloor", x)

    def ceil(self, x: Value) -> Value:
        return self("ElementWiseCeil", x)

    def sqrt(self, x: Value) -> Value:
        return self("ElementWiseSquareRoot", x)

    def rsqrt(self, x: Value) -> Value:
        return self("ElementWiseRsqrt", x)

    def exp(self, x: Value) -> Value:
        return self("ElementWiseExp", x)

    def log(self, x: Value) -> Value:
        return self("ElementWiseLog", x)

    def sin(self, x: Value) -> Value:
        return self("ElementWiseSin", x)

    def cos(self, x: Value) -> Value:
        return self("ElementWiseCos", x)

    def asin(self, x: Value) -> Value:
        return self("ElementWiseAsin", x)

    def atan(self, x: Value) -> Value:
        return self("ElementWiseAtan", x)

    # -- comparison, logic, choice ---------------------------------------------------------------------------

    def equal(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseEqual", a, b)

    def not_equal(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseNotEqual", a, b)

    def less(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseLess", a, b)

    def less_equal(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseLessEqual", a, b)

    def greater(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseGreater", a, b)

    def greater_equal(self, a: Term, b: Term) -> Value:
        return self._pair("ElementWiseGreaterEqual", a, b)

    def logical_and(self, a: Value, b: Value) -> Value:
        return self("ElementWiseAnd", a, b)

    def logical_or(self, a: Value, b: Value) -> Value:
        return self("ElementWiseOr", a, b)

    def logical_xor(self, a: Value, b: Value) -> Value:
        return self("ElementWiseXor", a, b)

    def logical_not(self, x: Value) -> Value:
        return self("ElementWiseNot", x)

    def is_nan(self, x: Value) -> Value:
        return self("IsNan", x)

    def is_inf(self, x: Value, detect_negative: bool = True, detect_positive: bool = True) -> Value:
        return self("IsInf", x, detect_negative=detect_negative, detect_positive=detect_positive)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """a where the condition holds, b elsewhere."""
        return self("ElementWiseSelect", condition, a, b)

    def cast(self, x: Value, dtype: DType, encoding: Encoding | None = None) -> Value:
        return self("Cast", x, dtype=dtype, encoding=encoding)

    def quantize(self, x: Value, dtype: DType, encoding: Encoding | None = None) -> Value:
        """Real numbers in fixed point."""
        return self("Quantize", x, dtype=dtype, encoding=encoding)

    def dequantize(self, x: Value, dtype: DType) -> Value:
        """The real numbers that fixed point stands for."""
        return self("Dequantize", x, dtype=dtype)

    def convert(self, x: Value, dtype: DType, encoding: Encoding | None = None) -> Value:
        """From one fixed point to another."""
        return self("Convert", x, dtype=dtype, encoding=encoding)

    # -- activations, and the generic forms ------------------------------------------------------------------

    def relu(self, x: Value) -> Value:
        return self("Relu", x)

    def relu6(self, x: Value) -> Value:
        return self("Relu6", x)

    def clip(self, x: Value, low: float, high: float) -> Value:
        return self("ReluMinMax", x, min_value=low, max_value=high)

    def sigmoid(self, x: Value) -> Value:
        return self("Sigmoid", x)

    def tanh(self, x: Value) -> Value:
        return self("Tanh", x)

    def gelu(self, x: Value) -> Value:
        """The exact one, by the error function."""
        return self("Gelu", x)

    def elu(self, x: Value, alpha: float = 1.0) -> Value:
        return self("Elu", x, alpha=alpha)

    def prelu(self, x: Value, slope: Value) -> Value:
        return self("Prelu", x, slope)

    def neuron(self, operation: str, x: Value, **params: float) -> Value:
        """An activation in the generic form: the only one that some have."""
        return self("ElementWiseNeuron", x, operation=operation, **params)

    def hard_sigmoid(self, x: Value, alpha: float, beta: float) -> Value:
        return self.neuron("HARD_SIGMOID", x, alpha=alpha, beta=beta)

    def binary(self, operation: str, a: Value, b: Value) -> Value:
        """An operation on two values of one type, with a result of that type, in the generic form."""
        return self("ElementWiseBinary", a, b, operation=operation, dtype=a.dtype)

    # -- shapes ----------------------------------------------------------------------------------------------

    def reshape(self, x: Value, shape: Ints, encoding: Encoding | None = None) -> Value:
        return self("Reshape", x, shape=tuple(int(d) for d in shape), encoding=encoding)

    def transpose(self, x: Value, perm: Ints) -> Value:
        return self("Transpose", x, perm=perm)

    def to_last(self, x: Value) -> Value:
        """Channel-first to channel-last; the layout pass takes the transpose away where it can."""
        return self.transpose(x, (0, *range(2, x.rank), 1))

    def to_first(self, x: Value) -> Value:
        """Channel-last to channel-first."""
        return self.transpose(x, (0, x.rank - 1, *range(1, x.rank - 1)))

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """End to end; a single part is itself."""
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=axis)

    def pack(self, parts: Sequence[Value], axis: int) -> Value:
        """Side by side, along a new axis."""
        return self("Pack", *parts, axis=axis)

    def split(self, x: Value, axis: int, places: Ints) -> list[Value]:
        """Cut along an axis at those places."""
        return self.many("Split", x, axis=axis, split_index=places)

    def strided_slice(self, x: Value, ranges: Rows) -> Value:
        """Rows of begin, end, step for every axis."""
        return self("StridedSlice", x, ranges=ranges)

    def part(self, x: Value, axis: int, begin: int, end: int, step: int = 1) -> Value:
        """A stretch of one axis; a negative step walks down."""
        rows = [(begin, end, step) if i == axis else (0, d, 1) for i, d in enumerate(x.shape)]
        return self.strided_slice(x, rows)

    def tile(self, x: Value, multiples: Ints) -> Value:
        return self("Tile", x, multiples=multiples)

    def pad(self, x: Value, amount: Rows, value: float = 0.0) -> Value:
        """A number around the data: rows of before, after for every axis."""
        return self("Pad", x, scheme="CONSTANT", pad_amount=amount, pad_constant_value=value)

    # -- indices ---------------------------------------------------------------------------------------------

    def gather(self, x: Value, indices: Value, axis: int) -> Value:
        return self("Gather", x, indices, axis=axis)

    def gather_elements(self, x: Value, indices: Value, axis: int) -> Value:
        return self("GatherElements", x, indices, axis=axis)

    def gather_nd(self, x: Value, indices: Value, batch_dims: int = 0) -> Value:
        return self("GatherNd", x, indices, batch_dims=batch_dims)

    def scatter_elements(
        self, x: Value, indices: Value, updates: Value, axis: int, reduction: str = "NONE"
    ) -> Value:
        return self("ScatterElements", x, indices, updates, axis=axis, reduction=reduction)

    def scatter_nd(self, x: Value, indices: Value, updates: Value, reduction: str = "NONE") -> Value:
        return self("ScatterNd", x, indices, updates, reduction=reduction)

    def one_hot(
        self, indices: Value, depth: int, axis: int, dtype: DType, on: float = 1.0, off: float = 0.0
    ) -> Value:
        return self("OneHot", indices, depth=depth, axis=axis, on_value=on, off_value=off, dtype=dtype)

    def non_zero(self, x: Value, count: int) -> Value:
        """The positions of that many elements, one row each."""
        return self("NonZero", x, shape=(count, x.rank), dtype=DType.INT_32)

    # -- reductions ------------------------------------------------------------------------------------------

    def _reduce(self, op: str, x: Value, axes: Ints, keep_dims: bool) -> Value:
        return self(op, x, axes=axes, keep_dims=keep_dims)

    def reduce_sum(self, x: Value, axes: Ints, keep_dims: bool) -> Value:
        return self._reduce("ReduceSum", x, axes, keep_dims)

    def reduce_mean(self, x: Value, axes: Ints, keep_dims: bool) -> Value:
        return self._reduce("ReduceMean", x, axes, keep_dims)

    def reduce_max(self, x: Value, axes: Ints, keep_dims: bool) -> Value:
        return self._reduce("ReduceMax", x, axes, keep_dims)

    def reduce_min(self, x: Value, axes: Ints, keep_dims: bool) -> Value:
        return self._reduce("ReduceMin", x, axes, keep_dims)

    def reduce_prod(self, x: Value, axes: Ints, keep_dims: bool) -> Value:
        return self._reduce("ReduceProd", x, axes, keep_dims)

    def argmax(self, x: Value, axis: int, keep_dims: bool, dtype: DType = DType.INT_32) -> Value:
        return self("Argmax", x, axis=axis, keep_dims=keep_dims, dtype=dtype)

    def argmin(self, x: Value, axis: int, keep_dims: bool, dtype: DType = DType.INT_32) -> Value:
        return self("Argmin", x, axis=axis, keep_dims=keep_dims, dtype=dtype)

    # -- products, norms, images -----------------------------------------------------------------------------

    def matmul(
        self, a: Value, b: Value, bias: Value | None = None, *, turn_a: bool = False, turn_b: bool = False
    ) -> Value:
        """a times b, each with its last two axes exchanged where asked."""
        return self("MatMul", a, b, bias, transpose_in0=turn_a, transpose_in1=turn_b)

    def fully_connected(self, x: Value, weight: Value, bias: Value | None = None) -> Value:
        """Rows times weights [out, in]."""
        return self("FullyConnected", x, weight, bias)

    def softmax(self, x: Value, axis: int) -> Value:
        return self("Softmax", x, axis=axis)

    def layer_norm(
        self, x: Value, gamma: Value | None, beta: Value | None, axes: Ints, epsilon: float
    ) -> Value:
        return self("LayerNorm", x, gamma, beta, axes=axes, epsilon=epsilon)

    def rms_norm(
        self, x: Value, gamma: Value | None, beta: Value | None, axes: Ints, epsilon: float
    ) -> Value:
        return self("RmsNorm", x, gamma, beta, axes=axes, epsilon=epsilon)

    def grid_sample(
        self, x: Value, grid: Value, align_corners: bool, mode: str = "BILINEAR", padding_mode: str = "ZEROS"
    ) -> Value:
        return self("GridSample", x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)

    def conv(self, x: Value, weight: Value, bias: Value | None, **params: Any) -> Value:
        """Over as many axes as the data has between batch and channels: two or three."""
        return self("Conv2d" if x.rank == 4 else "Conv3d", x, weight, bias, **params)

    def depthwise_conv(self, x: Value, weight: Value, bias: Value | None, **params: Any) -> Value:
        return self("DepthWiseConv2d", x, weight, bias, **params)

    def transpose_conv(self, x: Value, weight: Value, bias: Value | None, **params: Any) -> Value:
        return self("TransposeConv2d" if x.rank == 4 else "TransposeConv3d", x, weight, bias, **params)

    def pool_max(self, x: Value, size: Ints, stride: Ints, pads: Rows) -> Value:
        op = "PoolMax2d" if x.rank == 4 else "PoolMax3d"
        return self(op, x, filter_size=size, stride=stride, pad_amount=pads)

    def pool_avg(self, x: Value, size: Ints, stride: Ints, pads: Rows, count_pads: bool = False) -> Value:
        op = "PoolAvg2d" if x.rank == 4 else "PoolAvg3d"
        more = {"count_pad_for_edges": count_pads}
        return self(op, x, filter_size=size, stride=stride, pad_amount=pads, **more)
