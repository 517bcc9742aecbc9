"""What qnn-throughput-net-run adds to each graphExecute, and whether a minute of many threads stays flat."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import openqnn
from benchmarks.report import Section, Verdict
from tests.models.fetch import model_path, static_shapes

SHARE, LEAST = 0.02, 60.0  # of graphExecute's time, or microseconds: whichever is larger
GROWTH = 8 << 20  # bytes that a run may keep: what the last results and the report take
RUNS = (("mnist_conv", 1, 1, 10), ("mtcnn_onet", 1, 1, 10), ("mnist_conv", 8, 2, 60))
"""Model, threads, contexts, seconds."""


def measure() -> Section:
    columns = ("model", "threads", "contexts", "executions", "in the library", "ours", "memory", "open files")
    section = Section("The throughput runner on libQnnCpu", columns)
    for model, threads, contexts, seconds in RUNS:
        found = _run(model, threads, contexts, seconds)
        inside = [thread["execute_us"]["mean"] for thread in found["threads"]]
        ours = [thread["overhead_us"] for thread in found["threads"]]
        memory = found["memory"]
        grown = memory["after_bytes"] - memory["before_bytes"]
        handles = memory["handles_after"] - memory["handles_before"]
        count = sum(thread["executions"] for thread in found["threads"])
        times = f"{max(inside):,.0f} us", f"{max(ours):,.0f} us"
        kept = f"{grown / 1e6:+.1f} MB", f"{handles:+d}"
        section.rows.append((f"{model}, {seconds} s", threads, contexts, count, *times, *kept))
        shares = [each / max(LEAST, SHARE * time) for each, time in zip(ours, inside, strict=True)]
        name = f"{model}, {threads} thread(s)"
        section.verdicts += [
            Verdict(f"{name}: overhead, share of what is allowed", max(shares), 1.0, at_least=False),
            Verdict(f"{name}: memory kept, share of 8 MB", grown / GROWTH, 1.0, at_least=False),
            Verdict(f"{name}: files left open", handles, 0.0, at_least=False),
        ]
    return section


def _run(model: str, threads: int, contexts: int, seconds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        dlc = Path(folder, "model.dlc")
        openqnn.convert(model_path(model), input_shapes=static_shapes(model)).save(dlc)
        thread = {
            "backend": "cpu",
            "model": "m",
            "useRandomData": True,
            "loopUnit": "second",
            "loop": seconds,
        }
        content = {
            "backends": [{"backendName": "cpu", "backendPath": "libQnnCpu.so"}],
            "models": [{"modelName": "m", "modelPath": str(dlc)}],
            "contexts": [{"contextName": f"c{number}"} for number in range(contexts)],
            "testCase": {
                "iteration": 1,
                "threads": [
                    {**thread, "threadName": f"t{number}", "context": f"c{number % contexts}"}
                    for number in range(threads)
                ],
            },
        }
        config, result = Path(folder, "config.json"), Path(folder, "result.json")
        config.write_text(json.dumps(content), encoding="utf-8")
        tool = Path(sys.executable).with_name("qnn-throughput-net-run")
        subprocess.run([tool, "--config", config, "--output", result], check=True, capture_output=True)
        return json.loads(result.read_text(encoding="utf-8"))
