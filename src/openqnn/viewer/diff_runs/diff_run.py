"""A comparison from its configuration to its result: which jobs it has, and where what they write lies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from openqnn.api.custom_ops import declared_ops, own_words
from openqnn.errors import OutputError
from openqnn.vendor.deploy.devices import target_of
from openqnn.viewer.diff_runs.compare_outputs import RESULT
from openqnn.viewer.diff_runs.job_pool import DONE, OVER, Job, JobPool
from openqnn.viewer.diff_runs.run_config import NAME, RunConfig, save_config
from openqnn.viewer.diff_runs.run_fields import GOLDEN, INFERENCES, OUTPUTS, TOGETHER
from openqnn.worker.interpreter import interpreter_command

ToolCommand: TypeAlias = Callable[[str], list[str]]
FOLDERS: Final = ("csv_outputs", "inference_engine", "intermediate_files", "verification")
ENGINE: Final = "inference_engine"
BUILTIN: Final = ("built-in", "simulation")
ENGINE_STEPS: Final = (
    ("$ qnn-model-lib-generator", 0.1), ("$ qnn-context-binary-generator", 0.4), ("$ qnn-net-run", 0.5),
    ("sample", 0.5), ("Finished Executing", 0.9),
)  # fmt: skip


@dataclass(slots=True)
class DiffRun:
    """A comparison that was started. `name` is that of its folder in each of the result folders."""

    number: int
    config: RunConfig
    name: str
    jobs: list[Job] = field(default_factory=list[Job])

    def place(self, folder: str) -> Path:
        return Path(self.config["working_directory"]) / folder / self.name

    @property
    def result(self) -> Path:
        return self.place("intermediate_files") / RESULT

    @property
    def state(self) -> str:
        states = [job.state for job in self.jobs]
        if all(state == DONE for state in states):
            return DONE
        bad = next((s for s in states if s in OVER and s != DONE), "")
        return bad if bad and all(s in OVER or s == "waiting" for s in states) else "running"

    def record(self) -> dict[str, Any]:
        return {
            "number": self.number, "name": self.name, "use_case": self.config.use_case, "state": self.state,
            "jobs": [job.record() for job in self.jobs],
            "folders": {f: str(self.place(f) if f != ENGINE else self.place(f).parent) for f in FOLDERS},
        }  # fmt: skip

    def outputs(self, prefix: str) -> Path:
        return self.engine(prefix) / "output"

    def engine(self, prefix: str) -> Path:
        """The folder of an inference: the engine makes one for each below its own."""
        return Path(self.config["working_directory"]) / ENGINE / f"{self.name}_{prefix}"


def start_run(number: int, config: RunConfig, pool: JobPool, tool: ToolCommand) -> DiffRun:
    """Makes the folders, and starts the inferences at once and the comparison after them."""
    run = DiffRun(number, config, _new_name(Path(config["working_directory"])))
    try:
        for folder in FOLDERS:
            place = run.place(folder)
            (place.parent if folder == ENGINE else place).mkdir(parents=True, exist_ok=folder == ENGINE)
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot be made ({error.strerror})") from error
    save_config(config, run.place("intermediate_files") / NAME)
    if config["save"]:
        save_config(config, Path(config["save"]))
    _keep_inputs(run)
    inferences = [_inference(run, prefix, tool) for prefix in _prefixes(config)]
    comparison = _comparison(run)
    run.jobs = [*inferences, comparison]
    if inferences:
        pool.start(inferences, then=lambda: pool.start([comparison]))
    else:
        pool.start([comparison])
    return run


def cancel_run(run: DiffRun, pool: JobPool) -> None:
    for job in run.jobs:
        pool.cancel(job)


def finished_runs(folder: Path) -> list[Path]:
    """Results of earlier comparisons below a folder, the newest first."""
    found = folder.glob(f"**/intermediate_files/*/{RESULT}")
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:20]


def _new_name(working: Path) -> str:
    """The date and time, which no earlier run has."""
    start = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    names = [start, *(f"{start}_{n}" for n in range(2, 1000))]
    return next(name for name in names if not any(_taken(working, name)))


def _taken(working: Path, name: str) -> Iterator[Path]:
    """What is there already under a name, or a name with an end."""
    for folder in FOLDERS:
        yield from (p for p in (working / folder).glob(f"{name}*") if p.name in (name, *_ends(name)))


def _ends(name: str) -> tuple[str, str]:
    return f"{name}_one", f"{name}_two"


def _prefixes(config: RunConfig) -> Sequence[str]:
    return {INFERENCES: ("one", "two"), GOLDEN: ("one",), OUTPUTS: ()}[config.use_case]


def _keep_inputs(run: DiffRun) -> None:
    """The descriptions of the models, so that the result can be looked at when they are gone."""
    for prefix in ("one", "two", "output_two"):
        source = run.config[f"{prefix}.model_json"]
        if source:
            shutil.copyfile(source, run.place("intermediate_files") / f"{prefix}_net.json")


def _inference(run: DiffRun, prefix: str, tool: ToolCommand) -> Job:
    title = f"Inference {prefix.title()}"
    log = run.place("intermediate_files") / f"inference_{prefix}.log"
    value = lambda name: run.config[f"{prefix}.{name}"]
    if value("runtime") in BUILTIN:
        names = ("runtime", "model_json", "model_bin", "input_list", "input_data_type")
        asked = {name: value(name) for name in names} | {"folder": str(run.outputs(prefix).parent)}
        own = declared_ops()
        asked |= {"custom_ops": "\n".join(own.files), "op_packages": ",".join(map(str, own.packages))}
        words = interpreter_command("-u", "-m", "openqnn.viewer.diff_runs.builtin_inference")
        return Job(title, [*words, json.dumps(asked)], log, ENGINE_STEPS)
    words = ["--inference_engine", "--stage", "converted", "--output_dirname", run.engine(prefix).name]
    words += ["--working_dir", run.config["working_directory"]]
    pairs = {
        "--qnn_model_cpp_path": "model_cpp", "--qnn_model_bin_path": "model_bin", "--runtime": "runtime",
        "--qnn_model_net_json": "model_json", "--input_list": "input_list",
        "--input_data_type": "input_data_type", "--output_data_type": "output_data_type",
        "--profiling_level": "profiling_level", "--perf_profile": "perf_profile",
    }  # fmt: skip
    for flag, name in pairs.items():
        words += [flag, value(name)] if value(name) else []
    words += own_words(declared_ops())
    words += _device_words(run.config, prefix)
    return Job(title, [*tool("qnn-accuracy-debugger"), *words], log, ENGINE_STEPS)


def _device_words(config: RunConfig, prefix: str) -> list[str]:
    """Where an inference runs, and what it is built for."""
    device, architecture = config[f"{prefix}.device_id"], config[f"{prefix}.architecture"]
    if not device:
        return ["--architecture", architecture]
    libraries = config[f"{prefix}.engine_path"]
    words = ["--target", target_of(device), "--target_os", architecture]
    return [*words, "--libraries", libraries] if libraries else words


def _comparison(run: DiffRun) -> Job:
    config = run.config
    chosen = config.verifier()
    first, second, net_json, mapping = _sides(run)
    asked = {
        "use_case": config.use_case, "first": str(first), "second": str(second), "model_json": net_json,
        "mapping": mapping, "verifier": chosen.name, "parameters": dict(chosen.parameters),
        "tensors": [config[name] for name in TOGETHER if config[name]],
        "accuracy_threshold": float(config["accuracy_threshold"]),
        "perf_threshold": float(config["perf_threshold"]), "verification": str(run.place("verification")),
        "csv": str(run.place("csv_outputs")), "intermediate": str(run.place("intermediate_files")),
    }  # fmt: skip
    words = interpreter_command("-u", "-m", "openqnn.viewer.diff_runs.compare_outputs", json.dumps(asked))
    return Job("Comparison", words, run.place("intermediate_files") / "comparison.log")


def _sides(run: DiffRun) -> tuple[Path, Path, str, str]:
    """Folders of the golden side and of the other, the graph that says which node is which, and names."""
    config = run.config
    if config.use_case == INFERENCES:
        return run.outputs("one"), run.outputs("two"), config["two.model_json"], ""
    if config.use_case == GOLDEN:
        golden = Path(config["golden.folder"])
        return golden, run.outputs("one"), config["one.model_json"], config["golden.mapping"]
    folders = Path(config["output_one.folder"]), Path(config["output_two.folder"])
    return *folders, config["output_two.model_json"], config["output_two.mapping"]
