"""Just enough of protobuf's wire format to find an ONNX file's weights without reading them.

`split_model` gives the model with the bytes of large initializers cut out, and where in the file these bytes
lie: the rest is small and is parsed by protobuf as usual, the weights are mapped.
"""

from __future__ import annotations

from openqnn.formats.protobuf_wire import Span
from openqnn.formats.protobuf_wire import wire_fields as fields

GRAPH_FIELD, INITIALIZER_FIELD, RAW_DATA_FIELD = 7, 5, 9
CUT_ABOVE = 4096  # bytes; smaller weights are left where they are
_BYTES = 2  # the wire type of what has a length


def _encoded(number: int, parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """A length-delimited field around the parts."""
    length = sum(len(p) for p in parts)
    head = bytearray([number << 3 | _BYTES])
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return [bytes(head), *parts]


def _without_raw_data(buffer: memoryview, tensor: Span) -> tuple[list[bytes | memoryview], Span | None]:
    kept: list[bytes | memoryview] = []
    raw: Span | None = None
    for number, tag_at, content in fields(buffer, tensor.start, tensor.end):
        if number == RAW_DATA_FIELD:
            raw = content
        else:
            kept.append(buffer[tag_at : content.end])
    return kept, raw


def split_model(buffer: memoryview) -> tuple[bytes, dict[int, Span]]:
    """The model without its large weights, and for the index of each such initializer where its bytes are."""
    spans: dict[int, Span] = {}
    parts: list[bytes | memoryview] = []
    for number, tag_at, content in fields(buffer, 0, len(buffer)):
        if number == GRAPH_FIELD:
            parts += _encoded(GRAPH_FIELD, _split_graph(buffer, content, spans))
        else:
            parts.append(buffer[tag_at : content.end])
    return b"".join(parts), spans


def _split_graph(buffer: memoryview, graph: Span, spans: dict[int, Span]) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = []
    index = -1
    for number, tag_at, content in fields(buffer, graph.start, graph.end):
        index += number == INITIALIZER_FIELD
        if number != INITIALIZER_FIELD or content.end - content.start <= CUT_ABOVE:
            parts.append(buffer[tag_at : content.end])
            continue
        kept, raw = _without_raw_data(buffer, content)
        if raw is None:
            parts.append(buffer[tag_at : content.end])
        else:
            spans[index] = raw
            parts += _encoded(INITIALIZER_FIELD, kept)
    return parts
