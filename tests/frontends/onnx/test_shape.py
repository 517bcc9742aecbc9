"""What ONNX's node tests leave out: odd constants, slices and pads, empty parts, damaged nodes."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.errors import OpenQnnError
from tests.frontends.onnx.text_models import check, ops, parsed

RIGHT = {
    "reshape by zero and minus one": """(float[2,3,4] x) => (float[2,12] y) <int64[2] s = {0, -1}>
        { y = Reshape(x, s) }""",
    "reshape from shapes": """(float[2,3,4] x) => (float[a,b] y) {
        s = Shape(x)  zero = Constant<value_int = 0>()  n = Gather(s, zero)
        axes = Constant<value_ints = [0]>()  one = Unsqueeze(n, axes)  rest = Constant<value_ints = [-1]>()
        t = Concat<axis = 0>(one, rest)  y = Reshape(x, t) }""",
    "squeeze all": "(float[1,3,1] x) => (float[3] y) { y = Squeeze(x) }",
    "squeeze to a number": "(float[1,1] x) => (float y) { y = Squeeze(x) }",
    "flatten by negative axis": "(float[2,3,4] x) => (float[6,4] y) { y = Flatten<axis = -1>(x) }",
    "slice backwards": """(float[2,7] x) => (float[a,b] y)
        <int64[1] s = {5}, int64[1] e = {-100}, int64[1] a = {1}, int64[1] d = {-2}>
        { y = Slice(x, s, e, a, d) }""",
    "slice clamped": """(float[2,7] x) => (float[a,b] y)
        <int64[2] s = {0, -100}, int64[2] e = {9223372036854775807, -1}> { y = Slice(x, s, e) }""",
    "pad constant": """(float[2,3] x) => (float[a,b] y) <int64[4] p = {1, 0, 0, 2}, float v = {2.5}>
        { y = Pad(x, p, v) }""",
    "pad negative": "(float[2,5] x) => (float[a,b] y) <int64[4] p = {1, -1, 0, -2}> { y = Pad(x, p) }",
    "pad reflect": """(float[2,5] x) => (float[a,b] y) <int64[4] p = {0, 2, 0, 3}>
        { y = Pad<mode = "reflect">(x, p) }""",
    "pad by a run-time value": """(float[2,3] x, float v) => (float[a,b] y) <int64[4] p = {1, 0, 0, 2}>
        { y = Pad(x, p, v) }""",
    "tile": "(float[2,3] x) => (float[a,b] y) <int64[2] r = {2, 3}> { y = Tile(x, r) }",
    "expand both ways": "(float[3,1] x) => (float[a,b,c] y) <int64[3] s = {2, 1, 4}> { y = Expand(x, s) }",
    "split with an empty part": """(float[5] x) => (float[a] y, float[b] z) <int64[3] s = {2, 0, 3}>
        { p, q, r = Split<axis = 0>(x, s)  y = Concat<axis = 0>(p, q)  z = Relu(r) }""",
    "split unequal": """(float[2,6] x) => (float[2,4] y, float[2,2] z) <int64[2] s = {4, 2}>
        { y, z = Split<axis = 1>(x, s) }""",
    "concat of an empty constant": """(float[2,3] x) => (float[2,3] y) <float[2,0] e = {}>
        { y = Concat<axis = 1>(e, x) }""",
    "constant of shape": """(float[2,3] x) => (float[2,3] y)
        { s = Shape(x)  c = ConstantOfShape<value = float[1] {3.0}>(s)  y = Add(x, c) }""",
    "range of a shape": """(float[2,5] x) => (float[2,5] y)
        <int64 zero = {0}, int64 one = {1}, int64[1] at = {1}>
        { s = Shape(x)  n = Gather(s, one)  r = Range(zero, n, one)  f = Cast<to = 1>(r)  y = Add(x, f) }""",
    "triangle": "(float[2,4,4] x) => (float[2,4,4] y) <int64 k = {1}> { y = Trilu<upper = 0>(x, k) }",
    "compress": "(float[3,2] x) => (float[a,b] y) <bool[3] c = {1, 0, 1}> { y = Compress<axis = 0>(x, c) }",
    "eye like": "(float[3,4] x) => (float[3,4] y) { e = EyeLike<k = 1>(x)  y = Add(x, e) }",
    "reverse sequence": """(float[4,2,3] x) => (float[4,2,3] y) <int64[2] n = {3, 1}>
        { y = ReverseSequence<batch_axis = 1, time_axis = 0>(x, n) }""",
    "wide constants": "(int64[3] x) => (int64[3] y) <int64[3] c = {1, -7, 2147483647}> { y = Max(x, c) }",
}  # fmt: skip
REFUSED = {
    "a constant that no memory holds": (
        """(float[1] x) => (float[a,b] y) <int64[2] s = {1099511627776, 1099511627776}>
        { c = ConstantOfShape(s)  y = Add(x, c) }""",
        "too large for a constant",
    ),
    "an empty constant with a dimension that none has": (
        """(float[1] x) => (float[a,b] y) <int64[2] s = {0, 9223372036854775807}>
        { c = ConstantOfShape(s)  y = Add(x, c) }""",
        "too large for a constant",
    ),
    "shape at run time": ("""(float[6] x, int64[2] s) => (float[a,b] y)
        { y = Reshape(x, s) }""", "computed at run time"),
    "wrong size": ("""(float[6] x) => (float[a,b] y) <int64[2] s = {4, 2}>
        { y = Reshape(x, s) }""", "cannot be reshaped"),
    "step zero": ("""(float[6] x) => (float[a] y)
        <int64[1] s = {0}, int64[1] e = {3}, int64[1] a = {0}, int64[1] d = {0}>
        { y = Slice(x, s, e, a, d) }""", "step"),
    "axis outside": ("(float[2,3] x) => (float[a,b] y) { y = Concat<axis = 5>(x, x) }", "axis 5"),
    "axis twice": ("(float[2,3] x) => (float[a,b] y) <int64[2] a = {0, 0}> { y = Unsqueeze(x, a) }", "twice"),
    "input missing": ("(float[2,3] x) => (float[a,b] y) { y = Reshape(x) }", "1 inputs given"),
    "input left out": ("""(float[2,3] x) => (float[a,b] y) <int64[2] s = {3, 2}>
        { y = Reshape(, s) }""", "is missing"),
    "attribute of another type": ("""(float[2,3] x) => (float[a,b] y)
        { y = Flatten<axis = "one">(x) }""", "axis"),
    "unknown attribute": ("(float[2,3] x) => (float[a,b] y) { y = Flatten<axes = 1>(x) }", "axes"),
    "beyond 32 bits": ("""(int64[2] x) => (int64[2] y) <int64[2] c = {1, 5000000000}>
        { y = Max(x, c) }""", "5000000000"),
    "string": ("(float[2] x) => (string[1] y) { y = Constant<value_strings = [\"a\"]>() }", "strings"),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_same_as_onnx_runtime(case: str) -> None:
    check(parsed(RIGHT[case]))


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_reason(case: str) -> None:
    body, reason = REFUSED[case]
    with pytest.raises(OpenQnnError, match=reason):
        openqnn.convert(parsed(body))


@pytest.mark.parametrize("mode", ["wrap", "reflect"])
def test_pad_beyond_the_data(mode: str) -> None:
    body = (
        f'(float[2,3] x) => (float[a,b] y) <int64[4] p = {{0, 4, 0, 5}}> {{ y = Pad<mode = "{mode}">(x, p) }}'
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with openqnn.Session(openqnn.convert(parsed(body, 19))) as session:
        found = session.run({"x": x})["y"]
    np.testing.assert_array_equal(found, np.pad(x, ((0, 0), (4, 5)), mode=mode))  # type: ignore[call-overload]


@pytest.mark.filterwarnings("ignore:no node reads 's'")
def test_shape_of_a_result_that_the_model_states() -> None:
    body = "(float[2,6] x, int64[2] s) => (float[3,4] y) { y = Reshape(x, s) }"
    check(parsed(body), {"s": np.array([3, 4])})


def test_stated_shapes_do_not_count_when_the_input_has_another() -> None:
    body = "(float[2,6] x, int64[2] s) => (float[3,4] y) { y = Reshape(x, s) }"
    with pytest.raises(OpenQnnError, match="computed at run time"):
        openqnn.convert(parsed(body), input_shapes={"x": (4, 6)})


def test_shape_arithmetic_leaves_no_nodes() -> None:
    assert ops(check(parsed(RIGHT["reshape from shapes"]))) == ["Reshape"]


def test_large_constants_are_not_copied() -> None:
    from tests.onnx_models import import_onnx

    weight = np.zeros((400, 300), np.float32)
    model = parsed(
        "(float[1,400] x) => (float[1,300] y) { t = Transpose(w)  u = Transpose(t)  y = MatMul(x, u) }"
    )
    model.graph.initializer.append(_raw("w", weight))
    constants = import_onnx(model).constants()
    assert [c.shape for c in constants] == [(400, 300)]
    assert constants[0].data is not None and not constants[0].data.flags.owndata


def _raw(name: str, array: np.ndarray) -> object:
    from onnx import numpy_helper

    return numpy_helper.from_array(array, name)


def test_a_constant_node_has_the_name_of_its_output() -> None:
    """Encodings files name it so."""
    body = "(float[2] x) => (float[2] y) { w = Constant<value = float[2] {1.0, 2.0}>()  y = Mul(x, w) }"
    assert [v.name for v in check(parsed(body)).constants()] == ["w"]
