"""Evaluating: `openqnn evaluate` and qnn-accuracy-evaluator from their options to their files."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Report
from openqnn.cli.shared.view_beside import write_graph_beside
from openqnn.errors import InputError, ModelError, OpenQnnError, OutputError, UsageError
from openqnn.formats.atomic import replacing
from openqnn.options.evaluator import EvaluatorConfig, EvaluatorMinimal, EvaluatorShared
from openqnn.options.field import read_options

if TYPE_CHECKING:
    from openqnn.evaluation.comparators import Comparator
    from openqnn.evaluation.evaluate_model import Judging, Means, Row, Subject
    from openqnn.ir import Graph

CSV, PAGE, RECORD = "metrics-info.csv", "metrics-info.html", "metrics-info.json"
SOURCES = (".onnx", ".pt", ".pt2", ".tflite", ".pb", ".oqnn")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The rows of one model, best first, and where its files are."""

    name: str
    rows: list[Row]
    comparator: Comparator | None
    folder: Path
    graph: Graph | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """All options of a run."""

    minimal: EvaluatorMinimal
    config: EvaluatorConfig
    shared: EvaluatorShared
    data: str
    json: bool
    silent: bool

    def say(self, text: str) -> None:
        if not self.silent and not self.json:
            print(text, flush=True)

    def detail(self, text: str) -> None:
        if self.shared.debug:
            print(text, file=sys.stderr, flush=True)

    def means(self, folder: Path) -> Means:
        from openqnn.evaluation.evaluate_model import Means

        told = lambda stage, done, total: self.detail(f"{stage}: {done} of {total}")
        return Means(folder, self.shared.jobs, self.shared.on, told)

    @property
    def symbols(self) -> dict[str, int]:
        return {name: size for group in self.shared.onnx_symbol for name, size in group}


def run_evaluation(arguments: Namespace) -> Report:
    """0 where every inference has a result, 1 where one failed."""
    request = _request(arguments)
    if request.config.config:
        from openqnn.cli.shared.evaluating_config import evaluate_config

        return _finished(request, [evaluate_config(request)])
    if not request.minimal.model:
        raise UsageError(
            "there is nothing to evaluate", hint="-model PATH -preproc_file FILE, or -config YAML"
        )
    return _finished(request, _evaluate_models(request))


def _request(arguments: Namespace) -> Request:
    from dataclasses import replace

    minimal = read_options(arguments, EvaluatorMinimal)
    given = getattr(arguments, "MODEL", None)
    if given:
        if minimal.model:
            raise UsageError("the model is given twice")
        minimal = replace(minimal, model=given)
    shared = read_options(arguments, EvaluatorShared)
    request = Request(
        minimal, read_options(arguments, EvaluatorConfig), shared, getattr(arguments, "data", "") or "",
        bool(getattr(arguments, "json", False)), shared.silent or bool(getattr(arguments, "quiet", False)),
    )  # fmt: skip
    if minimal.model and request.config.config:
        raise UsageError("-model is minimal mode and -config is config mode: give one")
    if shared.device_id or minimal.target_arch == "aarch64-android":
        print("note: there is no device here: everything is computed on this machine", file=sys.stderr)
    return request


def _evaluate_models(request: Request) -> list[Evaluated]:
    model = Path(request.minimal.model)
    if not model.is_dir() or model.suffix == ".pb" or (model / "saved_model.pb").is_file():
        folder = work_dir(request)
        return [_evaluate_one(request, model, request.minimal.preproc_file or request.data, folder)]
    found: list[Evaluated] = []
    for source, inputs in _models_in(model):
        folder = work_dir(request) / source.parent.parent.name
        request.say(f"== {source}")
        try:
            found.append(_evaluate_one(request, source, str(inputs), folder))
        except OpenQnnError as error:
            print(error.told().replace("error: ", f"error: {source}: ", 1), file=sys.stderr)
            found.append(Evaluated(str(source), [], None, folder))
    return found


def _models_in(folder: Path) -> list[tuple[Path, Path]]:
    """model_dir/<m>/Source_model/model.onnx with <m>/inputs/input_list.txt beside it."""
    found = [
        (path, sub.parent / "inputs" / "input_list.txt")
        for sub in sorted(folder.glob("*/Source_model"))
        for path in sorted(sub.iterdir())
        if path.suffix in SOURCES
    ]
    if not found:
        raise InputError(
            f"{folder} holds no models",
            hint=f"{folder}/NAME/Source_model/model.onnx, with {folder}/NAME/inputs/input_list.txt",
        )
    return found


def work_dir(request: Request) -> Path:
    folder = Path(request.shared.work_dir)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"-work_dir {folder} is a file", hint="give a folder")
    return folder


def _evaluate_one(request: Request, source: Path, inputs: str, folder: Path) -> Evaluated:
    """Minimal mode on one model."""
    from openqnn.evaluation.comparators import comparator_named
    from openqnn.evaluation.evaluate_model import evaluate_model, ranked, reference_inference
    from openqnn.evaluation.inference import all_options, check_backend

    minimal = request.minimal
    comparator = comparator_named(minimal.comparator or "avg")
    check_backend(minimal.backend, minimal.target_arch)
    if not inputs:
        raise UsageError("there are no samples to evaluate on", hint="-preproc_file FILE")
    subject = open_subject(source, inputs, "", shapes_of_words(minimal.input_info), request.symbols)
    options = all_options(minimal.backend, minimal.target_arch, minimal.act_bw, minimal.bias_bw)
    inferences = [reference_inference(subject.source), *options]
    judging = judging_of(comparator, minimal.tol_thresh, minimal.box_input, subject)
    request.detail(f"{len(options)} options, {len(subject.samples)} samples")
    rows = evaluate_model(subject, inferences, 0, judging, request.means(folder))
    found = Evaluated(source.name, ranked(rows, comparator), comparator, folder, subject.graph)
    write_results(found)
    return found


def shapes_of_words(words: Sequence[Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """Dimensions of inputs by name, from words as -input_info has them."""
    found: dict[str, tuple[int, ...]] = {}
    for name, dims in words:
        try:
            found[name.strip("'\"")] = tuple(int(d) for d in dims.split(","))
        except ValueError:
            raise UsageError(
                f"-input_info {name} {dims}: these are no dimensions", hint="1,224,224,3"
            ) from None
    return found


def judging_of(
    comparator: Comparator | None, tolerance: float | None, boxes: str, subject: Subject
) -> Judging:
    """The comparator with its tolerance; box needs to know which outputs are boxes."""
    from openqnn.evaluation.comparators import BOX
    from openqnn.evaluation.evaluate_model import Judging
    from openqnn.evaluation.match_boxes import read_box_outputs

    if comparator is None:
        return Judging()
    outputs = [value.name for value in subject.graph.outputs]
    if comparator.name == BOX and not boxes:
        raise UsageError("comparator box needs to know which outputs are boxes", hint="--box_input JSON")
    found = read_box_outputs(boxes, outputs) if comparator.name == BOX else None
    return Judging(comparator, comparator.tolerance if tolerance is None else tolerance, found)


def open_subject(
    source: Path,
    inputs: str,
    calibration: str,
    shapes: Mapping[str, Sequence[int]],
    symbols: Mapping[str, int],
) -> Subject:
    """The model and its samples; symbolic dimensions that nobody gave a size have 1."""
    from openqnn.evaluation.evaluate_model import Subject

    if not source.exists():
        raise ModelError(f"{source}: no such file or folder")
    graph = open_static(source, shapes, symbols)
    samples = read_samples(graph, inputs)
    calibrating = read_samples(graph, calibration) if calibration else samples
    used = {value.name: tuple(graph.ports[value.name].shape) for value in graph.inputs}
    return Subject(str(source), graph, samples, calibrating, used)


def open_static(source: Path, shapes: Mapping[str, Sequence[int]], symbols: Mapping[str, int]) -> Any:
    """The graph; where dimensions stay open, they become 1 as the original has it."""
    from openqnn.api.files import open_graph
    from openqnn.errors import DynamicShapeError

    settings: dict[str, Any] = {}
    if shapes:
        settings["input_shapes"] = {name: tuple(shape) for name, shape in shapes.items()}
    if symbols:
        settings["dims"] = dict(symbols)
    if source.suffix == ".oqnn":
        return open_graph(source)
    try:
        return open_graph(source, **settings)
    except DynamicShapeError as error:
        ones = {
            name: tuple(int(d) if d.strip().isdigit() else 1 for d in shape.split(","))
            for name, shape in error.shapes.items()
        }
        return open_graph(source, **settings | {"input_shapes": settings.get("input_shapes", {}) | ones})


def read_samples(graph: Any, path: str) -> list[dict[str, Any]]:
    """All samples. Raw files of integer inputs hold the inputs' own type where their size says so."""
    from openqnn.quant.calibration import batches
    from openqnn.quant.samples import samples_of

    if not Path(path).exists():
        near = get_close_matches(Path(path).name, [p.name for p in Path(path).parent.glob("*")], 1)
        raise InputError(f"{path}: no such file", hint=f"did you mean {near[0]}?" if near else "")
    integers = [v.name for v in graph.inputs if graph.ports[v.name].dtype.is_integer]
    found = samples_of(graph, path, native_names=_native(graph, path, integers))
    return [dict(part) for sample in found for part in batches(graph, sample)]


def _native(graph: Any, path: str, integers: Sequence[str]) -> list[str]:
    """Integer inputs whose files have the size of their own type; the rest hold floats."""
    from openqnn.formats.input_list import named_files, read_input_list

    if not integers or Path(path).is_dir() or Path(path).suffix in (".npy", ".npz"):
        return []
    listed = read_input_list(path)
    files = named_files(listed, listed.lines[0], [v.name for v in graph.inputs], graph.name)
    ports = {name: graph.ports[name] for name in integers}
    sizes = {name: files[name].stat().st_size for name in integers}
    return [n for n, p in ports.items() if sizes[n] % (p.dtype.numpy.itemsize * _count(p.shape)) == 0]


def _count(shape: Sequence[int]) -> int:
    from math import prod

    return max(1, prod(shape))


def write_results(found: Evaluated) -> None:
    """metrics-info.csv, the page and the record."""
    from openqnn.evaluation.results_page import results_page
    from openqnn.evaluation.results_table import results_csv, results_record

    found.folder.mkdir(parents=True, exist_ok=True)
    graph = found.graph
    view = "" if graph is None else write_graph_beside(found.folder / PAGE, graph, found.name)
    outputs = [] if graph is None else [value.name for value in graph.outputs]
    texts = {
        CSV: results_csv(found.rows, found.comparator),
        PAGE: results_page(found.name, found.rows, found.comparator, view, outputs),
        RECORD: json.dumps(results_record(found.name, found.rows, found.comparator), indent=2),
    }
    for name, text in texts.items():
        with replacing(found.folder / name) as file:
            file.write(text.encode())


def _finished(request: Request, found: Sequence[Evaluated]) -> Report:
    from openqnn.cli.report_evaluation import print_evaluation
    from openqnn.evaluation.evaluate_model import SUCCESS
    from openqnn.evaluation.results_table import results_record

    def show() -> None:
        for each in found:
            if each.rows and not request.silent:
                print_evaluation(each)

    record = [results_record(e.name, e.rows, e.comparator) for e in found]
    failed = any(row.status != SUCCESS for each in found for row in each.rows)
    return Report(record, show, int(failed or not all(each.rows for each in found)))
