"""openqnn explain: what an error means and what to do about it."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.options.field import option, read_options

if TYPE_CHECKING:
    from openqnn.analysis.error_catalogue import CatalogueEntry


@dataclass(frozen=True)
class ExplainOptions:
    """The error."""

    error: str = option(
        "", "error", metavar="ERROR", help="an id such as OQ112, a number of QNN's such as 1002, or a name"
    )


def run_explain(arguments: Namespace) -> Report:
    import dataclasses

    from openqnn.analysis.error_catalogue import find_errors

    found = find_errors(read_options(arguments, ExplainOptions).error)
    return Report([dataclasses.asdict(entry) for entry in found], lambda: _print(found))


def _print(found: list[CatalogueEntry]) -> None:
    for index, entry in enumerate(found):
        if index:
            print()
        print(f"{entry.id} {entry.name}\n  cause:  {entry.cause}\n  remedy: {entry.remedy}")


COMMAND = Command(
    "explain",
    "Tell what an error means and what to do about it.",
    (ExplainOptions,),
    run_explain,
    examples=("openqnn explain OQ112",),
)
