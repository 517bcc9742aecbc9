"""Files in which users declare operations of their own: Python modules with composites and custom ops."""

from __future__ import annotations

import os
import sys
from importlib import util
from pathlib import Path

from openqnn.errors import InputError, OpenQnnError
from openqnn.frontends.custom_ops import line_of


def load_custom_ops(*paths: str | os.PathLike[str]) -> None:
    """Runs Python files that declare operations; what they declare holds for this process.

    InputError where a file cannot be run, with the line at fault.
    """
    for path in paths:
        _run(Path(path))


def _run(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix != ".py":
        hint = "custom ops are declared in a Python file: --custom_ops my_ops.py"
        raise InputError(f"{path}: not a Python file", hint=hint)
    name = f"openqnn_custom_{path.stem}"
    spec = util.spec_from_file_location(name, path.absolute())
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the like look their module up
    folder = str(path.absolute().parent)
    sys.path.insert(0, folder)  # what it imports may stand beside it
    try:
        spec.loader.exec_module(module)
    except OpenQnnError as e:
        raise InputError(f"{path}: {e.message}", hint=e.hint) from e
    except SyntaxError as e:
        raise InputError(f"{e.filename or path}:{e.lineno}: {e.msg}") from e
    except Exception as e:
        raise InputError(f"{path}: {type(e).__name__}: {e} (at {line_of(e)})") from e
    finally:
        sys.path.remove(folder)
