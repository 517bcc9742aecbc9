"""Options of qnn-architecture-checker and `openqnn lint`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class ArchitectureOptions:
    """The model, and what may be changed in it."""

    input_json: str = option(
        "", "-i", "--input_json", metavar="NET_JSON", required=True, help="the model's _net.json"
    )
    bin: str = option("", "-b", "--bin", metavar="BIN", help="the model's weights")
    output_path: str = option(
        "", "-o", "--output_path", metavar="DIR", help="where the csv goes (default: beside the model)"
    )
    modify: str | None = option(
        None, "-m", "--modify", metavar="WHAT", nargs="?", const="show",
        help="show: list the changes that can be made; all: make them; apply=rule,rule: make some",
    )  # fmt: skip


@dataclass(frozen=True)
class LintOptions:
    """The report."""

    json: bool = option(False, "--json", help="print the findings as JSON")
    html: str = option("", "--html", metavar="FILE", help="write a page whose findings lead to their nodes")
    graph: str = option("", "--graph", metavar="NAME", help="the graph, where a file holds several")
