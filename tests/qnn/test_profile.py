"""Profiling events, per-node costs and the log that Qualcomm's viewers read."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

import pytest

from openqnn.errors import BackendError, OutputError
from openqnn.formats.htp_timeline import read_schematic, timelines_in
from openqnn.formats.profiling_log import read_profiling_log
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.net import Array, Net
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.profile import Level, Profile, ProfileEvent, Unit, node_costs
from openqnn.qnn.profile_log import Author, Measured, Method, ProfileLog
from openqnn.qnn.system_api import SystemApi
from tests.qnn.nets import ConvRelu, each_version, needs_cpu

CASE = ConvRelu()


def profiled(library: str | Path, net: Net, image: Array, level: Level) -> list[tuple[ProfileEvent, ...]]:
    with Backend(library) as backend, Context(backend) as context:
        graph = context.compose(net)
        with Profile(backend, level) as compiling, Profile(backend, level) as running:
            graph.finalize(compiling.handle)
            graph.execute({"x": image}, running.handle)
            return [compiling.events(), running.events()]


@each_version("htp")
@pytest.mark.parametrize("level", Level)
def test_htp_events(folder: Path, level: Level) -> None:
    net, image = CASE.quantized_net(), CASE.quantized_image()
    compiling, running = profiled(folder / "libQnnHtp.so", net, image, level)
    assert (compiling[-1].type, compiling[-1].unit) == (300, Unit.MICROSECONDS)
    assert running[-1].identifier == "QNN (execute) time"
    assert running[-1].value > 0
    costs = node_costs(running)
    assert set(costs) >= {"conv", "relu"} if level is not Level.BASIC else not costs


@needs_cpu
def test_cpu_events() -> None:
    compiling, running = profiled("cpu", CASE.float_net(), CASE.image, Level.DETAILED)
    assert compiling[0].type == 300
    assert (running[0].type, running[0].identifier) == (400, "GRAPH_EXECUTE")
    assert set(node_costs(running)) == {"conv", "relu"}


@needs_cpu
def test_optrace_where_it_is_not_supported() -> None:
    with Backend("cpu") as cpu, pytest.raises(BackendError, match=r"optrace: .*NOT_SUPPORTED"):
        Profile(cpu, Level.DETAILED, optrace=True)


@each_version("htp", "system")
def test_the_timeline_of_the_cost_model(folder: Path, tmp_path: Path) -> None:
    """With optrace it is an object among finalize's events, and libQnnSystem puts it into a log whole."""
    with Backend(folder / "libQnnHtp.so", DeviceOptions(77)) as backend, Context(backend) as context:
        graph = context.compose(CASE.quantized_net())
        with contextlib.chdir(tmp_path), Profile(backend, Level.DETAILED, optrace=True) as profile:
            graph.finalize(profile.handle)
            events = profile.events()
    cycles = next(e.value for root in events for e in root.walk() if e.type == 2006)
    path = tmp_path / "t.log"
    with ProfileLog(SystemApi(folder / "libQnnSystem.so"), path, Author("openqnn", "1", "2")) as log:
        log.add(Measured(Method.FINALIZE, events, "conv_relu", 1, 2))
    (timeline,) = timelines_in(read_profiling_log(path))
    assert timeline.graph == "conv_relu" and timeline.chip == "QCS9100"
    assert timeline.cycles == pytest.approx(cycles, rel=0.01)
    schematic = read_schematic(tmp_path / "conv_relu_schematic.bin")
    assert {"conv", "relu"} <= set(schematic.nodes.values())
    assert {schematic.nodes.get(step.node) for step in timeline.steps} == {"relu", "Output"}
    assert any(step.operation in schematic.inputs for step in timeline.steps)


@each_version("system")
def test_a_log_has_the_events_and_who_wrote_it(folder: Path, tmp_path: Path) -> None:
    node = ProfileEvent(404, Unit.CYCLES, 77, "conv:OpId_3 (cycles)")
    events = (ProfileEvent(400, Unit.MICROSECONDS, 1234, "QNN (execute) time", (node,)),)
    path, author = tmp_path / "qnn-profiling-data_0.log", Author("openqnn", "1.2.3", "v2.47.0")
    system = SystemApi(folder / "libQnnSystem.so")
    sizes: list[int] = []
    for _ in range(2):  # writing it again replaces it
        with ProfileLog(system, path, author) as log:
            log.add(Measured(Method.EXECUTE, events, "conv_relu", 1000, 2000))
            log.add(Measured(Method.EXECUTE_IPS, (), "conv_relu", 1000, 2000))
        sizes.append(path.stat().st_size)
    content = path.read_bytes()
    for text in (b"QNN (execute) time", b"conv:OpId_3", b"conv_relu", b"openqnn", b"1.2.3", b"v2.47.0"):
        assert text in content
    assert ctypes.c_uint64(1234).value.to_bytes(8, "little") in content
    assert sizes[0] == sizes[1]
    with pytest.raises(OutputError, match="there is no folder"):
        ProfileLog(system, tmp_path / "none" / "x.log", author)
