"""Normalisations that exporters write out: LayerNorm, RmsNorm, L2Norm, InstanceNorm, GroupNorm."""

from __future__ import annotations

import numpy as np

from openqnn.ir import Array, Node, Value
from openqnn.ops import Builder
from openqnn.ops.layout import permutation_of
from openqnn.passes.edit import aligned_shape, data_of
from openqnn.passes.patterns.terms import (
    add,
    at_least,
    div,
    mean,
    mul,
    reciprocal,
    reshape,
    rsqrt,
    sqrt,
    square,
    sub,
    sum_of_squares,
    transpose,
)
from openqnn.passes.rewrite import Any, Const, Match, Number, Op, Rule, Term, op

x, EPSILON = Any("x"), Number(name="epsilon")


def _keeps_dims(node: Node) -> bool:
    return node.flag("keep_dims")


def _divided(a: Term, variance: Term) -> tuple[Op, ...]:
    """a / sqrt(variance + epsilon) in its spellings."""
    inner = add(variance, EPSILON)
    return div(a, sqrt(inner)), mul(a, rsqrt(inner)), mul(a, reciprocal(sqrt(inner)))


# -- LayerNorm and RmsNorm ------------------------------------------------------------------------------

_CENTRED = sub(x, mean(x, name="mean"), name="centred")
_VARIANCE = mean(square(_CENTRED), name="variance") | mean(
    op("ElementWiseSquaredDifference", x, mean(x, name="mean")), name="variance"
)


def _axes_agree(m: Match) -> str:
    reductions = [m.named[name] for name in ("mean", "variance") if name in m.named]
    axes = {tuple(sorted(n.ints("axes"))) for n in reductions}
    if len(axes) > 1:
        return f"mean and variance are over different axes: {sorted(axes)}"
    if not all(_keeps_dims(n) for n in reductions):
        return "a mean drops its axes, so that it broadcasts along others"
    return "" if m["x"].dtype.is_float and m.number("epsilon") >= 0 else "epsilon is negative"


def _normed(kind: str, m: Match, b: Builder) -> Value:
    axes = sorted(m.node("variance").ints("axes"))
    return b(kind, m["x"], axes=axes, epsilon=m.number("epsilon"))


LAYER_NORM = Rule(
    "layer_norm",
    _divided(_CENTRED, _VARIANCE),
    rewrite=lambda m, b: _normed("LayerNorm", m, b),
    check=_axes_agree,
)
RMS_NORM = Rule(
    "rms_norm",
    _divided(x, mean(square(x), name="variance")),
    rewrite=lambda m, b: _normed("RmsNorm", m, b),
    check=_axes_agree,
)


def _over_axes(constant: Value, node: Node) -> Array | None:
    """A constant that varies along a norm's axes only, in the shape that gamma and beta have."""
    shape, axes = node.x(0).shape, node.ints("axes")
    full = aligned_shape(constant.shape, len(shape))
    if len(full) != len(shape) or any(d != 1 for i, d in enumerate(full) if i not in axes):
        return None
    target = tuple(shape[a] for a in sorted(axes))
    kept = data_of(constant).reshape(tuple(full[a] for a in sorted(axes)))
    return kept if kept.shape == target else np.broadcast_to(kept, target)


def _along_axes(m: Match) -> str:
    return "" if _over_axes(m["c"], m.node("norm")) is not None else "the constant varies along other axes"


def _with_gamma(kind: str, m: Match, b: Builder) -> Value:
    norm, gamma = m.node("norm"), _over_axes(m["c"], m.node("norm"))
    return b(kind, norm.x(0), b.const(gamma, name=m["c"].name + ".gamma"), **norm.params)


def _with_beta(m: Match, b: Builder) -> Value:
    norm, beta = m.node("norm"), _over_axes(m["c"], m.node("norm"))
    gamma = norm.inputs[1] if norm.has(1) else None
    return b(norm.op, norm.x(0), gamma, b.const(beta, name=m["c"].name + ".beta"), **norm.params)


def _gamma_rule(kind: str) -> Rule:
    root = mul(op(kind, x, name="norm"), Const("c"))
    return Rule("norm_gamma", (root,), lambda m, b: _with_gamma(kind, m, b), _along_axes)


BETA = Rule(
    "norm_beta",
    tuple(add(op("LayerNorm", *given, name="norm"), Const("c")) for given in ((x,), (x, Any("gamma")))),
    _with_beta,
    _along_axes,
)

# -- L2Norm ---------------------------------------------------------------------------------------------

_LENGTH = sqrt(sum_of_squares(x, name="sum"))
_BOUNDED = at_least(_LENGTH, None, name="epsilon")


def _one_axis(m: Match) -> str:
    node = m.node("sum")
    return "" if _keeps_dims(node) else "the norm drops its axes, so that it broadcasts along others"


def _l2(m: Match, b: Builder) -> Value:
    axes, epsilon = m.node("sum").ints("axes"), m.number("epsilon") if "epsilon" in m.values else 0.0
    more = {"axis": axes[0]} if len(axes) == 1 else {"axes": sorted(axes)}
    return b("L2Norm", m["x"], epsilon=epsilon, **more)


L2_NORM = Rule(
    "l2_norm",
    (div(x, _BOUNDED), div(x, op("Tile", _BOUNDED)), div(x, _LENGTH), div(x, op("Tile", _LENGTH))),
    rewrite=_l2,
    check=_one_axis,
)

# -- GroupNorm ------------------------------------------------------------------------------------------

_LAST = transpose(reshape(x, name="split"), name="last")
_GROUPED = reshape(
    transpose(op("InstanceNorm", _LAST, Const("gamma"), Const("beta"), name="norm"), name="first"),
    name="whole",
)


def _is_group_norm(m: Match) -> str:
    data, groups = m["x"].shape, m.node("split").out.shape
    plain = ("MU_SIGMA", "ACROSS_SPATIAL", True)
    norm = m.node("norm")
    if len(data) not in (3, 4, 5) or m.root.out.shape != data:
        return f"the result {list(m.root.out.shape)} is no image of the shape {list(data)} again"
    if len(groups) != 4 or groups[0] != data[0] or not groups[1] or data[1] % groups[1]:
        return f"{list(groups)} are no groups of the channels of {list(data)}"
    if permutation_of(m.node("last")) != (0, 2, 3, 1) or permutation_of(m.node("first")) != (0, 3, 1, 2):
        return "the groups are not what is normalised"
    if (norm.enum("mode"), norm.enum("region"), norm.flag("normalize_variance")) != plain:
        return "the norm is not by mean and deviation of each group"
    return ""


def _group_norm(m: Match, b: Builder) -> Value:
    """One number per group becomes one per channel."""
    groups = m.node("split").out.shape[1]
    each = m["x"].shape[1] // groups
    weights = [
        b.const(np.repeat(data_of(m[w]), each), name=f"{m[w].name}.channels") for w in ("gamma", "beta")
    ]
    epsilon = m.node("norm").float("epsilon")
    return b.to_first(b("GroupNorm", b.to_last(m["x"]), *weights, group=groups, epsilon=epsilon))


GROUP_NORM = Rule("group_norm", (_GROUPED,), _group_norm, _is_group_norm)

# -- InstanceNorm ---------------------------------------------------------------------------------------


def _is_per_image(norm: Node) -> bool:
    """Over height and width of channel-first images."""
    return norm.x(0).rank == 4 and sorted(norm.ints("axes")) == [2, 3]


def _instance_norm(m: Match, b: Builder) -> Value:
    data = m["x"]
    ones, zeros = (np.full(data.shape[1], v, data.dtype.numpy) for v in (1, 0))
    weights = b.const(ones, name=f"{b.stem}.gamma"), b.const(zeros, name=f"{b.stem}.beta")
    epsilon = m.node("norm").float("epsilon")
    return b.to_first(b("InstanceNorm", b.to_last(data), *weights, epsilon=epsilon))


INSTANCE_NORM = Rule("instance_norm", (op("LayerNorm", x, where=_is_per_image, name="norm"),), _instance_norm)

RULES = (LAYER_NORM, RMS_NORM, _gamma_rule("LayerNorm"), _gamma_rule("RmsNorm"), BETA, L2_NORM, GROUP_NORM)
LATER = (INSTANCE_NORM,)
