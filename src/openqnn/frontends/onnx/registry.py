"""Which function translates which ONNX op, by domain and opset.

A translator's Python signature is the source op's schema: inputs are positional Values (None when left out),
attributes are keyword arguments with ONNX's defaults.

    @translates("Conv")
    def conv(t, x, w, bias=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None,
    strides=None):
        ...
        return t.conv(...)

`since` starts a new version of an op; the newest one not above the model's opset is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Translator = Callable[..., Any]
MICROSOFT: Final = "com.microsoft"

_TABLE: dict[tuple[str, str], list[tuple[int, Translator]]] = {}


def translates(*names: str, since: int = 1, domain: str = "") -> Callable[[Translator], Translator]:
    def register(function: Translator) -> Translator:
        for name in names:
            versions = _TABLE.setdefault((domain, name), [])
            versions.append((since, function))
            versions.sort(key=lambda v: v[0])
        return function

    return register


def rows(table: dict[str, str], domain: str = "") -> None:
    """ONNX ops that are one QNN op with the same inputs and no attributes."""
    for source, target in table.items():
        translates(source, domain=domain)(lambda t, *inputs, _op=target: t(_op, *inputs))


def find(domain: str, name: str, opset: int) -> Translator | None:
    versions = _TABLE.get((domain, name), [])
    return next((f for since, f in reversed(versions) if since <= opset), None)


def known() -> list[tuple[str, str]]:
    return sorted(_TABLE)
