"""Operations that the user declares for source models: composites here, custom ops in `openqnn.ops.custom`.

    @openqnn.composite("my.domain", "ScaledTanh")
    def scaled_tanh(q, x, *, factor=1.0):
        return q.mul(q.tanh(x), factor)

A composite puts QNN ops together by the words of `openqnn.ops.vocabulary`: it needs no compiler and runs on
every backend. Its signature is the source op's schema, as in `openqnn.frontends.registry`: inputs are
positional, attributes are keywords. Frontends look here before they look into their own table.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Any, Final

from openqnn.errors import OpenQnnError, UsageError
from openqnn.frontends.registry import Translator
from openqnn.frontends.translation import Refused, Translation
from openqnn.ir import Value

_COMPOSITES: Final[dict[tuple[str, str], Translator]] = {}
_MARKS: Final = ("::", ".", "/", ":")  # between domain and name, where a framework has one text for both


def composite(domain: str, name: str = "") -> Callable[[Translator], Translator]:
    """Decorator: the function says in QNN ops what op `name` of a framework's `domain` computes.

    The domain is ONNX's domain or PyTorch's namespace, and "" for frameworks that have none; without a name
    the op is called like the function. The first argument is the builder, `q.mul(a, 2)`.
    """
    if not isinstance(domain, str) or not isinstance(name, str):
        raise UsageError(
            "a composite is declared by domain and name", hint='@openqnn.composite("my.domain", "MyOp")'
        )

    def register(function: Translator) -> Translator:
        key = domain, name or function.__name__
        known = _COMPOSITES.get(key)
        if known is not None and origin(known) != origin(function):
            label = "::".join(filter(None, key))
            raise UsageError(f"{label} is declared twice, at {origin(known)} and at {origin(function)}")
        _COMPOSITES[key] = guarded(function, "composite", "::".join(filter(None, key)))
        return function

    return register


def forget_composites() -> None:
    """No composite is declared any more."""
    _COMPOSITES.clear()


def origin(function: Callable[..., Any]) -> str:
    """File and line of a function, for messages."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)


def guarded(function: Translator, kind: str, label: str) -> Translator:
    """The user's function as a translator: what goes wrong in it is said of the node, with the line."""

    @wraps(function)
    def translate(t: Translation, *inputs: Any, **attributes: Any) -> Any:
        try:
            made = function(t, *inputs, **attributes)
        except OpenQnnError as e:
            raise Refused(f"{kind} {label}: {e.message}", hint=e.hint) from e
        except Exception as e:
            raise Refused(f"{kind} {label}: {type(e).__name__}: {e} (at {line_of(e)})") from e
        return _checked(t, made, f"{kind} {label}")

    return translate


def line_of(error: BaseException) -> str:
    """File and line of the user's code where an exception was raised, and not of ours that it called."""
    ours = str(Path(__file__).parents[1])
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if not f.filename.startswith(ours)] or list(frames)
    return f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else "an unknown place"


def _checked(t: Translation, made: Any, what: str) -> list[Value]:
    results = list(made) if isinstance(made, list | tuple) else [made]
    wrong = next((r for r in results if not isinstance(r, Value)), None)
    if wrong is not None or not results:
        kind = type(wrong).__name__ if results else "nothing"
        raise Refused(f"{what} gives {kind} where a tensor is expected")
    read = sum(bool(name) for name in t.outputs)
    if len(results) < read and t.outputs[len(results)]:
        raise Refused(f"{what} gives {len(results)} results, and the node has {read}")
    return [t.copy(r) if r.producer is None and not r.is_constant else r for r in results]


def custom_translator(name: str, domain: str | None = None) -> Translator | None:
    """What the user declared for an op; without a domain, `name` may have one in front or be the op's alone.

    Every frontend asks here first. Raises Refused where a bare name could mean several.
    """
    if domain is not None:
        return _COMPOSITES.get((domain, name))
    found = _by_text(name, _COMPOSITES)
    return _COMPOSITES[found] if found is not None else None


def _by_text(text: str, keys: Collection[tuple[str, str]]) -> tuple[str, str] | None:
    whole = [k for k in keys if (text == k[1] and not k[0]) or text in (f"{k[0]}{m}{k[1]}" for m in _MARKS)]
    found = whole or [k for k in keys if k[1] == text]
    if len(found) > 1:
        domains = " and ".join(repr(k[0]) for k in sorted(found))
        raise Refused(f"'{text}' is declared for the domains {domains}, and the model names none")
    return found[0] if found else None
