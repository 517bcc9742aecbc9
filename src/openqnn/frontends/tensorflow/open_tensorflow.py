"""Opens TensorFlow models: TensorFlow writes them as TFLite, and the TFLite frontend reads that."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import cast

from openqnn.errors import ModelError, UsageError
from openqnn.frontends.custom_ops import declared_names
from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import Source
from openqnn.frontends.tensorflow.kinds import SAVED_MODEL_FILES, SUFFIXES, kind_of
from openqnn.frontends.tensorflow.run_tensorflow import (
    TensorflowAnswer,
    TensorflowRequest,
    run_tensorflow,
    saved_object,
)
from openqnn.frontends.tflite.importer import Importer
from openqnn.frontends.tflite.open_tflite import open_importer

BY_SIGNATURE = ("saved_model", "keras", "object")  # kinds whose inputs and outputs have names of their own


def open_tensorflow(
    source: Source,
    dimensions: Dimensions,
    outputs: Sequence[str],
    *,
    prune: bool,
    keep_quant_nodes: bool,
    signature: str = "",
    tag: str = "serve",
    validate: bool = False,
    on_answer: Callable[[TensorflowAnswer], None] | None = None,
) -> Importer:
    """An importer for a model, not yet run; `on_answer` is told all that TensorFlow found."""
    if dimensions.symbols:
        raise UsageError(f"TensorFlow models have no dimension '{min(dimensions.symbols)}'")
    answer = ask_tensorflow(source, dimensions, outputs, signature=signature, tag=tag, validate=validate)
    if on_answer is not None:
        on_answer(answer)
    kind = kind_of(source)
    shapes = {answer.names.get(_plain(n), _plain(n)): s for n, s in dimensions.shapes.items()}
    wanted = outputs if kind in BY_SIGNATURE else ()
    importer = open_importer(
        answer.content, Dimensions(shapes, {}, dimensions.batch), wanted, prune=prune,
        keep_quant_nodes=keep_quant_nodes, signature_names=True, names=answer.names,
    )  # fmt: skip
    importer.graph.name = _name(source)
    return importer


def ask_tensorflow(
    source: Source,
    dimensions: Dimensions,
    outputs: Sequence[str],
    *,
    signature: str = "",
    tag: str = "serve",
    validate: bool = False,
) -> TensorflowAnswer:
    """What TensorFlow makes of a model; with `validate` also what it computes on inputs of ones."""
    kind = kind_of(source)
    with saved_object(source) if kind == "object" else nullcontext(os.fspath(source)) as path:
        found = kind or _by_suffix(Path(path))
        ends = outputs if found not in BY_SIGNATURE else ()
        request = TensorflowRequest(
            _folder(path) if found == "saved_model" else path, "keras" if found == "object" else found, tag,
            signature, dimensions.shapes, ends, validate, declared_names(),
        )  # fmt: skip
        return run_tensorflow(request)


def _folder(path: str) -> str:
    folder = Path(path).parent if Path(path).name in SAVED_MODEL_FILES else Path(path)
    if not (folder / "variables").is_dir() and _has_variables(folder):
        raise ModelError(f"{folder}: the folder 'variables' is missing", hint="copy the whole SavedModel")
    return str(folder)


def _has_variables(folder: Path) -> bool:
    """Whether a SavedModel speaks of variables at all; those of constants need no folder."""
    for name in SAVED_MODEL_FILES:
        file = folder / name
        if file.is_file():
            content = file.read_bytes()
            return b"VarHandleOp" in content or b"VariableV2" in content
    return False


def _by_suffix(path: Path) -> str:
    if path.is_dir():
        raise ModelError(f"{path}: not a SavedModel: it has no saved_model.pb")
    if not path.exists():
        raise ModelError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise ModelError(f"{path}: the file is empty")
    found = SUFFIXES.get(path.suffix.lower())
    if found is None or found == "keras":
        raise ModelError(f"{path}: not a TensorFlow model", hint="the file may be damaged; save it again")
    return found


def _plain(name: str) -> str:
    return name.removesuffix(":0")


def _name(source: Source) -> str:
    if not isinstance(source, str | os.PathLike):
        return str(getattr(source, "name", "graph"))
    path = Path(cast("str | os.PathLike[str]", source))
    return (path.parent if path.name in SAVED_MODEL_FILES else path).stem
