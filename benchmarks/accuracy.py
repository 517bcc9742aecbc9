"""Accuracy of quantized models: ours, ONNX Runtime's recipe for QNN and aimet-onnx, on the same data.

    python -m benchmarks accuracy --models mnist_conv,magika --aimet /path/to/python --htp 60 --write

The figure of a model is its SQNR on samples that calibration has not seen: for each output the energy of
the float model's numbers over the energy of the error, over all samples, in dB; then the mean over the
outputs. All graphs run in the same way: ours, ONNX Runtime's QDQ model and aimet-onnx's encodings, the last
two read into graphs of ours, in the built-in simulation of HTP, and the same graphs on libQnnHtp, on as many
samples as it computes in the time that it is given. Beside that stands what the peers' own simulations say.
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
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import openqnn
from benchmarks.accuracy_page import (
    OURS,
    PAGE,
    PEERS,
    SIMULATED,
    WIDTHS,
    Row,
    label_section,
    labels_before,
    page,
    rows_before,
    sections_of,
    untuned_section,
)
from benchmarks.labels import LABELLED, Labelled
from benchmarks.options import add_models
from benchmarks.peers import (
    Inputs,
    Outputs,
    PeerError,
    aimet,
    imported,
    outputs_in,
    recipe_model,
    run_onnx,
    simplified,
)  # fmt: skip
from benchmarks.report import Section
from openqnn.api.quantize import quantize
from openqnn.errors import OpenQnnError
from openqnn.ir import DType, Graph
from openqnn.runtime.metrics import sqnr
from tests.models.fetch import cache_directory, model_path
from tests.models.sets import SETS, DataSet, data_set, shapes_of

EXPORTED = "efficientnet_lite0"
SLOWEST = 60.0  # seconds that one sample may take on HTP
FEWEST, MANY = 4, 10_000  # samples on HTP, or numbers in fewer, that a figure needs
NOT_KEPT = "its graph was not kept"
CAP = 100.0  # dB: what is closer is equal
DEQUANTIZE, MOST_REAL = "Dequantize", 0.02  # a share of nodes in floating point that is worth a note


def mean_sqnr(found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> float:
    """The mean over the outputs of 10 log10(signal / noise), each over all samples."""
    figures: list[float] = []
    for name, first in wanted[0].items():
        if first.dtype.kind == "f":
            both = (np.concatenate([s[name].ravel() for s in side]) for side in (wanted, found))
            figures.append(min(sqnr(*both), CAP))
    return float(np.mean(figures))


def real_share(graph: Graph) -> float:
    """Of the nodes, those that compute in floating point."""
    real = [n for n in graph.nodes if any(v.dtype is DType.FLOAT_32 for v in n.outputs)]
    return len([n for n in real if n.op != DEQUANTIZE]) / len(graph.nodes)


def _named(found: Sequence[Mapping[str, Any]], wanted: Sequence[Outputs]) -> list[dict[str, Any]]:
    """Outputs under the names of the source model: peers rename some, and keep their order."""
    return [dict(zip(w, f.values(), strict=True)) for f, w in zip(found, wanted, strict=True)]


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


def today() -> str:
    return date.today().isoformat()


class Judge:
    """Measures models. What the peers made, which does not change with our code, and figures are kept."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.aimet, self.torch, self.htp = arguments.aimet, arguments.torch, arguments.htp
        self.threads: int = arguments.threads
        self.folder: Path = arguments.keep
        self.before = rows_before() if arguments.again else None
        self.store = self.folder / "figures.json"
        self.kept: dict[str, Any] = json.loads(self.store.read_text()) if self.store.exists() else {}

    def has(self, model: str) -> bool:
        """Whether the figures of a model are there already."""
        return all(f"{model}/{bits}/row" in self.kept for bits in WIDTHS)

    def rows(self, model: str) -> list[Row]:
        proto, data = source(model, self.torch), data_set(model)
        wanted = run_onnx(proto.SerializeToString(), data.evaluation)
        if self.before is None:
            self._ask_peers(model, proto, data, wanted)
        found = [self._row(model, bits, proto, data, wanted) for bits in WIDTHS]
        self.kept.update({f"{model}/{row.bits}/row": asdict(row) for row in found})
        self._save()
        return found

    def all_rows(self) -> list[Row]:
        """Those of this run, those that were kept, and with --again what the page says of the others."""
        found: list[Row] = []
        for model, bits in ((model, bits) for bits in WIDTHS for model in SETS):
            kept = self.kept.get(f"{model}/{bits}/row")
            before = (self.before or {}).get((model, bits))
            found += [Row(**kept)] if kept else [before] if before else []
        return found

    def _row(
        self, model: str, bits: int, proto: onnx.ModelProto, data: DataSet, wanted: list[Outputs]
    ) -> Row:
        row = replace((self.before or {}).get((model, bits), Row(model, bits)), measured=today())
        start = time.process_time()
        graphs = {OURS: self.ours(proto, model, bits, data.calibration)}
        row.seconds = time.process_time() - start
        row.ours = row.strict = mean_sqnr(self.run(graphs[OURS], data.evaluation), wanted)
        if bits == min(WIDTHS) or real_share(graphs[OURS]):
            strict = self.ours(proto, model, bits, data.calibration, wide=False)
            row.strict = mean_sqnr(self.run(strict, data.evaluation), wanted)
        for peer in PEERS:
            found = self.kept.get(f"{model}/{bits}/{peer}")
            if isinstance(found, float):
                row.own[peer] = found
                self._simulate(row, peer, graphs, data, wanted)
            elif found is not None:
                row.notes.append(f"{peer}: {found}")
        if self.htp:
            self._on_htp(row, graphs, data, wanted)
        return row

    def ours(
        self, proto: onnx.ModelProto, model: str, bits: int, calibration: Sequence[Inputs], wide: bool = True
    ) -> Graph:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = openqnn.convert(proto, input_shapes=shapes_of(model))
            return quantize(
                graph,
                list(calibration),
                act_bw=bits,
                wide=wide,
                threads=self.threads,
                hold_back=False,
                judge=False,
            )

    def run(self, graph: Graph, feeds: Sequence[Inputs], backend: str = "cpu") -> list[dict[str, Any]]:
        with openqnn.Session(graph, backend, threads=self.threads, timeout=SLOWEST * 20) as session:
            return [session.run(f) for f in feeds]

    # -- the peers -------------------------------------------------------------------------------------------

    def _files(self, model: str, bits: int, peer: str) -> tuple[Path, Path | None]:
        """The model that a peer made, and its encodings where they are not in it."""
        folder = self.folder / model
        if peer == PEERS[2]:
            return folder / f"{bits}.onnx", folder / f"{bits}.encodings"
        return folder / f"{peer.replace(' ', '-')}-{bits}.onnx", None

    def _simulate(
        self, row: Row, peer: str, graphs: dict[str, Graph], data: DataSet, wanted: list[Outputs]
    ) -> None:
        """A peer's encodings in our simulation."""
        path, encodings = self._files(row.model, row.bits, peer)
        if not path.exists():  # only its figure was kept
            row.notes.append(f"{peer}: {NOT_KEPT}")
            return
        try:
            graph = imported(path, data.shapes, encodings)
            row.simulated[peer] = mean_sqnr(_named(self.run(graph, data.evaluation), wanted), wanted)
        except (OpenQnnError, PeerError) as e:
            row.notes.append(f"{peer} here: {' '.join(str(e).split())[:120]}")
            return
        graphs[peer] = graph
        share = real_share(graph)
        if share > MOST_REAL:
            row.notes.append(f"{peer}: {share:.0%} of the nodes in floating point")

    def _ask_peers(self, model: str, proto: onnx.ModelProto, data: DataSet, wanted: list[Outputs]) -> None:
        (self.folder / model).mkdir(parents=True, exist_ok=True)
        simple = simplified(proto)
        for bits in WIDTHS:
            for peer, per_channel in ((PEERS[0], False), (PEERS[1], True)):
                path, _ = self._files(model, bits, peer)

                def ask(path: Path = path, bits: int = bits, per_channel: bool = per_channel) -> float:
                    recipe_model((simple, proto), data.calibration, bits, per_channel, path)
                    return mean_sqnr(run_onnx(path, data.evaluation, literal=True), wanted)

                self._keep(f"{model}/{bits}/{peer}", ask)
        keys = [f"{model}/{bits}/{PEERS[2]}" for bits in WIDTHS]
        if self.aimet and not all(k in self.kept for k in keys):
            self._aimet(keys, model, simple, data, wanted)

    def _aimet(
        self, keys: list[str], model: str, simple: onnx.ModelProto, data: DataSet, wanted: list[Outputs]
    ) -> None:
        folder = self.folder / model
        try:
            aimet(self.aimet, simple, data.calibration, data.evaluation, folder)
        except PeerError as e:
            for key in keys:
                self._keep(key, lambda e=e: str(e))
            return
        for key, bits in zip(keys, WIDTHS, strict=True):
            found = outputs_in(folder / f"outputs-{bits}.npz", len(wanted))
            self._keep(key, lambda f=found: mean_sqnr(f, wanted))

    def _keep(self, key: str, figure: Callable[[], float | str]) -> None:
        if key in self.kept:
            return
        try:
            self.kept[key] = figure()
        except PeerError as e:
            self.kept[key] = str(e)
        self._save()

    def _save(self) -> None:
        partial = self.store.with_suffix(".partial")
        partial.write_text(json.dumps(self.kept, indent=1) + "\n")
        partial.replace(self.store)

    # -- HTP -------------------------------------------------------------------------------------------------

    def _on_htp(self, row: Row, graphs: Mapping[str, Graph], data: DataSet, wanted: list[Outputs]) -> None:
        """Every graph on the same first samples, as many as ours gets through in the time for a graph."""
        try:
            taken = self._taken(graphs[OURS], data.evaluation[0])
        except OpenQnnError as e:
            row.notes.append(f"HTP: {' '.join(str(e).split())[:120]}")
            return
        if taken > SLOWEST:
            row.notes.append("HTP: the simulator takes over a minute")
            return
        if self.before is None or not row.samples:
            row.samples = min(max(int(self.htp / taken), 1), len(wanted))
        feeds, truth = data.evaluation[: row.samples], wanted[: row.samples]
        if row.samples < min(FEWEST, len(wanted)) and sum(a.size for t in truth for a in t.values()) < MANY:
            row.notes.append(f"HTP: {row.samples} samples in the time say nothing")
            return
        row.htp[SIMULATED] = mean_sqnr(self.run(graphs[OURS], feeds), truth)
        for who, graph in graphs.items():
            try:
                row.htp[who] = mean_sqnr(_named(self.run(graph, feeds, "htp"), truth), truth)
            except OpenQnnError as e:
                row.notes.append(f"HTP, {who}: {' '.join(str(e).split())[:120]}")

    def _taken(self, graph: Graph, feed: Inputs) -> float:
        """Seconds that libQnnHtp takes for a sample, once the graph is compiled."""
        with openqnn.Session(graph, "htp", timeout=SLOWEST * 20) as session:
            session.run(feed)
            start = time.perf_counter()
            session.run(feed)
            return time.perf_counter() - start

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
        found = {key.removeprefix("labels/"): self.kept[key] for key in keys if key in self.kept}
        return (labels_before() if self.before is not None else {}) | found


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks accuracy", description="Judge the quantizers."
    )
    add_models(parser, SETS)
    parser.add_argument("--aimet", metavar="PYTHON", help="a Python that has aimet-onnx")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has torch, for EfficientNet-Lite0")
    parser.add_argument(
        "--htp",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="measure on libQnnHtp too, so long per graph",
    )
    parser.add_argument("--labels", action="store_true", help="count right answers as well")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="keep figures and what the peers made here: the peers are asked once, and runs add up",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help=f"measure ours only: all other figures are those of {PAGE.name}",
    )
    parser.add_argument("--resume", action="store_true", help="leave models whose figures are kept")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    arguments = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # of ONNX Runtime's quantizer
    os.environ.setdefault("TQDM_DISABLE", "1")
    with tempfile.TemporaryDirectory() as scratch:
        arguments.keep = arguments.keep or Path(scratch)
        arguments.keep.mkdir(parents=True, exist_ok=True)
        sections = _measured(Judge(arguments), arguments)
    for part in sections:
        print(part.text(), end="\n\n")
    if arguments.write:
        introduction = (__doc__ or "").split("\n\n")[2].strip()
        PAGE.write_text(page(sections, introduction), encoding="utf-8")
    return 0 if all(v.met for s in sections for v in s.verdicts) else 1


def _measured(judge: Judge, arguments: argparse.Namespace) -> list[Section]:
    for model in SETS if arguments.models is None else arguments.models:
        if arguments.resume and judge.has(model):
            continue
        try:
            found = judge.rows(model)
        except (PeerError, OpenQnnError) as e:
            print(f"{model}: left out: {e}", flush=True)
            continue
        for row in found:
            print(json.dumps(asdict(row)), flush=True)
    sections = sections_of(judge.all_rows())
    for labelled in LABELLED if arguments.labels else ():
        judge.labels(labelled)
    if judge.all_labels():
        sections.append(label_section(judge.all_labels()))
    untuned = untuned_section(judge.all_rows())
    if untuned is not None:
        sections.append(untuned)
    return sections
