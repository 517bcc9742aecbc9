"""Runs in AIMET's environment, which has nothing of ours: exports encodings, loads them, simulates.

    python worker.py JOB.json

The job has `model` (ONNX, static shapes), `inputs` (npz files), `folder`, and what to do: `export` (versions,
with `blocks`: how weights are quantized by block, and `calibrate`: how many inputs to calibrate with), `load`
(encodings files), `simulate` (an encodings file, with `off`: quantizers to leave out) or `analyse` (what each
op alone does to the outputs, by AIMET's own analysis). An export leaves the activations for the first input
in `out.npz` and the outputs for every input in `outputs.npz`, a simulation the activations in `inside.npz`,
under quoted names; what happened goes to `report.json`.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import onnx
import onnxruntime as ort
from aimet_onnx.batch_norm_fold import fold_all_batch_norms_to_weight
from aimet_onnx.quantsim import (
    QuantizationSimModel,
    load_encodings_to_sim,
    set_blockwise_quantization_for_weights,
    set_grouped_blockwise_quantization_for_weights,
)

BLOCK = 4
WEIGHTS = ("Conv", "Gemm", "MatMul")


def simulation(path: str) -> QuantizationSimModel:
    model = onnx.load(path)
    fold_all_batch_norms_to_weight(model)
    return QuantizationSimModel(model)


def use_blocks(sim: QuantizationSimModel, how: str) -> None:
    common = {"op_types": WEIGHTS, "block_size": BLOCK}
    if how == "blocks":
        set_blockwise_quantization_for_weights(sim, bitwidth=4, symmetric=True, **common)
    elif how == "low power":
        set_grouped_blockwise_quantization_for_weights(sim, bitwidth=4, decompressed_bw=8, **common)


def activations(sim: QuantizationSimModel, model: str, feeds: dict[str, Any]) -> dict[str, Any]:
    """Every quantized activation and every output, by its name in the model."""
    graph = sim.model.model.graph
    quantizers = [n for n in graph.node if n.op_type == "QcQuantizeOp" and n.input[0] in sim.activation_names]
    watched = {n.input[0]: n.output[0] for n in quantizers if sim.qc_quantize_op_dict[n.input[0]].enabled}
    named = onnx.load(model, load_external_data=False).graph.output  # the simulation renames them
    watched |= {o.name: ours.name for o, ours in zip(named, graph.output, strict=True)}
    have = {o.name for o in graph.output}
    graph.output.extend(
        onnx.helper.make_empty_tensor_value_info(o) for o in watched.values() if o not in have
    )
    sim._rebuild_session()
    return dict(zip(watched, sim.session.run(list(watched.values()), feeds), strict=True))


def quoted(arrays: dict[str, Any]) -> dict[str, Any]:
    """Under names that an archive can have."""
    return {quote(name, ""): array for name, array in arrays.items()}


def export(job: dict[str, Any], feeds: list[dict[str, Any]]) -> dict[str, Any]:
    sim = simulation(job["model"])
    use_blocks(sim, job.get("blocks", ""))
    sim.compute_encodings(feeds[: job.get("calibrate", len(feeds))])
    report: dict[str, Any] = {}
    for version in job["export"]:
        try:
            sim.export(job["folder"], version, encoding_version=version)
            report[version] = "ok"
        except Exception as error:
            report[version] = f"{type(error).__name__}: {error}"
    names = [o.name for o in onnx.load(job["model"], load_external_data=False).graph.output]
    found = [dict(zip(names, sim.session.run(None, each), strict=True)) for each in feeds]
    by_sample = {f"{i} {name}": array for i, each in enumerate(found) for name, array in each.items()}
    np.savez(Path(job["folder"]) / "outputs.npz", **quoted(by_sample))
    np.savez(Path(job["folder"]) / "out.npz", **quoted(activations(sim, job["model"], feeds[0])))
    return report


def load(job: dict[str, Any]) -> dict[str, Any]:
    """Each file into a simulation; what it then has, by tensor, as version 1.0.0 says it."""
    report: dict[str, Any] = {}
    for path in job["load"]:
        sim = simulation(job["model"])
        load_encodings_to_sim(sim, path, strict=False)
        found = {n: q.export_encodings("1.0.0") for n, q in sim.qc_quantize_op_dict.items() if q.enabled}
        report[path] = {name: entry for name, entry in found.items() if entry}
    return report


def simulate(job: dict[str, Any], feeds: dict[str, Any]) -> dict[str, Any]:
    """The simulation of a file without the quantizers that are `off`."""
    sim = simulation(job["model"])
    load_encodings_to_sim(sim, job["simulate"], strict=False)
    for name in job["off"]:
        sim.qc_quantize_op_dict[name].enabled = False
    np.savez(Path(job["folder"]) / "inside.npz", **quoted(activations(sim, job["model"], feeds)))
    return {}


def analyse(job: dict[str, Any], feeds: list[dict[str, Any]]) -> dict[str, Any]:
    """What the quantizers of each op alone do to the outputs, by AIMET's own analysis: the tensors of the op,
    and the SQNR of the worst output in dB."""
    from aimet_onnx.quant_analyzer import QuantAnalyzer

    sim = simulation(job["model"])
    sim.compute_encodings(feeds)
    sim.export(job["folder"], "1.0.0", encoding_version="1.0.0")
    plain = onnx.load(job["model"])
    fold_all_batch_norms_to_weight(plain)
    real = ort.InferenceSession(plain.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted: list[Any] = [real.run(None, each) for each in feeds]

    def judge(session: Any) -> float:
        found = [session.run(None, each) for each in feeds]
        worst = float("inf")
        for i in range(len(wanted[0])):
            power = sum(float(np.square(w[i], dtype=np.float64).sum()) for w in wanted)
            noise = sum(
                float(np.square(w[i].astype(np.float64) - f[i]).sum())
                for w, f in zip(wanted, found, strict=True)
            )
            worst = min(worst, 10 * np.log10(power / noise) if noise else float("inf"))
        return worst

    analyzer = QuantAnalyzer(onnx.load(job["model"]), feeds[0], judge, judge)
    scores = analyzer.perform_per_layer_analysis_by_enabling_quantizers(sim)
    made = {op.name_op: [o.name for o in op.outputs] for op in sim.connected_graph.ordered_ops}
    return {"scores": [[made[name], score] for name, score in scores.items()]}


def main() -> None:
    warnings.simplefilter("ignore")
    job = json.loads(Path(sys.argv[1]).read_text())
    feeds = [dict(np.load(path)) for path in job["inputs"]]
    if "analyse" in job:
        report = analyse(job, feeds)
    elif "export" in job:
        report = export(job, feeds)
    else:
        report = load(job) if "load" in job else simulate(job, feeds[0])
    (Path(job["folder"]) / "report.json").write_text(json.dumps(report))


main()
