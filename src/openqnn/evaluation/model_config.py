"""The config of a model as records: what the YAML file says, with every value checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from openqnn.errors import InputError, UsageError
from openqnn.evaluation.comparators import Comparator, comparator_named
from openqnn.evaluation.config_file import read_config
from openqnn.evaluation.inference import (
    ENGINES,
    PRECISIONS,
    QNN,
    QUANT,
    X86,
    Inference,
    check_backend,
    label_of_params,
    variant_of,
)
from openqnn.evaluation.plugins.plugin import Plugin
from openqnn.evaluation.plugins.registry import make_plugin

ZOO, USUAL_ZOO = ("QNN_MODEL_ZOO", "MODEL_ZOO_PATH"), "/home/model_zoo"
CALIBRATIONS = ("index", "raw", "dataset")
TYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int", "int64", "uint8", "bool")


@dataclass(frozen=True, slots=True)
class PortInfo:
    """What the config says of an input or output; a batch of "*" is the batch size."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Everything of a config. `reference` is the place of the inference that others are held against."""

    path: str
    model: Path
    root: Path
    inputs: str
    annotation: Path | None = None
    calibration: tuple[str, str] = ("", "")
    batch: int = 1
    stages: Mapping[str, tuple[Plugin, ...]] = field(default_factory=dict[str, "tuple[Plugin, ...]"])
    squash: bool = False
    inferences: tuple[Inference, ...] = ()
    reference: int = -1
    comparator: Comparator | None = None
    tolerance: float = 0.001
    boxes: str = ""
    fetch_top: int = 1
    input_ports: tuple[PortInfo, ...] = ()
    output_ports: tuple[PortInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class Overruling:
    """What the command line says, which counts more than the config."""

    batch: int | None = None
    symbols: Mapping[str, str] = field(default_factory=dict[str, str])
    schema: str = ""
    tag: str = ""
    memory: bool = False
    has_inputs: bool = False


def read_model_config(path: str, overruling: Overruling) -> ModelConfig:
    content = read_config(path, overruling.symbols)
    engine = _part(content, "inference-engine", path)
    batch = overruling.batch or _whole(
        path, "info.batchsize", (content.get("info") or {}).get("batchsize", 1)
    )
    dataset = content.get("dataset") or {}
    if not overruling.has_inputs:
        _need(path, dataset, "dataset", ("name", "path", "inputlist_file"))
    judge = content.get("evaluator") or {}
    compare = judge.get("comparator") or {}
    found = ModelConfig(
        path, _model_path(path, engine), Path(str(dataset.get("path", "."))),
        str(dataset.get("inputlist_file", "")),
        batch=batch,
        stages=_stages(content, overruling.memory, path),
        squash=bool(_branch(content, "processing", "postprocessing").get("squash_results", False)),
        fetch_top=_whole(path, "evaluator.comparator.fetch-top", compare.get("fetch-top", 1)),
        input_ports=_ports(path, "inputs_info", engine, batch),
        output_ports=_ports(path, "outputs_info", engine, batch),
    )  # fmt: skip
    inferences, reference = _inferences(path, engine, overruling)
    return _with_comparator(replace(
        found,
        annotation=_beside(found.root, dataset.get("annotation_file")),
        calibration=_calibration(path, dataset),
        inferences=inferences, reference=reference,
    ), compare)  # fmt: skip


def _branch(content: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """What lies below some keys, or nothing."""
    for name in names:
        content = content.get(name) or {}
    return content


def _part(content: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    if not content.get(name):
        raise InputError(f"{path}: there is no {name}")
    return content[name]


def _need(path: str, part: Mapping[str, Any], where: str, names: Sequence[str]) -> None:
    missing = [name for name in names if part.get(name) in (None, "")]
    if missing:
        raise InputError(f"{path}: {where} has no {missing[0]}", hint=f"it needs {', '.join(names)}")


def _whole(path: str, where: str, said: Any) -> int:
    if isinstance(said, bool) or not str(said).isdigit() or int(said) < 1:
        raise InputError(f"{path}: {where} is {said!r}, and must be a number of at least 1")
    return int(said)


def _model_path(path: str, engine: Mapping[str, Any]) -> Path:
    """Relative paths start at the model zoo or, where nothing is there, at the config's own folder."""
    _need(path, engine, "inference-engine", ("model_path", "inference_schemas"))
    said = Path(str(engine["model_path"]))
    if said.is_absolute():
        return said
    zoo = next((os.environ[name] for name in ZOO if os.environ.get(name)), USUAL_ZOO)
    tried = [Path(zoo) / said, Path(path).parent / said, said]
    found = next((p for p in tried if p.exists()), None)
    if found is None:
        raise InputError(
            f"{path}: inference-engine.model_path: there is no {said}",
            hint=f"looked at {', '.join(map(str, tried))}",
        )
    return found


def _beside(root: Path, said: Any) -> Path | None:
    return None if said in (None, "") else root / str(said)


def _calibration(path: str, dataset: Mapping[str, Any]) -> tuple[str, str]:
    said = dataset.get("calibration")
    if not said:
        return "", ""
    _need(path, said, "dataset.calibration", ("type", "file"))
    if said["type"] not in CALIBRATIONS:
        raise InputError(
            f"{path}: dataset.calibration.type is {said['type']!r}", hint=f"one of {', '.join(CALIBRATIONS)}"
        )
    return str(said["type"]), str(said["file"])


def _stages(content: Mapping[str, Any], memory: bool, path: str) -> dict[str, tuple[Plugin, ...]]:
    lists = {
        "dataset": ("dataset.transformations", (content.get("dataset") or {}).get("transformations")),
        "preprocessing": (
            "processing.preprocessing.transformations",
            _branch(content, "processing", "preprocessing").get("transformations"),
        ),
        "postprocessing": (
            "processing.postprocessing.transformations",
            _branch(content, "processing", "postprocessing").get("transformations"),
        ),
        "metric": ("evaluator.metrics", (content.get("evaluator") or {}).get("metrics")),
    }  # fmt: skip
    return {stage: _plugins(stage, where, said or [], memory, path) for stage, (where, said) in lists.items()}


def _plugins(stage: str, where: str, said: Sequence[Any], memory: bool, path: str) -> tuple[Plugin, ...]:
    made: list[Plugin] = []
    for index, entry in enumerate(said):
        place = f"{path}: {where}[{index}].plugin"
        content = (entry or {}).get("plugin") or {}
        if not content.get("name"):
            raise InputError(f"{place} has no name")
        params = content.get("params") or {}
        if not isinstance(params, Mapping):
            raise InputError(f"{place}.params has no keys below it")
        made.append(make_plugin(stage, str(content["name"]), params, place, memory=memory))
    return tuple(made)


def _ports(path: str, kind: str, engine: Mapping[str, Any], batch: int) -> tuple[PortInfo, ...]:
    """From the engine, or from the first schema that has them."""
    places = [engine, *engine.get("inference_schemas", ())]
    places += [each.get("inference_schema") or {} for each in engine.get("inference_schemas", ())]
    said = next((p[kind] for p in places if p and p.get(kind)), [])
    found: list[PortInfo] = []
    for entry in said if isinstance(said, list) else [said]:
        if not isinstance(entry, Mapping):
            raise InputError(
                f"{path}: {kind} has entries without a name", hint="- NAME: {type: float32, shape: [...]}"
            )
        found += [_port(path, kind, str(name), info, batch) for name, info in entry.items()]
    return tuple(found)


def _port(path: str, kind: str, name: str, info: Any, batch: int) -> PortInfo:
    where = f"{path}: {kind}.{name}"
    if not isinstance(info, Mapping) or sorted(info) != ["shape", "type"]:
        raise InputError(f"{where} needs type and shape, and nothing else")
    if info["type"] not in TYPES:
        raise InputError(f"{where}.type is {info['type']!r}", hint=f"one of {', '.join(TYPES)}")
    sizes = [batch if size == "*" else size for size in info["shape"] or ()]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise InputError(f"{where}.shape is {info['shape']}", hint='sizes, and "*" for the batch')
    return PortInfo(name, "int32" if info["type"] == "int" else info["type"], tuple(sizes))


def _inferences(
    path: str, engine: Mapping[str, Any], overruling: Overruling
) -> tuple[tuple[Inference, ...], int]:
    """All schemas with their sweeps, and the place of the reference among them."""
    places = f"{path}: inference-engine.inference_schemas"
    schemas = [(entry or {}).get("inference_schema") or {} for entry in engine["inference_schemas"]]
    tags = _tags(places, schemas)
    found: list[tuple[Inference, bool]] = []
    for index, said in enumerate(schemas):
        if _is_wanted(said, overruling):
            where = f"{places}[{index}].inference_schema"
            found += [(each, bool(said.get("is_ref", False))) for each in _swept(where, index, said)]
    if not found:
        hint = f"tags: {', '.join(tags) or 'none has one'}"
        raise UsageError(f"{path}: no inference schema is left to run", hint=hint)
    marked = [i for i, (_, is_reference) in enumerate(found) if is_reference]
    return tuple(each for each, _ in found), [*marked, 0][0] if len(found) > 1 else -1


def _tags(places: str, schemas: Sequence[Mapping[str, Any]]) -> list[str]:
    tags = [str(said["tag"]) for said in schemas if said.get("tag")]
    twice = [tag for tag in tags if tags.count(tag) > 1]
    if twice:
        raise InputError(f"{places}: two schemas have the tag '{twice[0]}'")
    return tags


def _is_wanted(said: Mapping[str, Any], overruling: Overruling) -> bool:
    by_name = overruling.schema in ("", said.get("name"))
    return by_name and overruling.tag in ("", str(said.get("tag") or ""))


def _swept(where: str, index: int, said: Mapping[str, Any]) -> list[Inference]:
    """One inference for each combination of alternatives, which `|` separates."""
    base = _base(where, said)
    if base.engine != QNN or base.precision != QUANT:
        words = filter(None, (f"schema{index}", base.engine, base.backend, base.precision))
        return [replace(base, label="_".join(words))]
    alternatives = {n: _alternatives(v) for n, v in (said.get("converter_params") or {}).items()}
    found: list[Inference] = []
    for values in product(*alternatives.values()):
        params = dict(zip(alternatives, values, strict=True))
        try:
            label = f"schema{index}_qnn_{label_of_params(params)}"
            variant = variant_of(params, base.backend, base.soc)
        except (UsageError, ValueError) as error:
            raise InputError(f"{where}.converter_params: {getattr(error, 'message', error)}") from error
        found.append(replace(base, label=label, params=params, variant=variant))
    return found


def _base(where: str, said: Mapping[str, Any]) -> Inference:
    """A schema without its converter's parameters."""
    engine, precision = str(said.get("name", "")), str(said.get("precision", "fp32"))
    if engine not in ENGINES:
        near = get_close_matches(engine, ENGINES, 1)
        hint = f"did you mean {near[0]}?" if near else ", ".join(ENGINES)
        raise InputError(f"{where}.name: there is no engine '{engine}'", hint=hint)
    if precision not in PRECISIONS:
        raise InputError(f"{where}.precision: '{precision}' is none of {', '.join(PRECISIONS)}")
    arch = str(said.get("target_arch", X86))
    words = {name: _words(said.get(f"{name}_params")) for name in ("contextbin", "netrun")}
    return Inference(
        "", engine, PRECISIONS[precision],
        check_backend(str(said.get("backend", "cpu")), arch) if engine == QNN else "", arch,
        str(said.get("tag") or ""),
        contextbin=words["contextbin"], netrun=words["netrun"],
        extensions=_words(said.get("backend_extensions")),
    )  # fmt: skip


def _words(said: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in said.items()} if isinstance(said, Mapping) else {}


def _alternatives(said: Any) -> list[str]:
    return [word.strip() for word in str(said).split("|")]


def _with_comparator(config: ModelConfig, said: Mapping[str, Any]) -> ModelConfig:
    """The comparator is for several inferences; nobody has to name one."""
    if config.reference < 0 or said.get("enabled", True) in (False, "False"):
        return replace(config, reference=-1)
    comparator = comparator_named(str(said.get("type", "avg")))
    return replace(
        config, comparator=comparator, tolerance=float(said.get("tol", comparator.tolerance)),
        boxes=str(said.get("box_input", "")),
    )  # fmt: skip
