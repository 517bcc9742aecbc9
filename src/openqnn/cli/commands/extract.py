"""openqnn extract: context binaries out of EPContext models, DLC, .pte and compiled .tflite files."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from openqnn.cli.command import Command, Report
from openqnn.options.context_tools import ExtractOptions
from openqnn.options.field import read_options


def run_extract(arguments: Namespace) -> Report:
    from openqnn.cli.shared.binaries import check_binary, default_binary
    from openqnn.formats.atomic import replacing, together

    options = read_options(arguments, ExtractOptions)
    found = _binaries(options.file)
    first = Path(options.output or default_binary(options.file))
    numbered = [first.with_name(f"{first.stem}_{number}{first.suffix}") for number in range(len(found))]
    targets = [first] if len(found) == 1 else numbered
    for target in targets:
        check_binary(target, options.file)
    with together():
        for target, (data, _) in zip(targets, found, strict=True):
            with replacing(target) as file:
                file.write(data)
    rows = [
        {"output": str(target), "graphs": graphs, "bytes": len(data)}
        for target, (data, graphs) in zip(targets, found, strict=True)
    ]
    record: dict[str, Any] = rows[0] if len(rows) == 1 else {"binaries": rows}
    return Report(record, lambda: _print(rows))


def _print(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(f"{row['output']}: {', '.join(row['graphs'])}, {row['bytes']:,} bytes")


def _binaries(path: str) -> list[tuple[bytes, list[str]]]:
    """Each binary, and the graphs in it."""
    from openqnn.emit.epcontext import read_epcontext
    from openqnn.formats.embedded_contexts import contexts_in, holder_of

    if Path(path).suffix == ".dlc" and Path(path).is_file():
        from openqnn.formats.dlc_contexts import dlc_contexts, the_context

        inside = dlc_contexts(path) or {"": the_context(path)}
        return [(data, _graphs(data)) for data in inside.values()]
    if not Path(path).is_file() or not (holder_of(path) or Path(path).suffix in (".pte", ".tflite")):
        found = read_epcontext(path)
        return [(found.binary(), list(found.partitions))]
    return [(data, _graphs(data)) for data in contexts_in(path)]


def _graphs(data: bytes) -> list[str]:
    from openqnn.formats.atomic import Parked
    from openqnn.vendor.remote import describe_context

    parked = Parked("context.bin")
    parked.path.write_bytes(data)
    return [graph.name for graph in describe_context(parked.path).graphs]


COMMAND = Command(
    "extract",
    "Take context binaries out of an EPContext model, a DLC, a .pte or a compiled .tflite.",
    (ExtractOptions,),
    run_extract,
    examples=("openqnn extract model_ctx.onnx -o model.bin",),
)
