"""Encodings found by aimet-onnx in place of our own calibration; the package is only needed for this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from openqnn.errors import BackendError, UnsupportedError, UsageError
from openqnn.formats.encodings import EncodingsFile, read_encodings
from openqnn.ir import Array, Given, Graph
from openqnn.quant.overrides import match
from openqnn.quant.recipe import Method, Recipe
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.to_onnx import Lowering

AIMET = "aimet"
OPSET, IR_VERSION, VERSION = 21, 10, "1.0.0"
SCHEMES = {
    Method.MIN_MAX: "min_max",
    Method.SQNR: "post_training_tf_enhanced",
}
TYPES = {4: "int4", 8: "int8", 16: "int16"}
PYTHON: Final = "AIMET_ENV_PYTHON"  # the Python that has aimet-onnx, if it is another one
SCRIPT = Path(__file__).with_name("run_aimet.py")
_INSTALL = (
    "`openqnn sdk-tree DIR`, then `source DIR/bin/aimet_env_setup.sh --env_path FOLDER` makes it an"
    f" environment of its own; or set {PYTHON} to a Python that has it"
)


def aimet_encodings(graph: Graph, samples: Iterable[Mapping[str, Array]], recipe: Recipe) -> dict[str, Given]:
    """What AIMET finds for activations and weights of a graph in floating point, by their names."""
    scheme = SCHEMES.get(recipe.act.method)
    if scheme is None:
        known = ", ".join(SCHEMES)
        raise UsageError(f"AIMET has no calibration '{recipe.act.method}'", hint=f"it has {known}")
    model, names, inputs = _model(graph)
    with tempfile.TemporaryDirectory(prefix="openqnn-aimet-") as name:
        folder = Path(name)
        onnx.save_model(model, folder / "source.onnx", save_as_external_data=True, location="source.bin")
        count = 0
        for sample in samples:
            feed = accepted(graph, sample)
            np.savez(folder / f"{count}.npz", *(feed[of] for of in inputs.values()), allow_pickle=False)
            count += 1
        request = {
            "scheme": scheme, "weights": TYPES[recipe.weight_bw], "activations": TYPES[recipe.act_bw],
            "inputs": list(inputs), "samples": count, "version": VERSION,
        }  # fmt: skip
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        _run(folder)
        file = read_encodings(folder / "model.encodings")
    entries = {names[n]: replace(e, name=names[n]) for n, e in file.tensors.items() if n in names}
    found = match(graph, EncodingsFile(file.version, entries))
    return {name: replace(given, source=AIMET) for name, given in found.given.items()}


def _run(folder: Path) -> None:
    """The script, in AIMET's own environment where there is one, else in this one."""
    python = os.environ.get(PYTHON) or sys.executable
    try:
        done = subprocess.run([python, "-P", SCRIPT, folder], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"{PYTHON}: {python} cannot be run: {error.strerror}") from error
    if done.returncode == 0:
        return
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    if "No module named 'aimet_onnx'" in last:
        raise UsageError(f"aimet-onnx is not installed in {python}", hint=_INSTALL)
    raise BackendError(f"AIMET ended with code {done.returncode}: {last}")


def _model(graph: Graph) -> tuple[onnx.ModelProto, dict[str, str], dict[str, str]]:
    """The graph as an ONNX model; which tensor of the graph each of its names is, and each of its inputs."""
    lowering = Lowering()
    lowered = lowering.run(graph)
    if lowered.steps:
        ops = ", ".join(sorted({step.node.op for step in lowered.steps}))
        raise UnsupportedError(f"AIMET cannot run {ops}: there is no ONNX form of it")
    names = {name: value.name for (value, _), orders in lowering.known.items() for name in orders.values()}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype.numpy), v.shape)
        for n, v in lowered.inputs.items()
    ]
    ends = [helper.make_empty_tensor_value_info(n) for n in lowered.outputs.values()]
    constants = [numpy_helper.from_array(a, n) for n, a in lowered.body.constants.items()]
    made = helper.make_graph(lowered.body.nodes, graph.name, infos, ends, constants)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION)
    return model, names, {n: v.name for n, v in lowered.inputs.items()}
