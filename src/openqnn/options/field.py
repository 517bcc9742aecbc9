"""Declaring an option and turning groups of options into an argparse parser and back.

    @dataclass(frozen=True)
    class RunOptions:
        threads: int = option(0, "--threads", help="threads of the built-in backend; 0: all cores")

A positional is an option whose only name has no dashes.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, cast

Group = TypeVar("Group")
_KEY = "option"


def option(
    default: Any,
    *names: str,
    help: str,
    metavar: str | None = None,
    parse: Callable[[str], Any] | None = None,
    repeat: bool = False,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A dataclass field with its command line: flags default to False take no value; `repeat` collects a tuple."""
    settings: dict[str, Any] = {"help": help}
    if default is False:
        settings["action"] = "store_true"
    else:
        settings["metavar"] = metavar
        settings["type"] = parse
        settings["choices"] = choices
    if repeat:
        settings["action"] = "append"
    return dataclasses.field(default=default, metadata={_KEY: (names, settings)})


def add_options(parser: argparse.ArgumentParser, group: type[Any]) -> None:
    """Adds every option of a group, under the group's docstring as heading."""
    section = parser.add_argument_group((group.__doc__ or group.__name__).strip().rstrip("."))
    for field in dataclasses.fields(group):
        if _KEY not in field.metadata:
            continue
        names, settings = cast("tuple[tuple[str, ...], dict[str, Any]]", field.metadata[_KEY])
        kept = {k: v for k, v in settings.items() if v is not None}
        if names[0].startswith("-"):
            kept["dest"] = field.name
            if settings.get("action") != "store_true":
                kept["default"] = None if settings.get("action") == "append" else field.default
        section.add_argument(*names, **kept)


def read_options(arguments: argparse.Namespace, group: type[Group]) -> Group:
    """The group's dataclass from parsed arguments."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cast(Any, group)):
        names, settings = field.metadata[_KEY]
        name = field.name if names[0].startswith("-") else names[0]
        value = getattr(arguments, name)
        if settings.get("action") == "append":
            value = tuple(cast("list[Any]", value or ()))
        values[field.name] = value
    return group(**values)
