"""Which function translates which op of a framework: every frontend has a Registry of its own.

A translator's Python signature is the source op's schema: inputs are positional Values (None when left out),
attributes are keyword arguments with the framework's defaults.

    TABLE = Registry()

    @TABLE.translates("Conv")
    def conv(t, x, w, bias=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None,
    strides=None):
        ...
        return t.conv(...)

`since` starts a new version of an op; the newest one not above the model's version is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Translator = Callable[..., Any]


class Registry:
    """A frontend's op table, by the domain that an op is of (if any), name and version."""

    def __init__(self) -> None:
        self._table: dict[tuple[str, str], list[tuple[int, Translator]]] = {}

    def translates(self, *names: str, since: int = 1, domain: str = "") -> Callable[[Translator], Translator]:
        def register(function: Translator) -> Translator:
            for name in names:
                versions = self._table.setdefault((domain, name), [])
                versions.append((since, function))
                versions.sort(key=lambda v: v[0])
            return function

        return register

    def rows(self, table: dict[str, str], domain: str = "") -> None:
        """Source ops that are one QNN op with the same inputs and no attributes."""
        for source, target in table.items():
            self.translates(source, domain=domain)(lambda t, *inputs, _op=target: t(_op, *inputs))

    def find(self, name: str, version: int = 1, domain: str = "") -> Translator | None:
        versions = self._table.get((domain, name), [])
        return next((f for since, f in reversed(versions) if since <= version), None)

    def known(self) -> list[tuple[str, str]]:
        return sorted(self._table)
