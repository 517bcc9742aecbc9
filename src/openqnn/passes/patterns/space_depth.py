"""Reshape, Transpose, Reshape: blocks of the image exchanged with channels, and shuffled channels."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.ir import Shape, Value
from openqnn.ops import Builder
from openqnn.ops.layout import Perm, permutation_of
from openqnn.passes.patterns.terms import reshape, transpose
from openqnn.passes.rewrite import Any, Match, Rule

NAME = "blocks"
_PATTERN = reshape(transpose(reshape(Any("x"), name="split"), name="turn"), name="merge")


@dataclass(frozen=True, slots=True)
class Exchange:
    """How an op looks when written out; letters name the axes after the first reshape."""

    op: str
    mode: str
    split: str
    perm: Perm
    data: str  # what each axis of the data is made of
    result: str
    channel_first: bool


# H and W are the axes of the small image, h and w those of the block, C the channels that stay together.
EXCHANGES = (
    Exchange("DepthToSpace", "CRD", "NChwHW", (0, 1, 4, 2, 5, 3), "N Chw H W", "N C Hh Ww", True),
    Exchange("DepthToSpace", "DCR", "NhwCHW", (0, 3, 4, 1, 5, 2), "N hwC H W", "N C Hh Ww", True),
    Exchange("SpaceToDepth", "DCR", "NCHhWw", (0, 3, 5, 1, 2, 4), "N C Hh Ww", "N hwC H W", True),
    Exchange("SpaceToDepth", "CRD", "NCHhWw", (0, 1, 3, 5, 2, 4), "N C Hh Ww", "N Chw H W", True),
    Exchange("DepthToSpace", "DCR", "NHWhwC", (0, 1, 3, 2, 4, 5), "N H W hwC", "N Hh Ww C", False),
    Exchange("SpaceToDepth", "DCR", "NHhWwC", (0, 1, 3, 2, 4, 5), "N Hh Ww C", "N H W hwC", False),
)


def _product(axes: str, sizes: dict[str, int]) -> Shape:
    found: list[int] = []
    for group in axes.split():
        size = 1
        for letter in group:
            size *= sizes[letter]
        found.append(size)
    return tuple(found)


def _exchange(m: Match) -> tuple[Exchange, dict[str, int]] | None:
    split, perm = m.node("split").out.shape, permutation_of(m.node("turn"))
    for row in EXCHANGES:
        if len(split) != len(row.split) or perm != row.perm:
            continue
        sizes = dict(zip(row.split, split, strict=True))
        if _product(row.data, sizes) == m["x"].shape and _product(row.result, sizes) == m.root.out.shape:
            return row, sizes
    return None


def _shuffle(m: Match) -> tuple[int, int] | None:
    """Axis and number of groups, when one axis is split in two that change places."""
    data, split, perm = m["x"].shape, m.node("split").out.shape, permutation_of(m.node("turn"))
    if perm is None or len(split) != len(data) + 1 or m.root.out.shape != data:
        return None
    axis = next((i for i, p in enumerate(perm) if p != i), len(data))
    swapped = (*range(axis), axis + 1, axis, *range(axis + 2, len(split)))
    if axis >= len(data) or perm != swapped:
        return None
    joined = (*split[:axis], split[axis] * split[axis + 1], *split[axis + 2 :])
    return (axis, split[axis]) if joined == data else None


def _check(m: Match) -> str:
    known = _exchange(m) is not None or _shuffle(m) is not None
    return "" if known else "neither blocks of an image nor groups of channels are exchanged"


def _rewrite(m: Match, b: Builder) -> Value:
    found = _exchange(m)
    if found is None:
        shuffled = _shuffle(m)
        assert shuffled is not None
        return b("ChannelShuffle", m["x"], axis=shuffled[0], num_groups=shuffled[1])
    row, sizes = found
    params = {"block_size": (sizes["h"], sizes["w"]), "mode": row.mode}
    if not row.channel_first:
        return b(row.op, m["x"], **params)
    return b.to_first(b(row.op, b.to_last(m["x"]), **params))


RULES = (Rule(NAME, (_PATTERN,), _rewrite, _check, exact=False),)
