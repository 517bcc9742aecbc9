"""How Python is started as a child: it finds this package, and runs nothing of the working folder.

`python -m` and `python -c` put the working folder first on the path of modules. A model is often looked at
in the folder that it was unpacked into, and a `struct.py` there would be run in place of Python's own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def interpreter_command(*arguments: str) -> list[str]:
    """The command of a new interpreter like this one, which looks for no modules in the working folder."""
    return [sys.executable, "-P", *arguments]


def interpreter_environment() -> dict[str, str]:
    """The environment in which it finds this very package, however this process came to find it."""
    home = str(Path(__file__).parents[2])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
