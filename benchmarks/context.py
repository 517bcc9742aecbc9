"""What our own code adds to the library's time when it compiles a context binary.

Counted is everything from the converted graph, or from the DLC file once the tool has read its options, to
the binary on disk: fitting the graph to HTP, starting the child process, loading the library, composing,
reading the result back, writing the file. Not counted are the start of Python and its imports, beside which
the tool opens the library and reads the DLC: the faster they are, the less there is to hide behind, so the
whole command, from its start on, stands beside it. Each run is a process of its own, so nothing is warm but
the file cache. The yardstick: graphFinalize, contextGetBinarySize and contextGetBinary of the same run.

    python -m benchmarks.context graph|dlc MODEL FOLDER "$(date +%s.%N)"      # one run, as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Section, Verdict, median

MODELS = ("mtcnn_onet", "ppocr_cls", "effword_fp32", "centerface", "ppocrv4_det")
COUNTED = ("effword_fp32", "centerface", "ppocrv4_det")  # the others are done before a library is even loaded
TOOL = "qnn-context-binary-generator"
WAYS = {"graph": "openqnn.compile(graph).save(file)", "dlc": f"{TOOL}, from a DLC"}
RATIO = 1.10
REPEAT = 5

YARDSTICK = ("graphFinalize", "contextGetBinarySize", "contextGetBinary")
OPENING = ("logCreate", "backendCreate", "deviceCreate", "contextCreate", "graphCreate")
COMPOSING = ("tensorCreateGraphTensor", "backendValidateOpConfig", "graphAddNode")


@dataclass(frozen=True)
class Run:
    """One compilation: seconds from start to file, those in each of the library's functions, and those since
    the process was started."""

    total: float
    inside: dict[str, float]
    whole: float

    def of(self, names: tuple[str, ...]) -> float:
        return sum(self.inside.get(name, 0.0) for name in names)

    @property
    def ratio(self) -> float:
        return self.total / self.of(YARDSTICK)


def measure() -> Section:
    columns = ("model", "from", "finalize, serialise", "open", "compose", "total", "ratio", "lowest", "whole")
    section = Section("Context binaries: milliseconds in the library, and in all (median of ratios)", columns)
    for model in MODELS:
        for way, words in WAYS.items():
            runs = _runs(way, model)
            middle = median([run.ratio for run in runs])
            run = next(run for run in runs if run.ratio == middle)
            inside = (run.of(names) * 1e3 for names in (YARDSTICK, OPENING, COMPOSING))
            lowest = min(run.ratio for run in runs)
            section.rows.append((model, way, *inside, run.total * 1e3, middle, lowest, run.whole * 1e3))
            if model in COUNTED:
                what = f"{model}, {words}, whole time by the library's"
                section.verdicts.append(Verdict(what, middle, RATIO, at_least=False))
    return section


def _runs(way: str, model: str) -> list[Run]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.context", way, model, folder]
        return [_run([*command, str(time.time())]) for _ in range(REPEAT + 1)][1:]  # the first makes the DLC


def _run(command: list[str]) -> Run:
    done = subprocess.run(command, capture_output=True, check=True)
    return Run(**json.loads(done.stdout))


def _once(way: str, model: str, folder: Path, start: float) -> Run:
    file, dlc = folder / "context.bin", folder / "model.dlc"
    file.unlink(missing_ok=True)
    if way == "dlc":
        if not dlc.exists():
            subprocess.run([sys.executable, "-c", DLC, model, str(dlc)], check=True)
        return _tool(dlc, file, start)
    import openqnn
    import openqnn.vendor.compiled_context
    from openqnn.targets import htp  # noqa: F401  imports do not count
    from tests.models.fetch import model_path, static_shapes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = openqnn.convert(model_path(model), input_shapes=static_shapes(model))
    begin = time.time()
    made = openqnn.compile(graph)
    made.save(file)
    return _since(begin, start, made.seconds)


def _since(begin: float, start: float, seconds: Mapping[str, float]) -> Run:
    now = time.time()
    return Run(now - begin, dict(seconds), now - start)


def _tool(dlc: Path, file: Path, start: float) -> Run:
    """The command as it starts: what it imports comes after the process that opens the library."""
    from openqnn.cli import registry
    from openqnn.cli.prewarm import run_prewarmed

    plain, runs = registry.run_tool, list[Run]()

    def timed(name: str) -> int:
        from openqnn.vendor import (  # where the tool does, and before it takes a function from there
            jobs,
            remote,
        )

        compile_source = remote.compile_source

        def measured(*arguments: Any, **named: Any) -> jobs.Compiled:
            begin = time.time()
            made = compile_source(*arguments, **named)
            runs.append(_since(begin, start, made.seconds))
            return made

        remote.compile_source = measured
        return plain(name)

    registry.run_tool = timed
    options = {
        "backend": "libQnnHtp.so",
        "dlc_path": dlc,
        "binary_file": file.name,
        "output_dir": file.parent,
    }
    sys.argv = [TOOL, *(f"--{name}={value}" for name, value in options.items())]
    with redirect_stdout(sys.stderr):
        run_prewarmed(TOOL)
    return runs[0]


DLC = """
import sys, warnings, openqnn
from tests.models.fetch import model_path, static_shapes
warnings.simplefilter("ignore")
openqnn.convert(model_path(sys.argv[1]), input_shapes=static_shapes(sys.argv[1])).save(sys.argv[2])
"""


if __name__ == "__main__":
    print(json.dumps(vars(_once(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])))))
