"""What our own code adds to the library's time for each inference of net-run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import openqnn
from benchmarks.report import Section, Verdict
from openqnn.formats.input_list import read_input_list
from openqnn.qnn.library import is_htp
from openqnn.qnn.net import Net
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor.net_run.results import unfinished
from openqnn.vendor.net_run.run_graphs import GraphRun, RunSettings
from openqnn.vendor.remote import run_files
from openqnn.vendor.source import Source, net_of
from openqnn.vendor.target_setup import Target, resolved
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs

RUNS = (("mnist_conv", "cpu", 300), ("mtcnn_onet", "cpu", 100), ("mnist_conv", "htp", 50))
SHARE, LEAST = 0.05, 200e-6  # of graphExecute's time, or seconds: whichever is larger


def measure() -> Section:
    columns = ("model", "library", "in the library", "ours", "allowed")
    section = Section("Time on top of the library's own", columns)
    for model, library, count in RUNS:
        run = _run(model, library, count)
        inside = run.execute_seconds / run.inferences
        ours = (run.total_seconds - run.execute_seconds) / run.inferences
        allowed = max(SHARE * inside, LEAST)
        section.rows.append((f"{model}, one inference", library, _us(inside), _us(ours), _us(allowed)))
        section.verdicts.append(
            Verdict(
                f"net-run, {model} on {library}, share of what is allowed",
                ours / allowed,
                1.0,
                at_least=False,
            )
        )
    return section


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} us"


def _prepared(model: str, library: str) -> tuple[openqnn.Graph, Net, Target]:
    path = resolved(library)
    graph = openqnn.convert(model_path(model), input_shapes=static_shapes(model))
    return graph, net_of(graph, path), Target(path, DeviceOptions(57) if is_htp(path) else None)


def _run(model: str, library: str, count: int) -> GraphRun:
    graph, net, target = _prepared(model, library)
    inputs = sample_inputs(model)
    with tempfile.TemporaryDirectory() as folder:
        lines: list[str] = []
        for value, name in zip(graph.inputs, net.inputs, strict=True):
            file = Path(folder, f"{name}.raw")
            np.asarray(inputs[value.name]).astype(np.float32).tofile(file)
            lines.append(f"{name}:={file}")
        Path(folder, "list.txt").write_text(f"{' '.join(lines)}\n" * count, encoding="utf-8")
        settings = RunSettings((read_input_list(Path(folder, "list.txt")),))
        with unfinished(Path(folder, "out")) as results:
            return run_files(Source(nets=(net,)), target, settings, results)[0]
