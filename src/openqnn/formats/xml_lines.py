"""XML as elements that know their line, for readers whose messages should lead to the place."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from openqnn.errors import InputError


@dataclass(slots=True)
class XmlElement:
    """An element; `text` is what stands between its tags, children left out."""

    file: str
    tag: str
    line: int
    attributes: dict[str, str]
    children: list[XmlElement] = field(default_factory=lambda: list[XmlElement]())
    text: str = ""

    def fail(self, message: str, hint: str = "") -> NoReturn:
        raise InputError(f"{self.file}:{self.line}: <{self.tag}>: {message}", hint=hint)

    def all(self, tag: str) -> list[XmlElement]:
        return [child for child in self.children if child.tag == tag]

    def find(self, tag: str) -> XmlElement | None:
        """The only child of that name, if any."""
        found = self.all(tag)
        if len(found) > 1:
            found[1].fail("given twice", hint=f"the first stands in line {found[0].line}; leave one out")
        return found[0] if found else None

    def value(self, tag: str, default: str | None = None) -> str:
        """The text of a child; without a default there must be one."""
        child = self.find(tag)
        if child is None:
            if default is None:
                self.fail(f"<{tag}> is missing", hint=f"add <{tag}>...</{tag}>")
            return default
        if child.children:
            child.fail("text is expected, not other elements")
        if not child.text:
            child.fail("it is empty")
        return child.text


def read_xml(path: str | os.PathLike[str]) -> XmlElement:
    """The root of a file; InputError with the line where it is not XML."""
    try:
        data = Path(path).read_bytes()
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror or e}") from e
    return parse_xml(data, os.fspath(path))


def parse_xml(data: bytes, file: str) -> XmlElement:
    parser = expat.ParserCreate()
    top = XmlElement(file, "", 0, {})
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        made = XmlElement(file, tag, parser.CurrentLineNumber, attributes)
        stack[-1].children.append(made)
        stack.append(made)

    def end(_: str) -> None:
        done = stack.pop()
        done.text = done.text.strip()

    def characters(text: str) -> None:
        stack[-1].text += text

    def doctype(*_: object) -> None:
        line = parser.CurrentLineNumber
        raise InputError(f"{file}:{line}: a document type is declared", hint="leave <!DOCTYPE ...> out")

    handlers: dict[str, Callable[..., None]] = {
        "StartElementHandler": start,
        "EndElementHandler": end,
        "CharacterDataHandler": characters,
        "StartDoctypeDeclHandler": doctype,
    }
    for name, handler in handlers.items():
        setattr(parser, name, handler)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as e:
        hint = "the file ends too early" if "no element found" in str(e) else "mend the tags in that line"
        raise InputError(f"{file}:{e.lineno}: not XML: {expat.ErrorString(e.code)}", hint=hint) from e
    return top.children[0]
