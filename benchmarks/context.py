"""What our own code adds to the library's time when it compiles a context binary.

Counted is everything from the converted graph, or from the DLC file once the tool has read its options, to
the binary on disk: fitting the graph to HTP, starting the child process, loading the library, composing,
reading the result back, writing the file. Not counted are the start of Python and its imports, beside which
the tool opens the library and reads the DLC. Each run is a process of its own, so nothing is warm but the
file cache. The yardstick: graphFinalize, contextGetBinarySize and contextGetBinary of the same run.

    python -m benchmarks.context graph|dlc MODEL FOLDER      # one run, as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
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
    """One compilation: seconds from start to file, and those in each of the library's functions."""

    total: float
    inside: dict[str, float]

    def of(self, names: tuple[str, ...]) -> float:
        return sum(self.inside.get(name, 0.0) for name in names)

    @property
    def ratio(self) -> float:
        return self.total / self.of(YARDSTICK)


def measure() -> Section:
    columns = ("model", "from", "finalize, serialise", "open", "compose", "total", "ratio", "lowest")
    section = Section("Context binaries: milliseconds in the library, and in all (median of ratios)", columns)
    for model in MODELS:
        for way, words in WAYS.items():
            runs = _runs(way, model)
            middle = median([run.ratio for run in runs])
            run = next(run for run in runs if run.ratio == middle)
            inside = (run.of(names) * 1e3 for names in (YARDSTICK, OPENING, COMPOSING))
            lowest = min(run.ratio for run in runs)
            section.rows.append((model, way, *inside, run.total * 1e3, middle, lowest))
            if model in COUNTED:
                what = f"{model}, {words}, whole time by the library's"
                section.verdicts.append(Verdict(what, middle, RATIO, at_least=False))
    return section


def _runs(way: str, model: str) -> list[Run]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.context", way, model, folder]
        found = [subprocess.run(command, capture_output=True, check=True) for _ in range(REPEAT)]
    return [Run(**json.loads(done.stdout)) for done in found]


def _once(way: str, model: str, folder: Path) -> Run:
    file, dlc = folder / "context.bin", folder / "model.dlc"
    file.unlink(missing_ok=True)
    if way == "dlc":
        if not dlc.exists():
            subprocess.run([sys.executable, "-c", DLC, model, str(dlc)], check=True)
        return _tool(dlc, file)
    import openqnn
    import openqnn.compiler
    from openqnn.passes import htp  # noqa: F401  imports do not count
    from tests.models.fetch import model_path, static_shapes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = openqnn.convert(model_path(model), input_shapes=static_shapes(model))
    start = time.perf_counter()
    made = openqnn.compile(graph)
    made.save(file)
    return Run(time.perf_counter() - start, dict(made.seconds))


def _tool(dlc: Path, file: Path) -> Run:
    """The command as it starts: what it imports comes after the process that opens the library."""
    from openqnn import compiler
    from openqnn.cli.ahead import run_ahead

    plain, runs = compiler.compile_source, list[Run]()

    def timed(*arguments: Any, **named: Any) -> compiler.Compiled:
        start = time.perf_counter()
        made = plain(*arguments, **named)
        runs.append(Run(time.perf_counter() - start, dict(made.seconds)))
        return made

    compiler.compile_source = timed  # before the tool imports it
    options = {
        "backend": "libQnnHtp.so",
        "dlc_path": dlc,
        "binary_file": file.name,
        "output_dir": file.parent,
    }
    sys.argv = [TOOL, *(f"--{name}={value}" for name, value in options.items())]
    with redirect_stdout(sys.stderr):
        run_ahead(TOOL)
    return runs[0]


DLC = """
import sys, warnings, openqnn
from tests.models.fetch import model_path, static_shapes
warnings.simplefilter("ignore")
openqnn.convert(model_path(sys.argv[1]), input_shapes=static_shapes(sys.argv[1])).save(sys.argv[2])
"""


if __name__ == "__main__":
    print(json.dumps(vars(_once(sys.argv[1], sys.argv[2], Path(sys.argv[3])))))
