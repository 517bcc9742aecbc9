"""Control flow, sequences and optionals are resolved while reading; what depends on data is refused."""

from __future__ import annotations

import pytest

import openqnn
from openqnn.errors import UnsupportedError
from tests.frontends.onnx.text_models import check, ops, parsed

BRANCHES = """then_branch = t () => (float[2,3] a) { a = Relu(x) },
              else_branch = e () => (float[2,3] b) { b = Neg(x) }"""
LOOP = """body = b (int64 i, bool going, float[2,3] s) => (bool on, float[2,3] m, float[3] row) {
    on = Identity(going)  m = Add(s, x)  zero = Constant<value_int = 0>()  row = Gather(m, zero) }"""
RIGHT = {
    "if": f"(float[2,3] x) => (float[2,3] y) <bool c = {{1}}> {{ y = If<{BRANCHES}>(c) }}",
    "else": f"(float[2,3] x) => (float[2,3] y) <bool c = {{0}}> {{ y = If<{BRANCHES}>(c) }}",
    "if of a shape": f"""(float[2,3] x) => (float[2,3] y) <int64 two = {{2}}, int64 zero = {{0}}> {{
        s = Shape(x)  n = Gather(s, zero)  c = Equal(n, two)  y = If<{BRANCHES}>(c) }}""",
    "loop": f"""(float[2,3] x) => (float[2,3] y, float[4,3] rows) <int64 n = {{4}}, bool c = {{1}}>
        {{ y, rows = Loop<{LOOP}>(n, c, x) }}""",
    "loop without a condition": f"""(float[2,3] x) => (float[2,3] y, float[3,3] rows) <int64 n = {{3}}>
        {{ y, rows = Loop<{LOOP}>(n, , x) }}""",
    "loop that stops itself": """(float[2] x) => (float[2] y) <bool c = {1}, int64 three = {3}> {
        y = Loop<body = b (int64 i, bool going, float[2] s) => (bool on, float[2] n)
            { on = Less(i, three)  n = Add(s, x) }>(, c, x) }""",
    "scan": """(float[2] s, float[4,2] x) => (float[2] last, float[4,2] all) {
        last, all = Scan<num_scan_inputs = 1, scan_input_directions = [1],
            body = b (float[2] h, float[2] r) => (float[2] n, float[2] o)
        { n = Add(h, r)  o = Mul(n, n) }>(s, x) }""",
    "sequence": """(float[2,3] x) => (float[4,3] y, int64 n) <int64 minus = {-1}> {
        empty = SequenceEmpty()  one = SequenceInsert(empty, x)  r = Relu(x)  two = SequenceInsert(one, r)
        n = SequenceLength(two)  z = SequenceAt(two, minus)  s = SequenceConstruct(z, x)
        y = ConcatFromSequence<axis = 0>(s) }""",
    "split to sequence": """(float[5,3] x) => (float[a,b,c] y) <int64 each = {2}, int64 last = {-1}> {
        s = SplitToSequence<axis = 0>(x, each)  t = SequenceErase(s, last)
        y = ConcatFromSequence<axis = 1, new_axis = 1>(t) }""",
    "optional": """(float[2] x) => (float[2] y, bool h) {
        o = Optional(x)  h = OptionalHasElement(o)  y = OptionalGetElement(o) }""",
}  # fmt: skip
REFUSED = {
    "if at run time": (f"""(float[2,3] x, bool c) => (float[2,3] y)
        {{ y = If<{BRANCHES}>(c) }}""", "has no branches"),
    "loop at run time": (f"""(float[2,3] x, int64 n) => (float[2,3] y, float[a,3] rows) <bool c = {{1}}>
        {{ y, rows = Loop<{LOOP}>(n, c, x) }}""", "has no loops"),
    "loop too long": (f"""(float[2,3] x) => (float[2,3] y, float[a,3] rows)
        <int64 n = {{100000}}, bool c = {{1}}>
        {{ y, rows = Loop<{LOOP}>(n, c, x) }}""", "too often"),
    "loop on data": ("""(float[2] x, bool c) => (float[2] y) <int64 n = {3}, bool yes = {1}> {
        y = Loop<body = b (int64 i, bool going, float[2] s) => (bool on, float[2] n)
            { on = Identity(c)  n = Add(s, x) }>(n, yes, x) }""", "has no loops"),
    "sequence as a tensor": ("""(float[2] x) => (float[2] y)
        { s = SequenceConstruct(x)  y = Relu(s) }""", "a sequence"),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_same_as_onnx_runtime(case: str) -> None:
    check(parsed(RIGHT[case]))


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_reason(case: str) -> None:
    body, reason = REFUSED[case]
    with pytest.raises(UnsupportedError, match=reason):
        openqnn.convert(parsed(body))


def test_only_the_taken_branch_remains() -> None:
    assert ops(check(parsed(RIGHT["if"]))) == ["Relu"]


def test_a_refusal_in_a_body_names_the_op() -> None:
    body = """(float[2,3] x) => (float[a,b] y) <bool c = {1}> {
        y = If<then_branch = t () => (float[a,b] p) { p = NoSuchOp(x) },
               else_branch = e () => (float[2,3] q) { q = Neg(x) }>(c) }"""
    with pytest.raises(UnsupportedError, match="NoSuchOp"):
        openqnn.convert(parsed(body))
