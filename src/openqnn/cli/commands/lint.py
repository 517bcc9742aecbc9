"""openqnn lint: what keeps a model from being fast on HTP."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, print_json
from openqnn.options.architecture import LintOptions
from openqnn.options.field import read_options
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.analysis.architecture_rule import Finding


def run_lint(arguments: Namespace) -> int:
    """0 without findings, 1 with some."""
    from openqnn.analysis.architecture_rules import inspect_architecture
    from openqnn.analysis.sources import read_net

    source = read_options(arguments, SourceOptions)
    options = read_options(arguments, LintOptions)
    findings = inspect_architecture(read_net(source.model, options.graph, source.settings()))
    if options.json:
        records = [
            {"rule": f.rule, "node": f.node.name if f.node else None, "issue": f.issue, "advice": f.advice}
            for f in findings
        ]
        print_json({"findings": records})
    else:
        _print(findings)
    return 1 if findings else 0


def _print(findings: Sequence[Finding]) -> None:
    """Findings by rule: the nodes of one share reason and advice."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for rule, found in by_rule.items():
        nodes = [f"{f.node.op} '{f.node.name}'" if f.node else "the graph" for f in found]
        more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
        print(f"{rule}: {found[0].issue}\n  at {', '.join(nodes[:3])}{more}\n  {found[0].advice}")
    print(f"{len(findings)} findings by {len(by_rule)} rules." if findings else "No rule applies.")


COMMAND = Command(
    "lint",
    "Tell what in a model keeps it from being fast on HTP.",
    (SourceOptions, LintOptions),
    run_lint,
    examples=("openqnn lint model.onnx",),
)
