"""Reductions over no, some and all axes; extremes found from either end."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.text_models import check, parsed

KINDS = ["Sum", "Mean", "Max", "Min", "Prod", "SumSquare", "L1", "L2", "LogSumExp"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", ["", "axes = [-1],", "axes = [0, 2],"])
def test_axes_as_attribute(kind: str, keep: int, axes: str) -> None:
    body = f"(float[2,3,4] x) => (float y) {{ y = Reduce{kind}<{axes} keepdims = {keep}>(x) }}"
    model = parsed(body, 11)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    check(model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noop", [0, 1])
def test_empty_axes(kind: str, noop: int) -> None:
    body = f"""(float[2,3] x) => (float y) <int64[0] a = {{}}>
        {{ y = Reduce{kind}<noop_with_empty_axes = {noop}>(x, a) }}"""
    model = parsed(body, 18)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    if (
        kind in ("Sum", "Mean", "Max", "Min", "Prod") or not noop
    ):  # ONNX Runtime skips the function of the others
        check(model)


def test_log_sum_exp_of_large_numbers() -> None:
    body = "(float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceLogSumExp(x, a) }"
    check(parsed(body, 18), {"x": np.array([[500, 501, 0], [-np.inf, 0, -600]], np.float32)})


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("keep", [0, 1])
def test_positions_of_equal_extremes(kind: str, last: int, keep: int) -> None:
    shape = "2,1" if keep else "2"
    head = f"<axis = -1, keepdims = {keep}, select_last_index = {last}>"
    body = f"(float[2,4] x) => (int64[{shape}] y) {{ y = {kind}{head}(x) }}"
    check(parsed(body), {"x": np.array([[1, 3, 3, 1], [0, 0, 0, 0]], np.float32)})


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(axis: int, largest: int) -> None:
    body = f"""(float[4,5,3] x) => (float[a,b,c] y, int64[a,b,c] i) <int64[1] k = {{2}}>
        {{ y, i = TopK<axis = {axis}, largest = {largest}>(x, k) }}"""
    check(parsed(body))


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_running_sum(reverse: int, exclusive: int) -> None:
    head = f"<reverse = {reverse}, exclusive = {exclusive}>"
    check(parsed(f"(float[3,5] x) => (float[3,5] y) <int64 a = {{-1}}> {{ y = CumSum{head}(x, a) }}"))


@pytest.mark.filterwarnings("ignore:no node reads 'a'")
def test_axes_that_the_stated_shape_tells() -> None:
    body = "(float[2,3,4] x, int64[2] a) => (float[3] y) { y = ReduceSum<keepdims = 0>(x, a) }"
    check(parsed(body), {"a": np.array([0, 2])})
