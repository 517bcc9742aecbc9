"""What a frontend is: the contract that lets `convert` read any framework's model, and the list of them.

A frontend is a folder here and a word in FRONTENDS. Its package, `openqnn.frontends.<name>`, is the Frontend
itself: a module with the names of the protocol, which imports its framework only when a model is opened.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

from openqnn.errors import ModelError, Problem, UsageError
from openqnn.formats.encodings import Parameter
from openqnn.formats.sniff import look_of
from openqnn.frontends.dimensions import Dimensions, SourceInput
from openqnn.ir import Array, Graph

__all__ = ["FRONTENDS", "Dimensions", "Frontend", "Importer", "Source", "SourceInput", "find_frontend"]

Source: TypeAlias = "str | os.PathLike[str] | Any"  # a path, or an object of the framework
FRONTENDS: Final = (
    "tensorflow",
    "onnx",
    "tflite",
    "torch",
    "caffe",
)  # in the order in which they are asked; imported when asked
_HEAD = 512  # bytes of a file that say what it looks like


class Importer(Protocol):
    """A model that was opened and not yet translated."""

    graph: Graph
    """The result; `run` fills it."""
    on_node: Callable[[int, int], None] | None
    """Told how many nodes of how many are done."""
    covered: Counter[str]
    """How many nodes of each source op were translated."""

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Constants of the source by name, views of a mapped file where possible."""
        ...

    @property
    def inputs(self) -> Sequence[SourceInput]:
        """Inputs as the model declares them."""
        ...

    @property
    def names(self) -> Collection[str]:
        """Every tensor of the source."""
        ...

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Shapes of the source's constants, and which of their axes are channels: for encodings files."""
        ...

    @property
    def problems(self) -> Sequence[Problem]:
        """Every node that cannot be translated, and why."""
        ...

    @property
    def notes(self) -> Sequence[tuple[str, str]]:
        """What of the model's own quantization was left out: tensor and reason."""
        ...

    def run(self) -> Graph:
        """Translates the model; UnsupportedError has all problems."""
        ...


class Frontend(Protocol):
    """A framework whose models can be read. Modules satisfy it."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """The framework's name as people write it."""
        ...

    @property
    def suffixes(self) -> tuple[str, ...]: ...

    def recognizes(self, source: Source) -> bool:
        """Whether this is one of its models by content, or by the type of an object. Never raises."""
        ...

    def open(
        self,
        source: Source,
        dimensions: Dimensions,
        outputs: Sequence[str],
        *,
        prune: bool,
        keep_quant_nodes: bool,
        **options: Any,
    ) -> Importer:
        """Reads a model; `outputs` ends it at these tensors, `options` are the framework's own."""
        ...


def check_options(title: str, options: Mapping[str, Any], known: Collection[str] = ()) -> None:
    """UsageError for options that a frontend does not have."""
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        raise UsageError(f"{unknown}: {title} models have no such option")


def get_frontend(name: str) -> Frontend:
    if name not in FRONTENDS:
        raise UsageError(f"there is no frontend '{name}'", hint=f"known: {', '.join(FRONTENDS)}")
    return cast(Frontend, import_module(f"openqnn.frontends.{name}"))


def frontend_for(suffix: str) -> Frontend | None:
    """The frontend whose files end so."""
    found = (get_frontend(name) for name in FRONTENDS)
    return next((f for f in found if suffix.lower() in f.suffixes), None)


def find_frontend(source: Source) -> Frontend:
    """The frontend for a model: by content, then by suffix; ModelError where none can read it."""
    for name in FRONTENDS:
        frontend = get_frontend(name)
        if frontend.recognizes(source):
            return frontend
    if not isinstance(source, str | os.PathLike):
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise ModelError(f"a {kind} is no model that can be converted", hint=_readable())
    path = Path(cast("str | os.PathLike[str]", source))
    by_suffix = frontend_for(path.suffix)
    if by_suffix is not None:
        return by_suffix
    if not path.exists():
        raise ModelError(f"{path}: no such file")
    raise ModelError(f"{path}: not a model that can be read", hint=_look(path) or _readable())


def _readable() -> str:
    listed = (get_frontend(name) for name in FRONTENDS)
    return "what can be read: " + ", ".join(f"{f.title} ({', '.join(f.suffixes)})" for f in listed)


def _look(path: Path) -> str:
    return look_of(head_of(path, _HEAD))


def head_of(source: Source, size: int) -> bytes:
    """The first bytes of a file; b"" of what is none, so that it can be asked of any source."""
    if not isinstance(source, str | os.PathLike):
        return b""
    try:
        path = Path(cast("str | os.PathLike[str]", source))
        if not path.is_file():  # a pipe would be waited on for ever
            return b""
        with path.open("rb") as file:
            return file.read(size)
    except (OSError, ValueError):
        return b""
