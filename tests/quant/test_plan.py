"""Which nodes are fixed, how wide, and which tensors share an encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from openqnn.errors import UsageError
from openqnn.ir import DType, Encoding, Given, Graph, Node, Value
from openqnn.ops import OPS, Builder
from openqnn.ops.builder import complete
from openqnn.quant.plan import Plan
from openqnn.quant.recipe import FLOAT, Recipe, Scheme


def graph() -> tuple[Graph, Builder, Value]:
    made = Graph("g")
    x = made.add_input("x", DType.FLOAT_32, (1, 4, 4, 3))
    return made, Builder(made, ""), x


def conv(b: Builder, x: Value, name: str) -> Value:
    weight = b.const(np.ones((1, 1, x.shape[-1], 4), np.float32), name=f"{name}.w")
    return b("Conv2d", x, weight, stride=(1, 1), pad_amount=((0, 0), (0, 0)), name=name)


def plan(g: Graph, given: Mapping[str, Given] | None = None, **choices: Any) -> Plan:
    return Plan(g, Recipe(**choices), given or {})


def same(p: Plan, a: Value, b: Value) -> bool:
    return p.group(a) is not None and p.group(a) is p.group(b)


def test_moved_values_share_and_only_the_source_is_looked_at() -> None:
    g, b, x = graph()
    y = conv(b, x, "c")
    z = b("Reshape", y, shape=(1, 64))
    g.add_output(z)
    p = plan(g)
    assert same(p, y, z) and not same(p, x, y)
    group = p.group(z)
    assert group is not None and group.origins == [y]


def test_a_clipping_reader_gives_its_range_to_the_source() -> None:
    g, b, x = graph()
    y = conv(b, x, "c")
    z = b("Relu", y)
    g.add_output(z)
    group = plan(g).group(y)
    assert group is not None and group.origins == [z]


def test_a_clip_gives_its_range_through_moves_too() -> None:
    g, b, x = graph()
    y = conv(b, x, "c")
    z = b("Relu", b("Reshape", y, shape=(4, 4, 4)))
    g.add_output(z)
    group = plan(g).group(y)
    assert group is not None and group.origins == [z]


@pytest.mark.parametrize("shown", [False, True])
def test_moved_and_clipped_the_range_stays_if_another_sees_more(shown: bool) -> None:
    g, b, x = graph()
    y = conv(b, x, "c")
    z = b("Relu", b("Reshape", y, shape=(4, 4, 4)))
    g.add_output(z)
    g.add_output(y if shown else b("Tanh", y))
    group = plan(g).group(y)
    assert group is not None and set(group.origins) == {y, z}


def test_a_source_with_another_reader_keeps_its_range() -> None:
    g, b, x = graph()
    y = conv(b, x, "c")
    g.add_output(b("ElementWiseAdd", y, b("Relu", y)))
    p = plan(g)
    assert not same(p, y, g.nodes[1].out)


@pytest.mark.parametrize("mode", ["NEAREST", "LINEAR", "CUBIC"])
def test_neighbours_share_with_what_they_copy_or_lie_between(mode: str) -> None:
    """HTP copies integers, whatever the encodings are, and rounds means in the first."""
    g, b, x = graph()
    y = b("Sigmoid", x)
    larger = Value("larger", DType.FLOAT_32, (1, 8, 8, 3))
    params = complete(OPS["Resize"], {"interpolation_mode": mode}, 4, "larger")
    g.add(Node("Resize", "larger", [y], [larger], params, ""))
    g.add_output(larger)
    assert same(plan(g), y, larger) is (mode != "CUBIC")


def test_inputs_of_a_concat_share_unless_something_else_reads_them() -> None:
    g, b, x = graph()
    one, two = conv(b, x, "one"), conv(b, x, "two")
    joined = b("Concat", one, two, axis=3)
    g.add_output(joined)
    g.add_output(b("ElementWiseNeg", two))
    p = plan(g)
    assert same(p, one, joined) and not same(p, two, joined)
    group = p.group(joined)
    assert group is not None and set(group.origins) == {one, joined}


def test_softmax_has_the_range_of_the_function() -> None:
    g, b, x = graph()
    g.add_output(b("Softmax", x))
    group = plan(g).group(g.outputs[0])
    assert group is not None and group.has_fixed_range and group.fixed == (0.0, 1.0)


def test_float_weights_make_the_whole_node_float() -> None:
    g, b, x = graph()
    y = conv(b, x, "c")
    g.add_output(conv(b, y, "d"))
    p = plan(g, {"c.w": Given("override", 32, floating=True)})
    assert p.width[y] == FLOAT and p.width[g.outputs[0]] == 8 and p.width[x] == FLOAT


def test_the_width_of_moved_values_is_kept() -> None:
    g, b, x = graph()
    y = conv(b, x, "c")
    z = b("Reshape", y, shape=(1, 64))
    g.add_output(b("ElementWiseNeg", z))
    p = plan(g, widths={"c": 16})
    assert p.width[z] == 16 and p.width[g.outputs[0]] == 8 and p.width[x] == 16


def test_different_given_encodings_are_not_merged() -> None:
    g, b, x = graph()
    y = conv(b, x, "c")
    z = b("Reshape", y, shape=(1, 64))
    g.add_output(z)
    given = {v.name: Given("override", 8, encoding=Encoding.per_tensor(s)) for v, s in ((y, 1.0), (z, 2.0))}
    assert not same(plan(g, given), y, z)


def test_a_product_of_16_bit_matrices_has_a_symmetric_second_factor() -> None:
    g = Graph("g")
    b = Builder(g, "")
    left, right = (g.add_input(n, DType.FLOAT_32, (1, 4, 4)) for n in "ab")
    g.add_output(b("MatMul", left, right))
    p = plan(g, act_bw=16)
    groups = p.group(left), p.group(right)
    assert groups[0] is not None and groups[1] is not None
    assert not groups[0].symmetric and groups[1].symmetric


def test_widths_name_nodes_that_exist() -> None:
    g, b, x = graph()
    g.add_output(conv(b, x, "c"))
    with pytest.raises(UsageError, match="no node 'd'"):
        plan(g, widths={"d": 16})


@pytest.mark.parametrize(
    "choices", [{"act_bw": 4}, {"weight_bw": 5}, {"bias_bw": 16}, {"weight_bw": 16}, {"steps": (4, 4)}]
)
def test_impossible_choices_are_refused(choices: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Recipe(**choices)


def test_zero_is_in_the_middle_only_where_htp_computes_so() -> None:
    g, b, x = graph()
    clipped = b("ReluMinMax", b("Tanh", x), min_value=0.0, max_value=1.0)
    powers = b("ElementWiseExp", clipped)
    total = b("ReduceSum", powers, axes=(3,), keep_dims=True)
    share, soft = b("ElementWiseDivide", powers, total), b("Softmax", powers)
    other = b("ElementWiseDivide", x, total)
    for value in (share, soft, other):
        g.add_output(value)
    groups = [
        plan(g, act=Scheme(symmetric=True)).group(v) for v in (x, powers, total, other, clipped, share, soft)
    ]
    assert [group.symmetric for group in groups if group] == [True] * 4 + [False] * 3
