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
from tests.cli.test_published_scripts import CONFIG, network
from tests.fuzz.damage import damaged

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
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)


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
