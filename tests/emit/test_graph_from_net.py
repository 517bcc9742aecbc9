"""Graphs that were lowered to records read back as they were, but for their names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openqnn.emit import lower
from openqnn.emit.graph_from_net import graph_of
from openqnn.errors import ModelError
from openqnn.ir.verify import verify
from openqnn.ops import infer_outputs
from openqnn.ops.custom import forget_custom_ops
from openqnn.qnn.net import NetTensor, TensorKind
from tests.ops.database import Case
from tests.ops.harness import all_cases, build


@pytest.mark.parametrize("case", all_cases(), ids=lambda c: c.id)
def test_every_op(case: Case) -> None:
    graph, _ = build(case)
    net = lower(graph)
    again = graph_of(net)
    verify(again, infer_outputs)
    assert lower(again) == net
    for before, after in zip(graph.nodes, again.nodes, strict=False):
        assert (after.op, after.params, after.source) == (before.op, before.params, before.source)
        assert [v.shape for v in after.outputs] == [v.shape for v in before.outputs]


def test_what_is_not_known() -> None:
    graph, _ = build(next(c for c in all_cases() if c.op == "Relu"))
    net = lower(graph)
    node = net.nodes[0]
    with pytest.raises(ModelError, match=r"operation 'Blur' of package 'qti\.aisw' is not known"):
        graph_of(replace(net, nodes=(replace(node, op="Blur"),)))
    other = graph_of(replace(net, nodes=(replace(node, op="Blur", package="mine"),)))
    assert (other.nodes[0].package, other.nodes[0].op_name) == ("mine", "Blur")  # as the records have it
    forget_custom_ops()
    odd = ("odd", NetTensor("p", TensorKind.STATIC, 50, (1,)))
    with pytest.raises(ModelError, match="has no parameter 'odd'"):
        graph_of(replace(net, nodes=(replace(node, params=(odd,)),)))
    name, tensor = next(iter(net.tensors.items()))
    with pytest.raises(ModelError, match="unknown data type 0x7b"):
        graph_of(replace(net, tensors={**net.tensors, name: replace(tensor, dtype=123)}))
