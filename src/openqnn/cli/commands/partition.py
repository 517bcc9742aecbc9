"""openqnn partition: which backend runs which node, at what cost, and why the graph is cut where it is."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.errors import OutputError
from openqnn.formats.atomic import check_place, replacing
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.partition import PartitionOptions
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.vendor.partition.choices import Choices
    from openqnn.vendor.partition.plan import Plan

MILLI = 1000


def run_partition(arguments: Namespace) -> Report:
    from openqnn.api.files import open_graph
    from openqnn.vendor.partition.plan import plan_partition

    source, options = read_options(arguments, SourceOptions), read_options(arguments, PartitionOptions)
    choices = _choices(options)
    if options.output:
        check_place(options.output)
        if Path(options.output).exists() and not options.overwrite:
            raise OutputError(f"{options.output} exists", hint="--overwrite replaces it")
    plan = plan_partition(open_graph(source.model, **source.settings()), choices, options.soc or None)
    if options.output:
        _write(plan, choices, options.output)
    return Report(_record(plan), lambda: _print(plan, options.output))


def _choices(options: PartitionOptions) -> Choices:
    """The file's, and what the command line says besides."""
    from openqnn.vendor.partition.choices import Choices, choices_of, read_choices

    found = read_choices(options.partition) if options.partition else Choices()
    limits: dict[str, Any] = {} if options.memory_mb is None else {"memory_mb": options.memory_mb}
    told = choices_of(
        {"backends": options.backends.split(",") if options.backends else None, "constraints": limits}
    )
    if options.backends:
        found = replace(found, backends=told.backends)
    if told.memory_mb is not None:
        found = replace(found, memory_mb=told.memory_mb)
    if options.power_critical or options.performance_critical:
        found = replace(found, power_critical=options.power_critical)
    return found


def _write(plan: Plan, choices: Choices, path: str) -> None:
    import yaml

    constraints: dict[str, Any] = {"power_critical": choices.power_critical}
    if choices.memory_mb is not None:
        constraints["memory_mb"] = choices.memory_mb
    content = {"backends": list(choices.backends), "constraints": constraints, "pins": plan.places}
    with replacing(path) as file:
        file.write(yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode())


def _record(plan: Plan) -> dict[str, Any]:
    return {
        "cost_ms": plan.cost * MILLI,
        "single_ms": {name: cost * MILLI for name, cost in plan.single.items()},
        "parts": [{"backend": part.backend, "nodes": [n.name for n in part.nodes]} for part in plan.parts],
        "cuts": [
            {"tensor": c.tensor, "bytes": c.nbytes, "from": c.source, "to": c.target, "reason": c.reason}
            for c in plan.cuts
        ],
    }


def _print(plan: Plan, written: str) -> None:
    from rich.markup import escape

    from openqnn.cli.report import console, table

    rows = table("part", "backend", "nodes", "first", "last")
    for number, part in enumerate(plan.parts):
        ends = (escape(part.nodes[0].name), escape(part.nodes[-1].name))
        rows.add_row(str(number), part.backend, str(len(part.nodes)), *ends)
    out = console()
    out.print(rows)
    for cut in plan.cuts:
        print(f"cut: {cut}")
    alone = ", ".join(f"{name} {cost * MILLI:.3f} ms" for name, cost in plan.single.items())
    print(f"cost: {plan.cost * MILLI:.3f} ms, rough; one backend alone: {alone or 'none takes all of it'}")
    if written:
        print(written)


COMMAND = Command(
    "partition",
    "Place every node of a model on HTP, libQnnCpu or the built-in backend, and tell why.",
    (SourceOptions, OwnOps, PartitionOptions),
    run_partition,
    examples=("openqnn partition model.onnx --soc SM8650 -o partition.yaml",),
)
