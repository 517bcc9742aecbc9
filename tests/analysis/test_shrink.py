"""Graphs that HTP fails on, cut down to what fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from openqnn.analysis.bug_report import write_bug_report
from openqnn.analysis.reduce_net import Reduced, failure_kind, random_feed, reduce_net
from openqnn.api.convert import convert
from openqnn.api.files import load
from openqnn.emit import lower
from openqnn.errors import BackendError, ModelError
from openqnn.ir.graph_text import parse_graph
from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetScalar, NetTensor, TensorKind
from openqnn.qnn.net_parts import components, part_of
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor.library_worker import LibraryWorker
from tests.models.fetch import model_path, static_shapes
from tests.qnn.nets import ConvRelu, build, needs_cpu, needs_htp, node, unary

SM8650 = DeviceOptions(57)
# RmsNorm passes validation without beta and then does not compile.
NORMS = """
graph "norms" {
  input %x: float32[1,4,8]
  const %w: float32[8] = [1,1,1,1,1,1,1,1]
  %a: float32[1,4,8] = Relu(%x) @ "onnx node /a"
  %b: float32[1,4,8] = Sigmoid(%a)
  %c: float32[1,4,8] = RmsNorm(%b, %w) axes=[2] epsilon=1e-5 @ "onnx node /norm"
  %d: float32[1,4,8] = Tanh(%c)
  %e: float32[1,4,8] = ElementWiseAdd(%d, %a)
  output %e
}
"""
BUFFERED = """
graph "buffered" {
  input %x: float32[1,4,3]
  %a: float32[1,4,3] = Relu(%x)
  %b: float32[1,8,3] = Buffer(%a) buffer_size=8 buffer_dim=1 stride=4
  %c: float32[1,8,3] = Sigmoid(%b)
  output %c
}
"""


def real_net(model: str) -> Net:
    return lower(convert(model_path(model), input_shapes=static_shapes(model)))


@pytest.fixture(scope="module")
def norms() -> Reduced:
    return reduce_net(lower(parse_graph(NORMS)), "htp", SM8650)


@needs_htp
def test_a_graph_that_does_not_compile_comes_with_what_to_do() -> None:
    net = lower(parse_graph(NORMS))
    with LibraryWorker() as worker, pytest.raises(BackendError, match="graphFinalize failed") as caught:
        worker.run(net, random_feed(net), "htp")
    assert "`openqnn reduce` finds the smallest part" in caught.value.hint


@needs_htp
def test_the_lstm_of_a_real_network_is_found() -> None:
    """HTP takes this voice detector node by node, and cannot compile its float Lstm."""
    seen: list[int] = []
    reduced = reduce_net(
        real_net("silero_openvino"), "htp", SM8650, progress=lambda _, left, total: seen.append(left)
    )
    assert [node.op for node in reduced.net.nodes] == ["Lstm"]
    assert reduced.net.nodes[0].source.endswith("decoder/rnn/LSTM")
    assert reduced.failure.kind == "graphFinalize: QNN_COMMON_ERROR_MEM_ALLOC (1002)"
    assert reduced.complete
    assert reduced.trials < reduced.nodes_before / 2
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == 1


@needs_htp
def test_one_node_in_the_middle_is_found(norms: Reduced) -> None:
    assert [node.source for node in norms.net.nodes] == ["onnx node /norm"]
    assert (norms.net.inputs, norms.net.outputs) == (("b",), ("c",))
    assert norms.net.tensors["w"].data is not None


@needs_htp
def test_the_bundle_has_every_form_and_fails_again(norms: Reduced, tmp_path: Path) -> None:
    bundle = write_bug_report(norms, tmp_path / "out", {"library": "libQnnHtp.so"})
    assert sorted(path.name for path in bundle.files) == [
        "graph.dlc", "graph.oqnn", "graph.txt", "report.json", "saver"
    ]  # fmt: skip
    assert not bundle.missing
    assert (tmp_path / "out" / "saver" / "saver_output.c").is_file()
    parse_graph((tmp_path / "out" / "graph.txt").read_text())
    for name in ("graph.oqnn", "graph.dlc"):
        again = reduce_net(lower(load(tmp_path / "out" / name, trust=True)), "htp", SM8650)
        assert again.failure.kind == norms.failure.kind


@needs_htp
def test_a_graph_that_works_is_refused() -> None:
    with pytest.raises(ModelError, match=r"libQnnHtp\.so compiles and runs 'conv_relu': there is"):
        reduce_net(ConvRelu().float_net(), "htp", SM8650)


@needs_htp
def test_no_time_gives_the_whole_graph() -> None:
    reduced = reduce_net(lower(parse_graph(NORMS)), "htp", SM8650, seconds=0)
    assert not reduced.complete
    assert len(reduced.net.nodes) == reduced.nodes_before


@needs_cpu
def test_a_graph_that_fails_only_when_it_runs() -> None:
    """libQnnCpu ends the run at a Buffer that is not full yet, if anything waits for it."""
    reduced = reduce_net(lower(parse_graph(BUFFERED)), "cpu")
    assert reduced.failure.executes
    assert reduced.failure.kind == "graphExecute: QNN_GRAPH_ERROR_EARLY_TERMINATION (6038)"
    assert [node.op for node in reduced.net.nodes] == ["Buffer", "Sigmoid"]


@needs_cpu
def test_a_crash_is_reduced_too() -> None:
    """Without axes, ReduceSum is the end of the process that asks for its validation."""
    tensors = {
        name: NetTensor(name, kind, abi.FLOAT_32, (1, 4))
        for name, kind in zip(
            "xaby",
            (TensorKind.APP_WRITE, TensorKind.NATIVE, TensorKind.NATIVE, TensorKind.APP_READ),
            strict=True,
        )
    }
    nodes = (
        node("first", "Relu", ("x",), "a"),
        node("fatal", "ReduceSum", ("a",), "b", (("keep_dims", NetScalar(abi.BOOL_8, True)),)),
        node("last", "Relu", ("b",), "y"),
    )
    reduced = reduce_net(build("crash", list(tensors.values()), nodes), "cpu")
    assert reduced.failure.kind == "SIGSEGV during validate"
    assert [each.name for each in reduced.net.nodes] == ["fatal"]


def test_a_part_has_borders_of_its_own() -> None:
    net = ConvRelu().float_net()
    conv, relu = part_of(net, {0}), part_of(net, {1})
    assert (conv.inputs, conv.outputs, sorted(conv.tensors)) == (("x",), ("mid",), ["b", "mid", "w", "x"])
    assert (relu.inputs, relu.outputs, sorted(relu.tensors)) == (("mid",), ("y",), ["mid", "y"])
    assert relu.tensors["mid"].kind is TensorKind.APP_WRITE
    assert conv.tensors["w"] is net.tensors["w"]
    assert part_of(net, {0, 1}) == net


def test_components_are_connected_by_tensors_not_by_constants() -> None:
    net = lower(parse_graph(NORMS))
    assert components(net, range(5)) == [frozenset(range(5))]
    assert components(net, {0, 2, 3}) == [frozenset({2, 3}), frozenset({0})]


def test_a_feed_fits_the_inputs() -> None:
    feed = random_feed(ConvRelu().quantized_net())
    assert (feed["x"].dtype.name, feed["x"].any()) == ("uint8", False)
    assert random_feed(unary("Relu", (1, 4)))["x"].any()


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "libQnnHtp.so crashed (SIGSEGV); last step: finalize graph 'g'\n  log: x",
            "SIGSEGV during finalize",
        ),
        ("libQnnHtp.so gave no answer in 60 s; last step: execute graph 'g'", "no answer during execute"),
        ("graph 'g': lib: graphFinalize failed with error 1002 (0x3ea)", "graphFinalize: error (1002)"),
        ("something else\nand more", "something else"),
    ],
)
def test_failures_are_told_apart(message: str, kind: str) -> None:
    assert failure_kind(message) == kind
