"""TorchScript files: by torch's own exporters, to ONNX first, and to an exported program where that fails."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import DynamicShapeError, LibraryError, ModelError, UsageError
from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.torch.decompose import has_torch
from openqnn.worker.capture import captured_output

if TYPE_CHECKING:
    from openqnn.frontends.frontend import Importer

_OPSET = 17


def open_script(
    path: Path, dimensions: Dimensions, outputs: Sequence[str], libraries: Sequence[str], *, prune: bool,
    keep_quant_nodes: bool,
) -> Importer:  # fmt: skip
    """An importer for a TorchScript file; its inputs are those of `dimensions.shapes`, in order."""
    if not has_torch():
        raise LibraryError(
            f"{path}: a TorchScript file, which only torch can read",
            hint="pip install openqnn[torch], or export the model with torch.export.save as .pt2",
        )
    load_libraries(libraries)
    script = _loaded(path)
    arguments = _arguments(path, script, dimensions)
    more = {"prune": prune, "keep_quant_nodes": keep_quant_nodes}
    reasons: list[str] = []
    for road in (_by_onnx, _by_program):
        for integers in (False, True):  # the file does not say of what type its inputs are
            try:
                with quiet():
                    return road(script, arguments(integers), dimensions, outputs, more)
            except UsageError:
                raise
            except Exception as e:  # torch raises whatever a model does
                reasons.append(f"{road.__name__[4:]}: {(str(e).strip().splitlines() or [''])[0][:160]}")
    raise ModelError(
        f"{path}: torch exports it neither to ONNX nor as a program ({reasons[0]}; {reasons[2]})",
        hint="export the original module: torch.export.save(torch.export.export(model, inputs), 'model.pt2')",
    )


def load_libraries(libraries: Sequence[str]) -> None:
    """Libraries of custom ops, which a model cannot be read without."""
    if libraries and not has_torch():
        raise LibraryError("libraries of custom ops need torch", hint="pip install openqnn[torch]")
    for library in libraries:
        try:
            import_module("torch").ops.load_library(library)
        except (OSError, RuntimeError) as e:
            raise LibraryError(f"{library}: torch cannot load it: {e}") from e


def _loaded(path: Path) -> Any:
    try:
        with quiet():
            return import_module("torch").jit.load(str(path), map_location="cpu").eval()
    except Exception as e:
        first = (str(e).strip().splitlines() or [""])[0]
        unknown = re.search(r"Unknown builtin op: (\w+::\w+)", str(e))
        if unknown:
            raise ModelError(
                f"{path}: its operation {unknown[1]} is not registered in torch, which reads the file",
                hint="register it (torch.library.custom_op) in the file for --custom_ops, or load its"
                " library: qnn-pytorch-converter --pytorch_custom_op_lib",
            ) from e
        raise ModelError(f"{path}: not a whole TorchScript file: {first}") from e


def _arguments(path: Path, script: Any, dimensions: Dimensions) -> Any:
    torch: Any = import_module("torch")
    schema = script.forward.schema.arguments[1:]
    needed = [a.name for a in schema if not a.has_default_value()]
    shapes = dict(dimensions.shapes)
    if len(shapes) < len(needed):
        missing = {n.split(".")[0]: "N,..." for n in needed[len(shapes) :]}
        raise DynamicShapeError(f"{path}: TorchScript does not say the shapes of its inputs", missing)
    if len(shapes) > len(schema):
        raise UsageError(f"{len(shapes)} inputs named, the model has {len(schema)}: {', '.join(needed)}")
    kinds = lambda integers: torch.int64 if integers else torch.float32
    return lambda integers: tuple(torch.zeros(tuple(s), dtype=kinds(integers)) for s in shapes.values())


def _by_onnx(
    script: Any, arguments: Any, dimensions: Dimensions, outputs: Sequence[str], more: dict[str, bool]
) -> Importer:
    import onnx

    from openqnn.frontends.onnx.open_onnx import open_importer

    written = io.BytesIO()
    names = list(dimensions.shapes)
    export = import_module("torch").onnx.export
    export(script, arguments, written, dynamo=False, input_names=names, opset_version=_OPSET)
    model = onnx.load_from_string(written.getvalue())
    return open_importer(model, dimensions, outputs, **more)


def _by_program(
    script: Any, arguments: Any, dimensions: Dimensions, outputs: Sequence[str], more: dict[str, bool]
) -> Importer:
    from openqnn.frontends.torch.from_torch import from_exported
    from openqnn.frontends.torch.open_torch import importer_of

    converter = import_module("torch._export.converter").TS2EPConverter
    program = from_exported(converter(script, arguments).convert(), "script")
    return importer_of(program, dimensions, outputs, **more)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """torch's exporters print whole graphs when they fail, from Python and from C++."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    sink = io.StringIO()
    try:
        with (
            captured_output(deque()),
            contextlib.redirect_stdout(sink),
            contextlib.redirect_stderr(sink),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        logger.setLevel(level)
