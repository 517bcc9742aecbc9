"""Options that several benchmarks have."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from typing import Any


def add_models(parser: argparse.ArgumentParser, known: Collection[str], whose: str = "") -> None:
    """`--models NAME...`, with spaces or commas between them; None is what is there where it is not given."""
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="NAME",
        action=_Names,
        const=tuple(known),  # for the action
        help=f"{whose}only these of its models: {', '.join(known)}",
    )


class _Names(argparse.Action):
    """Takes names apart and refuses those that nobody knows."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        names = [name for part in values or () for name in str(part).split(",") if name]
        for name in names:
            if name not in (self.const or ()):
                parser.error(f"no model '{name}'; there are: {', '.join(self.const or ())}")
        setattr(namespace, self.dest, names)
