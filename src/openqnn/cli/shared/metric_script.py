"""The script of `--target_metric`: a function `metric(run)` and the number `target` that it has to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, TypeAlias

from openqnn.errors import InputError

if TYPE_CHECKING:
    from openqnn.ir import Array

Run: TypeAlias = "Callable[[Mapping[str, Any]], dict[str, Array]]"
HINT = "it needs a function metric(run) that gives a number, and a number target that it has to reach"


def read_metric(path: str) -> tuple[Callable[[Run], float], float]:
    """The metric and the target; whatever goes wrong in the script is said with its file and line."""
    try:
        code = compile(Path(path).read_bytes(), path, "exec")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", hint="--target_metric takes a Python file") from error
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise InputError(f"{path}{line}: {getattr(error, 'msg', error)}") from error
    names: dict[str, Any] = {"__name__": "metric", "__file__": path}
    _guarded(path, lambda: exec(code, names))
    metric, target = names.get("metric"), names.get("target")
    if not callable(metric):
        raise InputError(f"{path} has no function 'metric'", hint=HINT)
    if target is None or not _is_number(target):
        wrong = "has no number 'target'" if target is None else f"has target = {target!r}, which is no number"
        raise InputError(f"{path} {wrong}", hint=HINT)
    return lambda run: _score(path, metric, run), float(target)


def _score(path: str, metric: Callable[[Run], Any], run: Run) -> float:
    found = _guarded(path, lambda: metric(run))
    if not _is_number(found):
        raise InputError(f"{path}: metric() gave {found!r}, which is no number", hint=HINT)
    return float(found)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value  # noqa: PLR0124  NaN


def _guarded(path: str, call: Callable[[], Any]) -> Any:
    """What the script's own code raises becomes a message with the line of the script that it came from."""
    try:
        return call()
    except Exception as error:
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
        where = f"{path}, line {lines[-1]}" if lines else path
        raise InputError(f"{where}: {type(error).__name__}: {error}") from error
