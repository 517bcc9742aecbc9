"""Matrix products with constant weights, their biases, and transposes that they can take in."""

from __future__ import annotations

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.ops.layout import permutation_of
from openqnn.passes.edit import data_of, vector_along
from openqnn.passes.patterns.terms import add, transpose
from openqnn.passes.rewrite import Any, Const, Match, Op, Rule, Term, op

x, other, weight, bias = Any("x"), Any("other"), Const("weight"), Const("bias")


def _product(*inputs: Term, name: str = "") -> Op:
    return op("MatMul", *inputs, name=name)


def _is_layer(m: Match) -> str:
    node = m.root
    if m["weight"].rank != 2:
        return f"the weights {list(m['weight'].shape)} are not one matrix"
    if m["x"].rank != 2:
        return f"data of rank {m['x'].rank} needs keep_dims, which the NPU does not take: it stays a MatMul"
    return "the data is turned" if node.flag("transpose_in0") else ""


def _layer(m: Match, b: Builder) -> Value:
    """FullyConnected has its weights as [out, in]: a view of the matrix, turned."""
    w = m["weight"]
    turned = data_of(w) if m.root.flag("transpose_in1") else data_of(w).T
    return b.fully_connected(m["x"], Value(w.name, w.dtype, turned.shape, None, turned), m.get("bias"))


FULLY_CONNECTED = Rule("fully_connected", (_product(x, weight), _product(x, weight, bias)), _layer, _is_layer)


def _is_bias(m: Match) -> str:
    out = m.node("product").out
    if m.root.out.shape != out.shape:
        return "the sum widens the product"
    found = vector_along(m["bias"], out.shape, out.rank - 1)
    return "" if found is not None and m["bias"].size > 1 else "the constant is no vector along the last axis"


def _with_bias(m: Match, b: Builder) -> Value:
    node = m.node("product")
    vector = vector_along(m["bias"], node.out.shape, node.out.rank - 1)
    return b(node.op, m["x"], m["other"], b.const(vector, name=f"{m['bias'].name}.bias"), **node.params)


MATMUL_BIAS = Rule("matmul_bias", (add(_product(x, other, name="product"), bias),), _with_bias, _is_bias)

# -- transposes -----------------------------------------------------------------------------------------


def _swaps_last_two(node: Node) -> bool:
    perm = permutation_of(node)
    rank = node.out.rank
    return rank > 1 and perm == (*range(rank - 2), rank - 1, rank - 2)


def _take_in(index: int) -> Rule:
    turned = transpose(Any(f"in{index}"), where=_swaps_last_two, name="turn")
    pair = (turned, Any("in1")) if index == 0 else (Any("in0"), turned)

    def rewrite(m: Match, b: Builder) -> Value:
        flag = f"transpose_in{index}"
        params = {**m.root.params, flag: not m.root.flag(flag)}
        return b(m.root.op, m["in0"], m["in1"], m.get("bias"), **params)

    return Rule("matmul_transpose", (_product(*pair), _product(*pair, bias)), rewrite)


RULES = (MATMUL_BIAS, FULLY_CONNECTED)
TRANSPOSES = (_take_in(0), _take_in(1))
