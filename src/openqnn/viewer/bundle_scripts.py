"""The page's script: the modules of the static folder in one, each in a function of its own.

The modules are plain ES modules of a narrow form: imports stand on lines of their own, and what is
exported is
declared with the word `export` in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

START = "main"
IMPORT = re.compile(r'^import \{ ([^}]*) \} from "\./(\w+)\.js";\n', re.M)
EXPORT = re.compile(r"^export (?=(?:async )?(?:const|function|class) (\w+))", re.M)


@cache
def page_script() -> str:
    return bundle_scripts(START, _module)


def bundle_scripts(start: str, read: Callable[[str], str]) -> str:
    """The module `start` and all that it needs, each after those that it imports."""
    done: dict[str, str] = {}
    _add(start, read, done, ())
    return '"use strict";\n' + "\n".join(done.values())


def _add(name: str, read: Callable[[str], str], done: dict[str, str], above: tuple[str, ...]) -> None:
    if name in done:
        return
    if name in above:
        raise ValueError(f"modules import each other: {' -> '.join((*above, name))}")
    text = read(name)
    for _, other in IMPORT.findall(text):
        _add(other, read, done, (*above, name))
    body = IMPORT.sub(lambda found: f"const {{ {found[1]} }} = ${found[2]};\n", text)
    given = ", ".join(EXPORT.findall(body))
    done[name] = f"const ${name} = (() => {{\n{EXPORT.sub('', body)}return {{ {given} }};\n}})();"


def _module(name: str) -> str:
    return files("openqnn.viewer").joinpath("static", "js", f"{name}.js").read_text(encoding="utf-8")
