"""qairt-dlc-diff: what differs between two DLC files."""

from __future__ import annotations

from argparse import Namespace

from openqnn.cli.command import Tool
from openqnn.options.dlc_tools import DlcDiffOptions
from openqnn.options.field import read_options


def run_dlc_diff(arguments: Namespace) -> int:
    """0 when they are equal, 1 when not."""
    from openqnn.analysis.diff import diff_nets
    from openqnn.cli.commands.diff import print_diff
    from openqnn.cli.shared.dlc_files import dlc_nets

    options = read_options(arguments, DlcDiffOptions)
    first, second = (
        {net.name: net for net in dlc_nets(path)} for path in (options.input_dlc_one, options.input_dlc_two)
    )
    if len(first) == len(second) == 1:  # graphs are named after their files
        pairs = [(*first.values(), *second.values())]
    else:
        pairs = [(first[name], second[name]) for name in first if name in second]
    equal = first.keys() == second.keys() or len(first) == len(second) == 1
    for name in sorted(first.keys() ^ second.keys()) if not equal else ():
        print(f"graph {name} is in one file only")
    for one, other in pairs:
        found = diff_nets(one, other)
        equal = equal and found.equal
        print_diff(found)
    return 0 if equal else 1


TOOL = Tool(
    "qairt-dlc-diff",
    "Tell what differs between two DLC files; the exit code is 1 where anything does.",
    "-i1 FIRST.dlc -i2 SECOND.dlc",
    (DlcDiffOptions,),
    lambda arguments, _: run_dlc_diff(arguments),
    examples=("qairt-dlc-diff -i1 before.dlc -i2 after.dlc",),
)
