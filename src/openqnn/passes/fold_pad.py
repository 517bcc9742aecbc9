"""A pad by zeros moves into the convolution or average pooling behind it."""

from __future__ import annotations

from openqnn.ir import Graph, Node, ParamValue
from openqnn.ops import infer_outputs, schema_of
from openqnn.passes.edit import alive, sweep
from openqnn.passes.explain import Explain

NAME = "fold_pad"
COUNTS = "count_pad_for_edges"  # how an average pooling says whether padding counts


def fold_pad(graph: Graph, log: Explain) -> int:
    changes = 0
    for node in list(graph.nodes):
        if node.op != "Pad" or not alive(node):
            continue
        for reader in list(dict.fromkeys(node.out.users)):
            if not any(p.name == "pad_amount" for p in schema_of(reader).params) or reader.op == node.op:
                continue
            reason = _fold(graph, node, reader)
            if reason:
                log.decline(NAME, node, f"{reader.where}: {reason}")
            else:
                log.apply(NAME, node, f"into {reader.where}")
                changes += 1
        sweep(graph, [node])
    return changes


def _fold(graph: Graph, pad: Node, reader: Node) -> str:
    reason = _refusal(pad, reader)
    if reason:
        return reason
    params = {**reader.params, "pad_amount": _added(pad, reader)}
    if COUNTS in params:
        params[COUNTS] = True
    trial = Node(
        reader.op, reader.name, [pad.x(0), *reader.inputs[1:]], reader.outputs, params, reader.source
    )
    if infer_outputs(trial)[0][0] != reader.out.shape:
        return "with the pad inside, rounding up would give another number of windows"
    reader.params = params
    graph.set_input(reader, 0, pad.x(0))
    return ""


def _refusal_of_pool(reader: Node) -> str:
    if reader.flag(COUNTS) or not any(map(any, reader.rows("pad_amount"))):
        return ""
    return "its own padding does not count, the zeros of the pad do"


def _refusal(pad: Node, reader: Node) -> str:
    if pad.enum("scheme") != "CONSTANT" or pad.float("pad_constant_value") != 0:
        return "only a pad by the constant 0 can move into it"
    if reader.x(0) is not pad.out or "output_padding" in reader.params:
        return "its pad_amount takes away instead of adding"
    rows = pad.rows("pad_amount")
    if any(rows[0]) or any(rows[-1]):
        return "the pad grows the batch or the channels"
    if pad.out.encoding != pad.x(0).encoding:
        return "the pad changes the encoding"
    if COUNTS in reader.params:
        return _refusal_of_pool(reader)
    has_weights = len(schema_of(reader).inputs) > 1
    return "" if has_weights else "its own padding is not zeros"


def _added(pad: Node, reader: Node) -> ParamValue:
    rows, own = pad.rows("pad_amount")[1:-1], reader.params["pad_amount"]
    assert isinstance(own, tuple)
    if own and not isinstance(own[0], tuple):  # one spatial axis: a single row
        return tuple(a + b for a, b in zip(reader.ints("pad_amount"), rows[0], strict=True))
    pairs = zip(reader.rows("pad_amount"), rows, strict=True)
    return tuple((mine[0] + more[0], mine[1] + more[1]) for mine, more in pairs)
