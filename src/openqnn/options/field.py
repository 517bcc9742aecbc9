"""Declaring an option and turning groups of options into an argparse parser and back.

    @dataclass(frozen=True)
    class RunOptions:
        threads: int = option(0, "--threads", help="threads of the built-in backend; 0: all cores")

A positional is an option whose only name has no dashes. An option that takes several words at once says so
with `nargs`, and `row` makes one value of them. One that cannot have an effect here is declared with
`refused`: it is known, shown in the help with its reason, and an error when given. One that changes nothing
here, such as what only a device has, is `noted`: it is taken, and the reason is told.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from openqnn.errors import UsageError

Group = TypeVar("Group")
Row = Callable[[Sequence[str]], Any]
_KEY = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """A declared option: its names on the command line and how its words become a value."""

    names: tuple[str, ...]
    settings: dict[str, Any]
    row: Row | None = None
    exclusive: str = ""
    refusal: str = ""
    note: str = ""
    many: bool = False

    @property
    def is_flag(self) -> bool:
        return self.names[0].startswith("-")

    @property
    def repeats(self) -> bool:
        return self.settings.get("action") == "append"

    @property
    def label(self) -> str:
        """The name that messages use: the first long one."""
        return next((n for n in self.names if n.startswith("--")), self.names[0])


def option(
    default: Any,
    *names: str,
    help: str,
    metavar: str | tuple[str, ...] | None = None,
    parse: Callable[[str], Any] | None = None,
    repeat: bool = False,
    choices: tuple[Any, ...] | None = None,
    nargs: int | str | None = None,
    const: Any = None,
    row: Row | None = None,
    required: bool = False,
    exclusive: str = "",
    many: bool = False,
) -> Any:
    """A dataclass field with its command line: flags default to False take no value.

    `repeat` collects a tuple; with `many`, `row` makes several values of one row of words. `const`
    is the value of an option with `nargs="?"` that is given without one.
    Of the options that share a name of `exclusive`, only one may be given.
    """
    settings: dict[str, Any] = {"help": help}
    if default is False and nargs is None:
        settings["action"] = "store_true"
    else:
        more = {"metavar": metavar, "type": parse, "choices": choices, "nargs": nargs, "const": const}
        settings |= more
    if repeat:
        settings["action"] = "append"
    if required:
        settings["required"] = True
    declared = Option(names, settings, row, exclusive, many=many)
    return dataclasses.field(default=default, metadata={_KEY: declared})


def refused(
    *names: str, why: str, help: str, metavar: str = "", nargs: int | str | None = None, exclusive: str = ""
) -> Any:
    """An option that users of the original tools know and that cannot take effect here, and why."""
    settings: dict[str, Any] = {"help": f"{help} (not available: {why})"}
    if not metavar:
        settings["action"] = "store_true"
    else:
        settings |= {"metavar": metavar, "nargs": nargs}
    declared = Option(names, settings, None, exclusive, why)
    return dataclasses.field(default=None, metadata={_KEY: declared})


def noted(*names: str, why: str, help: str, metavar: str = "", nargs: int | str | None = None) -> Any:
    """An option that scripts have and that changes nothing here, and why; it is taken with a note."""
    settings: dict[str, Any] = {"help": f"{help} (no effect here: {why})"}
    if not metavar:
        settings["action"] = "store_true"
    else:
        settings |= {"metavar": metavar, "nargs": nargs}
    return dataclasses.field(default=None, metadata={_KEY: Option(names, settings, note=why)})


def options_of(group: type[Any]) -> Iterator[tuple[str, Option]]:
    """Field name and declaration of every option of a group."""
    for field in dataclasses.fields(group):
        if _KEY in field.metadata:
            yield field.name, cast(Option, field.metadata[_KEY])


def add_options(
    parser: argparse.ArgumentParser, group: type[Any], names: Collection[str] | None = None
) -> None:
    """Adds the options of a group, all unless some are named, under the group's docstring as heading."""
    chosen = {name: each for name, each in options_of(group) if names is None or name in names}
    if not chosen:
        return
    section = parser.add_argument_group((group.__doc__ or group.__name__).strip().rstrip("."))
    rivals: dict[str, Any] = {"": section}
    defaults = {f.name: f.default for f in dataclasses.fields(group)}
    for name, declared in chosen.items():
        if declared.exclusive not in rivals:
            rivals[declared.exclusive] = section.add_mutually_exclusive_group()
        settings = _argparse_settings(name, declared, defaults[name])
        rivals[declared.exclusive].add_argument(*declared.names, **settings)


def _argparse_settings(name: str, declared: Option, default: Any) -> dict[str, Any]:
    kept = {k: v for k, v in declared.settings.items() if v is not None}
    if declared.is_flag:
        kept["dest"] = name
        kept["default"] = None if declared.repeats else default
    elif declared.settings.get("nargs") == "?":
        kept["default"] = default
    return kept


def read_options(arguments: argparse.Namespace, group: type[Group]) -> Group:
    """The group's dataclass from parsed arguments; UsageError where one is refused or makes no sense."""
    values: dict[str, Any] = {}
    for name, declared in options_of(cast(Any, group)):
        value = getattr(arguments, name if declared.is_flag else declared.names[0])
        if declared.refusal and value is not None:
            raise UsageError(f"{declared.label}: {declared.refusal}")
        if declared.note and value is not None:
            print(f"note: {declared.label}: {declared.note}", file=sys.stderr)
        values[name] = _value(declared, value)
    return group(**values)


def _value(declared: Option, value: Any) -> Any:
    if declared.repeats:
        given = cast("list[Any]", value or ())
        read = [_row(declared, v) for v in given]
        return tuple(one for several in read for one in several) if declared.many else tuple(read)
    if value is not None and declared.row is not None:
        return _row(declared, value)
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _row(declared: Option, words: Any) -> Any:
    try:
        if declared.row is not None:
            return declared.row(words)
    except argparse.ArgumentTypeError as e:
        raise UsageError(f"{declared.label}: {e}") from e
    return tuple(cast("list[Any]", words)) if isinstance(words, list) else words
