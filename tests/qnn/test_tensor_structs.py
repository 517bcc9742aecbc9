"""Structs that one thread makes while another has the library."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from openqnn.errors import BackendError
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.net import Array, Net, TensorKind
from openqnn.qnn.tensor_structs import TensorStructs
from tests.qnn.nets import ConvRelu, build, needs_cpu, needs_htp, node, u32, unary

CASE = ConvRelu()


def outputs(net: Net, image: Array, draft: TensorStructs | None) -> Array:
    with Backend("htp") as htp, Context(htp) as context:
        graph = context.compose(net, draft=draft)
        graph.finalize()
        return graph.execute({"x": image})["y"]


@needs_htp
@pytest.mark.parametrize(
    ("net", "image"),
    [(CASE.float_net(), CASE.image), (CASE.quantized_net(), CASE.quantized_image())],
    ids=["float", "quantized"],
)
def test_a_draft_makes_the_same_graph(net: Net, image: Array) -> None:
    draft = TensorStructs(net)
    filling = threading.Thread(target=draft.fill)
    filling.start()
    made = outputs(net, image, draft)
    filling.join()
    assert made.any()
    np.testing.assert_array_equal(made, outputs(net, image, None))


@needs_cpu
def test_parameters_are_those_of_their_own_node() -> None:
    """Two nodes of one name, each with a parameter of one name."""
    there, back = u32("perm", [1, 2, 0]), u32("perm", [2, 0, 1])
    x, y = unary("Transpose", (2, 3, 4), to=(2, 3, 4)).tensors.values()
    middle = replace(unary("Relu", (3, 4, 2)).tensors["x"], name="mid", kind=TensorKind.NATIVE)
    nodes = node("n", "Transpose", ("x",), "mid", (there,)), node("n", "Transpose", ("mid",), "y", (back,))
    net = build("g", [x, middle, y], nodes)
    draft = TensorStructs(net)
    draft.fill()
    first, second = (draft.param(item, "perm", f"perm_{index}") for index, item in enumerate(net.nodes))
    assert [first.body.v1.name, second.body.v1.name] == [b"perm_0", b"perm_1"]
    assert first.body.v1.buffer.data != second.body.v1.buffer.data


@needs_cpu
def test_an_error_reaches_whoever_takes_the_tensor() -> None:
    net = CASE.float_net()
    short = replace(net.tensors["w"], data=np.zeros(3, np.float32))
    net = replace(net, tensors={**net.tensors, "w": short})
    draft = TensorStructs(net)
    draft.fill()
    with (
        Backend("cpu") as cpu,
        Context(cpu) as context,
        pytest.raises(BackendError, match=r"tensor 'w' is .* its data has 12"),
    ):
        context.compose(net, draft=draft)


@needs_cpu
def test_a_tensor_that_is_not_there_is_named() -> None:
    net = unary("Relu", (2, 3))
    net = replace(net, nodes=(replace(net.nodes[0], inputs=("nowhere",)),))
    draft = TensorStructs(net)
    draft.fill()
    with (
        Backend("cpu") as cpu,
        Context(cpu) as context,
        pytest.raises(BackendError, match="has no tensor 'nowhere'"),
    ):
        context.compose(net, draft=draft)
