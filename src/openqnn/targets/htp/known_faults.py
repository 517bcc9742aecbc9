"""Known faults of libQnnHtp in fixed point: forms that it takes without a word and computes wrongly.

Each was measured, and a test runs it. The quantizer writes none of them; graphs that other tools wrote may
have some, and the simulation computes these as they are meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from openqnn.ir import Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.layout import is_reshape, permutation_of
from openqnn.passes.patterns import terms
from openqnn.passes.rewrite import Any, find
from openqnn.targets.htp.clipped_sums import unclipped
from openqnn.targets.htp.limits import is_from_zero
from openqnn.targets.htp.qdq_pairs import limits_of
from openqnn.targets.htp.reduce import sums_channels
from openqnn.targets.htp.shape import is_join

_SUM: Final = terms.add(Any("a"), Any("b"))
_DIFFERENCE: Final = terms.sub(Any("x"), Any("y"))


@dataclass(frozen=True, slots=True)
class KnownFault:
    """A rule about nodes: what the library makes of them, and what to write instead."""

    id: str
    wrong: str
    instead: str
    applies: Callable[[Node], bool]

    def __str__(self) -> str:
        return f"{self.id}: {self.wrong}; write {self.instead}"


def known_faults(graph: Graph) -> Iterator[tuple[Node, KnownFault]]:
    """Every node in fixed point that has a form which the library gets wrong, with the rule."""
    for node in graph.nodes:
        if any(v.dtype.is_fixed and v.encoding is not None for v in node.outputs):
            yield from ((node, fault) for fault in FAULTS if fault.applies(node))


def _joins_moved(node: Node) -> bool:
    return is_join(node) and any(
        v is not None and v.encoding != node.out.encoding and _is_moved(v) for v in node.inputs
    )


def _is_moved(value: Value) -> bool:
    """Whether a tensor is an input of the graph, or a strided slice, that was only moved."""
    node = value.producer
    if node is None or not (is_reshape(node) or permutation_of(node)) or node.x(0).is_constant:
        return False
    made = node.x(0).producer
    return made is None or ("ranges" in made.params and any(row[2] != 1 for row in made.rows("ranges")))


def _clips_further(node: Node) -> bool:
    """Whether the encoding behind a clip reaches beyond the clip, which is left to its ends."""
    encoding, ends = node.out.encoding, _ends_of_clip(node)
    if ends is None or encoding is None or node.x(0).producer is None:
        return False
    low, high = limits_of(encoding, node.out.dtype.signed)
    step = encoding.scale[0]
    beyond = max(high - ends[1], ends[0] - low) > step
    return beyond and (encoding.bitwidth > 8 or low > ends[0] - step)


def _ends_of_clip(node: Node) -> tuple[float, float] | None:
    schema = schema_of(node)
    if not schema.clips:
        return None
    if "max_value" in node.params:
        return node.float("min_value"), node.float("max_value")
    low, high = schema.output_range or (None, None)
    return None if low is None or high is None else (low, high)


def _adds_what_was_taken(node: Node) -> bool:
    """max(x - y, 0) + y, and not y + max(x - y, 0)."""
    if find(_SUM, node.out) is None:
        return False
    made, clipped = unclipped(node.x(0))
    found = find(_DIFFERENCE, made)
    return clipped and found is not None and found["y"] is node.x(1)


def _starts_below(node: Node) -> bool:
    encoding = node.out.encoding
    return encoding is not None and encoding.bitwidth == 8 and is_from_zero(node) and encoding.offset[0] < 0


FAULTS = (
    KnownFault(
        "joined-as-stored",
        "the integers of an input that is moved, or of a strided slice, go into a Concat of another encoding"
        " as they are",
        "a Convert to the encoding of the Concat in front of it", _joins_moved,
    ),
    KnownFault(
        "clips-to-encoding",
        "a clip behind what computes is left to the ends of its encoding, which are wider",
        "an encoding that ends where the clip does", _clips_further,
    ),
    KnownFault(
        "lost-sum", "max(x - y, 0) + y is computed as x", "the sum the other way round, y + max(x - y, 0)",
        _adds_what_was_taken,
    ),
    KnownFault(
        "left-out-sums", "sums over the last axis leave out the last one to four results of a tile",
        "a layer with equal weights", sums_channels,
    ),
    KnownFault(
        "starts-at-zero", "results of 8 bits are stored from zero on, whatever their encoding",
        "an encoding with offset 0", _starts_below,
    ),
)  # fmt: skip
