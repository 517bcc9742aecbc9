"""Declarations of custom ops inside graph files: what a graph needs to be read where nobody declares them."""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.formats.op_package_xml import package_of, print_op_package
from openqnn.formats.xml_lines import parse_xml
from openqnn.ir import Graph
from openqnn.ops.custom import declare_package, packages_of


def declaration_texts(graph: Graph) -> list[str]:
    """The packages of a graph's custom ops as XML."""
    return [print_op_package(package) for package in packages_of(graph)]


def declare_texts(texts: Sequence[str], where: str) -> None:
    """Makes them known, unless the user has declared them."""
    for text in texts:
        declare_package(package_of(parse_xml(text.encode(), where)), where, seen=True)
