"""Writes docs/ops.md from the declarations: `python -m tests.ops.page`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from openqnn import ops
from openqnn.ops import OPS, OpSchema
from openqnn.ops.schema import ABSENT, REQUIRED, Param

PAGE = Path(__file__).parents[2] / "docs/ops.md"
INTRO = """# Operations

The operations of QNN's package `qti.aisw` as OpenQNN declares them; `?` marks what may be left out, `...`
what may be repeated. This page is generated: `python -m tests.ops.page`.

{count} operations, {running} of them run on the built-in backend.
"""


def _param(param: Param) -> str:
    kind = "|".join(name for name, _ in param.members) or param.dtype.label
    shape = "[" + ",".join("n" if d < 0 else str(d) for d in param.shape) + "]" if param.is_tensor else ""
    default = "" if param.default is REQUIRED else "?" if param.default is ABSENT else f" = {param.default}"
    return f"{param.name}: {kind}{shape}{default}".replace("|", "\\|")


def _row(schema: OpSchema) -> str:
    inputs = [f"{o.name}{'?' if o.optional else ''}{'...' if o.variadic else ''}" for o in schema.inputs]
    outputs = [f"{r.name}{'?' if r.optional else ''}{'...' if r.variadic else ''}" for r in schema.outputs]
    params = "<br>".join(_param(p) for p in schema.params)
    doc = schema.doc + (f" Does not run here: {schema.why_not}." if schema.why_not else "")
    return f"| {schema.name} | {doc} | {', '.join(inputs)} | {', '.join(outputs)} | {params} |"


def _families() -> dict[str, list[OpSchema]]:
    """Ops by the module that declares them, in the order of declaration."""
    modules = [
        m for _, m in inspect.getmembers(ops, inspect.ismodule) if m.__name__.startswith("openqnn.ops.")
    ]
    found: dict[str, list[OpSchema]] = {}
    for module in modules:
        declared = {id(v) for v in vars(module).values() if isinstance(v, OpSchema)}
        mine = [s for s in OPS.values() if id(s) in declared]
        if mine:
            found[module.__name__.rpartition(".")[2]] = mine
    return found


def page() -> str:
    running = sum(bool(s.lower or s.compute) for s in OPS.values())
    parts = [INTRO.format(count=len(OPS), running=running)]
    for family, schemas in _families().items():
        rows = "\n".join(_row(s) for s in schemas)
        head = "| op | what it computes | inputs | outputs | parameters |\n| --- | --- | --- | --- | --- |"
        parts.append(f"## {family}\n\n{head}\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
