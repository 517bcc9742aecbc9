"""openqnn extract: the context binary out of an EPContext model."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command
from openqnn.options.context_tools import ExtractOptions
from openqnn.options.field import read_options


def run_extract(arguments: Namespace) -> int:
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
    print(f"{target}: {', '.join(found.partitions)}, {len(data):,} bytes")
    return 0


COMMAND = Command(
    "extract", "Take the context binary out of an EPContext model.", (ExtractOptions,), run_extract
)
