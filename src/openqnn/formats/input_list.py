"""Input lists: which file goes into which input, one inference per line.

    #layer_a                              layers and tensors that are wanted besides the outputs: a line with
    %out_a out_b                          # and one with %, or either, before all others
    image:=a.raw state:=b.raw             by name
    a.raw b.raw                           in the order of the inputs

Empty lines, remarks ("# like this") and further lines that start with # or % are skipped; Windows line ends
are taken as they come.
Relative paths start at the working directory or, where nothing is there, at the list's own folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from openqnn.errors import InputError

_FORM = "it has a line for each set of inputs: the paths of raw files, or NAME:=PATH for each"
_MARKS = ("#", "%")
_OTHER = re.compile(r"[^A-Za-z0-9_]")
_NAMED = re.compile(r"\s+(?=\S+:=)")


@dataclass(frozen=True, slots=True)
class InputLine:
    """One inference: (name, path), with "" for names that the line leaves out."""

    number: int
    files: tuple[tuple[str, Path], ...]


@dataclass(frozen=True, slots=True)
class InputList:
    path: Path
    lines: tuple[InputLine, ...]
    outputs: tuple[str, ...] = ()


def read_input_list(path: str | os.PathLike[str]) -> InputList:
    """The list, with every file found; InputError names the line otherwise."""
    file = Path(path)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as e:
        raise InputError(f"input list {file}: {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise InputError(f"input list {file} is not a text file", hint=_FORM) from e
    lines: list[InputLine] = []
    outputs: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith(_MARKS):
            if not lines and not line[1:2].isspace():
                outputs.setdefault(line[0], tuple(line.lstrip("#%").split()))
        elif line:
            lines.append(InputLine(number, _files(file, number, line)))
    if not lines:
        raise InputError(f"input list {file} names no files", hint=_FORM)
    return InputList(file, tuple(lines), tuple(name for names in outputs.values() for name in names))


def _files(list_path: Path, number: int, line: str) -> tuple[tuple[str, Path], ...]:
    where = f"{list_path}, line {number}"
    if ":=" not in line:
        return tuple(("", _found(list_path, word, where)) for word in line.split())
    files: list[tuple[str, Path]] = []
    for entry in _NAMED.split(line):
        name, sign, path = entry.partition(":=")
        if not sign or not name or not path.strip():
            raise InputError(
                f"{where}: '{entry}' is not NAME:=PATH", hint="name all files of a line, or none"
            )
        if name in dict(files):
            raise InputError(f"{where}: input '{name}' is given twice")
        files.append((name, _found(list_path, path.strip(), where)))
    return tuple(files)


def _found(list_path: Path, name: str, where: str) -> Path:
    for candidate in (Path(name), list_path.parent / name):
        if candidate.is_file():
            return candidate.absolute()
    raise InputError(f"{where}: there is no file {name}")


def meant_name(said: str, names: Sequence[str]) -> str:
    """The name that is meant: the same one, or the one that is the same where QNN has no such letters; or "".

    A model may have `onnx::Relu_0` and its DLC `onnx__Relu_0`: whoever saw either may say it.
    """
    if said in names:
        return said
    alike = [name for name in names if _OTHER.sub("_", name) == _OTHER.sub("_", said)]
    return alike[0] if len(alike) == 1 else ""


def named_files(given: InputList, line: InputLine, names: Sequence[str], graph: str) -> dict[str, Path]:
    """The file of each input; InputError when a line has other names than the graph, too few or too many."""
    where = f"{given.path}, line {line.number}"
    if line.files[0][0]:
        files: dict[str, Path] = {}
        for said, path in line.files:
            name = meant_name(said, names)
            if not name:
                hint = f"its inputs: {', '.join(names)}"
                raise InputError(f"{where}: graph '{graph}' has no input '{said}'", hint=hint)
            files[name] = path
        missing = [name for name in names if name not in files]
        if missing:
            raise InputError(f"{where}: no file for input '{missing[0]}'")
        return files
    if len(line.files) != len(names):
        raise InputError(
            f"{where}: {len(line.files)} file(s) for {len(names)} input(s)",
            hint=f"the inputs, in this order: {', '.join(names)}",
        )
    return dict(zip(names, (path for _, path in line.files), strict=True))
