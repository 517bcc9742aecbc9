"""Declaring a custom op by the Python function that computes it: `@openqnn.custom_op`.

    @openqnn.custom_op("MyPackage", "ScaledTanh", domain="my.domain")
    def scaled_tanh(x, *, factor: float = 1.0):
        return factor * np.tanh(x)

Positional arguments are inputs, keywords are parameters with their types and defaults; the record that comes
of it is that of an XML file, and can be written as one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import Any, Final, Literal, cast, get_args, get_origin, get_type_hints

import numpy as np

from openqnn.errors import BackendError, UsageError
from openqnn.formats.op_package import BACKENDS, LAYOUTS, PREFIX, SCALAR, OpDef, OperandDef
from openqnn.ir import DType, Node, Shape, dtype_of
from openqnn.ops.custom import CustomOp, Function, ShapeRule, datatype_name, declare
from openqnn.ops.user_code import line_of, origin

_SCALARS: Final = {bool: "BOOL_8", int: "INT_32", float: "FLOAT_32"}


def custom_op(
    package: str,
    name: str = "",
    *,
    domain: str | None = None,
    outputs: Sequence[str] = ("out",),
    types: Sequence[str] | Mapping[str, Sequence[str]] = ("float32",),
    layouts: Mapping[str, str] | None = None,
    static: Sequence[str] = (),
    shape: Callable[..., Any] | None = None,
    cpp: str = "",
    attributes: Mapping[str, str] | None = None,
    backends: Sequence[str] = ("CPU",),
    tensors: Literal["numpy", "torch"] = "numpy",
) -> Callable[[Function], Function]:
    """Decorator: the function is operation `name` of an op package, and its reference.

    `domain` is that of the source op (None: any). `types` are those that tensors may have, such as "float32"
    and "ufixed8", or those by tensor; `layouts` those of images by operand; `static` names inputs that are
    constants. `shape` gives shapes of the outputs for shapes of the inputs and the parameters; without it
    the function is asked. `cpp` is the body of the kernel that `qnn-op-package-generator` writes;
    `attributes` are names of parameters in source models, by parameter. A function of PyTorch's tensors says
    tensors="torch".
    """
    _check_names(package, name, outputs)
    given = {**types} if isinstance(types, Mapping) else {"": types}
    for each in given.values():
        _check(each, backends)

    def register(function: Function) -> Function:
        label = name or function.__name__
        if not label.isidentifier() or not package.replace(".", "_").isidentifier():
            raise UsageError(f"{package}::{label}: names have letters, digits and '_'")
        reader = _Reader(function, given, dict(layouts or {}), tuple(static), f"{package}::{label}")
        declared = OpDef(
            label, *reader.inputs_and_params(outputs), description=_first_line(function),
            backends=tuple(backends),
        )  # fmt: skip
        _check_attributes(f"{package}::{label}", declared, attributes or {})
        rule = None if shape is None else _rule(shape, label)
        declare(
            CustomOp(
                package, declared, function, rule, domain, cpp.strip("\n"), dict(attributes or {}), tensors,
                origin(function),
            )
        )  # fmt: skip
        return function

    return register


def _check_names(package: object, name: object, outputs: Sequence[object]) -> None:
    for what, given in (("package", package), ("name", name)):
        if not isinstance(given, str):
            raise UsageError(
                f"the {what} of a custom op is a text, not {given!r}", hint='@openqnn.custom_op("MyPackage")'
            )
    listed = [outputs] if isinstance(outputs, str) else list(outputs)
    odd = next((o for o in listed if not isinstance(o, str) or not o.isidentifier()), None)
    if isinstance(outputs, str) or odd is not None or not listed or len(set(listed)) < len(listed):
        raise UsageError(f"outputs={outputs!r}: a list of different names is expected", hint='("y", "z")')


def _check_attributes(label: str, declared: OpDef, attributes: Mapping[str, str]) -> None:
    names = [p.name for p in declared.params]
    lost = next((a for a in attributes if a not in names), None)
    if lost is not None:
        raise UsageError(
            f"{label}: attributes names the parameter '{lost}', which the function does not have",
            hint=f"its parameters: {', '.join(names) or 'none'}; attributes={{parameter: attribute}}",
        )


def _check(types: Sequence[str], backends: Sequence[str]) -> None:
    if isinstance(types, str) or isinstance(backends, str):
        given = types if isinstance(types, str) else backends
        raise UsageError(f"a list is expected, not the text {given!r}", hint=f"({given!r},)")
    wrong = [t for t in types if t not in {d.label for d in DType}]
    if wrong or not types:
        raise UsageError(
            f"{wrong[0] if wrong else '()'!r} is no data type", hint="such as types=('float32', 'ufixed8')"
        )
    odd = [b for b in backends if b not in BACKENDS]
    if odd:
        raise UsageError(f"{odd[0]!r} is no backend", hint=f"one of {', '.join(BACKENDS)}")


def _first_line(function: Function) -> str:
    return (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")


class _Reader:
    """A function's signature as operands of an operation."""

    def __init__(
        self, function: Function, types: Mapping[str, Sequence[str]], layouts: dict[str, str],
        static: tuple[str, ...], label: str,
    ) -> None:  # fmt: skip
        self._types = {name: tuple(datatype_name(dtype_of(t)) for t in each) for name, each in types.items()}
        self._layouts, self._static, self._label = layouts, static, label
        self._signature = inspect.signature(function)
        try:
            self._hints = get_type_hints(function)
        except Exception:  # names that only a type checker knows
            self._hints = {}

    def inputs_and_params(self, outputs: Sequence[str]) -> tuple[tuple[OperandDef, ...], ...]:
        found = list(self._signature.parameters.values())
        if any(p.kind is p.VAR_KEYWORD for p in found):
            raise UsageError(f"{self._label}: parameters are named one by one, not by **")
        inputs = [p for p in found if p.kind is not p.KEYWORD_ONLY]
        if not inputs:
            raise UsageError(f"{self._label}: its function has no positional argument, so it has no input")
        self._check_tensors([p.name for p in inputs], [p.name for p in found], outputs)
        return (
            tuple(self._input(p) for p in inputs),
            tuple(self._tensor(name) for name in outputs),
            tuple(self._param(p) for p in found if p.kind is p.KEYWORD_ONLY),
        )

    def _check_tensors(self, inputs: Sequence[str], arguments: Sequence[str], outputs: Sequence[str]) -> None:
        known = {*inputs, *outputs}
        for name in (*self._layouts, *self._static, *filter(None, self._types)):
            if name not in known:
                raise UsageError(f"{self._label}: there is no tensor '{name}'", hint=", ".join(sorted(known)))
        twice = next((name for name in arguments if name in outputs), None)
        if twice is not None:
            raise UsageError(
                f"{self._label}: '{twice}' is an output and an argument",
                hint="give outputs=(...) other names",
            )

    def _tensor(self, name: str, **more: Any) -> OperandDef:
        layout = self._layouts.get(name, "")
        if layout and layout not in LAYOUTS:
            raise UsageError(f"{self._label}: {layout!r} is no layout", hint=f"one of {', '.join(LAYOUTS)}")
        rank = f"{len(layout)}D" if layout else "ND"
        types = self._types.get(name) or self._types.get("", (f"{PREFIX}FLOAT_32",))
        return OperandDef(name, datatypes=types, rank=rank, layout=layout, **more)

    def _input(self, p: inspect.Parameter) -> OperandDef:
        whole, repeated = self._hints.get(p.name) is int, p.kind is p.VAR_POSITIONAL
        more = (
            repeated
            and len([q for q in self._signature.parameters.values() if q.kind is not p.KEYWORD_ONLY]) > 1
        )
        made = self._tensor(
            p.name, mandatory=p.default is p.empty and not more, repeated=repeated,
            static=p.name in self._static,
        )  # fmt: skip
        if not whole or p.name in self._types:
            return made
        return replace(made, datatypes=(f"{PREFIX}INT_32",))

    def _param(self, p: inspect.Parameter) -> OperandDef:
        hint, given = self._hints.get(p.name), p.default is not p.empty
        if get_origin(hint) is Literal:
            members = tuple(str(a) for a in get_args(hint))
            return self._scalar(p, "UINT_32", str(p.default) if given else "", members)
        self._check_param(p, hint)
        kind = cast("type | None", hint if hint in _SCALARS else type(p.default) if given else None)
        if kind in _SCALARS:
            text = "" if not given or p.default is None else str(p.default)
            dtype = _SCALARS[kind]
            return self._scalar(p, dtype, text.lower() if kind is bool else text)
        return self._list(p, hint, given)

    def _check_param(self, p: inspect.Parameter, hint: Any) -> None:
        if hint is str or isinstance(p.default, str):
            raise UsageError(
                f"{self._label}: parameter '{p.name}' is a text, and QNN has none",
                hint=f'{p.name}: Literal["A", "B"] is a choice, stored as its number',
            )
        if p.default is p.empty or p.default is None:
            return
        numbers = np.asarray(p.default)
        if numbers.dtype.kind not in "fiub":
            raise UsageError(f"{self._label}: the default of '{p.name}', {p.default!r}, is no numbers")
        if not np.isfinite(numbers).all():
            raise UsageError(
                f"{self._label}: the default of '{p.name}' is {p.default}, which XML cannot say",
                hint="leave the default out, or take a large number",
            )

    def _scalar(
        self, p: inspect.Parameter, dtype: str, default: str, members: tuple[str, ...] = ()
    ) -> OperandDef:
        return OperandDef(
            p.name, mandatory=p.default is p.empty, datatypes=(f"{PREFIX}{dtype}",), rank=SCALAR,
            default=default, enumeration=members,
        )  # fmt: skip

    def _list(self, p: inspect.Parameter, hint: Any, given: bool) -> OperandDef:
        """list[int], list[float], an array, or a default that is one of them."""
        numbers = np.asarray(p.default) if given and p.default is not None else None
        if hint is None and numbers is None:
            raise UsageError(
                f"{self._label}: parameter '{p.name}' has no type", hint=f"{p.name}: float, or a default"
            )
        whole = numbers is not None and numbers.dtype.kind in "iu"
        inner = next((a for a in get_args(hint) if a in _SCALARS), int if whole else float)
        flat = get_origin(hint) in (list, tuple, Sequence) or (numbers is not None and numbers.ndim == 1)
        default = "" if numbers is None else str(numbers.ravel().tolist())
        return OperandDef(
            p.name, mandatory=p.default is p.empty, datatypes=(PREFIX + _SCALARS[inner],),
            rank="1D" if flat else "ND", default=default,
        )  # fmt: skip


def _rule(shape: Callable[..., Any], label: str) -> ShapeRule:
    """The user's word on shapes, as the schema asks for it: shapes in, one shape or several out."""

    place = origin(shape)

    def shapes(node: Node) -> Sequence[Shape]:
        try:
            made = shape(*(None if v is None else v.shape for v in node.inputs), **node.params)
            return _shapes_of(made)
        except Exception as e:
            raise BackendError(
                f"{label}: its shape function raised {type(e).__name__}: {e} (at {line_of(e, place)})",
                hint="it takes shapes and parameters, and gives one shape or several: shape=lambda x, **_: x",
            ) from e

    return shapes


def _shapes_of(made: Any) -> list[Shape]:
    several = bool(made) and not isinstance(made[0], int | np.integer)
    return [tuple(index(d) for d in s) for s in (made if several else [made])]
