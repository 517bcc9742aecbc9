"""openqnn extract: the context binary out of an EPContext model."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command, Report
from openqnn.options.context_tools import ExtractOptions
from openqnn.options.field import read_options


def run_extract(arguments: Namespace) -> Report:
    from openqnn.cli.shared.binaries import check_binary, default_binary
    from openqnn.emit.epcontext import read_epcontext
    from openqnn.formats.atomic import replacing

    options = read_options(arguments, ExtractOptions)
    found = read_epcontext(options.file)
    target = Path(options.output or default_binary(options.file))
    check_binary(target, options.file)
    data = found.binary()
    with replacing(target) as file:
        file.write(data)
    graphs = list(found.partitions)
    record = {"output": str(target), "graphs": graphs, "bytes": len(data)}
    return Report(record, lambda: print(f"{target}: {', '.join(graphs)}, {len(data):,} bytes"))


COMMAND = Command(
    "extract", "Take the context binary out of an EPContext model.", (ExtractOptions,), run_extract
)
