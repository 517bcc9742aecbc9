"""openqnn sdk-tree: a folder laid out as Qualcomm's SDK is, for scripts that expect one."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.options.field import option, read_options

if TYPE_CHECKING:
    from openqnn.sdk.sdk_tree import SdkTree


@dataclass(frozen=True)
class SdkTreeOptions:
    """Where it goes."""

    folder: str = option(
        "", "folder", metavar="DIR", help="a new folder, or one that this command made before"
    )


def run_sdk_tree(arguments: Namespace) -> Report:
    from openqnn.cli.elsewhere import ELSEWHERE
    from openqnn.cli.registry import tool_names
    from openqnn.sdk.sdk_tree import write_sdk_tree

    options = read_options(arguments, SdkTreeOptions)
    made = write_sdk_tree(Path(options.folder), tool_names(), sorted(ELSEWHERE))
    record = {
        "root": str(made.root),
        "tools": made.tools,
        "libraries": made.libraries,
        "headers": made.headers,
        "notes": made.notes,
    }
    return Report(record, lambda: _print(made))


def _print(made: SdkTree) -> None:
    print(
        f"{made.root}: {len(made.tools)} tools, {len(made.libraries)} libraries,"
        f" {len(made.headers)} headers\nnext: source {made.root}/bin/envsetup.sh"
    )
    for note in made.notes:
        print(f"note: {note}")


COMMAND = Command(
    "sdk-tree",
    "Lay out a folder as Qualcomm's SDK is, for scripts that expect one.",
    (SdkTreeOptions,),
    run_sdk_tree,
    examples=("openqnn sdk-tree qairt/2.47.0",),
)
