"""The csv of the architecture checker, and the check that a converter makes behind a conversion."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openqnn.analysis.architecture_rule import Finding
    from openqnn.ir import Graph
    from openqnn.qnn.net import Net, NetNode

SUFFIX = "_architecture_checker.csv"
COLUMNS = (
    "Graph/Node_name",
    "Issue",
    "Recommendation",
    "Type",
    "Input_tensor_name:[dims]",
    "Output_tensor_name:[dims]",
    "Parameters",
    "Modification",
    "Modification_info",
)
NOTHING = "N/A"


def check_converted_graph(graph: Graph, target: Path) -> None:
    """What keeps a graph from being fast on HTP, beside the files that were made of it."""
    from openqnn.analysis.architecture_rules import inspect_architecture
    from openqnn.emit import lower

    net = lower(graph)
    findings = inspect_architecture(net)
    path = target.with_name(f"{target.stem}{SUFFIX}")
    write_architecture_csv(path, net, findings, {})
    print(f"{path}: {len(findings)} findings")


def write_architecture_csv(
    target: Path, net: Net, findings: Sequence[Finding], done: Mapping[str, str]
) -> None:
    """A row for each finding; `done` says of nodes what was changed."""
    from openqnn.formats.atomic import replacing

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for finding in findings:
        writer.writerow(_row(net, finding, done))
    with replacing(target) as file:
        file.write(text.getvalue().encode("utf-8"))


def _row(net: Net, finding: Finding, done: Mapping[str, str]) -> list[str]:
    from openqnn.analysis.architecture_rules import RULES

    node = finding.node
    if node is None:
        return ["Graph", finding.issue, finding.advice, *[NOTHING] * 6]
    possible = next(rule.modification for rule in RULES if rule.id == finding.rule)
    said = done.get(node.name, "") if possible else ""
    return [
        node.name,
        finding.issue,
        finding.advice,
        node.op,
        _tensors(net, [name for name in node.inputs if name is not None]),
        _tensors(net, node.outputs),
        _parameters(net, node),
        possible or NOTHING,
        said or NOTHING,
    ]


def _tensors(net: Net, names: Sequence[str]) -> str:
    return ", ".join(f"{name}:{list(net.tensors[name].dims)}" for name in names)


def _parameters(net: Net, node: NetNode) -> str:
    """The node's parameters, and its neighbours."""
    found: dict[str, Any] = {}
    for name, value in node.params:
        found[name] = getattr(value, "value", None)
        data = getattr(value, "data", None)
        if data is not None:
            found[name] = data.tolist()
    makers = {name: other.name for other in net.nodes for name in other.outputs}
    found["Previous node"] = [makers[name] for name in node.inputs if name in makers]
    found["Next node"] = [other.name for other in net.nodes if set(node.outputs) & set(other.inputs)]
    return json.dumps(found)
