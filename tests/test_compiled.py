"""The Python API on compiled graphs: compile, save, and sessions on every kind of file."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import BackendError, ModelError, UnsupportedError, UsageError
from openqnn.ir import DType
from openqnn.ops import Builder
from openqnn.qnn import abi
from openqnn.qnn.library import can_fork
from openqnn.qnn.net import Net, NetScalar, qnn_name
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor.remote import compile_source
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import Target, resolved
from tests.cli.running import converted
from tests.cli.tool import environment
from tests.cli.tool import openqnn as command
from tests.models.fetch import model_path
from tests.models.samples import sample_inputs
from tests.qnn.nets import needs_cpu, needs_htp, u32, unary


@pytest.mark.parametrize(
    "backend", [pytest.param("libQnnCpu.so", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]
)
def test_graph_dlc_and_context_give_the_same_bits(backend: str, tmp_path: Path) -> None:
    graph = converted("mnist_conv")
    inputs = sample_inputs("mnist_conv")
    compiled = openqnn.compile(graph, backend)
    compiled.save(tmp_path / "m.bin")
    graph.save(tmp_path / "m.dlc")
    assert compiled.graphs == (qnn_name(graph.name),)
    found = []
    for source in (graph, tmp_path / "m.dlc", tmp_path / "m.bin"):
        with openqnn.Session(source, backend=backend) as session:
            arrays = dict(zip(session.input_names, inputs.values(), strict=True))
            found.append(next(iter(session.run(arrays).values())))
    for array in found[1:]:
        np.testing.assert_array_equal(array, found[0])


@needs_htp
def test_the_soc_is_chosen(tmp_path: Path) -> None:
    graph = converted("mnist_conv")
    assert openqnn.compile(graph, soc="SM8550").info.soc_model == 43
    made = openqnn.compile(graph)
    assert made.info.soc_model == 57
    assert repr(made).endswith("for HTP, SM8650 (SoC 57, HTP v75)>")
    openqnn.compile(graph).save(tmp_path / "m.bin")
    openqnn.Session(tmp_path / "m.bin", backend="htp", soc="SM8650").close()
    with pytest.raises(UsageError, match="is compiled for SM8650"):
        openqnn.Session(tmp_path / "m.bin", backend="htp", soc="SM8550")
    openqnn.compile(graph).save(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size > 50_000


@needs_htp
def test_a_context_can_be_saved_more_than_once(tmp_path: Path) -> None:
    made = openqnn.compile(converted("mnist_conv"))
    made.save(tmp_path / "a.bin")
    made.save(tmp_path / "b.bin")
    made.save(tmp_path / "c.onnx")
    assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "b.bin").read_bytes() == made.blob.tobytes()
    assert made.blob.tobytes() in (tmp_path / "c.onnx").read_bytes()


FORKED = """
import sys, warnings
import openqnn
from openqnn.qnn.library import can_fork
from tests.models.fetch import model_path
warnings.simplefilter("error")
graph = openqnn.convert(model_path("mnist_conv"))
assert can_fork()
made = openqnn.compile(graph, sys.argv[1])
assert made.seconds["graphFinalize"] > 0
made.save(sys.argv[2])
"""


@needs_htp
def test_a_copy_of_the_process_and_a_new_one_compile_the_same(tmp_path: Path) -> None:
    """A process with threads is not copied; in a clean one, the child is a copy of it."""
    subprocess.run([sys.executable, "-c", FORKED, "htp", tmp_path / "f.bin"], env=environment(), check=True)
    graph, done = openqnn.convert(model_path("mnist_conv")), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not can_fork()
        openqnn.compile(graph, "htp").save(tmp_path / "s.bin")
    finally:
        done.set()
        thread.join()
    assert (tmp_path / "f.bin").read_bytes() == (tmp_path / "s.bin").read_bytes()


@needs_htp
@pytest.mark.parametrize(
    ("net", "words"),
    [
        (unary("NoSuchOp", (2, 3)), "OP_PACKAGE_NOT_FOUND"),
        # HTP adds these and compiles them without a word, unless it is asked about each node before.
        (unary("Relu", (2, 3), to=(2, 4)), "mismatching dimension at index 1"),
        (unary("Transpose", (2, 3), (u32("perm", [0, 5]),), to=(3, 2)), "incorrect Value 5"),
        (unary("Softmax", (2, 3), (("bogus", NetScalar(abi.FLOAT_32, 1.0)),)), "number of found Parameters"),
        (unary("ReduceSum", (2, 3), (("keep_dims", NetScalar(abi.BOOL_8, False)),), to=(2,)), "SIGSEGV"),
    ],
)
def test_a_node_that_makes_no_sense_is_named(net: Net, words: str, tmp_path: Path) -> None:
    target = Target(resolved("htp"), DeviceOptions(57))
    with pytest.raises(BackendError) as caught:
        compile_source(Source(nets=(net,)), target, file=str(tmp_path / "c.bin"))
    assert f"{net.nodes[0].op} 'first' (onnx node /first)" in caught.value.message
    assert words in caught.value.message
    assert not list(tmp_path.iterdir())


@needs_htp
def test_names_that_stand_for_other_files(tmp_path: Path) -> None:
    graph = converted("mnist_conv")
    for name in ("m.bin", "m.cpp", "m.so"):
        with pytest.raises(UsageError, match=r"a graph is saved as \.oqnn, \.dlc or \.onnx"):
            graph.save(tmp_path / name)
    made = openqnn.compile(graph)
    for name in ("m.dlc", "m.so", "m.oqnn"):
        with pytest.raises(UsageError, match=r"a compiled context is saved as \.bin or \.onnx"):
            made.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    made.save(tmp_path / "m.bin")
    with pytest.raises(UsageError, match="no graph can be read from a context binary"):
        openqnn.load(tmp_path / "m.bin")
    with pytest.raises(ModelError) as refused:
        openqnn.convert(tmp_path / "m.bin")
    assert "it looks like a QNN context binary" in refused.value.hint
    made.save(tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match="qnn-net-run --retrieve_context runs it"):
        openqnn.convert(tmp_path / "m.onnx")
    assert command("context", "check", tmp_path / "m.onnx").code == 0


@needs_cpu
def test_what_cannot_be(tmp_path: Path) -> None:
    graph = converted("mnist_conv")
    openqnn.compile(graph, "libQnnCpu.so").save(tmp_path / "m.bin")
    with pytest.raises(UsageError, match="runs on the library that made it"):
        openqnn.Session(tmp_path / "m.bin")
    with pytest.raises(UsageError, match="only be chosen for HTP"):
        openqnn.compile(graph, "libQnnCpu.so", soc="SM8650")
    with pytest.raises(UsageError, match="only be chosen for HTP"):
        openqnn.Session(graph, soc="SM8650")
    with pytest.raises(UsageError, match="only be chosen for HTP"):
        openqnn.Session(tmp_path / "m.bin", backend="libQnnCpu.so", soc="SM8650")
    (tmp_path / "bad.bin").write_bytes(b"\0" * 100)
    with pytest.raises(ModelError, match="context binary"):
        openqnn.Session(tmp_path / "bad.bin", backend="libQnnCpu.so")


def _with_idle_input() -> openqnn.Graph:
    graph = openqnn.Graph("idle")
    builder = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (2, 3))
    graph.add_input("length", DType.INT_32, (1,))
    graph.add_output(builder("Relu", x, name="y"))
    return graph


@pytest.mark.parametrize(
    "backend", [pytest.param("libQnnCpu.so", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]
)
def test_an_input_that_no_node_reads_is_taken_and_left_out_of_files(backend: str, tmp_path: Path) -> None:
    """libQnnIr crashes on one, libQnnCpu and libQnnHtp refuse to be given it."""
    graph = _with_idle_input()
    arrays = {"x": np.full((2, 3), -1, np.float32), "length": np.ones(1, np.int32)}
    with openqnn.Session(graph, backend=backend) as session:
        assert not session.run(arrays)["y"].any()
    graph.save(tmp_path / "idle.dlc")
    openqnn.compile(graph, backend).save(tmp_path / "idle.bin")
    for name in ("idle.dlc", "idle.bin"):
        with openqnn.Session(tmp_path / name, backend=backend) as session:
            assert session.input_names == ["x"]
            assert not session.run({"x": arrays["x"]})["y"].any()


@needs_htp
def test_time_limits_of_any_size() -> None:
    graph = converted("mnist_conv")
    for seconds in (0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="a number of seconds above 0"):
            openqnn.Session(graph, backend="htp", timeout=seconds)
        with pytest.raises(UsageError, match="a number of seconds above 0"):
            openqnn.compile(graph, timeout=seconds)
    for seconds in (1e30, float("inf")):
        assert openqnn.compile(graph, timeout=seconds).graphs
        with openqnn.Session(graph, backend="htp", timeout=seconds) as session:
            session.run(sample_inputs("mnist_conv"))


@needs_cpu
def test_a_soc_is_no_matter_of_other_libraries() -> None:
    with pytest.raises(UsageError, match="a SoC can only be chosen for HTP, not for libQnnCpu"):
        openqnn.Session(converted("mnist_conv"), backend="libQnnCpu.so", soc="SM8650")


@needs_htp
def test_a_file_of_another_kind_is_no_context_binary(tmp_path: Path) -> None:
    converted("mnist_conv").save(tmp_path / "m.dlc")
    (tmp_path / "m.dlc").rename(tmp_path / "m.bin")
    with pytest.raises(ModelError, match=r"m\.bin: not a context binary") as refused:
        openqnn.Session(tmp_path / "m.bin", backend="htp")
    assert "it looks like a ZIP archive" in refused.value.hint
