"""What a plugin is: its stage, its parameters with their types and defaults, and what passes through it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from openqnn.errors import InputError
from openqnn.ir import Array

MISSING: Final = "mandatory"
FILE, MEMORY, BOTH = "file", "memory", ""
_KEY = "parameter"
Kind = Callable[[Any], Any]
PluginType = TypeVar("PluginType", bound="type[Plugin]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter. `only` is the variant of plugins that has it, `in_memory` the default of that
    variant where it differs."""

    kind: Kind
    default: Any
    choices: tuple[Any, ...] = ()
    only: str = BOTH
    in_memory: Any = None


def param(
    kind: Kind,
    default: Any = MISSING,
    *,
    choices: tuple[Any, ...] = (),
    only: str = BOTH,
    in_memory: Any = None,
) -> Any:
    """A field of a plugin class: `kind` makes a value of what the YAML file says, or raises ValueError."""
    declared = Parameter(kind, default, choices, only, in_memory)
    usual = None if isinstance(default, str) and default == MISSING else default
    if isinstance(usual, dict | list):
        return dataclasses.field(default_factory=lambda: usual, metadata={_KEY: declared})
    return dataclasses.field(default=usual, metadata={_KEY: declared})


@dataclass(frozen=True, slots=True)
class Item:
    """One input of the dataset on its way to the model: files first, arrays after something read them.

    `names` are those of the model's inputs where a plugin knows them. `notes` hold what later stages need.
    """

    files: tuple[str, ...]
    arrays: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def with_arrays(self, arrays: Sequence[Any], **notes: Any) -> Item:
        return replace(self, arrays=tuple(arrays), notes={**self.notes, **notes})


@dataclass(frozen=True, slots=True)
class Dataset:
    """Lines of files, calibration's lines, the annotations, and what dataset plugins leave for others."""

    root: Path
    items: tuple[Item, ...]
    calibration: tuple[Item, ...] = ()
    annotation: Path | None = None
    extras: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def path(self, name: str) -> Path:
        return self.root / name

    def annotation_file(self, who: str) -> Path:
        if self.annotation is None:
            raise InputError(f"{who} needs the truth", hint="dataset: annotation_file")
        if not self.annotation.is_file():
            raise InputError(f"{self.annotation}: no such file")
        return self.annotation


@dataclass(frozen=True, slots=True)
class Result:
    """What the model said of one item, behind postprocessing: arrays, or text, or detections in `value`."""

    item: Item
    arrays: tuple[Array, ...]
    value: Any = None


@dataclass(frozen=True, slots=True)
class Context:
    """What plugins may know: the dataset, a folder for files, types and shapes of the model's outputs."""

    dataset: Dataset
    folder: Path
    trust: bool = False
    memory: bool = False
    batch: int = 1
    output_names: tuple[str, ...] = ()
    output_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plugin:
    """The root of all plugins. A class gets its name from the decorator `plugin`."""

    name: ClassVar[str] = ""
    stage: ClassVar[str] = ""
    variants: ClassVar[str] = BOTH

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        return {f.name: f.metadata[_KEY] for f in dataclasses.fields(cls) if _KEY in f.metadata}


@dataclass(frozen=True)
class DatasetPlugin(Plugin):
    """Changes the lists of a dataset before anything is read."""

    stage: ClassVar[str] = "dataset"

    def transform(self, dataset: Dataset, context: Context) -> Dataset:
        raise NotImplementedError


@dataclass(frozen=True)
class PreprocessPlugin(Plugin):
    """Changes one item after the other; `gather` then sees all of them."""

    stage: ClassVar[str] = "preprocessing"

    def process(self, item: Item, context: Context) -> Item:
        return item

    def gather(self, items: Sequence[Item], context: Context) -> list[Item]:
        return list(items)


@dataclass(frozen=True)
class PostprocessPlugin(Plugin):
    """Makes something of the outputs of one item; `gather` then sees all of them."""

    stage: ClassVar[str] = "postprocessing"

    def process(self, result: Result, context: Context) -> Result:
        return result

    def gather(self, results: Sequence[Result], context: Context) -> list[Result]:
        return list(results)


@dataclass(frozen=True)
class MetricPlugin(Plugin):
    """Figures by name from all results."""

    stage: ClassVar[str] = "metric"

    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        raise NotImplementedError


PLUGINS: dict[tuple[str, str], list[type[Plugin]]] = {}


def plugin(name: str, variants: str = BOTH) -> Callable[[PluginType], PluginType]:
    """Registers a class under a name; the same name may stand for a file variant and a memory variant."""

    def register(cls: PluginType) -> PluginType:
        made = dataclass(frozen=True)(cls)
        made.name, made.variants = name, variants
        PLUGINS.setdefault((made.stage, name), []).insert(0, made)
        return made

    return register
