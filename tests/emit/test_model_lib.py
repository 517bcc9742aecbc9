"""Model libraries: built by real compilers, run on the real backend, equal to a direct run bit for bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openqnn.emit.cpp import CppOptions, write_cpp
from openqnn.emit.emission_order import WeightNames
from openqnn.emit.model_lib import INCLUDE, LibraryJob, build_model_library
from openqnn.emit.model_source import SourceOptions, write_model_source
from openqnn.emit.weights import write_weights
from openqnn.errors import LibraryError, ModelError, OpenQnnError, OutputError, UsageError
from openqnn.vendor.library_worker import LibraryWorker
from tests.emit import graphs
from tests.emit.library import X86, build, needed, needs_compiler, symbols
from tests.qnn.nets import ConvRelu, needs_cpu, static

pytestmark = needs_compiler

CASES: dict[str, Callable[[], graphs.Case]] = {
    "conv_relu": graphs.conv_relu,
    "concat": graphs.concat,
    "quantized": graphs.quantized,
    "per_channel": graphs.per_channel,
    "largest_float": lambda: graphs.clip(-1.2345678e-7, 3.4028234663852886e38),
    "infinite_float": lambda: graphs.clip(float("-inf"), float("inf")),
    "slices": graphs.slices,
    "odd_names": graphs.odd_names,
    "absent_input": graphs.absent_input,
}
FIXED = {"QNN_SDK_VERSION", "QnnModel_composeGraphs", "QnnModel_freeGraphsInfo"}
ALLOWED = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6"}


@needs_cpu
@pytest.mark.parametrize("case", CASES)
def test_library_equals_direct_run(case: str, worker: LibraryWorker, host: Path, tmp_path: Path) -> None:
    net, inputs = CASES[case]()
    net = replace(net, name=case)
    built = build([net], tmp_path)
    outputs = built.run(host, {case: inputs}, tmp_path / "run")[case]
    for name, expected in worker.run(net, inputs).items():
        np.testing.assert_array_equal(outputs[name], expected)
    assert needed(built.library) <= ALLOWED


def test_exports(tmp_path: Path) -> None:
    net, _ = graphs.conv_relu()
    exported = symbols(build([net], tmp_path).library)
    weights = ("_conv_weight", "_1x1_weight", "bias")
    ends = [f"_binary_obj_binary_{name}_raw_{end}" for name in weights for end in ("start", "end", "size")]
    assert set(exported) == {*FIXED, *ends}
    assert exported["_binary_obj_binary_bias_raw_size"] == "A"


@needs_compiler
def test_paths_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    net, _ = graphs.conv_relu()
    assert build([net], Path(".")).library == tmp_path / "lib" / X86 / f"lib{net.name}.so"


@needs_cpu
@needs_compiler
def test_debug_makes_every_result_an_output(host: Path, tmp_path: Path) -> None:
    net, inputs = graphs.conv_relu()
    built = build([net], tmp_path)
    outputs = built.run(host, {net.name: inputs}, tmp_path / "run", debug=True)
    assert set(outputs[net.name]) == {"again"}
    found = [line.split()[1] for line in built.printed if line.startswith("output")]
    assert found == ["_Conv", "_0relu", "shrink", "again"]


@needs_cpu
def test_several_graphs_share_weights(worker: LibraryWorker, host: Path, tmp_path: Path) -> None:
    """Two graphs over one weight, and a third whose weight of the same name is another one."""
    conv = ConvRelu()
    nets = [replace(conv.float_net(), name=name) for name in ("first", "second", "third")]
    other = static("w", conv.weight * 2)
    nets[2] = replace(nets[2], tensors={**nets[2].tensors, "w": other})
    names = WeightNames(nets)
    assert list(names.weights) == ["w", "b", "third_w"]
    built = build(nets, tmp_path, stem="three")
    outputs = built.run(host, {net.name: {"x": conv.image} for net in nets}, tmp_path / "run")
    for net in nets:
        np.testing.assert_array_equal(outputs[net.name]["y"], worker.run(net, {"x": conv.image})["y"])
    assert built.source.net_json is None


@needs_cpu
def test_options_of_the_converter(worker: LibraryWorker, host: Path, tmp_path: Path) -> None:
    net, inputs = graphs.conv_relu()
    options = SourceOptions(own_prefix=True, counted_names=True, validate=False)
    built = build([net], tmp_path, options)
    exported = symbols(built.library)
    assert {"conv_relu_composeGraphs", "conv_relu_freeGraphsInfo"} <= set(exported)
    assert not any("weight" in name for name in exported)
    outputs = built.run(host, {net.name: inputs}, tmp_path / "run")[net.name]
    np.testing.assert_array_equal(outputs["again"], worker.run(net, inputs)["again"])


SDK_STYLE = """
#include "QnnOpDef.h"
#include "QnnModel.hpp"
#define DO_GRAPH_NODE_VALIDATIONS 1
using namespace qnn_wrapper_api;
const __attribute__((visibility("default"))) char* QNN_SDK_VERSION = "qaisw-v2.27.0";
extern "C" {
static ModelError_t addTensor_x(QnnModel& model) {
  ModelError_t err = MODEL_NO_ERROR;
  uint32_t dimensions_x[] = {2, 4};
  VALIDATE(model.addTensor("x", (Qnn_Tensor_t) {.version= QNN_TENSOR_VERSION_1, {.v1= {
    .id=0, .name= "x", .type= QNN_TENSOR_TYPE_APP_WRITE, .dataFormat= QNN_TENSOR_DATA_FORMAT_FLAT_BUFFER,
    .dataType= QNN_DATATYPE_FLOAT_32,
    .quantizeParams= { QNN_DEFINITION_UNDEFINED, QNN_QUANTIZATION_ENCODING_UNDEFINED,
                       {.scaleOffsetEncoding= {.scale= 0.0000000000000000f, .offset= 0}}},
    .rank= 2, .dimensions=dimensions_x, .memType= QNN_TENSORMEMTYPE_RAW,
    {.clientBuf= { .data=nullptr, .dataSize=0}}}}}), err);
  return err;
}
static ModelError_t addNode_only(QnnModel& model) {
  ModelError_t err = MODEL_NO_ERROR;
  const char* inputs_only[] = {"x"};
  uint32_t dimensions_y[] = {2, 4};
  Qnn_Tensor_t outputs_only[] = {(Qnn_Tensor_t) {.version= QNN_TENSOR_VERSION_1, {.v1= {
    .id=0, .name= "y", .type= QNN_TENSOR_TYPE_APP_READ, .dataFormat= QNN_TENSOR_DATA_FORMAT_FLAT_BUFFER,
    .dataType= QNN_DATATYPE_FLOAT_32,
    .quantizeParams= { QNN_DEFINITION_UNDEFINED, QNN_QUANTIZATION_ENCODING_UNDEFINED,
                       {.scaleOffsetEncoding= {.scale= 0.0000000000000000f, .offset= 0}}},
    .rank= 2, .dimensions=dimensions_y, .memType= QNN_TENSORMEMTYPE_RAW,
    {.clientBuf= { .data=nullptr, .dataSize=0}}}}}};
  VALIDATE(model.addNode(QNN_OPCONFIG_VERSION_1, "only", "qti.aisw", "Relu", nullptr, 0, inputs_only, 1,
                         outputs_only, 1), err);
  return err;
}
QNN_API ModelError_t QnnModel_composeGraphs(Qnn_BackendHandle_t backendHandle,
    QNN_INTERFACE_VER_TYPE interface, Qnn_ContextHandle_t contextHandle,
    const GraphConfigInfo_t** graphsConfigInfo, const uint32_t numGraphsConfigInfo,
    GraphInfoPtr_t** graphsInfo, uint32_t* numGraphsInfo, bool debug,
    QnnLog_Callback_t logCallback, QnnLog_Level_t maxLogLevel) {
  ModelError_t err = MODEL_NO_ERROR;
  QnnModel old;
  const QnnGraph_Config_t** graphConfigs = nullptr;
  VALIDATE(getQnnGraphConfigFromInfo("old", graphsConfigInfo, numGraphsConfigInfo, graphConfigs), err);
  VALIDATE(old.initialize(backendHandle, interface, contextHandle, "old", debug, DO_GRAPH_NODE_VALIDATIONS,
                          graphConfigs), err);
  VALIDATE(addTensor_x(old), err);
  VALIDATE(addNode_only(old), err);
  QnnModel* models [] = { &old };
  uint32_t numModels = 1;
  VALIDATE(getGraphInfoFromModels(*models, numModels, graphsInfo), err);
  *numGraphsInfo = numModels;
  return err;
}
QNN_API ModelError_t QnnModel_freeGraphsInfo(GraphInfoPtr_t** graphsInfo, uint32_t numGraphsInfo) {
  return qnn_wrapper_api::freeGraphsInfo(graphsInfo, numGraphsInfo);
}
}
"""


@needs_cpu
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_sources_of_older_converters(
    compiler: str, host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 tensors, and initialisers of which only some name their field."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    monkeypatch.setenv("CXX", compiler)
    source = tmp_path / "old.cpp"
    source.write_text(SDK_STYLE)
    library = build_model_library(LibraryJob(source), tmp_path, [X86])[X86]
    net, inputs = graphs.clip(0, 1, "old")
    built = build([net], tmp_path / "new")
    built.library = library
    outputs = built.run(host, {"old": inputs}, tmp_path / "run")["old"]
    np.testing.assert_array_equal(outputs["y"], np.maximum(inputs["x"], 0))


@needs_cpu
def test_failure_names_the_node(host: Path, tmp_path: Path) -> None:
    built = build([graphs.every_scalar()], tmp_path)
    with pytest.raises(AssertionError, match=r"(?s)'only'.*error 3 in addNode_only.*answered 3"):
        built.run(host, {"every": {"x": np.zeros(3, np.uint8)}}, tmp_path / "run")


def test_clang_builds_the_same_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("clang++"):
        pytest.skip("no clang++")
    net, _ = graphs.per_channel()
    with_gcc = build([net], tmp_path / "gcc")
    monkeypatch.setenv("CXX", "clang++")
    with_clang = build([net], tmp_path / "clang")
    assert symbols(with_gcc.library).keys() == symbols(with_clang.library).keys()
    assert needed(with_clang.library) <= ALLOWED


@pytest.mark.parametrize("target", ["aarch64-linux", "aarch64-ubuntu-gcc9.4", "aarch64-oe-linux-gcc11.2"])
def test_aarch64(target: str, tmp_path: Path) -> None:
    if not shutil.which("aarch64-linux-gnu-g++"):
        pytest.skip("no cross compiler: apt-get install g++-aarch64-linux-gnu")
    net, _ = graphs.per_channel()
    source = write_model_source([net], tmp_path / "net")
    said: list[str] = []
    library = build_model_library(LibraryJob(source.cpp, source.bin), tmp_path, [target], said.append)[target]
    header = subprocess.run(["readelf", "-h", library], capture_output=True, text=True, check=True).stdout
    assert "AArch64" in header
    assert needed(library) <= {*ALLOWED, "ld-linux-aarch64.so.1"}
    assert set(symbols(library)) > FIXED
    assert library == tmp_path / target / "libnet.so"
    assert [line.split(":")[0] for line in said] == [target, target]


def test_names(tmp_path: Path) -> None:
    net, _ = graphs.conv_relu()
    source = write_model_source([net], tmp_path / "my-model.cpp")
    assert source.cpp.name == "my-model.cpp"
    assert source.bin is not None and source.bin.name == "my-model.bin"
    assert source.net_json is not None and source.net_json.name == "my-model_net.json"
    built = build_model_library(LibraryJob(source.cpp, source.bin, "other"), tmp_path / "out", [X86])
    assert built == {X86: tmp_path / "out" / X86 / "libother.so"}
    assert [path.name for path in built[X86].parent.iterdir()] == ["libother.so"]


# -- refusals -----------------------------------------------------------------------------------------------


@pytest.fixture
def job(tmp_path: Path) -> LibraryJob:
    net, _ = graphs.conv_relu()
    source = write_model_source([net], tmp_path / "net")
    return LibraryJob(source.cpp, source.bin)


def refused(job: LibraryJob, target: str, output: Path, error: type[OpenQnnError]) -> str:
    with pytest.raises(error) as caught:
        build_model_library(job, output, [target])
    assert not list(output.rglob("*"))[1:], "something was left behind"
    return str(caught.value)


def test_a_name_is_no_path(job: LibraryJob, tmp_path: Path) -> None:
    words = refused(replace(job, name="../other"), "x86_64-linux-clang", tmp_path / "out", UsageError)
    assert "'../other' is no name for a library" in words


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("x86_64-windows-msvc", UsageError, "Microsoft's compiler, which runs on Windows only"),
        ("windows-aarch64", UsageError, "context binary or a DLC"),
        ("hexagon", UsageError, "known targets: x86_64-linux-clang, aarch64-android"),
        ("aarch64-android", LibraryError, "set ANDROID_NDK_ROOT to its folder"),
    ],
)
def test_targets_that_cannot_be_built(
    target: str, error: type[OpenQnnError], words: str, job: LibraryJob, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("ANDROID_NDK_ROOT", raising=False)
    monkeypatch.delenv("ANDROID_NDK_HOME", raising=False)
    assert words in refused(job, target, tmp_path / "out", error)


def test_ndk_that_is_not_there(job: LibraryJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_NDK_ROOT", str(tmp_path))
    assert "there is no" in refused(job, "aarch64-android", tmp_path / "out", LibraryError)


def test_no_compiler(job: LibraryJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install g++" in refused(job, X86, tmp_path / "out", LibraryError)
    assert "apt-get install g++-aarch64" in refused(job, "aarch64-linux", tmp_path / "out", LibraryError)


def test_weights_left_out(job: LibraryJob, tmp_path: Path) -> None:
    message = refused(replace(job, bin=None), X86, tmp_path / "out", ModelError)
    assert "give the .bin file that was written with it" in message


def test_compiler_error_is_shown(job: LibraryJob, tmp_path: Path) -> None:
    job.cpp.write_text(job.cpp.read_text().replace("VALIDATE", "VALID", 1))
    message = refused(job, X86, tmp_path / "out", ModelError)
    assert "'VALID' was not declared" in message
    assert f"-c {job.cpp}" in message


def test_missing_source(job: LibraryJob, tmp_path: Path) -> None:
    message = refused(replace(job, cpp=tmp_path / "no.cpp"), X86, tmp_path / "out", ModelError)
    assert message.endswith("no.cpp: no such file")


def test_a_source_that_is_something_else(job: LibraryJob, tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"\x08\x07")
    message = refused(replace(job, cpp=other), X86, tmp_path / "out", ModelError)
    assert "model.onnx is not C++ source by its name\n  hint: qnn-onnx-converter writes" in message
    assert not (tmp_path / "out").exists()


def test_damaged_weights(job: LibraryJob, tmp_path: Path) -> None:
    assert job.bin is not None
    job.bin.write_bytes(job.bin.read_bytes()[:700])
    assert "not a whole one: unexpected end of data" in refused(job, X86, tmp_path / "out", ModelError)
    job.bin.write_bytes(b"no archive at all" * 100)
    assert "not an archive of weights" in refused(job, X86, tmp_path / "out", ModelError)
    with pytest.raises(ModelError, match="no such file"):
        build_model_library(replace(job, bin=tmp_path / "no.bin"), tmp_path / "out", [X86])


def test_archive_of_something_else(job: LibraryJob, tmp_path: Path) -> None:
    (tmp_path / 'x" \n.raw').write_text("x")
    archive = tmp_path / "else.bin"
    subprocess.run(["tar", "-cf", archive, "-C", tmp_path, 'x" \n.raw'], check=True)
    assert "which is no weight" in refused(replace(job, bin=archive), X86, tmp_path / "out", ModelError)


def test_output_that_cannot_be_written(job: LibraryJob, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        build_model_library(job, tmp_path / "file", [X86])


def test_headers_are_c_as_well(tmp_path: Path) -> None:
    source = tmp_path / "check.c"
    source.write_text('#include "QnnInterface.h"\n#include "QnnOpDef.h"\n')
    for minor, entries in ((32, 71), (36, 72), (40, 75)):
        check = f'-DCHECK=_Static_assert(sizeof(OpenQnn_Table_t) == {entries} * 8, "");'
        source.write_text('#include "QnnInterface.h"\nCHECK\n')
        command = ["gcc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I", str(INCLUDE), check]
        subprocess.run([*command, f"-DOPENQNN_CORE_API_MINOR={minor}", str(source)], check=True)


# -- size ---------------------------------------------------------------------------------------------------


MEASURED = """
import resource, sys
from pathlib import Path
from openqnn.emit.model_lib import LibraryJob, build_model_library
folder = Path(sys.argv[1])
job = LibraryJob(folder / "big.cpp", folder / "big.bin")
build_model_library(job, folder / "lib", ["x86_64-linux-clang"])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_200_mb_of_weights_take_little_memory(tmp_path: Path) -> None:
    """One tensor of 120 MB and eight of 10 MB, mapped from a file; no process holds all of them."""
    sizes = [120, *[10] * 8]
    mapped = np.memmap(tmp_path / "weights", np.float32, "w+", shape=(sum(sizes) << 18,))
    mapped[::4096] = 1
    tensors, at = [], 0
    for index, size in enumerate(sizes):
        tensors.append(static(f"w{index}", mapped[at : at + (size << 18)]))
        at += size << 18
    first, _ = graphs.conv_relu()
    adds = [
        graphs.node(f"add{i}", "ElementWiseAdd", (t.name, t.name), f"s{i}") for i, t in enumerate(tensors)
    ]
    results = {
        f"s{i}": replace(t, name=f"s{i}", kind=graphs.TensorKind.NATIVE, data=None)
        for i, t in enumerate(tensors)
    }
    net = replace(
        first, tensors={**{t.name: t for t in tensors}, **results}, inputs=(), outputs=(), nodes=tuple(adds)
    )
    names = WeightNames([net])
    write_weights(names, tmp_path / "big.bin")
    write_cpp([net], tmp_path / "big.cpp", CppOptions(), names)
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path], env=paths, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 220, "megabytes in the largest process"
    assert (tmp_path / "lib" / X86 / "libbig.so").stat().st_size > sum(sizes) << 20
