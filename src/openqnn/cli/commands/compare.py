"""openqnn compare: where two backends part, tensor by tensor."""

from __future__ import annotations

import csv
import dataclasses
import io
from argparse import Namespace
from math import isfinite
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.formats.atomic import check_place, replacing, replacing_any_kind
from openqnn.options.compare import CompareOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.analysis.compare_backends import BackendGaps


def run_compare(arguments: Namespace) -> Report:
    """0 where the outputs agree, 1 where they do not."""
    from openqnn.analysis.compare_backends import compare
    from openqnn.api.files import open_graph
    from openqnn.cli.report_gaps import print_gaps

    source, options = read_options(arguments, SourceOptions), read_options(arguments, CompareOptions)
    if options.csv:
        check_place(options.csv)
    graph = open_graph(source.model, **source.settings())
    found = compare(
        graph, options.data, options.backend, reference=options.reference, samples=options.samples,
        soc=options.soc or None, timeout=options.timeout, limit=options.limit,
    )  # fmt: skip
    if options.csv:
        with replacing_any_kind(options.overwrite), replacing(options.csv) as file:
            file.write(_csv(found).encode())
    return Report(_plain(found), lambda: print_gaps(found, options.tensors), 0 if found.agree else 1)


def _csv(found: BackendGaps) -> str:
    """All tensors in the order of computation."""
    from openqnn.analysis.compare_backends import TensorGap

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in dataclasses.fields(TensorGap)])
    for each in found.tensors:
        writer.writerow(["x".join(map(str, v)) if isinstance(v, tuple) else v for v in _values(each)])
    return text.getvalue()


def _values(record: Any) -> list[Any]:
    return [getattr(record, field.name) for field in dataclasses.fields(record)]


def _plain(found: BackendGaps) -> dict[str, Any]:
    """The record for JSON, which has no infinite numbers: these are "exact" or "lost"."""
    return {
        **_finite(dataclasses.asdict(found)),
        "agree": found.agree,
        "parting": [each.name for each in found.parting],
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return "exact" if value > 0 else "lost"
    return value


COMMAND = Command(
    "compare",
    "Tell tensor by tensor where two backends part.",
    (SourceOptions, OwnOps, CompareOptions),
    run_compare,
    examples=("openqnn compare model.oqnn --backend htp --data samples/",),
)
