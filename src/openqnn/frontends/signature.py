"""Calling a translator: the node must fit its signature, which is the source op's schema.

Models come from many tools, and some are damaged: what does not fit is refused here, for all translators.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from openqnn.errors import ShapeError
from openqnn.frontends.registry import Translator
from openqnn.frontends.translation import Refused, Translation
from openqnn.ir import Value

Kinds: TypeAlias = Mapping[str, "type | tuple[type, ...]"]
DECLARED_AT: Final = "declared_at"
"""What a translator that the user wrote says of its place."""
BASIC_KINDS: Final[Kinds] = {
    "int": int,
    "float": (float, int),
    "str": str,
    "list[int]": list,
    "Sequence[int]": list,
    "list[float]": list,
    "Array": np.ndarray,
}


@dataclass(frozen=True)
class Signature:
    """What a translator takes. A type is a tuple of alternatives; `rest` is for any number of inputs."""

    inputs: tuple[tuple[str, tuple[str, ...]], ...]
    needed: int
    rest: tuple[str, ...] | None
    attributes: Mapping[str, tuple[str, ...]]
    required: frozenset[str]
    any_attribute: bool


def _alternatives(parameter: inspect.Parameter) -> tuple[str, ...]:
    said = parameter.annotation
    known = isinstance(said, type) and said is not parameter.empty
    text = said if isinstance(said, str) else said.__name__ if known else "Any"
    return tuple(part.strip() for part in text.split(" | "))


@lru_cache(maxsize=1024)
def signature_of(function: Translator) -> Signature:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    inputs = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and not p.name.startswith("_")]
    rest = next((_alternatives(p) for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    return Signature(
        tuple((p.name, _alternatives(p)) for p in inputs),
        sum(p.default is p.empty for p in inputs),
        rest,
        {p.name: _alternatives(p) for p in named},
        frozenset(p.name for p in named if p.default is p.empty),
        any(p.kind is p.VAR_KEYWORD for p in parameters),
    )


def call(
    translator: Translator,
    t: Translation,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    *,
    version: str = "",
    kinds: Kinds = BASIC_KINDS,
) -> Any:
    """The translator's results; Refused or ShapeError when the node does not fit it.

    `version` is what messages say of the ops' version ("opset 13"), and `kinds` are the types of attributes
    by their names in annotations.
    """
    signature = signature_of(translator)
    place = getattr(translator, DECLARED_AT, "")
    try:
        _check_inputs(signature, inputs)
        _check_attributes(signature, attributes, "" if place else version, kinds)
    except (Refused, ShapeError) as e:
        if place:
            hint = "inputs of a composite are positional, attributes are keywords behind a *"
            raise Refused(f"{e.message} (declared at {place})", hint=e.hint or hint) from e
        raise
    return translator(t, *inputs, **attributes)


def _check_inputs(signature: Signature, inputs: Sequence[Any]) -> None:
    most = len(signature.inputs)
    if len(inputs) < signature.needed or (signature.rest is None and len(inputs) > most):
        raise ShapeError(f"{len(inputs)} inputs given, {_expected(signature)} expected")
    for i, value in enumerate(inputs):
        name, kinds = signature.inputs[i] if i < most else (str(i), signature.rest or ("Any",))
        if kinds[0] != "Value" or isinstance(value, Value):
            continue
        if value is not None:
            raise Refused(f"input '{name}' is a sequence or an optional, a tensor is expected")
        if "None" not in kinds:
            raise ShapeError(f"input '{name}' is missing")


def _expected(signature: Signature) -> str:
    least, most = signature.needed, len(signature.inputs)
    if signature.rest is not None:
        return f"at least {least}"
    return str(most) if least == most else f"{least} to {most}"


def _check_attributes(
    signature: Signature, attributes: Mapping[str, Any], version: str, known: Kinds
) -> None:
    missing = signature.required - attributes.keys()
    if missing:
        raise Refused(f"attribute '{min(missing)}' is missing")
    for name, value in attributes.items():
        kinds = signature.attributes.get(name)
        if kinds is None and not signature.any_attribute:
            listed = ", ".join(signature.attributes)
            raise Refused(
                f"attribute '{name}' is not known" + (f" for {version}" if version else ""),
                hint="" if version else f"known are: {listed or 'none'}",
            )
        if not _is_of_kind(value, kinds or (), known):
            raise Refused(
                f"attribute '{name}' is a {type(value).__name__}, {' or '.join(kinds or ())} is expected"
            )


def _is_of_kind(value: Any, kinds: Iterable[str], known: Kinds) -> bool:
    """Whether a value has one of the kinds; kinds that nobody knows are not checked."""
    types = [known.get(kind) for kind in kinds if kind != "None"]
    if not types or None in types:
        return True
    return any(isinstance(value, kind) for kind in types if kind)
