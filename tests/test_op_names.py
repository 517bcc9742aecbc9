"""How often one op is named: its declaration, its line in a frontend, its cases, a pass that is about it.

Compositions are written in ops too, so basic ones stand in several translators. That surplus may only fall.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from openqnn.ops import OPS

SRC = Path(__file__).parents[1] / "src/openqnn"
# ONNX's own op names, and keys that are looked up, are not QNN's ops though they may be spelled alike.
PLAIN_WORDS = {"Shape"}  # a type of ours and a key of config files too
ONNX_CALLS = {"translates", "make_node", "op", "ops"}
SURPLUS = {"frontends": 105, "passes/htp": 120}
# where the spelling of an op is what the module is about
ABOUT_NAMES = {"cli/platform.py", "emit/net.py", "emit/net_json.py", "qnn/renamed.py", "runtime/widen.py"}


def _not_qnn(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called in ONNX_CALLS:
                yield from ast.walk(node)
        elif isinstance(node, ast.Dict):
            yield from (k for k in node.keys if k is not None)
        elif isinstance(node, ast.Expr):
            yield node.value  # a docstring


def named_ops(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    others = {id(n) for n in _not_qnn(tree)}
    strings = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in others)
    return {n.value for n in strings if isinstance(n.value, str) and n.value in OPS} - PLAIN_WORDS


def _places() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(SRC.rglob("*.py")):
        where = path.relative_to(SRC)
        layer = "passes/htp" if where.parts[:2] == ("passes", "htp") else where.parts[0]
        for op in named_ops(path):
            found[layer][op].append(where.as_posix())
    return found


def test_only_declarations_frontends_and_passes_name_ops() -> None:
    allowed = {"ops", "frontends", "passes", "passes/htp"}
    strays = {
        op: files
        for layer, ops in _places().items()
        if layer not in allowed
        for op, where in ops.items()
        if (files := [f for f in where if f not in ABOUT_NAMES])
    }
    assert strays == {}


def test_an_op_is_declared_in_one_module_and_rewritten_by_one_pass() -> None:
    places = _places()
    for layer in ("ops", "passes"):
        assert {op: where for op, where in places[layer].items() if len(where) > 1} == {}


def test_the_surplus_of_compositions_does_not_grow() -> None:
    places = _places()
    for layer, most in SURPLUS.items():
        assert sum(len(where) - 1 for where in places[layer].values()) <= most
