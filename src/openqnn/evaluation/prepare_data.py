"""The pipeline of a config: from the dataset's lists through plugins to the model, and from its outputs to
figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from openqnn.errors import InputError, OpenQnnError
from openqnn.evaluation.inference import Inference
from openqnn.evaluation.model_config import ModelConfig
from openqnn.evaluation.plugins.plugin import (
    Context,
    Dataset,
    DatasetPlugin,
    Item,
    MetricPlugin,
    Plugin,
    PostprocessPlugin,
    PreprocessPlugin,
    Result,
)
from openqnn.ir import Array, Graph, Port

RAW = (".raw", ".bin")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the plugins made of the dataset: an item for each inference, and samples by input name."""

    items: tuple[Item, ...]
    samples: list[dict[str, Array]]
    calibration: list[dict[str, Array]]
    context: Context


def prepare_data(
    config: ModelConfig,
    graph: Graph,
    folder: Path,
    *,
    memory: bool,
    trust: bool,
    inputs: str = "",
    calib: str = "",
) -> Prepared:
    """Dataset plugins, preprocessing, and arrays in the types of the model's inputs. `inputs` and `calib`
    are lists of preprocessed raw files, which no plugin sees."""
    known = _vocabulary(config.stages.get("metric", ()))
    dataset = Dataset(config.root, _lines(config, inputs), (), config.annotation, known)
    context = Context(
        dataset, folder, trust, memory, config.batch,
        tuple(p.name for p in config.output_ports), tuple(p.dtype for p in config.output_ports),
    )  # fmt: skip
    context = _calibrated_lists(config, context, calib)
    if not inputs:
        context = _transformed(config, context)
    if not context.dataset.items:
        raise InputError(
            f"{config.path}: the dataset is empty", hint="dataset: inputlist_file, filter_dataset"
        )
    plugins = () if inputs else config.stages.get("preprocessing", ())
    read = [_with_numbers(graph, item, context) for item in context.dataset.items] if plugins else None
    items = _preprocessed(plugins, read or context.dataset.items, context)
    samples = [_sample(graph, item, context) for item in items]
    if not memory:
        _write_inputs(folder, samples)
    calibration = _calibration(config, graph, context, items, samples, calib)
    return Prepared(tuple(items), samples, calibration, context)


def _vocabulary(metrics: Sequence[Plugin]) -> dict[str, Any]:
    """What squad_preprocess takes from squad_eval."""
    for metric in metrics:
        if hasattr(metric, "vocabulary"):
            chosen = cast(Any, metric)
            place = chosen.cached_vocab_path or chosen.vocabulary
            return {"vocabulary": place, "do_lower_case": chosen.do_lower_case}
    return {}


def _lines(config: ModelConfig, inputs: str) -> tuple[Item, ...]:
    path = Path(inputs) if inputs else config.root / config.inputs
    return tuple(Item(files) for files in read_lines(path))


def read_lines(path: Path) -> list[tuple[str, ...]]:
    """The files of each line, with commas or, in lists of raw files, spaces between them."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read ({getattr(error, 'strerror', None) or 'no text'})"
        ) from error
    found: list[tuple[str, ...]] = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith(("#", "%")):
            continue
        words = line.split(",") if "," in line else _spaced(path, line)
        found.append(tuple(word.strip().rpartition(":=")[2] for word in words))
    return found


def _spaced(path: Path, line: str) -> list[str]:
    """A path may have spaces in it: they only part a line where that gives files."""
    words = line.split()
    if len(words) == 1 or (path.parent / line).exists() or Path(line).exists():
        return [line]
    return words


def _calibrated_lists(config: ModelConfig, context: Context, calib: str) -> Context:
    kind, file = config.calibration
    if calib or kind != "dataset":
        return context
    items = tuple(Item(files) for files in read_lines(config.root / file))
    return replace(context, dataset=replace(context.dataset, calibration=items))


def _transformed(config: ModelConfig, context: Context) -> Context:
    for each in config.stages.get("dataset", ()):
        step = cast(DatasetPlugin, each)
        made = guarded(each, "the dataset", lambda s=step, c=context: s.transform(c.dataset, c))
        context = replace(context, dataset=made)
    return context


def _with_numbers(graph: Graph, item: Item, context: Context) -> Item:
    """An item of raw files with their numbers, in the shapes of the inputs without the batch."""
    if item.arrays or not item.files or not item.files[0].lower().endswith(RAW):
        return item
    arrays: list[Array] = []
    for index, name in enumerate(item.files):
        shape = list(_port_at(graph, index, name).shape)
        if shape and context.batch > 1:
            shape[0] //= context.batch
        arrays.append(_read_raw(graph, index, name, context, shape).reshape(shape))
    return item.with_arrays(arrays)


def _preprocessed(plugins: Sequence[Plugin], items: Sequence[Item], context: Context) -> list[Item]:
    found = list(items)
    for each in plugins:
        step = cast(PreprocessPlugin, each)
        found = [
            guarded(each, f"'{', '.join(item.files)}'", lambda i=item, s=step: s.process(i, context))
            for item in found
        ]
        found = guarded(each, "the inputs", lambda f=found, s=step: s.gather(f, context))
    return found


def guarded(plugin: Plugin, what: str, call: Callable[[], Done]) -> Done:
    """What a plugin raises becomes one message with its name, its stage and what it worked on."""
    try:
        return call()
    except OpenQnnError:
        raise
    except Exception as error:
        raise InputError(
            f"{plugin.stage} plugin {plugin.name} failed on {what}: {type(error).__name__}: {error}"
        ) from error


def _sample(graph: Graph, item: Item, context: Context) -> dict[str, Array]:
    """The arrays of an item as the model's inputs, by name where a plugin knows names, else in order."""
    values = graph.inputs
    arrays = list(item.arrays) or [_read_raw(graph, i, name, context) for i, name in enumerate(item.files)]
    if len(arrays) != len(values):
        names = ", ".join(v.name for v in values)
        raise InputError(
            f"'{', '.join(item.files)}' gives {len(arrays)} arrays, and the model has {len(values)} inputs:"
            f" {names}"
        )
    order = item.names if set(item.names) == {v.name for v in values} else tuple(v.name for v in values)
    found: dict[str, Array] = {}
    for name, array in zip(order, arrays, strict=True):
        port = graph.ports[name]
        given = np.asarray(array)
        if given.size != int(np.prod(port.shape)):
            raise InputError(
                f"'{', '.join(item.files)}': input '{name}' is {list(port.shape)}, and preprocessing made"
                f" {list(given.shape)} of it",
                hint="resize, convert_nchw and expand_dims change shapes",
            )
        found[name] = np.ascontiguousarray(given.reshape(port.shape), port.dtype.numpy)
    return found


def _port_at(graph: Graph, index: int, name: str) -> Port:
    if index >= len(graph.inputs):
        raise InputError(f"'{name}': the model has {len(graph.inputs)} inputs")
    return graph.ports[graph.inputs[index].name]


def _read_raw(
    graph: Graph, index: int, name: str, context: Context, shape: Sequence[int] | None = None
) -> Array:
    """A preprocessed file: .npy, or raw numbers in the input's own type or as floats, as its size says."""
    root = context.dataset.path(name)
    path = root if root.is_file() or not Path(name).is_file() else Path(name)
    port = _port_at(graph, index, name)
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    count = int(np.prod(port.shape if shape is None else shape))
    for dtype in (port.dtype.numpy, np.dtype(np.float32), np.dtype(np.float64)):
        if len(data) == count * dtype.itemsize:
            return np.frombuffer(data, dtype)
    if path.suffix.lower() not in RAW:
        raise InputError(f"{path} is no raw file", hint="processing.preprocessing says what to make of it")
    raise InputError(f"{path} has {len(data):,} bytes, and {count:,} numbers are needed")


def _write_inputs(folder: Path, samples: Sequence[Mapping[str, Array]]) -> None:
    """What file plugins leave: raw inputs, and their list."""
    place = folder / "preproc"
    place.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    for index, sample in enumerate(samples):
        paths: list[str] = []
        for number, array in enumerate(sample.values()):
            path = place / f"input_{index}_{number}.raw"
            array.tofile(path)
            paths.append(str(path.absolute()))
        lines.append(",".join(paths))
    (place / "processed-input-list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _calibration(
    config: ModelConfig, graph: Graph, context: Context, items: Sequence[Item],
    samples: list[dict[str, Array]], calib: str,
) -> list[dict[str, Array]]:  # fmt: skip
    kind, file = config.calibration
    if calib or kind == "raw":
        path = Path(calib) if calib else config.root / file
        return [_sample(graph, Item(files), context) for files in read_lines(path)]
    if kind == "index":
        return _indexed(config.root / file, samples)
    if kind == "dataset":
        listed = [_with_numbers(graph, item, context) for item in context.dataset.calibration]
        chosen = _preprocessed(config.stages.get("preprocessing", ()), listed, context)
        return [_sample(graph, item, context) for item in chosen]
    return samples


def _indexed(path: Path, samples: Sequence[dict[str, Array]]) -> list[dict[str, Array]]:
    found: list[dict[str, Array]] = []
    for words in read_lines(path):
        for word in words:
            if not word.isdigit() or int(word) >= len(samples):
                raise InputError(f"{path}: '{word}' is no index of the {len(samples)} inputs")
            found.append(samples[int(word)])
    if not found:
        raise InputError(f"{path}: there are no indexes in it")
    return found


class Scoring:
    """Postprocessing and metrics of one inference after the other."""

    def __init__(self, config: ModelConfig, prepared: Prepared) -> None:
        self._config, self._prepared = config, prepared

    def __call__(self, inference: Inference, outputs: Sequence[Mapping[str, Array]]) -> dict[str, float]:
        context = self._prepared.context
        results = [
            Result(item, tuple(self._ordered(found)))
            for item, found in zip(self._prepared.items, outputs, strict=True)
        ]
        for each in self._config.stages.get("postprocessing", ()):
            step = cast(PostprocessPlugin, each)
            results = [
                guarded(
                    each,
                    f"the outputs of '{', '.join(r.item.files)}'",
                    lambda r=r, s=step: s.process(r, context),
                )
                for r in results
            ]
            results = guarded(each, "the outputs", lambda f=results, s=step: s.gather(f, context))
        if not context.memory:
            write_values(context.folder / "postproc" / inference.label, results, squash=self._config.squash)
        scores: dict[str, float] = {}
        for each in self._config.stages.get("metric", ()):
            judge = cast(MetricPlugin, each)
            scores |= guarded(each, "the results", lambda j=judge, f=results: j.evaluate(f, context))
        return scores

    def _ordered(self, found: Mapping[str, Array]) -> list[Array]:
        """In the order of outputs_info, then the others in the model's."""
        names = [p.name for p in self._config.output_ports if p.name in found]
        return [found[name] for name in [*names, *(n for n in found if n not in names)]]


def write_values(folder: Path, results: Sequence[Result], *, squash: bool) -> None:
    """What postprocessing made: a text file for each item, or with `squash` one for all."""
    texts = {f"result_{i}": text_of(r.value) for i, r in enumerate(results) if r.value is not None}
    if not texts:
        return
    folder.mkdir(parents=True, exist_ok=True)
    if squash:
        lines = "".join(f"{name} {line}\n" for name, text in texts.items() for line in text.splitlines())
        (folder / "results.txt").write_text(lines, encoding="utf-8")
        return
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text + "\n", encoding="utf-8")


def text_of(value: Any) -> str:
    """Detections as `label score left top right bottom` in each line; anything else as text."""
    if not isinstance(value, list):
        return str(value)
    return "\n".join(
        f"{d.label} {d.score:.6f} {' '.join(f'{v:.3f}' for v in d.box)}" if hasattr(d, "box") else str(d)
        for d in value
    )
