"""Layerwise and cumulative-layerwise snooping: each layer alone on the library, and the report about it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from openqnn.cli.shared.accuracy_debugger.debugger_request import DebuggerRequest
from openqnn.cli.shared.accuracy_debugger.framework_diagnosis import framework_of, read_inputs
from openqnn.cli.shared.accuracy_debugger.inference_engine import (
    CHIPS,
    check_runtime,
    device_of,
    target_of_runtime,
)
from openqnn.cli.shared.accuracy_debugger.run_folder import RunFolder
from openqnn.errors import OpenQnnError, UnsupportedError
from openqnn.formats.atomic import replacing
from openqnn.ir import Array, Graph

if TYPE_CHECKING:
    from openqnn.analysis.accuracy.layerwise import LayerResult, Layerwise
    from openqnn.analysis.accuracy.verifiers import ChosenVerifier
    from openqnn.runtime.runner import Runner

SECONDS = 600.0
FOLDERS = {"layerwise": "layerwise_snooping", "cumulative-layerwise": "cumulative_layerwise_snooping"}
REPORTS = {
    "layerwise": ("layerwise.csv",),
    "cumulative-layerwise": ("cumulative_layerwise.csv", "layerwise.csv"),
}
ACTIVATIONS = "Activations (Min,Max,Median)"
ABNORMAL = {"sqnr": lambda v: v < 10, "cosinesimilarity": lambda v: v < 0.9}


def run_snooping(request: DebuggerRequest, golden: Path | None) -> Path:
    """Runs the layers that were asked for; the folder with the report."""
    from openqnn.analysis.accuracy.layerwise import Layerwise
    from openqnn.analysis.accuracy.verifiers import read_verifier

    if device_of(request):
        raise UnsupportedError(
            f"{request.whole.debugging_algorithm} runs layers on this machine, and a device is named",
            hint="--debugging_algorithm oneshot-layerwise runs on the device",
        )
    check_runtime(request)
    if framework_of(request) != "onnx":
        raise UnsupportedError(f"{request.whole.debugging_algorithm} takes ONNX models only")
    verifiers = [read_verifier(words) for words in request.verification.default_verifier]
    kind = request.whole.debugging_algorithm
    folder = RunFolder(request.folders.working_dir, FOLDERS[kind])
    folder.write_options(request.options, "layerwise_snooping")
    with folder.logged():
        shutil.copyfile(request.stage.input_list, folder.path / "temp-list.txt")
        real, fixed = graphs_of(request)
        sample = {n.removesuffix(":0"): a for n, a in read_inputs(request.model.input_tensor).items()}
        work = Layerwise(real, fixed, sample, _golden(golden))
        chosen = work.between(request.whole.start_layer, request.whole.end_layer)
        _write_extracted(request, folder.path)
        wanted = [layer for layer in chosen if not _skipped(request, layer.outputs, layer.op)]
        results = list(work.run(wanted, _opener(request)))
        _write_tensors(folder.path / "inference_engine", results)
        rows = _rows(work, chosen, results, verifiers, cumulative=kind == "cumulative-layerwise")
        _write_mapping(Path(request.folders.working_dir) / "tensor_mapping.json", results)
        for name in REPORTS[kind]:
            _write_report(folder.path / name, rows)
        print(f"{folder.path / REPORTS[kind][0]}: {len(results)} layers")
    return folder.path


def graphs_of(request: DebuggerRequest) -> tuple[Graph, Graph]:
    """The model in floating point, and as the runtime computes it."""
    from openqnn.api.files import open_graph
    from openqnn.cli.shared.quantizing import LIKE_QNN, Asked, quantized
    from openqnn.ir.clone import clone_graph
    from openqnn.options.quantizer import QuantizerChoices, QuantizerData, QuantizerEncodings
    from openqnn.passes.set_float_width import set_float_width

    shapes = {n.removesuffix(":0"): a.shape for n, a in read_inputs(request.model.input_tensor).items()}
    opened = open_graph(request.model.model_path, input_shapes=shapes)
    given = request.quantization
    if not target_of_runtime(request).compiles or given.precision == "fp16":
        fixed = clone_graph(opened)
        if given.precision == "fp16":
            set_float_width(fixed, 16)
        return opened, fixed
    choices = QuantizerChoices(
        param_quantizer=given.param_quantizer or None, act_quantizer=given.act_quantizer or None,
        algorithms=(given.algorithms,) if given.algorithms else (), act_bw=given.act_bitwidth,
        weight_bw=given.weights_bitwidth, bias_bw=given.bias_bitwidth,
        use_per_channel_quantization=given.per_channel_quantization or None,
    )  # fmt: skip
    data = QuantizerData(
        input_list=request.stage.input_list, use_native_input_files=request.run.use_native_input_files
    )
    encodings = QuantizerEncodings(
        quantization_overrides=given.quantization_overrides, ignore_encodings=given.ignore_encodings
    )
    found: list[Any] = []
    fixed = quantized(opened, Asked(data, choices, encodings), LIKE_QNN, quiet=True, outcome=found.append)
    return found[0].real, fixed


def _golden(folder: Path | None) -> Callable[[str], Array | None] | None:
    if folder is None:
        return None
    from openqnn.analysis.accuracy.tensor_folder import TensorFolder

    files = TensorFolder(folder)

    def read(name: str) -> Array | None:
        known = files.found(name)
        return files.read(known) if known is not None else None

    return read


def _opener(request: DebuggerRequest) -> Callable[[Graph], Runner]:
    from openqnn.vendor.executables import GraphExecutable

    library = target_of_runtime(request).libraries[0]
    soc = CHIPS.get(request.stage.runtime, "") or None
    return lambda graph: GraphExecutable(graph, library, soc, SECONDS)


def _skipped(request: DebuggerRequest, names: Sequence[str], op: str) -> bool:
    listed = lambda text: {word.strip() for word in text.split(",") if word.strip()}
    types = {t.lower() for t in listed(request.run.skip_layer_types)}
    return op.lower() in types or bool(listed(request.run.skip_layer_outputs) & set(names))


def _write_extracted(request: DebuggerRequest, folder: Path) -> None:
    """The part of the model between two layers as an ONNX file, for other tools."""
    import onnx

    model = onnx.load(request.model.model_path)
    onnx.save(model, folder / "transformed.onnx")
    inputs = [i.name for i in model.graph.input if i.name not in {t.name for t in model.graph.initializer}]
    first, last = request.whole.start_layer, request.whole.end_layer
    outputs = [last] if last else [o.name for o in model.graph.output]
    try:
        part = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model)).extract_model(
            [first] if first else inputs, outputs
        )
        onnx.save(part, folder / "extracted_model.onnx")
    except (KeyError, ValueError, onnx.checker.ValidationError) as error:
        print(f"note: no extracted_model.onnx: {error}")


def _write_tensors(folder: Path, results: Sequence[LayerResult]) -> None:
    from openqnn.analysis.accuracy.tensor_folder import safe_path, write_tensors

    for result in results:
        write_tensors(folder / safe_path(result.layer.name).replace("/", "_"), result.found)


def _write_mapping(path: Path, results: Sequence[LayerResult]) -> None:
    """The names of the source by those that the library has."""
    from openqnn.qnn.net import qnn_name

    with replacing(path) as file:
        names = {qnn_name(name): name for result in results for name in result.layer.outputs}
        file.write(json.dumps(names, indent=2).encode())


def _rows(
    work: Layerwise, chosen: Sequence[Any], results: Sequence[LayerResult],
    verifiers: Sequence[ChosenVerifier], *, cumulative: bool,
) -> list[dict[str, Any]]:  # fmt: skip
    done = {r.layer.name: r for r in results}
    behind = dict(work.outputs_from(results)) if cumulative else {}
    rows: list[dict[str, Any]] = []
    for layer in chosen:
        for name in layer.outputs:
            row = _row(work, layer, name, done.get(layer.name), verifiers, cumulative)
            if cumulative:
                row["Orig Outputs"] = _judged(work, behind.get(layer.name, {}), verifiers)
            row["Info"] = _info(row, done.get(layer.name))
            rows.append(row)
    return rows


def _row(
    work: Layerwise, layer: Any, name: str, result: LayerResult | None, verifiers: Sequence[ChosenVerifier],
    cumulative: bool,
) -> dict[str, Any]:  # fmt: skip
    row: dict[str, Any] = {
        "O/P Name": name, "Status": "skip" if result is None else result.status, "Layer Type": layer.op,
        "Shape": list(work.reference[name].shape), ACTIVATIONS: _activations(work.reference[name]),
    }  # fmt: skip
    same = True
    for chosen in verifiers:
        key = chosen.name.lower()
        row[key] = ""
        if result is None or name not in result.found or chosen.verifier.tensors > 1:
            continue
        try:
            row[key] = chosen([work.reference[name]], [result.found[name]])
            same = same and chosen.is_match(row[key])
        except OpenQnnError:
            row["Status"] = "err_compare"
    if cumulative and not same and not row["Status"]:
        row["Status"] = "part"
    return row


def _activations(real: Array) -> list[str]:
    good = real[np.isfinite(real)].astype(np.float64)
    numbers = (good.min(), good.max(), np.median(good)) if good.size else (0.0, 0.0, 0.0)
    return [f"{n:.4g}" for n in numbers]


def _judged(work: Layerwise, found: Mapping[str, Array], verifiers: Sequence[ChosenVerifier]) -> str:
    """The outputs of the model from this layer on: {output: {verifier: value}}."""
    simple = [v for v in verifiers if v.verifier.tensors == 1]
    said = {
        name: {v.name.lower(): round(v([work.reference[name]], [array]), 6) for v in simple}
        for name, array in found.items()
        if name in work.reference
    }
    return json.dumps(said) if said else ""


def _info(row: Mapping[str, Any], result: LayerResult | None) -> str:
    if result is not None and result.why:
        return result.why
    odd = [n for n, wrong in ABNORMAL.items() if isinstance(row.get(n), float) and wrong(row[n])]
    return ", ".join(f"{name} is abnormal" for name in odd)


def _write_report(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["O/P Name"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with replacing(path) as file:
        file.write(text.getvalue().encode())
