"""Calling a translator with a node's arguments: they must fit its signature, which is the ATen schema.

Files may be damaged, and schemas grow from version to version: what does not fit is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from openqnn.errors import OpenQnnError
from openqnn.frontends.registry import Translator
from openqnn.frontends.signature import Signature, signature_of
from openqnn.frontends.torch.program import Argument
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.frontends.translation import Refused
from openqnn.ir import DType, Value

# Where a tensor lies and how makes no difference to its numbers.
IGNORED: Final = {"memory_format", "layout", "device", "pin_memory", "non_blocking", "copy", "implicit"}
_UNFIT = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, AssertionError, AttributeError)

_is_int = lambda v: isinstance(v, int)
_is_number = lambda v: isinstance(v, int | float)
_all_of: Callable[[Callable[[Any], bool]], Callable[[Any], bool]] = lambda test: (
    lambda v: isinstance(v, list) and all(test(e) for e in v)
)
_KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "Value": lambda v: isinstance(v, Value),
    "Term": lambda v: isinstance(v, Value | int | float),
    "int": _is_int,
    "float": _is_number,
    "bool": _is_int,
    "str": lambda v: isinstance(v, str),
    "DType": lambda v: isinstance(v, DType | str),
    "list[int]": _all_of(_is_int),
    "list[float]": _all_of(_is_number),
    "list[Value]": _all_of(lambda v: isinstance(v, Value)),
    "None": lambda v: v is None,
}


def call(translator: Translator, t: TorchTranslation, arguments: Sequence[Argument]) -> Any:
    """The translator's results; Refused or ShapeError where the node does not fit it."""
    given = _matched(signature_of(translator), arguments)
    try:
        return translator(t, **given)
    except OpenQnnError:
        raise
    except _UNFIT as e:
        raise Refused(f"its arguments do not fit together: {type(e).__name__}: {e}") from e


def _matched(signature: Signature, arguments: Sequence[Argument]) -> dict[str, Any]:
    """The arguments by the translator's names for them."""
    kinds = {**dict(signature.inputs), **signature.attributes}
    given: dict[str, Any] = {}
    for index, argument in enumerate(arguments):
        name = argument.name
        if name not in kinds and argument.positional and index < len(signature.inputs):
            name = signature.inputs[index][0]
        if name in kinds:
            _check(argument.name, argument.value, kinds[name])
            given[name] = argument.value
        elif signature.any_attribute:
            given[name] = argument.value
        elif name not in IGNORED and argument.value not in (None, False):
            raise Refused(f"argument '{name}' is not known")
    needed = {name for name, _ in signature.inputs[: signature.needed]} | signature.required
    missing = needed - given.keys()
    if missing:
        raise Refused(f"argument '{min(missing)}' is missing")
    return given


def _check(name: str, value: Any, kinds: tuple[str, ...]) -> None:
    tests = [_KINDS.get(kind) for kind in kinds]
    if any(test is None or test(value) for test in tests):
        return
    if isinstance(value, complex):
        raise Refused("complex numbers have no QNN equivalent")
    raise Refused(f"argument '{name}' is a {type(value).__name__}, {' or '.join(kinds)} is expected")
