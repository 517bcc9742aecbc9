"""No op is named in more than: its declaration, a line per frontend, its cases, and a pass that is about it.

Declarations are in ops/. There too, in ops/vocabulary.py, every op that compositions use has its word, so
that translators and passes say `q.add(x, y)`; a word names its op once. Patterns are written in the words of
passes/patterns/terms.py, which counts as the pass that is about them. There are graph passes, passes for HTP
and those of the quantizer; each of the three may have one module about an op. Tests other than the cases are
not counted: they write graphs down.

What counts as naming an op: a string that is its name or that of its family (PoolMax), an f-string or a sum
of strings that can become its name, and the declaration itself by its Python name.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from openqnn.ops import OPS, OpSchema

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src/openqnn"
VOCABULARY = "ops/vocabulary.py"
# Layers that are passes: what an op needs there stands in one module of each.
PASSES = ("passes", "targets", "targets/htp", "quant")
# How HTP computes: kernels write ONNX, two tables say which op each computes and within what limits.
KERNELS = "targets/htp/kernels/"
TABLES = ("targets/htp/arithmetic.py", "targets/htp/limits.py")
FRONTENDS = sorted(f"frontends/{path.parent.name}" for path in SRC.glob("frontends/*/__init__.py"))
# An op of ONNX may be spelled like one of QNN. These say which it is: calls that take ONNX's names,
ONNX_CALLS = {"translates", "make_node", "op", "ops", "as_onnx"}
# and modules of a frontend that make no QNN nodes, for they take neither of these.
MAKERS = ("openqnn.ops", "openqnn.frontends.translation")
PLAIN_WORDS = {"Shape"}  # a type of ours and a key of config files too
# Where the spelling of an op is what a module is about.
ABOUT_NAMES = {
    "guide/backend_selector.py": "the names of layers in a tutorial, not QNN's",
    "analysis/accuracy/verifiers.py": "a verifier is called TopK",
    "analysis/accuracy/run_differences.py": "a verifier is called TopK",
    "viewer/diff_runs/run_fields.py": "a verifier is called TopK",
    "qnn/dlc_renames.py": "ops that older libraries know under another name",
    "analysis/accuracy/verification.py": "types in the reports of another tool's run",
    "emit/qdq_model.py": "the one operation that the provider wants as one node of ONNX",
    "emit/net_json.py": "names of the vendor's own IR",
    "analysis/estimate.py": "ops that advice about costs is given for, on the records below the graph",
    "analysis/architecture_rules.py": "rules about ops, on the records below the graph",
    "analysis/architecture_kernels.py": "rules about ops, on the records below the graph",
    "analysis/architecture_convolutions.py": "the ops that rules put in place of others, on the records",
    "analysis/architecture_changes.py": "the ops that rules put in place of others, on the records",
    "emit/lower.py": "below the graph: the copy that an output needs",
    "qnn/graph.py": "below the graph: the curves that a library joins to layers",
    "cli/tools/qnn_platform_validator.py": "below the graph: the one node that a library is tried with",
    "runtime/cpu/missing_kernels.py": "ONNX's Cast, not QNN's",
    "runtime/cpu/tap_nchwc.py": "ONNX's Conv, not QNN's",
    "runtime/cpu/executable.py": "ONNX's Conv, not QNN's",
    "runtime/cpu/tile_rows.py": "ONNX's Conv, not QNN's",
    "runtime/cpu/keep_nchwc.py": "ONNX's ops, not QNN's",
    "runtime/cpu/drop_byte_casts.py": "ONNX's Cast, not QNN's",
}
FAMILIES = {re.sub(r"\dd$", "", op) for op in OPS if re.search(r"\dd$", op)}  # PoolMax2d by its first part


def _not_qnn(tree: ast.AST, of_onnx: bool) -> Iterator[ast.AST]:
    """Docstrings, and in what reads ONNX its names: in calls that take them, and what tables are keyed by."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called in ONNX_CALLS and of_onnx:
                yield from ast.walk(node)
        elif isinstance(node, ast.Dict) and of_onnx:
            yield from (k for k in node.keys if k is not None)
        elif isinstance(node, ast.Expr):
            yield node.value


def _names(node: ast.AST) -> Iterator[str]:
    """The ops that one place in the source names."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if node.value in OPS and node.value not in PLAIN_WORDS:
            yield node.value
        elif node.value in FAMILIES:
            yield from (op for op in OPS if re.fullmatch(rf"{node.value}\dd", op))
    elif isinstance(node, ast.JoinedStr):
        yield from _fitting(node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _fitting((node.left, node.right))
    elif isinstance(node, ast.ClassDef) and any(ast.unparse(d) == "op" for d in node.decorator_list):
        yield node.name


def _fitting(parts: Sequence[ast.expr]) -> Iterator[str]:
    """The ops whose names such parts can add up to, when what is written of them is enough to tell."""
    known = [p.value if isinstance(p, ast.Constant) and isinstance(p.value, str) else None for p in parts]
    if any(p is not None and len(p) > 3 for p in known):
        pattern = "".join(".*" if p is None else re.escape(p) for p in known)
        yield from (op for op in OPS if re.fullmatch(pattern, op))


def _declarations(tree: ast.AST) -> Iterator[str]:
    """The ops whose declarations a module of another layer takes by their Python names."""
    families: dict[str, ModuleType] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("openqnn.ops"):
            for alias in node.names:
                found = getattr(import_module(node.module or ""), alias.name)
                if isinstance(found, OpSchema):
                    yield found.name
                elif isinstance(found, ModuleType):
                    families[alias.asname or alias.name] = found
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in families:
            found = getattr(families[node.value.id], node.attr, None)
            if isinstance(found, OpSchema):
                yield found.name


def _makes_nodes(tree: ast.AST) -> bool:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return any((node.module or "").startswith(MAKERS) for node in imports)


def mentions(path: Path) -> Counter[str]:
    where = path.relative_to(SRC).as_posix() if path.is_relative_to(SRC) else path.name
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if where.startswith("frontends/") and not _makes_nodes(tree):
        return Counter()
    of_onnx = where.startswith(("frontends/onnx/", "ops/", "runtime/", KERNELS))
    others = {id(n) for n in _not_qnn(tree, of_onnx)}
    found = Counter(op for node in ast.walk(tree) if id(node) not in others for op in _names(node))
    return found if where.startswith("ops/") else found + Counter(_declarations(tree))


def _layer(where: Path) -> str:
    """The rules of HTP, its arithmetic, and every frontend, are layers of their own."""
    if where.as_posix() in TABLES or where.as_posix().startswith(KERNELS):
        return KERNELS
    inner = where.parts[:2] == ("targets", "htp") or (where.parts[0] == "frontends" and len(where.parts) > 2)
    return "/".join(where.parts[:2]) if inner else where.parts[0]


def places() -> dict[str, dict[str, Counter[str]]]:
    """How often each module of each layer names each op."""
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for path in sorted(SRC.rglob("*.py")):
        where = path.relative_to(SRC)
        for op, count in mentions(path).items():
            found[_layer(where)][op][where.as_posix()] += count
    return found


PLACES = places()


def test_nobody_else_names_ops() -> None:
    allowed = {"ops", "frontends", KERNELS, *FRONTENDS, *PASSES}
    strays = {
        op: files
        for layer, ops in PLACES.items()
        if layer not in allowed
        for op, where in ops.items()
        if (files := [f for f in where if f not in ABOUT_NAMES])
    }
    assert strays == {}


def test_an_op_is_declared_in_one_module_and_has_one_word() -> None:
    assert set(PLACES["ops"]) == set(OPS)
    for op, where in PLACES["ops"].items():
        assert where[VOCABULARY] <= 1, f"{op} has {where[VOCABULARY]} words"
        assert len(set(where) - {VOCABULARY}) == 1, f"{op}: {dict(where)}"


@pytest.mark.parametrize("layer", ["frontends", *FRONTENDS])
def test_a_frontend_names_an_op_on_one_line(layer: str) -> None:
    assert {op: dict(w) for op, w in PLACES[layer].items() if w.total() > 1} == {}


ABOUT_WHAT_IS_READ = {"targets/htp/joined_tokens.py": "a join of tokens, whatever op reads it"}


@pytest.mark.parametrize("layer", PASSES)
def test_one_pass_is_about_an_op(layer: str) -> None:
    found = {op: sorted(set(where) - set(ABOUT_WHAT_IS_READ)) for op, where in PLACES[layer].items()}
    assert {op: where for op, where in found.items() if len(where) > 1} == {}


def test_the_cases_of_an_op_stand_together() -> None:
    modules: dict[str, set[str]] = defaultdict(set)
    for path in sorted((ROOT / "tests/ops/cases").glob("*.py")):
        for op in mentions(path):
            modules[op].add(path.name)
    assert {op: found for op, found in modules.items() if len(found) != 1} == {}
    assert set(OPS) - set(modules) == PLAIN_WORDS


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('b("ElementWiseAdd", x, y)', {"ElementWiseAdd"}),
        ('NAME = "Pad"', {"Pad"}),
        ('TABLE = {"Pad": fold, "Tile": fold}', {"Pad", "Tile"}),
        ('b(f"TransposeConv{rank}d", x)', {"TransposeConv1d", "TransposeConv2d", "TransposeConv3d"}),
        ('b("PoolMax" + "2d", x)', {"PoolMax2d", "PoolMax3d"}),
        ('b("ElementWiseSub" + rest, x)', {"ElementWiseSubtract"}),
        ("from openqnn.ops.elementwise import Add", {"ElementWiseAdd"}),
        ("from openqnn.ops import shape as s\nif op == s.Pad.name: pass", {"Pad"}),
        ('"""Pad"""\nb.pad(x, rows)', set[str]()),
    ],
)
def test_no_spelling_is_overlooked(source: str, found: set[str], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source, encoding="utf-8")
    assert set(mentions(path)) == found
