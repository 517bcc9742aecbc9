"""Indices that count from the end, known and at run time; scatters with every reduction."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.errors import OpenQnnError
from tests.frontends.onnx.text_models import check, ops, parsed

RIGHT = {
    "one place": "(float[4,3] x) => (float[3] y) <int64 i = {-1}> { y = Gather(x, i) }",
    "known places": "(float[4,3] x) => (float[4,2] y) <int64[2] i = {-1, 0}> { y = Gather<axis = 1>(x, i) }",
    "one element": "(float[4] x) => (float y) <int64 i = {2}> { y = Gather(x, i) }",
    "found places": """(float[4,3] x) => (float[a,b] y)
        { i = ArgMax<axis = 0, keepdims = 0>(x)  y = Gather(x, i) }""",
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_gather(case: str) -> None:
    assert "ElementWiseMod" not in ops(check(parsed(RIGHT[case])))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_places_that_come_at_run_time_may_count_from_the_end(dtype: str) -> None:
    places = np.array([[-1, 0], [2, -4]], dtype)
    check(parsed(f"(float[4,3] x, {dtype}[2,2] i) => (float[2,2,3] y) {{ y = Gather(x, i) }}"), {"i": places})
    check(
        parsed(f"(float[4,2] x, {dtype}[2,2] i) => (float[2,2] y) {{ y = GatherElements(x, i) }}"),
        {"i": places},
    )


def test_gather_nd_counts_from_the_end_on_every_axis() -> None:
    body = "(float[2,3,4] x, int64[2,2] i) => (float[2,4] y) { y = GatherND(x, i) }"
    check(parsed(body), {"i": np.array([[-1, -3], [0, 2]])})


def test_place_outside() -> None:
    body = "(float[4,3] x) => (float[3] y) <int64 i = {4}> { y = Gather(x, i) }"
    with pytest.raises(OpenQnnError, match="outside an axis of 4"):
        openqnn.convert(parsed(body))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatters(reduction: str) -> None:
    head = f'<reduction = "{reduction}">'
    nd = f"(float[4,3] x, int64[2,1] i, float[2,3] u) => (float[4,3] y) {{ y = ScatterND{head}(x, i, u) }}"
    check(parsed(nd, 18), {"i": np.array([[-1], [1]])})
    body = f"""(float[4,3] x, int64[2,3] i, float[2,3] u) => (float[4,3] y)
        {{ y = ScatterElements{head}(x, i, u) }}"""
    check(parsed(body, 18), {"i": np.array([[0, -1, 2], [1, 2, -4]])})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis: int) -> None:
    body = f"""(int64[2,3] i) => (float[a,b,c] y) <int64 d = {{5}}, float[2] v = {{-1, 2.5}}>
        {{ y = OneHot<axis = {axis}>(i, d, v) }}"""
    check(parsed(body), {"i": np.array([[0, -1, 4], [-5, 9, 2]])})


def test_one_hot_of_large_integers() -> None:
    body = (
        "(int64[3] i) => (int32[a,b] y) <int64 d = {4}, int32[2] v = {0, 16777217}> { y = OneHot(i, d, v) }"
    )
    with openqnn.Session(openqnn.convert(parsed(body))) as session:
        found = session.run({"i": np.array([3, 0, 1])})["y"]
    np.testing.assert_array_equal(found, np.eye(4, dtype=np.int32)[[3, 0, 1]] * 16777217)
