"""What the converters have in common: settings, dry runs, targets and reports."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import DynamicShapeError, InputError, OpenQnnError, OutputError, UsageError
from openqnn.formats.sniff import is_converted

if TYPE_CHECKING:
    from openqnn.ir import Graph

# What ONNX's own simplifier would do to the source model.
SIMPLIFICATIONS = frozenset(
    ("clean", "remove_identities", "merge_reshapes", "merge_views", "merge_constants", "merge_repeated")
)
BATCHNORM_FOLDING, DEAD_CODE = "fold_affine", "remove_dead_code"


def convert_settings(
    shapes: Sequence[tuple[str, tuple[int, ...]]],
    batch: int | None,
    symbols: Sequence[tuple[str, int]],
    outputs: Sequence[str],
) -> dict[str, Any]:
    return {"input_shapes": dict(shapes), "batch": batch, "dims": dict(symbols), "outputs": outputs}


def dry_run(model: str, settings: Mapping[str, Any], level: str) -> int:
    from openqnn.api.convert import check
    from openqnn.cli.report import print_check, print_problems, print_unused

    report = check(model, **settings)
    if level == "debug":
        print_problems(report)
    else:
        print_check(report)
    print_unused(report)
    return 0 if report.ok else 1


def converted_graph(model: str, settings: Mapping[str, Any], debug: int | None) -> Graph:
    from openqnn.api.convert import convert
    from openqnn.cli.progress import Stages
    from openqnn.cli.report import print_explanation
    from openqnn.passes import Explain

    explain = Explain()
    with Stages() as stages:
        try:
            graph = convert(model, **settings, explain=explain, progress=stages.update)
        except DynamicShapeError as error:
            graph = _with_one(model, settings, error)
    if debug is not None:
        print_explanation(explain, sys.stderr)
    return graph


def check_converted(target: Path, source: Path) -> None:
    if target.is_dir():
        raise OutputError(f"{target} is a directory", hint=f"-o {target / source.stem}{target.suffix}")
    if target.exists() and source.exists() and target.samefile(source):
        raise OutputError(f"{target} is the source model itself", hint="give another file with -o")
    if target.exists() and not is_converted(target):
        raise OutputError(f"{target} exists, and no converter wrote it", hint="give another file with -o")


def _with_one(model: str, settings: Mapping[str, Any], error: DynamicShapeError) -> Graph:
    """The model with a batch of one, which is what the original takes where nobody says another."""
    from openqnn.api.convert import convert

    if settings.get("batch") is not None:
        raise error
    try:
        graph = convert(model, **{**settings, "batch": 1})
    except OpenQnnError:
        raise error from None
    print("note: the open first dimension is taken as 1; -b says another", file=sys.stderr)
    return graph


def check_source_name(target: Path) -> None:
    """UsageError for the name of a file that another tool writes; guides ask this one for a DLC, too."""
    tools = {
        ".bin": "qnn-context-binary-generator makes one",
        ".so": "qnn-model-lib-generator makes a library of model.cpp",
        ".onnx": "the source has that name",
    }
    if target.suffix in tools:
        hint = f"{tools[target.suffix]}; -o {target.with_suffix('.cpp')} is the name of a source"
        raise UsageError(f"{target}: this tool writes C++ source, and no {target.suffix[1:]} file", hint=hint)


def check_input_names(graph: Graph, names: Sequence[str]) -> None:
    known = [v.name for v in graph.inputs]
    for name in names:
        if name not in known:
            raise UsageError(f"the model has no input '{name}'", hint=f"its inputs: {', '.join(known)}")


def text_of(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read: {getattr(e, 'strerror', None) or e}") from e


def report_files(graph: Graph, files: Sequence[Path]) -> None:
    for file in files:
        print(f"{file}: {file.stat().st_size:,} bytes")
    read = [v for v in graph.inputs if v.users or graph.is_output(v)]
    for kind, values in (("input", read), ("output", graph.outputs)):
        for v in values:
            print(f"  {kind} {v.name}: {v.dtype.label} {'x'.join(map(str, v.shape)) or 'scalar'}")
