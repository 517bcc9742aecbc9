"""qnn-architecture-checker: what keeps a network from being fast on HTP, and the changes that help."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Tool
from openqnn.cli.shared.architecture_csv import SUFFIX, write_architecture_csv
from openqnn.errors import UsageError
from openqnn.options.architecture import ArchitectureOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps

if TYPE_CHECKING:
    from openqnn.analysis.architecture_rule import Finding
    from openqnn.qnn.net import Net

SHOW = "show"
ALL = "all"
APPLY = "apply="


def run_architecture_checker(arguments: Namespace, _: str) -> int:
    from openqnn.analysis.architecture_changes import change_architecture
    from openqnn.analysis.architecture_rules import inspect_architecture
    from openqnn.emit.read_net_json import read_net_json

    options = read_options(arguments, ArchitectureOptions)
    source = Path(options.input_json)
    rules = _chosen(options.modify)
    net = read_net_json(source, options.bin or None)
    folder = Path(options.output_path) if options.output_path else source.parent
    folder.mkdir(parents=True, exist_ok=True)
    findings = inspect_architecture(net)
    done: Mapping[str, str] = {}
    if rules:
        changed, done = change_architecture(net, rules)
        _write_model(changed, net, folder, options.bin)
    target = folder / f"{net.name}{SUFFIX}"
    write_architecture_csv(target, net, findings, done)
    if options.modify == SHOW:
        _show_changes(findings)
    print(f"{target}: {len(findings)} findings")
    return 0


def _chosen(modify: str | None) -> set[str]:
    """The rules whose changes are asked for."""
    from openqnn.analysis.architecture_rules import RULES

    known = {rule.id for rule in RULES if rule.modification}
    if modify is None or modify == SHOW:
        return set()
    if modify == ALL:
        return known
    if not modify.startswith(APPLY):
        raise UsageError(f"--modify {modify}: not known", hint="show, all, or apply=rule,rule")
    asked = {name.strip() for name in modify.removeprefix(APPLY).split(",") if name.strip()}
    if not asked or asked - known:
        raise UsageError(
            f"--modify {modify}: no such change", hint=f"those that can be made: {', '.join(sorted(known))}"
        )
    return asked


def _show_changes(findings: Sequence[Finding]) -> None:
    from openqnn.analysis.architecture_rules import RULES

    found = {finding.rule for finding in findings}
    for rule in RULES:
        if rule.modification and rule.id in found:
            print(f"{rule.id}: {rule.modification}")


def _write_model(changed: Net, net: Net, folder: Path, weights: str) -> None:
    """The changed model under the name that it had, in the folder of results: never over the source."""
    from openqnn.emit.model_source import write_model_source
    from openqnn.formats.atomic import together

    if not weights:
        raise UsageError("a changed model is written with its weights", hint="give them with --bin")
    stem = folder / f"{net.name}_modified"
    with together():
        written = write_model_source([changed], f"{stem}.cpp")
    print(f"{written.cpp}, {written.net_json}")


TOOL = Tool(
    "qnn-architecture-checker",
    "Tell what in a model keeps it from being fast on HTP, and change what can be changed.",
    "-i MODEL_net.json [-b MODEL.bin] [-o DIR] [-m [WHAT]]",
    (ArchitectureOptions, OwnOps),
    run_architecture_checker,
    examples=(
        "qnn-architecture-checker -i model_net.json -b model.bin -o checked/",
        "qnn-architecture-checker -i model_net.json -b model.bin -m all",
    ),
)
