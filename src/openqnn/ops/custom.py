"""Operations of the user's own packages: declared by XML or in Python, and known like QNN's own.

A CustomOp is the record of `openqnn.formats.op_package` and what computes it here. It is registered in OPS by
package and name, so shape inference, verification and everything that prints or runs graphs reads it there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, Final, TypeAlias, cast

import numpy as np

from openqnn.errors import BackendError, ModelError, ShapeError, UsageError
from openqnn.formats.op_package import BACKEND_SPECIFIC, BACKENDS, PREFIX, OpDef, OperandDef, OpPackage
from openqnn.ir import BUILTIN_PACKAGE, Array, DType, Graph, Node, ParamValue, Shape, op_key
from openqnn.ops.schema import ABSENT, FREE, OPS, REQUIRED, Compute, Operand, OpSchema, Param, Result, Role
from openqnn.ops.user_code import line_of

Function: TypeAlias = Callable[..., Any]
"""Arrays of the inputs, then parameters by keyword; gives an array, or a tuple of them."""
ShapeRule: TypeAlias = Callable[[Node], Sequence[Shape]]
KNOWN_UP_TO: Final = 4096  # elements of a constant whose values may say what shape a result has
IMAGE: Final = ("NHWC", "NDHWC", "NFC")


@dataclass(frozen=True)
class CustomOp:
    """An operation of a package. `domain` is that of its source op, None for any.

    `function` computes it on the built-in backend, and gives shapes where no `shapes` does; `cpp` is the body
    of its kernel in a generated package; `attributes` are the names that parameters have in source models.
    """

    package: str
    declared: OpDef
    function: Function | None = None
    shapes: ShapeRule | None = None
    domain: str | None = None
    cpp: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    tensors: str = "numpy"
    origin: str = ""
    inferred: Callable[[Node], Sequence[tuple[Shape, DType]]] | None = None
    """Shapes and types by a converter op package, which counts more than what a model states."""
    seen: bool = False
    """Not declared by anybody: it was met in a file."""

    @property
    def key(self) -> str:
        return op_key(self.package, self.declared.name)


_CUSTOM: Final[dict[str, CustomOp]] = {}
_PACKAGES: Final[dict[str, OpPackage]] = {}
_PROVIDED: Final[dict[str, Compute]] = {}


def custom_ops() -> list[CustomOp]:
    return list(_CUSTOM.values())


def custom_op_of(node: Node) -> CustomOp | None:
    """The declaration of a node that is of the user's package; None for QNN's own."""
    return _CUSTOM.get(node.op)


def is_seen(key: str) -> bool:
    """Whether an op is known from a file only."""
    return key in _CUSTOM and _CUSTOM[key].seen


def declare(op: CustomOp) -> CustomOp:
    """Registers an operation. One declaration may complete another, as a function does an XML file."""
    if op.package == BUILTIN_PACKAGE:
        raise UsageError(f"{BUILTIN_PACKAGE} is QNN's own package", hint="choose another name for yours")
    known = _CUSTOM.get(op.key)
    if known is not None and op.seen:
        return known if not known.seen else _put(replace(op, declared=_merged(known.declared, op.declared)))
    if known is not None and not known.seen:
        op = _completed(known, op)
    return _put(op)


def _put(op: CustomOp) -> CustomOp:
    _CUSTOM[op.key] = op
    OPS[op.key] = schema_from(op)
    return op


def _completed(known: CustomOp, op: CustomOp) -> CustomOp:
    """What both say of one operation; UsageError where they contradict each other."""
    if known.origin != op.origin:
        _check_same(known, op)
    written = known.declared if known.function is None else op.declared
    return replace(
        known, declared=written, origin=op.origin or known.origin,
        function=op.function or known.function, shapes=op.shapes or known.shapes,
        domain=op.domain if op.domain is not None else known.domain, cpp=op.cpp or known.cpp,
        attributes={**known.attributes, **op.attributes}, inferred=op.inferred or known.inferred,
        tensors=op.tensors if op.function else known.tensors,
    )  # fmt: skip


def _check_same(known: CustomOp, op: CustomOp) -> None:
    if known.function and op.function:
        raise UsageError(f"{op.key} is declared twice, at {known.origin} and at {op.origin}")
    ours, theirs = _outline(known.declared), _outline(op.declared)
    if ours != theirs:
        raise UsageError(
            f"{op.key}: {known.origin} declares {_told(ours)}, {op.origin} declares {_told(theirs)}"
        )


def _outline(op: OpDef) -> tuple[int, int, tuple[str, ...]]:
    return len(op.inputs), len(op.outputs), tuple(sorted(p.name for p in op.params))


def _told(outline: tuple[int, int, tuple[str, ...]]) -> str:
    return f"{outline[0]} inputs, {outline[1]} outputs, parameters {', '.join(outline[2]) or 'none'}"


def _merged(a: OpDef, b: OpDef) -> OpDef:
    """Two nodes of one op that nobody declared: what only one of them has may be left out."""
    names = {p.name for p in a.params} & {p.name for p in b.params}
    params = {p.name: replace(p, mandatory=p.name in names) for p in (*a.params, *b.params)}
    longer = max(a.inputs, b.inputs, key=len)
    shorter = min(len(a.inputs), len(b.inputs))
    inputs = tuple(replace(d, mandatory=i < shorter) for i, d in enumerate(longer))
    return replace(a, inputs=inputs, params=tuple(params.values()))


def declare_package(package: OpPackage, origin: str = "", *, seen: bool = False) -> None:
    """Registers every operation of a package."""
    known = _PACKAGES.get(package.name)
    if known is None or not seen:
        _PACKAGES[package.name] = package
    for op in package.ops:
        declare(CustomOp(package.name, op, origin=origin, seen=seen))


def package_named(name: str) -> OpPackage:
    """All that is known of a package, whichever way it was declared."""
    ops = tuple(op.declared for op in _CUSTOM.values() if op.package == name)
    if not ops:
        raise UsageError(f"no operation of package '{name}' is declared")
    return replace(_PACKAGES.get(name, OpPackage(name)), ops=ops)


def packages_of(graph: Graph) -> list[OpPackage]:
    """The packages of a graph's nodes, each with the operations that the graph has."""
    used = {node.op for node in graph.nodes if node.op in _CUSTOM}
    found = [package_named(name) for name in dict.fromkeys(_CUSTOM[key].package for key in sorted(used))]
    return [
        replace(p, ops=tuple(o for o in p.ops if op_key(p.name, o.name) in used), supplements=())
        for p in found
    ]


def provide_compute(package: str, name: str, compute: Compute) -> None:
    """What computes an op that has no function, whether it is declared by now or will be by a file."""
    key = op_key(package, name)
    _PROVIDED[key] = compute
    if key in _CUSTOM:
        _put(_CUSTOM[key])


def forget_custom_ops() -> None:
    """No custom operation is declared any more."""
    for key in _CUSTOM:
        del OPS[key]
    _CUSTOM.clear()
    _PACKAGES.clear()
    _PROVIDED.clear()


# -- from the record to the schema ---------------------------------------------------------------------------


def schema_from(op: CustomOp) -> OpSchema:
    declared = op.declared
    inputs = tuple(_input(d) for d in declared.inputs)
    outputs = tuple(
        Result(FREE, _layout(d), optional=not d.mandatory, variadic=d.repeated, name=d.name)
        for d in declared.outputs
    )
    missing = "no function computes it here: give one with @openqnn.custom_op in a file for --custom_ops"
    return OpSchema(
        op.key, declared.description or f"An operation of package {op.package}.", inputs, outputs,
        tuple(_param(op, d) for d in declared.params), partial(_shapes, op),
        compute=partial(_compute, op) if op.function else _PROVIDED.get(op.key),
        why_not="" if op.function or op.key in _PROVIDED else missing,
        widths=_widths(op),
    )  # fmt: skip


def _widths(op: CustomOp) -> frozenset[int]:
    """The fixed-point widths of all its tensors; none where it is in floats alone."""
    tensors = [d for d in (*op.declared.inputs, *op.declared.outputs) if not d.static and _is_real(d)]
    kinds = [{t.bits for t in dtypes_of(op, d) if t.is_fixed and not t.signed} for d in tensors]
    return frozenset(set[int].intersection(*kinds) if kinds else ())


def _is_real(d: OperandDef) -> bool:
    return any(t == BACKEND_SPECIFIC or "FLOAT" in t or "FIXED" in t for t in d.datatypes)


def _layout(d: OperandDef) -> str:
    return d.layout if d.layout in IMAGE else ""


def _input(d: OperandDef) -> Operand:
    role = Role.ACTIVATION if _is_real(d) else Role.INDEX
    return Operand(
        d.fixed_rank, _layout(d), role=role, optional=not d.mandatory, variadic=d.repeated, name=d.name
    )


def dtype_named(name: str) -> DType:
    """The type that XML calls QNN_DATATYPE_..."""
    return DType[name.removeprefix(PREFIX).replace("FIXED_POINT", "FIXED")]


def datatype_name(dtype: DType) -> str:
    return PREFIX + dtype.name.replace("FIXED", "FIXED_POINT")


def dtypes_of(op: CustomOp, operand: OperandDef, backend: str = "CPU") -> list[DType]:
    """The types that an operand may have, on a backend where they depend on it; [] for any."""
    names = operand.datatypes
    if names == (BACKEND_SPECIFIC,) and op.package in _PACKAGES:
        known = [b for b in (backend, *BACKENDS) if b in op.declared.backends]
        for each in known[:1]:
            names = _PACKAGES[op.package].datatypes(op.declared.name, operand.name, each)
    return [dtype_named(n) for n in names if n != BACKEND_SPECIFIC]


def _param(op: CustomOp, d: OperandDef) -> Param:
    types = dtypes_of(op, d)
    dtype = next((t for t in types if not t.is_fixed), DType.FLOAT_32)
    if d.enumeration:
        dtype = dtype if dtype.is_integer else DType.UINT_32
    members = tuple((name, code) for code, name in enumerate(d.enumeration))
    rank = 0 if d.is_scalar else d.fixed_rank
    made = Param(
        dtype, (-1,) * (rank or 0), members=members, is_tensor=not d.is_scalar, name=d.name,
        free=rank is None,
    )  # fmt: skip
    return replace(made, default=_default(made, d))


def _default(param: Param, d: OperandDef) -> Any:
    if not d.default:
        return REQUIRED if d.mandatory else ABSENT
    if param.members:
        return d.default if not d.default.isdigit() else param.member(int(d.default))
    if not param.is_tensor:
        return _number(param.dtype, d.default)
    return tuple(_number(param.dtype, t) for t in re.split(r"[\s,\[\]{}]+", d.default) if t)


def _number(dtype: DType, text: str) -> int | float | bool:
    if dtype is DType.BOOL_8:
        return text.lower() in ("true", "1")
    return float(text) if dtype.is_float else int(text)


# -- shapes and numbers --------------------------------------------------------------------------------------


def _shapes(op: CustomOp, node: Node) -> Sequence[Shape]:
    """By its rule, by its function, or as the node says itself."""
    if op.shapes is not None:
        return op.shapes(node)
    if op.inferred is not None:
        return [shape for shape, _ in op.inferred(node)]
    if op.function is not None:
        return [tuple(r.shape) for r in results_of(op, node)]
    if node.outputs:
        return [v.shape for v in node.outputs]
    raise ShapeError(
        f"{node.where}: nobody says what shape its result has",
        hint="give the model value_info for it, a function with --custom_ops, or a library with"
        " --converter_op_package_lib",
    )


_cache: dict[tuple[object, ...], list[Array]] = {}


def results_of(op: CustomOp, node: Node) -> list[Array]:
    """Results of the right shapes and types: the function on zeros, and on small constants as they are."""
    inputs = [None if v is None else _stand_in(v.data, v.shape, v.dtype) for v in node.inputs]
    told = tuple(
        None if a is None else (a.shape, a.dtype.str, a.tobytes() if a.size <= KNOWN_UP_TO else b"")
        for a in inputs
    )
    key = (op.key, op.function, told, tuple(sorted(node.params.items())))
    if key not in _cache:
        if len(_cache) > 256:
            _cache.clear()
        with np.errstate(all="ignore"):
            made = called(op, node.where, inputs, node.params)
        _cache[key] = [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in made]
    return _cache[key]


def _stand_in(data: Array | None, shape: Shape, dtype: DType) -> Array:
    kind = np.dtype(np.float32) if dtype.is_fixed else dtype.numpy
    known = data is not None and data.size <= KNOWN_UP_TO and not dtype.is_fixed
    return np.ascontiguousarray(data) if known and data is not None else np.zeros(shape, kind)


def _compute(op: CustomOp, node: Node, arrays: Sequence[Array | None]) -> list[Array]:
    made = called(op, node.where, arrays, node.params)
    for found, value in zip(made, node.outputs, strict=False):
        if tuple(found.shape) != value.shape:
            raise BackendError(
                f"{node.where}: its function ({op.origin}) gives {list(found.shape)} where the graph has"
                f" {list(value.shape)} for '{value.name}'"
            )
    if len(made) < len(node.outputs):
        raise BackendError(f"{node.where}: its function gives {len(made)} results of {len(node.outputs)}")
    return made[: len(node.outputs)]


def called(
    op: CustomOp, where: str, arrays: Sequence[Array | None], params: Mapping[str, ParamValue]
) -> list[Array]:
    """The function's results as arrays; what goes wrong in it is an error that names its line."""
    assert op.function is not None
    given = [op.function.__kwdefaults__ or {}, params]
    keywords = {k: _as_given(v) for part in given for k, v in part.items()}
    inputs = [None if a is None else _tensor(a, op.tensors) for a in arrays]
    try:
        made = op.function(*inputs, **keywords)
    except Exception as e:
        place = line_of(e, op.origin)
        raise BackendError(f"{where}: its function raised {type(e).__name__}: {e} (at {place})") from e
    results = list(cast("Sequence[Any]", made)) if isinstance(made, list | tuple) else [made]
    return [_array(r, where, op.origin) for r in results]


def _as_given(value: Any) -> Any:
    return np.asarray(cast("Any", value)) if isinstance(value, tuple) else value


def _tensor(array: Array, kind: str) -> Any:
    if kind == "numpy":
        return array
    return import_module("torch").from_numpy(np.array(array))  # a copy: what is mapped cannot be written to


def _array(result: Any, where: str, place: str) -> Array:
    if hasattr(result, "detach"):
        result = result.detach().numpy()
    found = np.asarray(result)
    if found.dtype.kind not in "fiub":
        kind = "nothing" if result is None else type(result).__name__
        raise BackendError(f"{where}: its function ({place}) gives {kind}, an array is expected")
    return found


# -- operations that a file has and nobody declared ----------------------------------------------------------


def declare_seen(package: str, name: str, inputs: Iterable[DType], outputs: Iterable[DType],
                 params: Iterable[OperandDef]) -> str:  # fmt: skip
    """Registers an operation as a file uses it, and gives its key."""
    made = OpDef(
        name,
        tuple(OperandDef(f"in{i}", datatypes=(datatype_name(t),)) for i, t in enumerate(inputs)),
        tuple(OperandDef(f"out{i}", datatypes=(datatype_name(t),)) for i, t in enumerate(outputs)),
        tuple(params),
        "An operation that a file uses and nobody declares.",
    )
    return declare(CustomOp(package, made, seen=True, origin="a file")).key


def unknown_op(package: str, name: str) -> ModelError:
    return ModelError(
        f"operation '{name}' of package '{package}' is not known",
        hint="declare it: --custom_ops my_ops.py, or --op_package_config package.xml",
    )
