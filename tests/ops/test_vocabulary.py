"""The words of compositions: what they add to making nodes by the names of their ops."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Graph, Node, Value
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import run_graph


def made(value: Value) -> Node:
    assert value.producer is not None
    return value.producer


@pytest.fixture
def b() -> Builder:
    return Builder(Graph("words"))


@pytest.mark.parametrize("dtype", [DType.FLOAT_16, DType.FLOAT_32, DType.INT_32])
def test_a_number_has_the_type_of_the_other_operand(b: Builder, dtype: DType) -> None:
    x = b.graph.add_input("x", dtype, (2, 3))
    left, right = made(b.sub(1, x)).inputs, made(b.sub(x, 1)).inputs
    assert left[1] is x and right[0] is x
    for number in (left[0], right[1]):
        assert number is not None and number.data is not None
        assert (number.dtype, number.data.tolist()) == (dtype, [1])


def test_two_numbers_make_no_node(b: Builder) -> None:
    with pytest.raises(AssertionError, match="no node"):
        b.add(1, 2)


def test_one_part_is_itself(b: Builder) -> None:
    x = b.graph.add_input("x", DType.FLOAT_32, (2, 3))
    assert b.concat([x], 0) is x
    assert b.concat([x, x], 1).shape == (2, 6)


def test_a_part_can_run_backwards(b: Builder) -> None:
    x = b.graph.add_input("x", DType.FLOAT_32, (2, 5))
    b.graph.add_output(b.part(x, 1, 3, 0, -1))
    data = np.arange(10, dtype=np.float32).reshape(2, 5)
    (found,) = run_graph(b.graph, {"x": data}).values()
    np.testing.assert_array_equal(found, data[:, 3:0:-1])


@pytest.mark.parametrize(("axes", "dims"), [(2, "2d"), (3, "3d")])
def test_images_and_volumes_have_one_word(b: Builder, axes: int, dims: str) -> None:
    x = b.graph.add_input("x", DType.FLOAT_32, (1, *(8,) * axes, 4))
    size, stride, pads = (2,) * axes, (2,) * axes, ((0, 0),) * axes
    weight = b.const(np.ones((*size, 4, 4), np.float32))
    values = [
        b.pool_max(x, size, stride, pads),
        b.pool_avg(x, size, stride, pads),
        b.conv(x, weight, None, stride=stride, pad_amount=pads),
        b.transpose_conv(x, weight, None, stride=stride, pad_amount=pads),
    ]
    assert all(made(v).op.endswith(dims) for v in values)
