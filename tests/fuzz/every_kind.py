"""Every kind of file with the commands that read it; one damaged file is given to one of them, in a fork."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import openqnn
from openqnn.cli.main import main
from openqnn.cli.registry import run_tool
from openqnn.qnn.profile import ProfileEvent, Unit
from openqnn.qnn.profile_log import Author, Measured, Method, ProfileLog
from openqnn.qnn.system_api import SystemApi
from tests.cli.test_published_scripts import CONFIG, network
from tests.fuzz.damage import damaged
from tests.models.fetch import model_path

PATIENCE = 150.0  # seconds
GOOD = (0, 1, 2)
NET_CONFIG = (
    '{"backend_extensions": {"config_file_path": "htp.json"}, "context_configs": {"enable_graphs": ["g"]}}'
)
HTP_CONFIG = '{"graphs": [{"graph_names": ["g"], "vtcm_mb": 4, "O": 3}], "devices": [{"soc_model": 57}]}'
IO_CONFIG = """Converted Graph:
  - Input Tensors:
    - Name: input
      Desired Model Parameters:
        Layout: NCHW
        Shape: 1,3,32,32
"""
CUSTOM_IO = """- IOName: input
  Layout:
    Model: NCHW
    Custom: NHWC
  Datatype: uint8
  QuantParam:
    Type: QNN_DEFINITION_DEFINED
    Scale: 0.1
    Offset: -2
"""
THROUGHPUT = """{
  "backends": [{"backendName": "cpu", "backendPath": "none.so"}],
  "models": [{"modelName": "m", "modelPath": "none.dlc"}],
  "contexts": [{"contextName": "c", "priority": "NORMAL"}],
  "testCase": {"iteration": 1, "threads": [
    {"threadName": "t", "backend": "cpu", "context": "c", "model": "m", "interval": 0, "loopUnit": "count",
     "loop": 2, "useRandomData": true}]}}
"""
BENCH = """{
  "Name": "net", "HostRootPath": "net", "HostResultsDir": "results", "Runs": 3, "Backends": ["CPU"],
  "Measurements": ["timing"],
  "Model": {"Name": "net", "qnn_model": "none.so", "InputList": "list.txt", "Data": ["."]}}
"""
SHAPES = """graphs:
  one: {shapes: {input: [1, 3, 32, 32]}}
  two: {shapes: {input: [2, 3, 32, 32]}, batch: 2}
"""
PARTS = """backends: [builtin]
pins: {"op:Conv2d": builtin, fc: builtin}
constraints: {memory_mb: 64, power_critical: true}
"""
EVALUATION = """model:
  info: {desc: digits}
  dataset: {name: d, path: ., inputlist_file: list.txt, calibration: {type: index, file: list.txt}}
  processing: {preprocessing: {transformations: [{plugin: {name: resize, params: {dims: "28,28"}}}]}}
  inference-engine:
    model_path: none.onnx
    inference_schemas: [{inference_schema: {name: qnn, precision: quant, target_arch: x86}}]
  evaluator: {comparator: {type: cos}, metrics: [{plugin: {name: topk, params: {kval: "1,5"}}}]}
"""
CAFFE = """name: "net"
input: "data"
input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
layer {
  name: "p" type: "Pooling" bottom: "data" top: "p"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer { name: "s" type: "Softmax" bottom: "p" top: "s" softmax_param { axis: 1 } }
"""
PACKAGE = """<?xml version="1.0" encoding="UTF-8"?>
<OpDefCollection PackageName="my.Package" Domain="aisw" Version="1.0">
  <OpDefList><OpDef>
    <Name>Blend</Name><Description><Content>Blends.</Content></Description>
    <Input><Name>a</Name><Mandatory>true</Mandatory><Datatype>QNN_DATATYPE_FLOAT_32</Datatype>
      <Shape><Rank>4D</Rank><Layout>NHWC</Layout></Shape></Input>
    <Output><Name>y</Name><Mandatory>true</Mandatory><Datatype>QNN_DATATYPE_FLOAT_32</Datatype>
      <Shape><Rank>4D</Rank></Shape></Output>
    <Parameter><Name>mode</Name><Mandatory>false</Mandatory><Datatype>QNN_DATATYPE_UINT_32</Datatype>
      <Shape><Rank>SCALAR</Rank></Shape><Default>1</Default></Parameter>
    <SupportedBackend>CPU</SupportedBackend>
  </OpDef></OpDefList>
</OpDefCollection>
"""
CONVERT = ("qnn-onnx-converter", "-i", "model.onnx", "-o", "out.cpp", "-b", "1")
QAIRT = ("qairt-converter", "-i", "model.onnx", "-o", "out.dlc", "--onnx_batch", "1")


@dataclass(frozen=True)
class Kind:
    """A file name, and the command lines that read that file."""

    file: str
    commands: tuple[tuple[str, ...], ...]


BATCH = ("--batch", "1")
GENERATE = ("qnn-context-binary-generator", "--model", "none.onnx", "--backend", "htp")
RUN = ("qnn-net-run", "--model", "graph.oqnn", "--backend", "none.so", "--input_list", "list.txt")
BUILD = ("qnn-model-lib-generator", "-c", "weights.cpp", "-b", "weights.bin", "-t", "none")
KINDS = (
    Kind("model.onnx", (("check", "model.onnx", *BATCH), ("convert", "model.onnx", *BATCH, "-o", "o.oqnn"))),
    Kind("graph.oqnn", (("inspect", "graph.oqnn"), ("run", "graph.oqnn", "--random"))),
    Kind("ep.onnx", (("extract", "ep.onnx", "-o", "o.bin"),)),
    Kind("overrides.json", ((*CONVERT, "--quantization_overrides", "overrides.json"),)),
    Kind("net.json", ((*RUN, "--config_file", "net.json"),)),
    Kind("htp.json", ((*GENERATE, "--config_file", "htp.json"),)),
    Kind("io.yaml", ((*QAIRT, "--io_config", "io.yaml", "--dry_run"),)),
    Kind("custom.yaml", ((*CONVERT, "--custom_io", "custom.yaml", "--dry_run"),)),
    Kind("list.txt", ((*RUN,),)),
    Kind("x.npy", (("run", "graph.oqnn", "--input", "input=x.npy"),)),
    Kind("x.npz", (("quantize", "graph.oqnn", "--data", "x.npz", "-o", "q.oqnn", "--no_report"),)),
    Kind("model_net.json", (("inspect", "model_net.json"), ("lint", "model_net.json"))),
    Kind("weights.bin", (BUILD,)),
    Kind("encodings.json", (("encodings", "encodings.json"),)),
    Kind("context.bin", (("inspect", "context.bin"),)),
    Kind("throughput.json", (("qnn-throughput-net-run", "--config", "throughput.json"),)),
    Kind("bench.json", (("qnn-bench", "-c", "bench.json"),)),
    Kind("shapes.yaml", (("convert", "model.onnx", "--shapes", "shapes.yaml", "-o", "o.dlc"),)),
    Kind("parts.yaml", (("partition", "graph.oqnn", "--partition", "parts.yaml", "--backends", "builtin"),)),
    Kind("evaluation.yaml", (("qnn-accuracy-evaluator", "-config", "evaluation.yaml", "-work_dir", "w"),)),
    Kind("net.prototxt", (("check", "net.prototxt"), ("convert", "net.prototxt", "-o", "o.oqnn"))),
    Kind("package.xml", (("qnn-op-package-generator", "-p", "package.xml", "-o", "made"),)),
    Kind("run.log", (("qnn-profile-viewer", "--input_log", "run.log"), ("profile", "run.log"))),
    Kind("model.tflite", (("check", "model.tflite"), ("inspect", "model.tflite"))),
    Kind("graph.dlc", (("inspect", "graph.dlc"), ("qairt-dlc-info", "-i", "graph.dlc"))),
)
SLOW = ("context.bin", "graph.dlc")  # a library reads them, in a process of its own


def make_files(folder: Path) -> None:
    """Sound files of every kind."""
    from openqnn.emit import lower
    from openqnn.emit.model_source import write_model_source

    source = network(folder / "model.onnx")
    graph = openqnn.convert(source, batch=1)
    graph.save(folder / "graph.oqnn")
    graph.save(folder / "graph.dlc")
    made = openqnn.compile(graph)
    made.save(folder / "context.bin")
    made.save(folder / "ep.onnx")
    written = write_model_source([lower(graph)], folder / "model")
    assert written.bin is not None and written.net_json is not None
    written.bin.rename(folder / "weights.bin")
    written.cpp.rename(folder / "weights.cpp")
    x = np.random.default_rng(0).random((1, 3, 32, 32)).astype(np.float32)
    x.tofile(folder / "x.raw")
    np.save(folder / "x.npy", x)
    np.savez(folder / "x.npz", input=x)
    texts = {
        "overrides.json": CONFIG, "encodings.json": CONFIG, "net.json": NET_CONFIG, "htp.json": HTP_CONFIG,
        "io.yaml": IO_CONFIG, "custom.yaml": CUSTOM_IO, "list.txt": "input:=x.raw\nx.raw\n",
        "throughput.json": THROUGHPUT, "bench.json": BENCH, "shapes.yaml": SHAPES, "parts.yaml": PARTS,
        "evaluation.yaml": EVALUATION, "net.prototxt": CAFFE, "package.xml": PACKAGE,
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "model.tflite").write_bytes(model_path("microwakeword_okay_nabu").read_bytes())
    _write_log(folder / "run.log")


def _write_log(path: Path) -> None:
    """A profiling log of one graph, with events inside of events."""
    node = ProfileEvent(404, Unit.CYCLES, 77, "conv:OpId_3 (cycles)")
    root = ProfileEvent(400, Unit.MICROSECONDS, 1234, "QNN (execute) time", (node,))
    with ProfileLog(SystemApi(), path, Author("app", "1.2", "v9")) as log:
        log.add(Measured(Method.FINALIZE, (), "g", 5, 9))
        for start in range(10, 40, 10):
            log.add(Measured(Method.EXECUTE, (root,), "g", start, start + 8))


def attempt(folder: Path, kind: Kind, number: int) -> str:
    """What is wrong with how the command takes the damaged file; "" where it is an error or a success."""
    command = kind.commands[number % len(kind.commands)]
    sound = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with tempfile.TemporaryDirectory() as name:
        for file, data in sound.items():
            Path(name, file).write_bytes(damaged(data, number) if file == kind.file else data)
        return _outcome(command, Path(name))


def _outcome(command: tuple[str, ...], folder: Path) -> str:
    said = folder / "said"
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.chdir(folder)
        os.setpgid(0, 0)
        handle = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False, errors="replace")
        code = 99
        try:
            code = run_tool(command[0], command[1:]) if "-" in command[0] else main(command)
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os._exit(code)
    code = _waited(pid)
    text = said.read_text(errors="replace") if said.exists() else ""
    if code == -signal.SIGALRM:
        return f"{' '.join(command)}: hangs"
    if code not in GOOD or "Traceback" in text:
        return f"{' '.join(command)}: exit {code}\n{text[-1500:]}"
    return ""


def _waited(pid: int) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -signal.SIGALRM
