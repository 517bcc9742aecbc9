"""Encodings found by aimet-onnx in place of our own calibration; the package is only needed for this."""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
from onnx import helper, numpy_helper

from openqnn.errors import UnsupportedError, UsageError
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


def aimet_encodings(graph: Graph, samples: Iterable[Mapping[str, Array]], recipe: Recipe) -> dict[str, Given]:
    """What AIMET finds for activations and weights of a graph in floating point, by their names."""
    if importlib.util.find_spec("aimet_onnx") is None:
        raise UsageError("aimet-onnx is not installed", hint="pip install aimet-onnx")
    scheme = SCHEMES.get(recipe.act.method)
    if scheme is None:
        known = ", ".join(SCHEMES)
        raise UsageError(f"AIMET has no calibration '{recipe.act.method}'", hint=f"it has {known}")
    model, names, inputs = _model(graph)
    sim = _simulation(model, scheme, recipe)
    feeds = [accepted(graph, sample) for sample in samples]
    sim.compute_encodings([{name: feed[of] for name, of in inputs.items()} for feed in feeds])
    with tempfile.TemporaryDirectory() as folder:
        sim.export(folder, "model", encoding_version=VERSION)
        file = read_encodings(Path(folder) / "model.encodings")
    entries = {names[n]: replace(e, name=names[n]) for n, e in file.tensors.items() if n in names}
    found = match(graph, EncodingsFile(file.version, entries))
    return {name: replace(given, source=AIMET) for name, given in found.given.items()}


def _simulation(model: onnx.ModelProto, scheme: str, recipe: Recipe) -> Any:
    quantsim = importlib.import_module("aimet_onnx.quantsim")
    types = {4: "int4", 8: "int8", 16: "int16"}
    return quantsim.QuantizationSimModel(
        model, param_type=types[recipe.weight_bw], activation_type=types[recipe.act_bw], quant_scheme=scheme
    )


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
