"""How HTP takes an 8-bit tensor to another encoding, alone or to join others, as measured on libQnnHtp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, DType, Encoding, Node, Value
from openqnn.ops.layout import is_reshape, permutation_of
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import OPS
from openqnn.targets.htp.kernels.bytes.lines import BYTES, LAST, by_line
from openqnn.targets.htp.kernels.bytes.products import Compute, is_byte, offset_of, scale_of, short, single

JOIN, RESIZE, BILINEAR = "Concat", "Resize", "ResizeBilinear"
MORE = 2.0**-8  # what comes on the half for rounding where a step is less than half a step of the output


def changed(n: Node, b: Body, x: Sequence[str]) -> str | None:
    """Stored integers in the encoding of the output; None if that is not what is asked for."""
    return _changed(b, x[0], n.x(0), n.out)


def joined(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Several tensors in the encoding of what they become."""
    found = [_changed(b, name, n.x(i), n.out) for i, name in enumerate(x[: len(n.inputs)])]
    return None if None in found else compute([name for name in found if name is not None])


def is_joined(n: Node) -> bool:
    return n.op == JOIN


def sources(n: Node) -> list[Value]:
    """What HTP may compute in the encoding of the output in the first place: what is joined or moved here."""
    moves = is_reshape(n) or permutation_of(n) is not None
    return [v for v in n.inputs if v is not None] if moves or is_joined(n) else []


def is_direct(value: Value, wanted: Encoding) -> bool:
    """Whether HTP computes a tensor in an encoding that others want it in, and not in its own before.

    Where zero is the first step, it might be what clips.
    """
    if not is_plain_byte(value) or value.encoding == wanted or wanted.bitwidth != value.dtype.bits:
        return False
    return value.producer is not None and offset_of(value) != 0


def _changed(b: Body, x: str, data: Value, out: Value) -> str | None:
    if not is_plain_byte(data) or not is_plain_byte(out):
        return None
    if data.encoding == out.encoding:
        return x
    found = table(float(single(scale_of(data)) / single(scale_of(out))), offset_of(data), offset_of(out))
    return by_line(b, x, found) or b.op("Gather", b.const(found.astype(np.uint8)), b.cast(x, np.int32))


def table(ratio: float, zero: int, out: int) -> Array:
    """Results by stored integer, for the offsets of the input and of the output.

    Behind layers and pools, that is; elementwise results of graph inputs have a larger half.
    """
    half = 0.5 + (MORE if ratio < 0.5 else 0.0)
    real = short(np.asarray(ratio)) * (np.arange(BYTES) + zero) + half - out
    return np.clip(np.floor(real), 0, LAST).astype(np.int64)


def resized(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Nearest neighbours in another encoding: HTP copies the integers. Others it takes means of.

    What a sum or a product made of the former it computes in that encoding in the first place, and `x` is
    that. Others it leaves as they are, which then stand for other numbers.
    """
    if OPS[n.op].hands_on(n):
        return compute(x) if copies(n) else None
    return between(n, b, x, compute) if is_between(n) else None


def between(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Means of neighbours: rounded to steps of the input, and halves up, before they change the encoding."""
    if not is_plain_byte(n.x(0)) or not is_plain_byte(n.out):
        return None
    middle = b.op("Add", compute([b.cast(x[0], np.float32)]), b.const(0.5, np.float32))
    return _changed(b, b.cast(b.op("Floor", middle), np.uint8), n.x(0), n.out)


def is_between(n: Node) -> bool:
    """Whether results are means of neighbours, and so within the range of the input."""
    return n.op == BILINEAR or (n.op == RESIZE and n.params.get("interpolation_mode") == "LINEAR")


def overshoots(n: Node) -> bool:
    """Whether neighbours count by the cube of their distance: in 16 bits HTP gives other numbers."""
    return n.op == RESIZE and n.params.get("interpolation_mode") == "CUBIC"


def is_copy(n: Node) -> bool:
    """Whether HTP copies stored integers, at the latest where others join them."""
    return n.op == RESIZE and OPS[n.op].hands_on(n)


def is_copied(value: Value) -> bool:
    """Whether HTP makes a tensor by copying integers, those of an input too, and moves them about perhaps."""
    node = value.producer
    if node is None or not OPS[node.op].hands_on(node):
        return False
    moved = [v for v in node.inputs if v is not None and not v.is_constant]
    if is_copy(node) or len(moved) != 1:
        return is_copy(node)
    source = moved[0].producer
    return source is None or _leaves_out(source) or is_copied(moved[0])


def _leaves_out(n: Node) -> bool:
    """Whether a slice takes every second element, or fewer: what is moved behind it HTP joins as it is."""
    ranges = n.params.get("ranges")  # begin, end, stride
    return ranges is not None and bool(np.any(np.abs(np.asarray(ranges)[:, 2]) > 1))


def copies(n: Node) -> bool:
    """Whether HTP copies the integers of 8-bit data, whatever the encoding of the copy is."""
    return is_copy(n) and is_byte(n.out) and n.x(0).dtype is n.out.dtype


def is_plain_byte(value: Value) -> bool:
    return value.dtype is DType.UFIXED_8 and value.encoding is not None and len(value.encoding.scale) == 1
