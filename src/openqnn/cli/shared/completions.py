"""Completions for shells: scripts that know every command, tool, flag and choice, and start no Python."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class Completed:
    """A tool, or a command of `openqnn`: its flags with their help, and the words that may follow."""

    program: str
    command: str
    doc: str
    flags: dict[str, str] = field(default_factory=dict[str, str])
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The words behind a flag; those of its own arguments behind ""."""
    bare: frozenset[str] = frozenset()
    """The flags that take no value."""


def completed(program: str, command: str, doc: str, parser: argparse.ArgumentParser) -> Completed:
    """What a parser takes."""
    flags: dict[str, str] = {}
    choices: dict[str, tuple[str, ...]] = {}
    bare: set[str] = set()
    for action in parser._actions:
        names = action.option_strings
        flags |= dict.fromkeys(names, (action.help or "").split("%")[0].strip())
        if action.nargs == 0:
            bare |= set(names)
        if action.choices and not isinstance(action, argparse._SubParsersAction):
            choices |= dict.fromkeys(names or [""], tuple(str(word) for word in action.choices))
    return Completed(program, command, doc, flags, choices, frozenset(bare))


def completion_script(shell: str, known: list[Completed]) -> str:
    """The script for a shell."""
    if shell == "fish":
        head = ["# source it, or: openqnn completion fish > ~/.config/fish/completions/openqnn.fish"]
        return "\n".join([*head, *(line for each in known for line in _fish(each)), ""])
    head = {
        "bash": ["# source it, or put it into ~/.local/share/bash-completion/completions/openqnn"],
        "zsh": [
            "# source it from ~/.zshrc",
            "autoload -U +X compinit && compinit -u",
            "autoload -U +X bashcompinit && bashcompinit",
        ],
    }[shell]
    return "\n".join([*head, *_bash(known), ""])


# -- bash, and zsh by its bashcompinit -----------------------------------------------------------------------


def _bash(known: list[Completed]) -> Iterator[str]:
    commands = " ".join(each.command for each in known if each.command)
    yield "_openqnn_words() {  # program, command, the word before"
    yield '  case "$1 $2" in'
    for each in known:
        yield f'    "{each.program} {each.command}") case "$3" in'
        for flag, words in each.choices.items():
            if flag:
                yield f"      {flag}) echo {shlex.quote(' '.join(words))};;"
        own = " ".join([*each.choices.get("", ()), *each.flags])
        yield f"      *) echo {shlex.quote(own)};;"
        yield "    esac;;"
    yield f"    *) echo {shlex.quote(f'{commands} --help --version')};;"
    yield "  esac"
    yield "}"
    yield _BASH
    programs = " ".join(dict.fromkeys(each.program for each in known))
    yield f"complete -o default -o bashdefault -F _openqnn {programs}"


_BASH = """\
_openqnn() {
  local program="${COMP_WORDS[0]##*/}" command=""
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
  if [ "$program" = openqnn ] && [ "$COMP_CWORD" -gt 1 ]; then command="${COMP_WORDS[1]}"; fi
  COMPREPLY=($(compgen -W "$(_openqnn_words "$program" "$command" "$before")" -- "$word"))
}"""


# -- fish ----------------------------------------------------------------------------------------------------


def _fish(each: Completed) -> Iterator[str]:
    seen = f"-n '__fish_seen_subcommand_from {each.command}'" if each.command else ""
    if each.command:
        doc = _quoted(each.doc)
        yield f"complete -c {each.program} -n __fish_use_subcommand -f -a {each.command} -d {doc}"
    start = f"complete -c {each.program} {seen}".rstrip()
    if own := each.choices.get(""):
        yield f"{start} -f -a {_quoted(' '.join(own))}"
    for flag, help in each.flags.items():
        kind = f"-l {flag[2:]}" if flag.startswith("--") else f"-{'s' if len(flag) == 2 else 'o'} {flag[1:]}"
        words = each.choices.get(flag)
        value = "" if flag in each.bare else f" -x -a {_quoted(' '.join(words))}" if words else " -r"
        yield f"{start} {kind}{value} -d {_quoted(help)}"


def _quoted(text: str) -> str:
    """Text for fish, in one line."""
    return "'" + " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'") + "'"
