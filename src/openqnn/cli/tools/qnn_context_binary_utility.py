"""qnn-context-binary-utility: what is in a context binary, as JSON."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.cli.shared.binaries import check_binary
from openqnn.cli.shared.vendor_setup import opened_binary, print_version, required
from openqnn.errors import OutputError
from openqnn.formats.atomic import replacing
from openqnn.formats.sniff import JSON
from openqnn.options.context_tools import UtilityOptions
from openqnn.options.field import read_options
from openqnn.vendor.remote import describe_context


def run_utility(arguments: Namespace) -> int:
    from openqnn.emit.context_json import context_json

    options = read_options(arguments, UtilityOptions)
    if options.version:
        return print_version("qnn-context-binary-utility")
    required(options.context_binary, "--context_binary")
    target = Path(options.json_file) if options.json_file else None
    if target is not None and not target.absolute().parent.is_dir():
        raise OutputError(f"{target}: there is no folder {target.parent}")
    if target is not None:
        check_binary(target, options.context_binary, JSON)
    with opened_binary(options.context_binary) as binary:
        info = describe_context(binary)
    if target is None:
        print(f"{options.context_binary}: {len(info.graphs)} graph(s), build {info.build_id}")
        return 0
    with replacing(target) as file:
        file.write(context_json(info).encode())
    print(f"{target}: {len(info.graphs)} graph(s), build {info.build_id}")
    return 0


TOOL = Tool(
    "qnn-context-binary-utility",
    "Validate a context binary and write its description as JSON.",
    "--context_binary FILE [--json_file FILE]",
    (UtilityOptions,),
    lambda arguments, _: run_utility(arguments),
    examples=("qnn-context-binary-utility --context_binary model.bin --json_file model.json",),
)
