"""How an operation is declared: once, as a class body of typed fields, read by everything else.

    @op
    class Conv2d:
        \"\"\"2-D convolution of an NHWC image by an HWIO filter.\"\"\"
        in0 = tensor(rank=4, layout="NHWC", onnx="NCHW")
        weight = tensor(rank=4, layout="HWIO", onnx="OIHW", role=WEIGHT, channel_axis=3)
        bias = tensor(rank=1, role=BIAS, optional=True)
        out0 = result(layout="NHWC", onnx="NCHW")
        stride = u32(2)
        infer = conv_shape          # (Node) -> shapes of the outputs
        lower = conv_onnx           # (Node, Body, input names) -> output names

Fields keep their order. `infer` reads a Node whose inputs, parameters and declared output shapes are set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, TypeAlias

from openqnn.errors import ShapeError
from openqnn.ir import Array, DType, Node, ParamValue, Shape
from openqnn.ops.identities import SameAs
from openqnn.ops.onnx_writer import Body

Infer: TypeAlias = Callable[[Node], Sequence[Shape]]
Lower: TypeAlias = Callable[[Node, Body, Sequence[str]], "str | Sequence[str]"]
CanMove: TypeAlias = Callable[[Node, tuple[int, ...]], bool]
Macs: TypeAlias = Callable[[Node], int]
Compute: TypeAlias = Callable[[Node, Sequence["Array | None"]], Sequence[Array]]


class Role(Enum):
    """What an operand is to the quantizer."""

    ACTIVATION = "activation"
    WEIGHT = "weight"
    BIAS = "bias"
    INDEX = "index"  # integers that address elements: never quantized


class Moves(Enum):
    """What becomes of an op when the axes of its data are permuted."""

    FIXED = "fixed"  # it must see its data as declared
    ELEMENTWISE = "elementwise"  # every input broadcasts to the output: all move alike
    AXES = "axes"  # parameters that name axes follow the data
    VIEW = "view"  # the same elements in row-major order: moves where whole runs of axes move


class Axis(Enum):
    """How a parameter names axes of the data, if it does."""

    NO = "no"
    ONE = "one"  # a single axis
    MANY = "many"  # a list of axes
    EACH = "each"  # one entry or row per axis


class Kind(Enum):
    """What an op computes, for those that ask for kinds of ops: the quantizer, for one."""

    OTHER = "other"
    SUM = "sum"
    DIFFERENCE = "difference"
    PRODUCT = "product"
    QUOTIENT = "quotient"
    POWER = "power"
    ROOT = "root"
    LOGARITHM = "logarithm"
    NEGATION = "negation"
    WAVE = "wave"  # sine and cosine
    EXTREME = "extreme"  # the larger or the smaller of two
    CHOICE = "choice"  # one input or the other
    JOIN = "join"  # tensors side by side along an axis
    MEAN = "mean"  # means and sums over axes
    SOFTMAX = "softmax"
    CONVOLUTION = "convolution"
    MATRIX_PRODUCT = "matrix product"
    DENSE = "dense"  # a product with a matrix of weights, [outer, inner]


class Default(Enum):
    """Defaults that are no value."""

    REQUIRED = "required"
    ABSENT = "absent"  # left out unless given


WEIGHT, BIAS, INDEX = Role.WEIGHT, Role.BIAS, Role.INDEX
REQUIRED, ABSENT = Default.REQUIRED, Default.ABSENT
LAST: Final = "last"  # default of an axis parameter: the data's last axis
RANK: Final = "rank"  # default of a parameter: the data's rank
FREE: Final = "free"  # data type of a result that the caller chooses
INDICES: Final = "indices"  # data type of a result: int32, or another integer where the caller says so


def _order(layout: str, onnx: str, rank: int) -> tuple[int, ...] | None:
    """`*` in a layout stands for as many axes as the rank leaves: N*C and NC* for any spatial axes."""
    if not onnx:
        return None
    spatial = "".join(chr(ord("0") + i) for i in range(rank - len(layout) + 1))
    names = layout.replace("*", spatial)
    return tuple(names.index(c) for c in onnx.replace("*", spatial))


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of an op. `layout` names its axes as QNN orders them, `onnx` as ONNX does."""

    rank: int | tuple[int, ...] | None = None
    layout: str = ""
    onnx: str = ""
    role: Role = Role.ACTIVATION
    channel_axis: int | None = None
    optional: bool = False
    variadic: bool = False
    dtype: DType | None = None  # the only type that it takes, where there is only one
    name: str = ""

    def order(self, rank: int) -> tuple[int, ...] | None:
        """The permutation from QNN's axis order to ONNX's, None where they agree."""
        return _order(self.layout, self.onnx, rank)


@dataclass(frozen=True, slots=True)
class Result:
    """An output of an op. `dtype` is a type, the index of the input whose type it takes, or FREE."""

    dtype: DType | int | str = 0
    layout: str = ""
    onnx: str = ""
    optional: bool = False
    variadic: bool = False
    name: str = ""

    def order(self, rank: int) -> tuple[int, ...] | None:
        """The permutation from QNN's axis order to ONNX's, None where they agree."""
        return _order(self.layout, self.onnx, rank)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter. `shape` is () for a scalar; a dimension of -1 is free. Enums are kept by member name."""

    dtype: DType
    shape: tuple[int, ...] = ()
    default: ParamValue | Default = REQUIRED
    members: tuple[tuple[str, int], ...] = ()
    axis: Axis = Axis.NO
    is_tensor: bool = False
    when: tuple[str, str] | None = None  # sent to a backend only when that enum parameter has that member
    as_output: bool = False  # sent to a backend in the data type of output 0
    more: bool = False  # may have rows beyond the rank of the data
    name: str = ""
    free: bool = False  # a tensor of any rank

    def applies(self, params: Mapping[str, ParamValue]) -> bool:
        """Whether a backend wants to see it: some libraries crash on the parameters of another mode."""
        return self.when is None or params.get(self.when[0]) == self.when[1]

    def code(self, member: str) -> int:
        return dict(self.members)[member]

    def member(self, code: int) -> str:
        return next(name for name, value in self.members if value == code)


@dataclass(frozen=True, slots=True)
class OpSchema:
    """All that is known of an operation."""

    name: str
    doc: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Result, ...]
    params: tuple[Param, ...]
    infer: Infer
    lower: Lower | None = None
    compute: Compute | None = None  # in numpy, for the few ops that ONNX cannot say
    why_not: str = ""  # why the built-in backend cannot run it, when it cannot
    moves: Moves = Moves.FIXED
    on_last: bool = False  # works along the data's last axis: shapes.last_axis() says where that has moved to
    can_move: CanMove | None = None  # a node's own word on a permutation of its data
    same_as: SameAs | None = None  # the input that the output equals, where it does and is of its shape
    keeps_values: bool = False  # outputs hold input values unchanged: encodings are shared
    keeps_when: tuple[str, str] | None = None  # the same, where a parameter has this value
    clips: bool = False  # limits its input to a range: whoever makes the input may use the output's encoding
    output_range: tuple[float, float] | None = None  # of the mathematical function, for the quantizer
    macs: Macs | None = None
    on_stored: bool = False  # works on stored integers: never wrapped in dequantize/quantize
    commutes: bool = False  # its two inputs may change places
    widths: frozenset[int] | None = None  # of fixed point that it takes, where not any
    kind: Kind = Kind.OTHER

    def param(self, name: str) -> Param:
        found = next((p for p in self.params if p.name == name), None)
        if found is None:
            raise ShapeError(f"{self.name} has no parameter '{name}'", hint=f"it has {self._param_names()}")
        return found

    def _param_names(self) -> str:
        return ", ".join(p.name for p in self.params) or "none"

    def operand(self, index: int) -> Operand:
        """The declaration of input `index`; a variadic one stands for all that follow."""
        last = self.inputs[-1] if self.inputs else Operand()
        return self.inputs[index] if index < len(self.inputs) else last

    def hands_on(self, node: Node) -> bool:
        """Whether a node's outputs hold values of its inputs, and no others."""
        if self.keeps_when is None:
            return self.keeps_values
        name, value = self.keeps_when
        return node.params.get(name) == value

    def result(self, index: int) -> Result:
        return self.outputs[index] if index < len(self.outputs) else self.outputs[-1]

    @property
    def variadic(self) -> bool:
        return any(i.variadic for i in self.inputs)


OPS: Final[dict[str, OpSchema]] = {}


def register(schema: OpSchema) -> OpSchema:
    if schema.name in OPS:
        raise ValueError(f"{schema.name} is declared twice")
    OPS[schema.name] = schema
    return schema


def _only(fields: dict[str, Any], kind: type) -> tuple[Any, ...]:
    return tuple(v for v in fields.values() if isinstance(v, kind))


def op(body: type) -> OpSchema:
    """Class decorator: turns a class body into a registered OpSchema."""
    fields = dict(vars(body))
    named = {k: replace(v, name=k) for k, v in fields.items() if isinstance(v, Operand | Result | Param)}
    rest = {k: v for k, v in fields.items() if not k.startswith("__") and k not in named}
    doc = (body.__doc__ or "").strip()
    ins, outs, params = (_only(named, kind) for kind in (Operand, Result, Param))
    schema = OpSchema(body.__name__, doc, ins, outs, params, **rest)
    return register(schema)


# -- the vocabulary of class bodies --------------------------------------------------------------------------


def tensor(
    rank: int | tuple[int, ...] | None = None,
    *,
    layout: str = "",
    onnx: str = "",
    role: Role = Role.ACTIVATION,
    channel_axis: int | None = None,
    optional: bool = False,
    variadic: bool = False,
    dtype: DType | None = None,
) -> Operand:
    """An input tensor."""
    return Operand(rank, layout, onnx, role, channel_axis, optional, variadic, dtype)


def result(
    dtype: DType | int | str = 0,
    *,
    layout: str = "",
    onnx: str = "",
    optional: bool = False,
    variadic: bool = False,
) -> Result:
    """An output tensor; by default of the type of input 0."""
    return Result(dtype, layout, onnx, optional, variadic)


def _param(dtype: DType, shape: tuple[int, ...], default: ParamValue | Default) -> Param:
    return Param(dtype, shape, default, is_tensor=bool(shape))


def u32(*shape: int, default: ParamValue | Default = REQUIRED) -> Param:
    """An unsigned parameter: a scalar, or a tensor when a shape is given (-1: any length)."""
    return _param(DType.UINT_32, shape, default)


def i32(*shape: int, default: ParamValue | Default = REQUIRED) -> Param:
    return _param(DType.INT_32, shape, default)


def f32(*shape: int, default: ParamValue | Default = REQUIRED) -> Param:
    return _param(DType.FLOAT_32, shape, default)


def flag(default: bool | Default = REQUIRED) -> Param:
    return Param(DType.BOOL_8, default=default)


def enum(default: str | Default = REQUIRED, dtype: DType = DType.UINT_32, **members: int) -> Param:
    return Param(dtype, default=default, members=tuple(members.items()))


def axis(default: ParamValue | Default = REQUIRED, dtype: DType = DType.UINT_32) -> Param:
    """A scalar that names one axis of the data; LAST as default means the last one."""
    return Param(dtype, default=default, axis=Axis.ONE)


def axes(default: ParamValue | Default = REQUIRED, dtype: DType = DType.UINT_32) -> Param:
    """A list of axes of the data."""
    return Param(dtype, (-1,), default, axis=Axis.MANY, is_tensor=True)


def per_axis(*row: int, dtype: DType = DType.UINT_32, more: bool = False) -> Param:
    """One entry (or row of that many) per axis of the data."""
    return Param(dtype, (-1, *row), axis=Axis.EACH, is_tensor=True, more=more)


def element(default: float | Default = REQUIRED) -> Param:
    """A number that becomes an element of the output, and has its data type."""
    return Param(DType.FLOAT_32, default=default, as_output=True)
