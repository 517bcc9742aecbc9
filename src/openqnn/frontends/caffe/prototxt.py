"""Protobuf's text format, in which Caffe's networks are written: messages as dicts of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from openqnn.errors import ModelError

Message: TypeAlias = "dict[str, list[Any]]"
DEEPEST: Final = 32
LONGEST_NUMBER: Final = 64
_TOKEN = re.compile(
    r"""(?P<space>[\s,;]+|\#[^\n]*)
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?))(?![\w.])
      | (?P<word>[+-]?[A-Za-z_][\w./-]*)
      | (?P<mark>[:{}<>\[\]])""",
    re.VERBOSE,
)
_WORDS: Final[dict[str, Any]] = {
    "true": True, "false": False, "inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"),
}  # fmt: skip


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def read_prototxt(text: str, name: str) -> Message:
    """The outermost message; ModelError with the line where the text is no such message."""
    tokens = list(_tokens(text, name))
    found, at = _message(tokens, 0, "", name, 0)
    if at != len(tokens):
        raise ModelError(f"{name}:{tokens[at].line}: '{tokens[at].text}' closes nothing")
    return found


def _tokens(text: str, name: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ModelError(f"{name}:{line}: {text[at : at + 20].splitlines()[0]!r} cannot be read")
        kind = str(found.lastgroup)
        if kind != "space":
            yield _Token(kind, found.group(), line)
        line += found.group().count("\n")
        at = found.end()


def _message(tokens: list[_Token], at: int, end: str, name: str, depth: int) -> tuple[Message, int]:
    """The fields up to the closing mark, and where it stands."""
    if depth > DEEPEST:
        raise ModelError(f"{name}:{tokens[at - 1].line}: messages are nested too deeply")
    found: Message = {}
    while at < len(tokens) and tokens[at].text not in ("}", ">"):
        key = tokens[at]
        if key.kind != "word":
            raise ModelError(f"{name}:{key.line}: a field's name is expected, not '{key.text}'")
        values, at = _values(tokens, at + 1, key, name, depth)
        found.setdefault(key.text, []).extend(values)
    if end and (at == len(tokens) or tokens[at].text != end):
        line = tokens[min(at, len(tokens)) - 1].line
        raise ModelError(f"{name}:{line}: '{end}' is missing; the file may be truncated")
    return found, at


def _values(tokens: list[_Token], at: int, key: _Token, name: str, depth: int) -> tuple[list[Any], int]:
    colon = at < len(tokens) and tokens[at].text == ":"
    at += colon
    if at >= len(tokens):
        raise ModelError(f"{name}:{key.line}: '{key.text}' has no value; the file may be truncated")
    token = tokens[at]
    if token.text in ("{", "<"):
        found, at = _message(tokens, at + 1, "}" if token.text == "{" else ">", name, depth + 1)
        return [found], at + 1
    if not colon:
        raise ModelError(f"{name}:{token.line}: ':' or '{{' is expected behind '{key.text}'")
    if token.text == "[":
        end = next((i for i in range(at, len(tokens)) if tokens[i].text == "]"), None)
        if end is None:
            raise ModelError(f"{name}:{token.line}: ']' is missing")
        return [_scalar(t, name) for t in tokens[at + 1 : end]], end + 1
    return [_scalar(token, name)], at + 1


def _scalar(token: _Token, name: str) -> Any:
    if token.kind == "text":
        return re.sub(r"\\(.)", r"\1", token.text[1:-1])
    if token.kind == "number":
        if len(token.text) > LONGEST_NUMBER:
            raise ModelError(f"{name}:{token.line}: a number of {len(token.text)} digits")
        text = token.text if re.match(r"[+-]?0[xX]", token.text) else token.text.rstrip("fF")
        return int(text, 0) if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|[1-9]\d*|0)", text) else float(text)
    if token.kind == "word":
        return _WORDS.get(token.text, token.text)
    raise ModelError(f"{name}:{token.line}: a value is expected, not '{token.text}'")
