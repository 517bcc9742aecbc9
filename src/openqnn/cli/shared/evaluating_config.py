"""Evaluating by a config: the YAML file's dataset, plugins and inference schemas."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openqnn.cli.shared.evaluation_request import Evaluated, judging_of, open_static, work_dir, write_results
from openqnn.errors import InputError

if TYPE_CHECKING:
    from openqnn.cli.shared.evaluation_request import Request
    from openqnn.evaluation.evaluate_model import Row, Subject
    from openqnn.evaluation.model_config import ModelConfig

WITHOUT_EFFECT = "computed in memory, without a context binary or qnn-net-run"


def evaluate_config(request: Request) -> Evaluated:
    """Everything that a config asks for."""
    from openqnn.evaluation.evaluate_model import Subject, evaluate_model
    from openqnn.evaluation.model_config import Overruling, read_model_config
    from openqnn.evaluation.prepare_data import Scoring, prepare_data

    options, inputs = request.config, request.minimal.preproc_file or request.data
    config = read_model_config(options.config, Overruling(
        options.batchsize, {n: v for group in options.set_global for n, v in group}, options.inference_schema,
        options.inference_schema_tag, options.use_memory_plugins, bool(inputs),
    ))  # fmt: skip
    _say_unused(config)
    folder = work_dir(request)
    if not config.model.exists():
        raise InputError(f"{config.model}: no such file or folder")
    graph = open_static(config.model, _shapes(config, request), request.symbols)
    request.detail(f"{config.model}: {len(graph.nodes)} nodes; {len(config.inferences)} inferences")
    prepared = prepare_data(
        config, graph, folder, memory=options.use_memory_plugins, trust=options.trust, inputs=inputs,
        calib=options.calib_file,
    )  # fmt: skip
    request.detail(f"{len(prepared.samples)} samples, {len(prepared.calibration)} to calibrate with")
    shapes = {value.name: tuple(graph.ports[value.name].shape) for value in graph.inputs}
    subject = Subject(str(config.model), graph, prepared.samples, prepared.calibration, shapes)
    rows = evaluate_model(
        subject, config.inferences, config.reference, _judging(config, subject, Scoring(config, prepared)),
        request.means(folder),
    )  # fmt: skip
    found = Evaluated(config.model.name, _ordered(rows, config), config.comparator, folder, graph)
    write_results(found)
    _say_mismatches(request, config, rows)
    return found


def _judging(config: ModelConfig, subject: Subject, score: Any) -> Any:
    judging = judging_of(config.comparator, config.tolerance, config.boxes, subject)
    return replace(judging, score=score)


def _shapes(config: ModelConfig, request: Request) -> dict[str, tuple[int, ...]]:
    from openqnn.cli.shared.evaluation_request import shapes_of_words

    said = {port.name: port.shape for port in config.input_ports}
    return said | shapes_of_words(request.minimal.input_info)


def _ordered(rows: Sequence[Row], config: ModelConfig) -> list[Row]:
    """By the comparator where there is one, the reference last; else in the config's order."""
    from openqnn.evaluation.evaluate_model import ranked

    return ranked(rows, config.comparator) if config.comparator is not None else list(rows)


def _say_unused(config: ModelConfig) -> None:
    for name in ("contextbin", "netrun"):
        if any(getattr(each, name) for each in config.inferences):
            print(f"note: {name}_params have no effect: {WITHOUT_EFFECT}", file=sys.stderr)


def _say_mismatches(request: Request, config: ModelConfig, rows: Sequence[Row]) -> None:
    """The outputs that differ most, as many as fetch-top says."""
    if config.comparator is None or config.fetch_top < 1:
        return
    for row in rows:
        rank = config.comparator.rank
        worst = sorted(row.outputs.items(), key=lambda pair: -rank(pair[1]))[: config.fetch_top]
        for name, value in worst:
            request.detail(f"{row.inference.label}: differs most in {name}: {value:.6g}")
