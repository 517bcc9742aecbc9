"""The style that all pages share, the viewer's and the reports': colours in light and dark, fonts, tables."""

from __future__ import annotations

from typing import Final

LIGHT: Final = {
    "back": "#f4f6f9", "card": "#fff", "ink": "#1c2430", "dim": "#55606f", "line": "#7d8898",
    "edge": "#a9b3c0", "mark": "#0b57d0", "group": "#e7ecf3", "added": "#137333", "removed": "#b3261e",
    "changed": "#8a5000",
}  # fmt: skip
DARK: Final = {
    "back": "#14181f", "card": "#1e242d", "ink": "#e6eaf0", "dim": "#a9b3c1", "line": "#77839a",
    "edge": "#4c5768", "mark": "#8ab4f8", "group": "#1b212b", "added": "#81c995", "removed": "#f28b82",
    "changed": "#fdd663",
}  # fmt: skip
"""The colours of the viewer's graph page, by the names that they have there."""


def _variables(colours: dict[str, str], on_mark: str, scheme: str) -> str:
    named = " ".join(f"--{name}: {colour};" for name, colour in colours.items())
    return f"{{ {named} --on-mark: {on_mark}; color-scheme: {scheme}; }}"


PALETTE: Final = (
    f":root {_variables(LIGHT, '#fff', 'light')}\n:root.dark {_variables(DARK, '#14181f', 'dark')}\n"
)
