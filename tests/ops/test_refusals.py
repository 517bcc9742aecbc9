"""Bad shapes and parameters are refused with a reason, never with an accident."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from openqnn.errors import OpenQnnError, ShapeError
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.ops.database import Case
from tests.ops.harness import all_cases, build

CASES = all_cases()
ZERO = ((0, 0), (0, 0))
POOL = {"filter_size": (1, 1), "stride": (1, 1), "pad_amount": ZERO}


def spoiled(value: Any) -> Iterator[Any]:
    """A parameter made wrong in several ways."""
    if isinstance(value, tuple):
        yield from ((), value[:-1], (*value, *value[-1:]), tuple(next(spoiled(v), v) for v in value))
        yield tuple(list(spoiled(v))[-1] if list(spoiled(v)) else v for v in value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (0, -1, value + 1, 99)


def broken(case: Case) -> Iterator[Case]:
    for name, value in case.params.items():
        yield from (replace(case, params={**case.params, name: bad}) for bad in spoiled(value))
    for index, given in enumerate(case.operands):
        for data in _misshapen(given.data) if given is not None else ():
            operands = [*case.operands]
            operands[index] = replace(given, data=data)
            yield replace(case, operands=tuple(operands))
    for count in range(len(case.operands)):
        yield replace(case, operands=case.operands[:count])
    for bad in ((), (1,), (3, 5, 7), (0,), (2, 0, 1, 1)):
        yield replace(case, declare={**case.declare, "shape": bad})


def _misshapen(data: np.ndarray) -> Iterator[np.ndarray]:
    yield data.reshape(-1)
    yield data[None]
    yield np.zeros((), data.dtype)
    for axis in range(data.ndim):
        yield np.concatenate([data, data], axis)
        yield data.take([], axis)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_inference_refuses_or_answers(case: Case) -> None:
    for bad in broken(case):
        with suppress(OpenQnnError):  # anything else fails the test
            assert build(bad)[0].nodes


@pytest.mark.parametrize(
    ("op", "shapes", "params", "says"),
    [
        ("Conv2d", [(1, 4, 4, 3), (3, 3, 2, 8)], {"stride": (1, 1), "pad_amount": ZERO}, "3 input channels"),
        ("PoolMax2d", [(1, 2, 2, 1)], {**POOL, "filter_size": (3, 3)}, "larger"),
        ("PoolMax2d", [(1, 2, 2, 1)], {**POOL, "stride": (0, 1)}, "stride"),
        ("MatMul", [(2, 3), (4, 5)], {}, "3 columns meet 4 rows"),
        ("Softmax", [(2, 3)], {"axis": 2}, "no axis of"),
        ("ReduceSum", [(2, 3)], {"axes": (1, 1)}, "twice"),
        ("Concat", [(2, 3), (3, 3)], {"axis": 1}, "cannot be joined"),
        ("Transpose", [(2, 3)], {"perm": (0, 0)}, "does not permute"),
        ("Reshape", [(2, 3)], {"shape": (7,)}, "cannot be reshaped to"),
        ("TopK", [(2, 3)], {"k": 4}, "k=4"),
        ("StridedSlice", [(4,)], {"ranges": ((3, 1, 1),)}, "selects nothing"),
        ("LayerNorm", [(2, 4), (3,)], {"axes": (1,)}, "gamma has shape"),
    ],
)  # fmt: skip
def test_reasons(op: str, shapes: list[tuple[int, ...]], params: dict[str, Any], says: str) -> None:
    graph = Graph("bad")
    values = [graph.add_input(f"in{i}", DType.FLOAT_32, shape) for i, shape in enumerate(shapes)]
    with pytest.raises(ShapeError, match=says) as info:
        Builder(graph, source="node /here")(op, *values, name="mine", **params)
    assert f"{op} 'mine'" in str(info.value)
