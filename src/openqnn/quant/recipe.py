"""What the user chooses about quantization: widths, how ranges are found, and which nodes are exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypedDict

from openqnn.errors import UsageError

ACT_WIDTHS = (8, 16)
WEIGHT_WIDTHS = (4, 8, 16)
BIAS_WIDTHS = (8, 32)
FLOAT_WIDTHS = (16, 32)
BLOCK_WIDTH = 4  # of weights in blocks
FLOAT = 0  # the width of a node that stays in floating point


class Method(StrEnum):
    """How a range is found from what was seen of a tensor."""

    MIN_MAX = "min-max"
    SQNR = "sqnr"
    ENTROPY = "entropy"
    MSE = "mse"
    PERCENTILE = "percentile"
    ADJUSTED = "adjusted"


@dataclass(frozen=True, slots=True)
class Scheme:
    """A method, and whether zero lies in the middle of the range."""

    method: Method = Method.MIN_MAX
    symmetric: bool = False
    percentile: float = 99.99

    def __post_init__(self) -> None:
        if self.method not in tuple(Method):
            raise UsageError(f"there is no method {self.method!r}", hint=f"there are {', '.join(Method)}")
        object.__setattr__(self, "method", Method(self.method))
        if not 90 <= self.percentile <= 100:
            raise UsageError(f"a percentile of {self.percentile:g} is outside 90 to 100")


@dataclass(frozen=True, slots=True)
class Recipe:
    """All choices. The defaults are those of `openqnn.quantize`; the tools with QNN's names have their own.

    `widths` gives single nodes (by name) another activation width, or FLOAT, and `weight_widths` another
    width of weights, where the node's data have 16 bits. `steps` restricts the stored integers of tensors as
    wide as these are: (-0x8000, 0x7F7F), those of 16 bits. With `headroom` ranges reach beyond what
    calibration saw, where that is likely to be exceeded. With `wide` nodes that are next to nothing of the
    work, and those between squares and roots, have 16 bits where activations have 8, and spectra in decibels
    are floating; with `wide_weights` too the filters of these have weights of 16 bits. With a `block_size`
    weights of four bits have a scale for that many input channels each, not one for all, where they can.
    """

    act_bw: int = 8
    weight_bw: int = 8
    bias_bw: int = 32
    float_bw: int = 32
    float_bias_bw: int | None = None
    act: Scheme = Scheme()
    param: Scheme = Scheme(symmetric=True)
    per_channel: bool = True
    per_row: bool = True
    block_size: int | None = None
    steps: tuple[int, int] | None = None
    fixed_ranges: bool = True
    headroom: bool = True
    wide: bool = True
    wide_weights: bool = True
    widths: Mapping[str, int] = field(default_factory=dict[str, int])
    weight_widths: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        for name, scheme in (("act", self.act), ("param", self.param)):
            if not isinstance(scheme, Scheme):
                raise UsageError(
                    f"{name} is {scheme!r}, and must be a Scheme",
                    hint=f"{name}=Scheme(Method.MSE), both of openqnn.quant.recipe",
                )
        _one_of("act_bw", self.act_bw, ACT_WIDTHS)
        _one_of("weight_bw", self.weight_bw, WEIGHT_WIDTHS)
        _one_of("bias_bw", self.bias_bw, BIAS_WIDTHS)
        _one_of("float_bw", self.float_bw, FLOAT_WIDTHS)
        if self.float_bias_bw is not None:
            _one_of("float_bias_bw", self.float_bias_bw, FLOAT_WIDTHS)
        for name, width in self.widths.items():
            _one_of(f"the width of node '{name}'", width, (FLOAT, *ACT_WIDTHS))
        for name, width in self.weight_widths.items():
            _one_of(f"the width of the weights of node '{name}'", width, WEIGHT_WIDTHS)
        if self.weight_bw == 16 and self.act_bw == 8:
            raise UsageError(
                "weights of 16 bits need activations of 16 bits: HTP has no kernels for anything else",
                hint="act_bw=16, or weight_bw=8",
            )
        if self.block_size is not None:
            _check_blocks(self.block_size, self.weight_bw)
        if self.steps is not None and not 0 < self.steps[1] - self.steps[0] < 1 << max(ACT_WIDTHS):
            raise UsageError(
                f"{self.steps[0]:#x} to {self.steps[1]:#x} are no steps of a tensor: there are 1 to 0xFFFF"
            )

    @property
    def steps_width(self) -> int:
        """The least width that has as many steps: they are those of tensors of that width."""
        low, high = self.steps or (0, 0)
        return next(width for width in WEIGHT_WIDTHS if high - low < 1 << width)

    def steps_of(self, width: int) -> tuple[int, int] | None:
        """What restricts the stored integers of tensors of a width."""
        return self.steps if self.steps is not None and width == self.steps_width else None

    def told(self, choices: Mapping[str, Any]) -> Recipe:
        """With some fields changed. Who says 8 bits of activations means all of them; so with weights."""
        meant = {"wide": False} if choices.get("act_bw") == min(ACT_WIDTHS) else {}
        meant |= {"wide_weights": False} if "weight_bw" in choices else {}
        return replace(self, **meant | dict(choices))


class Choices(TypedDict, total=False):
    """The fields of a recipe as keywords, for editors that complete them and for type checkers."""

    act_bw: int
    weight_bw: int
    bias_bw: int
    float_bw: int
    float_bias_bw: int | None
    act: Scheme
    param: Scheme
    per_channel: bool
    per_row: bool
    block_size: int | None
    steps: tuple[int, int] | None
    fixed_ranges: bool
    headroom: bool
    wide: bool
    wide_weights: bool
    widths: Mapping[str, int]
    weight_widths: Mapping[str, int]


def _check_blocks(size: int, weight_bw: int) -> None:
    if weight_bw != BLOCK_WIDTH:
        raise UsageError(
            f"blocks of {size} for weights of {weight_bw} bits: HTP has them for {BLOCK_WIDTH} bits only",
            hint=f"weight_bw={BLOCK_WIDTH}",
        )
    from openqnn.targets.htp.limits import BLOCK_UNIT

    if size < 1 or size % BLOCK_UNIT:
        raise UsageError(
            f"blocks of {size} weights: libQnnHtp takes multiples of {BLOCK_UNIT} only", hint="32"
        )


def _one_of(what: str, value: int, allowed: tuple[int, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{what} is {value!r}, and must be one of {', '.join(map(str, allowed))}")
