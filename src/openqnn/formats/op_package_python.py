"""The record of an op package as Python source, which declares the same as its XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from json import dumps
from keyword import iskeyword
from typing import Any, Final, TypeAlias, cast

from openqnn.formats.op_package import PREFIX, Constraint, OpDef, OperandDef, OpPackage, Supplement

Record: TypeAlias = OpPackage | OpDef | OperandDef | Constraint | Supplement
_WIDTH: Final = 100


def print_python(package: OpPackage) -> str:
    """A file for --custom_ops: the record, and how to add the functions that compute the operations here."""
    record = "\n".join(_value(package, "    ")).removeprefix("    ")
    names = ", ".join(sorted(_types(package)))
    functions = "\n".join(line for op in package.ops for line in _function(package, op))
    return (
        f'"""Operations of package {package.name}."""\n\nimport openqnn\n'
        f"from openqnn.formats.op_package import {names}\n\n"
        f"openqnn.declare_op_package(\n    {record}\n)\n\n"
        "# A function computes an operation here: for calibration, simulation and the debugger.\n"
        f"# Take the marks away, and write what it gives.\n{functions}\n"
    )


def _types(value: Any) -> set[str]:
    """The names of all record types that stand in a value."""
    if isinstance(value, tuple):
        return {name for item in _parts(value) for name in _types(item)}
    if not isinstance(value, Record):
        return set()
    inner = {name for f in fields(value) for name in _types(getattr(value, f.name))}
    return {type(value).__name__, *inner}


def _value(value: Any, indent: str, name: str = "") -> Iterator[str]:
    """Lines of an expression: records without what is usual, in one line where there is room."""
    start = f"{indent}{name}{'=' if name else ''}"
    whole = _flat(value)
    if len(start) + len(whole) <= _WIDTH or not isinstance(value, Record | tuple):
        yield start + whole
        return
    opening = "(" if isinstance(value, tuple) else f"{type(value).__name__}("
    yield start + opening
    items: list[tuple[str, Any]] = [("", v) for v in _parts(value)]
    if isinstance(value, Record):
        items = list(_arguments(value))
    for key, item in items:
        *first, last = _value(item, indent + "    ", key)
        yield from first
        yield last + ","
    yield f"{indent})"


def _parts(value: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else ()


def _flat(value: Any) -> str:
    if isinstance(value, tuple):
        items = [_flat(v) for v in _parts(value)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if not isinstance(value, Record):
        return dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    words = (f"{key}{'=' if key else ''}{_flat(v)}" for key, v in _arguments(value))
    return f"{type(value).__name__}({', '.join(words)})"


def _arguments(record: Record) -> Iterator[tuple[str, Any]]:
    """What is not as usual; what has no usual value stands in front, without its name."""
    for field in fields(record):
        value = getattr(record, field.name)
        if value != field.default:
            yield ("" if field.default is MISSING else field.name), value


def _function(package: OpPackage, op: OpDef) -> Iterator[str]:
    """A declaration to be completed, as comments: inputs count by their place, parameters by their names."""
    words = [_word(d.name) for d in op.inputs]
    if op.inputs and op.inputs[-1].repeated:
        words[-1] = f"*{words[-1]}"
    params = [_param(d) for d in op.params]
    marks = ["*"] if params and not words[-1].startswith("*") else []
    outputs = ", ".join(dumps(_word(d.name)) for d in op.outputs) + ("," if len(op.outputs) == 1 else "")
    yield "#"
    if any(d.enumeration for d in op.params):
        yield "# from typing import Literal"
    yield f'# @openqnn.custom_op("{package.name}", "{op.name}", outputs=({outputs}))'
    yield f"# def {op.name}({', '.join([*words, *marks, *params])}):"
    yield f"#     return {words[0].removeprefix('*')}"


def _param(d: OperandDef) -> str:
    """A keyword with its type; what is left out is filled from the record."""
    first = d.datatypes[0].removeprefix(PREFIX)
    base = "bool" if first.startswith("BOOL") else "int" if first.startswith(("INT", "UINT")) else "float"
    kind = base if d.is_scalar else f"list[{base}]"
    if d.enumeration:
        kind = f"Literal[{', '.join(map(dumps, d.enumeration))}]"
    given = dumps(d.default) if d.default in d.enumeration else "None"
    return f"{d.name}: {kind}" + ("" if d.mandatory else f" = {given}")


def _word(name: str) -> str:
    plain = name.replace("[", "_").replace("]", "")
    return f"{plain}_" if iskeyword(plain) else plain
