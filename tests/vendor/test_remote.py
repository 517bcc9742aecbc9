"""Everything through the worker process: jobs of each kind, and input that would take a process down."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import BackendError, InputError, ModelError, OutputError
from openqnn.qnn import abi
from openqnn.qnn.context import Context
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Array, NetScalar
from openqnn.qnn.options import DeviceOptions, GraphOptions
from openqnn.vendor import jobs, remote
from openqnn.vendor.library_worker import LibraryWorker
from openqnn.vendor.model import VendorModel
from openqnn.vendor.target_setup import Target, target_of
from openqnn.vendor.validate import validate_net
from openqnn.worker.serve import Reporter
from tests.qnn.contexts import build_context
from tests.qnn.nets import ConvRelu, build, each_version, needs_cpu, node, requires, unary

CASE = ConvRelu()
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@each_version("htp", "system")
def test_context_binaries(folder: Path, tmp_path: Path, worker: LibraryWorker) -> None:
    htp, path = folder / "libQnnHtp.so", tmp_path / "x.bin"
    nets = [CASE.quantized_net(), replace(unary("Relu", (2, 3)), name="other")]
    # The simulator of QNN 2.51 does not run what it compiled with both a level and a VTCM size.
    device, options = DeviceOptions(69), {"conv_relu": GraphOptions(optimization=3)}
    size = build_context(nets, path, htp, device=device, options=options)
    assert [file.stat().st_size for file in tmp_path.iterdir()] == [size]
    info = remote.describe_context(path, system=folder / "libQnnSystem.so", worker=worker)
    assert [graph.name for graph in info.graphs] == ["conv_relu", "other"]
    assert (info.soc_model, info.dsp_arch) == (69, 79)
    image = CASE.quantized_image()
    ran = remote.run_context(
        path, [{"x": image}, {"x": image}], htp, graph="conv_relu", device=device, repeat=2, worker=worker
    )
    direct = worker.run(nets[0], {"x": image}, htp, soc=69)
    np.testing.assert_array_equal(ran.outputs[1]["y"], direct["y"])
    assert ran.seconds > 0
    with pytest.raises(InputError, match=r"has the graphs \['conv_relu', 'other'\]"):
        remote.run_context(path, [{"x": image}], htp, worker=worker)


@needs_cpu
def test_a_context_stays_loaded_while_its_file_stays(
    tmp_path: Path, worker: LibraryWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu, path = find_library("cpu"), tmp_path / "x.bin"
    loads: list[str] = []
    load = VendorModel._load

    def counted(model: VendorModel, target: Target, path: str, mapped: bool) -> Context:
        loads.append(path)
        return load(model, target, path, mapped)

    monkeypatch.setattr(VendorModel, "_load", counted)

    def run(keep: bool = True) -> Array:
        return jobs.run_context(str(path), [{"x": X}], str(cpu), Reporter(), keep=keep).outputs[0]["y"]

    build_context([unary("Relu", (2, 3))], path, "cpu")
    with closing_kept():
        for _ in range(3):
            np.testing.assert_array_equal(run(), np.maximum(X, 0))
        assert len(loads) == 1
        run(keep=False)
        assert len(loads) == 2
        build_context([unary("ElementWiseNeg", (2, 3))], path, "cpu")
        np.testing.assert_array_equal(run(), -X)
        np.testing.assert_array_equal(run(), -X)
        assert len(loads) == 3


@each_version("htp")
def test_a_graph_is_compiled_once_for_many_runs(folder: Path) -> None:
    steps: list[str] = []

    class Heard(Reporter):
        def step(self, text: str) -> None:
            steps.append(text.partition(" ")[0])

    library = str(folder / "libQnnHtp.so")
    with closing_kept():
        assert jobs.run_kept([{"x": X}], library, Heard()) is None
        jobs.run_net(unary("Relu", (2, 3)), [{"x": X}], library, Heard(), keep=True)
        for sign in (1, -1):
            ran = jobs.run_kept([{"x": sign * X}], library, Heard())
            assert ran is not None
            np.testing.assert_allclose(ran.outputs[0]["y"], np.maximum(sign * X, 0), atol=1e-3)
    assert (steps.count("finalize"), steps.count("execute")) == (1, 3)


@needs_cpu
def test_a_compiled_graph_outlives_its_process() -> None:
    net = remote.CompiledNet(unary("Relu", (2, 3)), target_of("cpu"))
    try:
        for _ in range(2):
            np.testing.assert_array_equal(net.run({"x": X})["y"], np.maximum(X, 0))
        with pytest.raises(InputError, match="needs an array"):
            net.run({})
        child = net._worker.pid
        assert child is not None
        os.kill(child, signal.SIGKILL)
        np.testing.assert_array_equal(net.run({"x": -X})["y"], np.maximum(-X, 0))
    finally:
        net.close()


@contextmanager
def closing_kept() -> Iterator[None]:
    try:
        yield
    finally:
        jobs._kept.model(None)


@each_version("htp", "system")
def test_a_failed_build_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    htp, target = folder / "libQnnHtp.so", tmp_path / "made" / "x.bin"
    with pytest.raises(BackendError, match="NoSuchOp 'first'"):
        build_context([unary("NoSuchOp", (2, 3))], target, htp)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        build_context([unary("Relu", (2, 3))], tmp_path / "file" / "x.bin", htp)
    assert [path.name for path in tmp_path.rglob("*")] == ["file"]


@each_version("ir", "system")
def test_dlc_files(folder: Path, tmp_path: Path, worker: LibraryWorker) -> None:
    ir, path = folder / "libQnnIr.so", tmp_path / "x.dlc"
    nets = [replace(unary("Relu", (2, 3)), name="b"), replace(unary("Sigmoid", (2, 3)), name="a")]
    remote.write_dlc(nets, path, library=ir, worker=worker)
    assert remote.read_dlc(path, library=ir, worker=worker) == nets
    with pytest.raises(ModelError, match="there is no file"):
        remote.read_dlc(tmp_path / "none.dlc", library=ir, worker=worker)


@each_version("saver")
def test_a_saver_bundle(folder: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the library works once per process, so each bundle has a process of its own
        remote.save_bundle([CASE.float_net()], tmp_path / "bundle", library=folder / "libQnnSaver.so")
    source = (tmp_path / "bundle" / "saver_output.c").read_text()
    assert "conv_relu" in source
    assert "Conv2d" in source
    assert source.rstrip().endswith("}")  # the library writes the end when it is unloaded
    assert CASE.weight.tobytes() in (tmp_path / "bundle" / "params.bin").read_bytes()


@pytest.mark.parametrize(
    "library", [pytest.param("cpu", marks=needs_cpu), pytest.param("htp", marks=requires("htp"))]
)
def test_every_node_gets_a_verdict(worker: LibraryWorker, library: str) -> None:
    """A crash in the middle does not keep the nodes behind it from being asked."""
    tensors = [*unary("Relu", (2, 3)).tensors.values(), *unary("Relu", (2, 3)).tensors.values()]
    keep_dims = (("keep_dims", NetScalar(abi.BOOL_8, True)),)
    net = build(
        "g",
        tensors,
        (
            node("good", "Relu", ("x",), "y"),
            node("unknown", "NoSuchOp", ("x",), "y"),
            node("crash", "ReduceSum", ("x",), "y", keep_dims),
            node("lost", "Relu", ("nowhere",), "y"),
            node("last", "Sigmoid", ("x",), "y"),
        ),
    )
    verdicts = validate_net(net, library, worker=worker)
    assert [verdict.ok for verdict in verdicts] == [True, False, False, False, True]
    assert [verdict.node.name for verdict in verdicts] == ["good", "unknown", "crash", "lost", "last"]
    assert "NoSuchOp 'unknown' (onnx node /unknown)" in verdicts[1].reason
    assert "crashed (SIGSEGV)" in verdicts[2].reason
    assert "no tensor 'nowhere'" in verdicts[3].reason


@requires("htp")
def test_verdicts_depend_on_the_architecture(worker: LibraryWorker) -> None:
    net = unary("Relu", (2, 3))
    assert validate_net(net, "htp", DeviceOptions(arch=79), worker=worker)[0].ok
    with pytest.raises(BackendError, match="deviceCreate"):
        validate_net(net, "htp", DeviceOptions(soc=999999), worker=worker)


def damaged(data: bytes, seed: int) -> bytes:
    """Cut off, overwritten, with bits flipped, with a part missing or doubled."""
    rng = np.random.default_rng(seed)
    content = bytearray(data)
    place = int(rng.integers(len(content)))
    match seed % 5:
        case 0:
            del content[place:]
        case 1:
            content[place : place + 16] = rng.bytes(16)
        case 2:
            for where in rng.integers(len(content), size=8):
                content[where] ^= 1 << int(rng.integers(8))
        case 3:
            del content[place : place + int(rng.integers(1, 64))]
        case _:
            content[place:place] = content[place : place + 32]
    return bytes(content)


def survive(data: bytes, path: Path, count: int, read: Callable[[], object]) -> None:
    """Each damaged file is read, or refused with an error of ours; anything else would propagate."""
    refused = 0
    for seed in range(count):
        path.write_bytes(damaged(data, seed))
        try:
            read()
        except (ModelError, BackendError):
            refused += 1
    assert refused > count / 10


FUZZ = [pytest.param(40, id="some"), pytest.param(500, id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", FUZZ)
@each_version("ir", "system")
def test_damaged_dlc_files(folder: Path, tmp_path: Path, worker: LibraryWorker, count: int) -> None:
    ir, path = folder / "libQnnIr.so", tmp_path / "x.dlc"
    remote.write_dlc([CASE.float_net()], path, library=ir, worker=worker)
    data = path.read_bytes()
    survive(data, path, count, lambda: remote.read_dlc(path, library=ir, worker=worker, timeout=20))


@pytest.mark.parametrize("count", FUZZ)
@each_version("htp", "system")
def test_damaged_context_binaries(folder: Path, tmp_path: Path, worker: LibraryWorker, count: int) -> None:
    system, path = folder / "libQnnSystem.so", tmp_path / "x.bin"
    build_context([CASE.quantized_net()], path, folder / "libQnnHtp.so")
    data = path.read_bytes()
    head = data[:4096]  # the description; behind it there is only the compiled graph

    def read() -> None:
        path.write_bytes(path.read_bytes() + data[4096:])
        remote.describe_context(path, system=system, worker=worker, timeout=20)

    survive(head, path, count, read)


@pytest.mark.parametrize(
    "count", [pytest.param(10, id="some"), pytest.param(500, id="many", marks=pytest.mark.slow)]
)
@each_version("htp", "system")
def test_running_damaged_context_binaries(
    folder: Path, tmp_path: Path, worker: LibraryWorker, count: int
) -> None:
    htp, path = folder / "libQnnHtp.so", tmp_path / "x.bin"
    build_context([CASE.quantized_net()], path, htp)
    inputs = [{"x": CASE.quantized_image()}]
    survive(
        path.read_bytes(),
        path,
        count,
        lambda: remote.run_context(path, inputs, htp, worker=worker, timeout=20),
    )
