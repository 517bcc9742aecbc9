"""The op database: one line per case. `tests/ops/test_database.py` drives every case through every consumer.

    case("Conv2d", f(1, 8, 8, 3), w(3, 3, 3, 4), w(4), stride=(1, 1), pad_amount=((1, 1), (1, 1)))

`f` is a random float input, `w` a random static float, `i` random integers below a limit, `const` a given
static array, `given` a given run-time array, None an optional operand that is left out. Keywords beyond the
op's parameters: `shape`/`shapes`, `dtype`/`dtypes` declare outputs that the op cannot infer; `encoding` is
that of output 0; `fixed` gives an operand one; `xfail` says how the vendor's library differs; `expect` is a
numpy function of the inputs that is the judge where the vendor cannot be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from openqnn.ir import DType, Encoding


@dataclass(frozen=True)
class Given:
    """An operand of a case."""

    data: np.ndarray
    static: bool = False
    dtype: DType | None = None
    encoding: Encoding | None = None


@dataclass(frozen=True)
class Case:
    op: str
    operands: tuple[Given | None, ...]
    params: dict[str, Any]
    declare: dict[str, Any] = field(default_factory=dict)
    xfail: str = ""
    expect: Callable[..., Any] | None = None
    tolerance: float = 1e-4
    valid: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None  # keeps the part that is defined
    label: str = ""

    @property
    def id(self) -> str:
        return f"{self.op}-{self.label}" if self.label else self.op


DECLARE = {"shape", "shapes", "dtype", "dtypes", "encoding"}
CONTROL = {"xfail", "expect", "tolerance", "valid", "label"}
_rng = np.random.default_rng(20)


def case(op: str, *operands: Given | None, **more: Any) -> Case:
    declare = {k: more.pop(k) for k in list(more) if k in DECLARE}
    control = {k: more.pop(k) for k in list(more) if k in CONTROL}
    return Case(op, operands, more, declare, **control)


def f(*shape: int, low: float = -2.0, high: float = 2.0) -> Given:
    return Given(_rng.uniform(low, high, shape).astype(np.float32))


def w(*shape: int, low: float = -1.0, high: float = 1.0) -> Given:
    return Given(_rng.uniform(low, high, shape).astype(np.float32), static=True)


def i(*shape: int, limit: int, low: int = 0) -> Given:
    return Given(_rng.integers(low, limit, shape).astype(np.int32))


def boolean(*shape: int) -> Given:
    return Given(_rng.integers(0, 2, shape).astype(bool))


def given(data: Any, dtype: Any = np.float32) -> Given:
    return Given(np.asarray(data, dtype))


def const(data: Any, dtype: Any = np.float32) -> Given:
    return Given(np.asarray(data, dtype), static=True)


def fixed(data: Any, scale: float, offset: int, dtype: DType = DType.UFIXED_8, static: bool = False) -> Given:
    """Stored integers with an encoding."""
    return Given(np.asarray(data, dtype.numpy), static, dtype, Encoding.per_tensor(scale, offset, dtype.bits))
