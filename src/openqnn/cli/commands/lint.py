"""openqnn lint: what keeps a model from being fast on HTP."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.view_beside import check_beside, write_graph_beside
from openqnn.formats.atomic import check_place, replacing
from openqnn.options.architecture import LintOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.analysis.architecture_rule import Finding
    from openqnn.qnn.net import Net


def run_lint(arguments: Namespace) -> Report:
    """0 without findings, 1 with some."""
    from openqnn.analysis.architecture_rules import inspect_architecture
    from openqnn.analysis.sources import read_net

    source = read_options(arguments, SourceOptions)
    options = read_options(arguments, LintOptions)
    if options.html:
        check_place(options.html)
        check_beside(options.html)
    net = read_net(source.model, options.graph, source.settings())
    findings = inspect_architecture(net)
    if options.html:
        _write_page(options.html, Path(source.model).name, net, findings)
    records = [
        {"rule": f.rule, "node": f.node.name if f.node else None, "issue": f.issue, "advice": f.advice}
        for f in findings
    ]
    return Report({"findings": records}, lambda: _print(findings), int(bool(findings)))


def _write_page(path: str, title: str, net: Net, findings: Sequence[Finding]) -> None:
    """The findings as a page, and beside it the graph in the viewer."""
    from openqnn.analysis.plain_page import NodeName, note, page, table
    from openqnn.emit.graph_from_net import graph_of
    from openqnn.viewer.read_overlays import findings_overlay

    told = [(f.node.name, f.rule, f"{f.issue} {f.advice}") for f in findings if f.node is not None]
    view = write_graph_beside(path, graph_of(net), title, [findings_overlay(told)] if told else [])
    rows = [
        ("the graph" if f.node is None else NodeName(f.node.name, view), f.node.op if f.node else "", f.rule,
         f.issue, f.advice)
        for f in findings
    ]  # fmt: skip
    parts = [table(("node", "op", "rule", "issue", "advice"), rows)] if rows else [note("No rule applies.")]
    with replacing(path) as file:
        file.write(page(f"{title}: architecture", parts).encode())


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
    (SourceOptions, OwnOps, LintOptions),
    run_lint,
    examples=("openqnn lint model.onnx",),
)
