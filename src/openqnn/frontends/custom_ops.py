"""Operations that the user declares for source models: composites here, custom ops in `openqnn.ops.custom`.

    @openqnn.composite("my.domain", "ScaledTanh")
    def scaled_tanh(q, x, *, factor=1.0):
        return q.mul(q.tanh(x), factor)

A composite puts QNN ops together by the words of `openqnn.ops.vocabulary`: it needs no compiler and runs on
every backend. Its signature is the source op's schema, as in `openqnn.frontends.registry`: inputs are
positional, attributes are keywords. Frontends look here before they look into their own table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import partial, wraps
from typing import Any, Final

from openqnn.errors import BackendError, OpenQnnError, UsageError
from openqnn.formats.op_package import OperandDef
from openqnn.frontends.registry import Translator
from openqnn.frontends.signature import DECLARED_AT
from openqnn.frontends.translation import Refused, Translation, narrow_type
from openqnn.ir import DType, Node, Shape, Value, dtype_of
from openqnn.ops import OPS, complete
from openqnn.ops.custom import IMAGE, CustomOp, custom_ops, dtypes_of, results_of
from openqnn.ops.user_code import line_of, origin
from openqnn.ops.vocabulary import Vocabulary

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


def composite_function(domain: str, name: str) -> Callable[..., Any] | None:
    """The user's own function of a composite, which takes any builder; None where none is declared."""
    found = _COMPOSITES.get((domain, name)) or _COMPOSITES.get(("", name))
    return getattr(found, "__wrapped__", found)


def forget_composites() -> None:
    """No composite is declared any more."""
    _COMPOSITES.clear()


def guarded(function: Translator, kind: str, label: str) -> Translator:
    """The user's function as a translator: what goes wrong in it is said of the node, with the line."""

    @wraps(function)
    def translate(t: Translation, *inputs: Any, **attributes: Any) -> Any:
        try:
            made = function(t, *inputs, **attributes)
        except OpenQnnError as e:
            place = line_of(e, origin(function))
            raise Refused(f"{kind} {label}: {e.message} (at {place})", hint=e.hint) from e
        except AttributeError as e:
            if getattr(e, "obj", None) is not t:
                raise _refused(kind, label, e) from e
            raise Refused(
                f"{kind} {label}: its builder has no word '{e.name}' (at {line_of(e)})",
                hint=_words_like(str(e.name)),
            ) from e
        except Exception as e:
            raise _refused(kind, label, e) from e
        return _checked(t, made, f"{kind} {label} ({origin(function)})")

    setattr(translate, DECLARED_AT, origin(function))
    return translate


def _refused(kind: str, label: str, error: Exception) -> Refused:
    return Refused(f"{kind} {label}: {type(error).__name__}: {error} (at {line_of(error)})")


def _words_like(name: str) -> str:
    words = [w for w in vars(Vocabulary) if not w.startswith("_")]
    near = [w for w in words if name in w] or get_close_matches(name, words, 3, 0.5)
    asked = f"did you mean {' or '.join(near)}? " if near else ""
    return (
        f'{asked}`python -m pydoc openqnn.ops.vocabulary` lists all; q("Softmax", x, axis=1) names a QNN op'
    )


def _checked(t: Translation, made: Any, what: str) -> list[Value]:
    results = list(made) if isinstance(made, list | tuple) else [made]
    wrong = [r for r in results if not isinstance(r, Value)]
    if wrong or not results:
        kind = type(wrong[0]).__name__ if wrong and wrong[0] is not None else "nothing"
        raise Refused(f"{what} gives {kind} where a tensor is expected", hint="does it end with `return`?")
    _check_results(t, len(results), what)
    return [t.copy(r) if r.producer is None and not r.is_constant else r for r in results]


def _check_results(t: Translation, count: int, what: str) -> None:
    read = sum(map(bool, t.outputs))
    if count < read and t.outputs[count]:
        raise Refused(f"{what} gives {count} results, and the node has {read}")
    if t.outputs and count > len(t.outputs):
        t.warn(f"{what} gives {count} results, and the node has {read}: the others are left out")


def custom_translator(name: str, domain: str | None = None) -> Translator | None:
    """What the user declared for an op; without a domain, `name` may have one in front or be the op's alone.

    Every frontend asks here first. Raises Refused where a bare name could mean several.
    """
    if domain is not None:
        found = _COMPOSITES.get((domain, name))
        return found or _translator_of([op for op in _declared() if _fits(op, name, domain)])
    key = _by_text(name, _COMPOSITES)
    if key is not None:
        return _COMPOSITES[key]
    ops = {(op.domain or op.package, op.declared.name): op for op in _declared()}
    other = _by_text(name, ops)
    return _translator_of([ops[other]] if other is not None else [])


def _by_text(text: str, keys: Collection[tuple[str, str]]) -> tuple[str, str] | None:
    whole = [k for k in keys if text in (k[1] if not k[0] else "", *(f"{k[0]}{m}{k[1]}" for m in _MARKS))]
    found = whole or [k for k in keys if k[1] == text]
    if len(found) > 1:
        domains = " and ".join(repr(k[0]) for k in sorted(found))
        raise Refused(f"'{text}' is declared for the domains {domains}, and the model names none")
    return found[0] if found else None


def declared_names() -> list[str]:
    """Names of all operations that the user declared, for frameworks that have to be told."""
    return sorted({name for _, name in _COMPOSITES} | {op.declared.name for op in _declared()})


# -- custom ops ----------------------------------------------------------------------------------------------


def _declared() -> list[CustomOp]:
    return [op for op in custom_ops() if not op.seen]


def _fits(op: CustomOp, name: str, domain: str) -> bool:
    """A declaration without a domain is for the ops of any, unless it leaves QNN's own translation alone."""
    if op.declared.name != name or (op.declared.use_default_translation and not domain):
        return False
    return op.domain is None or op.domain == domain


def _translator_of(found: list[CustomOp]) -> Translator | None:
    if len(found) > 1:
        keys = " and ".join(op.key for op in found)
        raise Refused(f"{found[0].declared.name} is declared as {keys}", hint="give each its domain")
    return partial(add_custom, found[0]) if found else None


def add_custom(op: CustomOp, t: Translation, *inputs: Value | None, **attributes: Any) -> list[Value]:
    """A node of the user's package: attributes become parameters, images come in the layout it declares."""
    given = [t.operand(v) for v in inputs]
    count = len(op.declared.inputs)
    _check_count(op, given)
    if not t.channels_last:
        given = [_to_last(t, v, op.declared.inputs[min(i, count - 1)].layout) for i, v in enumerate(given)]
    for v, d in zip(given, op.declared.inputs, strict=False):
        if d.static and v is not None and not v.is_constant:
            t.refuse(f"input '{d.name}' of {op.key} is to be static, and '{v.name}' is computed at run time")
    params = params_from(op, attributes)
    shapes, dtypes = _results(op, t, given, params)
    made = t.many(op.declared.name, *given, package=op.package, shapes=shapes, dtypes=dtypes, **params)
    return [v if t.channels_last else _to_first(t, v, _output(op, i).layout) for i, v in enumerate(made)]


def _check_count(op: CustomOp, given: Sequence[Value | None]) -> None:
    """Refuses more inputs than are declared, and that a mandatory one is left out."""
    declared = op.declared.inputs
    place = f" (declared at {op.origin})" if op.origin else ""
    if len(given) > len(declared) and not (declared and declared[-1].repeated):
        raise Refused(f"{len(given)} inputs given, and {op.key} has {len(declared)}{place}")
    for i, d in enumerate(declared):
        if d.mandatory and not d.repeated and (i >= len(given) or given[i] is None):
            raise Refused(f"input '{d.name}' of {op.key} is missing{place}")


def params_from(op: CustomOp, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by the attributes of a source node, in whichever framework: the one table for all."""
    names = {op.attributes.get(p.name, p.name): p.name for p in op.declared.params}
    unknown = [a for a in attributes if a not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise Refused(
            f"attribute '{unknown[0]}' is no parameter of {op.key}",
            hint=f"it has: {known}" + (f" ({op.origin})" if op.origin else ""),
        )
    return {names[name]: value for name, value in attributes.items()}


def _to_last(t: Translation, v: Value | None, layout: str) -> Value | None:
    return t.to_last(v) if v is not None and layout in IMAGE and v.rank == len(layout) else v


def _to_first(t: Translation, v: Value, layout: str) -> Value:
    return t.to_first(v) if layout in IMAGE and v.rank == len(layout) else v


def _output(op: CustomOp, index: int) -> OperandDef:
    return op.declared.outputs[min(index, len(op.declared.outputs) - 1)]


def _results(
    op: CustomOp, t: Translation, inputs: Sequence[Value | None], params: Mapping[str, Any]
) -> tuple[list[Shape], list[DType]]:
    """Shapes and types of the outputs: by the user's rule or function, or as the model states them."""
    schema, first = OPS[op.key], next((v for v in inputs if v is not None), None)
    full = complete(schema, dict(params), first.rank if first is not None else 0, op.key)
    node = Node(op.key, t.builder.stem, list(inputs), [], full, t.builder.source, op.package)
    try:
        shapes, dtypes = _found(op, t, node, first)
    except BackendError as e:
        raise Refused(e.message, hint=e.hint) from e
    least, read = sum(d.mandatory and not d.repeated for d in op.declared.outputs), sum(map(bool, t.outputs))
    if len(shapes) < max(least, read):
        known = f"{least} are declared" if least > read else f"the node has {read}"
        raise Refused(f"{op.key} gives {len(shapes)} results, and {known}", hint=op.origin)
    return shapes, dtypes


def _found(op: CustomOp, t: Translation, node: Node, first: Value | None) -> tuple[list[Shape], list[DType]]:
    if op.inferred is not None and op.shapes is None:
        node.outputs = [Value(name, DType.FLOAT_32, ()) for name in t.outputs]  # as many as the model has
        return _split(op.inferred(node))
    if op.shapes is None and op.function is None:
        shapes = _stated(op, t)
        return shapes, [_dtype(op, i, first, None) for i in range(len(shapes))]
    shapes = [tuple(s) for s in OPS[op.key].infer(node)]
    return shapes, _computed_types(op, node, first, len(shapes))


def _computed_types(op: CustomOp, node: Node, first: Value | None, count: int) -> list[DType]:
    made = results_of(op, node) if op.function is not None else []
    kinds = [narrow_type(dtype_of(a.dtype)) for a in made]
    return [_dtype(op, i, first, kinds[i] if i < len(kinds) else None) for i in range(count)]


def _split(found: Sequence[tuple[Shape, DType]]) -> tuple[list[Shape], list[DType]]:
    return [shape for shape, _ in found], [dtype for _, dtype in found]


def _stated(op: CustomOp, t: Translation) -> list[Shape]:
    shapes: list[Shape] = []
    for i, name in enumerate(t.outputs):
        found, layout = t.output_shape(i), _output(op, i).layout
        if found is None:
            t.refuse(
                f"{op.key}: nobody says what shape '{name}' has",
                hint="give the model value_info for it, a function with --custom_ops, or a library with"
                " --converter_op_package_lib",
            )
        turned = not t.channels_last and layout in IMAGE and len(found) == len(layout)
        shapes.append((found[0], *found[2:], found[1]) if turned else found)
    return shapes


def _dtype(op: CustomOp, index: int, first: Value | None, made: DType | None) -> DType:
    """The function's type, or that of the first input, where it is declared; else the first declared one."""
    allowed = dtypes_of(op, _output(op, index))
    wanted = [t for t in (made, first.dtype if first is not None else None) if t is not None]
    return next((t for t in wanted if not allowed or t in allowed), allowed[0] if allowed else DType.FLOAT_32)
