"""Numbers of the code that may only fall: who makes one smaller writes the smaller one down."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests import map_page

PACKAGE = map_page.PACKAGE
MODULES = sorted(PACKAGE.rglob("*.py"))

UNNAMED_MODULES = 25
DENSE_FUNCTIONS = 23
LOOSE_MODULES = 3
DANGLING_DOCSTRINGS = 0

# Families: their modules are named by a kind of op or option, not by what they export.
FAMILIES = (
    "ops", "options", "encodings", "htp", "frontends", "kernels", "rules", "patterns", "commands", "tools",
    "cases", "plugins",
)  # fmt: skip
DECISIONS = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension)


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in MODULES:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def public_names(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        if isinstance(node, ast.Assign):
            names += [t.id for t in node.targets if isinstance(t, ast.Name)]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return [name for name in names if not name.startswith("_")]


def is_named(stem: str, names: list[str]) -> bool:
    """Whether a word of the module's name is part of a public name; its inflection does not count."""
    words = [re.sub(r"(ies|ing|ation|ed|er|e|y|s)$", "", word) or word for word in stem.split("_")]
    joined = " ".join(names).lower()
    return any(word in joined for word in words if len(word) > 1)


def decisions(function: ast.AST) -> int:
    found = 0
    for node in ast.walk(function):
        found += isinstance(node, DECISIONS)
        if isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
    return found


def is_family(path: Path) -> bool:
    return any(folder in FAMILIES for folder in path.relative_to(PACKAGE).parts[:-1])


def test_modules_are_named_by_what_they_export() -> None:
    unnamed = [
        str(path.relative_to(PACKAGE))
        for path, tree in trees()
        if not path.stem.startswith("__")
        and not is_family(path)
        and not is_named(path.stem, public_names(tree))
    ]
    assert len(unnamed) <= UNNAMED_MODULES, unnamed


def test_functions_decide_little() -> None:
    dense = [
        f"{path.relative_to(PACKAGE)}:{node.name} {count}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and (count := decisions(node) + 1) > 12
    ]
    assert len(dense) <= DENSE_FUNCTIONS, dense


def test_the_root_has_few_modules() -> None:
    loose = [path.name for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert len(loose) <= LOOSE_MODULES, loose


def test_docstrings_stand_alone() -> None:
    dangling = [
        f"{path.relative_to(PACKAGE)}: {text.splitlines()[0]}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if re.match(r"(The same|Those|Of|As)\b", text := ast.get_docstring(node) or "")
    ]
    assert len(dangling) <= DANGLING_DOCSTRINGS, dangling


def test_the_map_is_up_to_date() -> None:
    assert map_page.PAGE.read_text(encoding="utf-8") == map_page.page(), "run python -m tests.map_page"


def test_reports_print_in_one_place() -> None:
    """A command returns a `Report`; `openqnn.cli.main` prints it as text or as JSON."""
    found = [
        path.name
        for path in MODULES
        if path.parent.name in ("commands", "shared")
        if "print_json" in path.read_text(encoding="utf-8")
    ]
    assert not found, found


# Modules about names of ops, on records below the graph (tests/test_op_names.py says why).
ABOUT_OP_NAMES = ("dlc_renames.py", "graph_from_net.py")
OPS_COMPARED_BY_NAME = 12


def test_ops_are_asked_for_by_kind() -> None:
    """What compares an op's name outside ops, frontends, targets and patterns wants a field of the schema."""
    homes = ("ops", "frontends", "targets", "patterns", "viewer")
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in MODULES
        if not set(path.relative_to(PACKAGE).parts) & {*homes, *ABOUT_OP_NAMES}
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\.op( ==| !=| in\b| not in\b)(?! OPS\b| \w+(\.\w+)*\.op\b)", line)
    ]
    assert len(found) <= OPS_COMPARED_BY_NAME, found


# What HTP needs is in targets/htp. These layers name it where they cannot be told apart from it.
CORE = ("ir", "ops", "passes", "runtime", "quant", "emit", "frontends", "api")
CORE_MODULES_THAT_NAME_HTP = 14


def test_the_core_speaks_of_targets() -> None:
    found = [
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] in CORE
        if re.search("htp", path.read_text(encoding="utf-8"), re.IGNORECASE)
    ]
    assert len(found) <= CORE_MODULES_THAT_NAME_HTP, found


# Names of backends; what a backend can do is asked of its target (`openqnn.targets.registry`).
BACKEND = re.compile(r"(lib)?(qnn)?(htp|cpu|gpu|dsp)(\.so)?|built-?in|saver", re.IGNORECASE)
BACKEND_CONSTANTS = ("HTP", "CPU", "BUILT_IN", "CPU_LIBRARY")


def names_a_backend(node: ast.expr) -> bool:
    """Whether an expression is the name of a backend, or a choice of such names."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(names_a_backend, node.elts))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and BACKEND.fullmatch(node.value) is not None
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in BACKEND_CONSTANTS


def compares_backends(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        is_membership = all(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        return any(
            map(names_a_backend, node.comparators if is_membership else (node.left, *node.comparators))
        )
    is_prefix = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("startswith", "endswith")
    return is_prefix and any(map(names_a_backend, node.args))


def test_backends_are_not_compared_by_name() -> None:
    """What depends on a backend asks its target. Providers of ONNX Runtime (`ort_qnn`) are no backends."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, tree in trees()
        if path.relative_to(PACKAGE).parts[0] not in ("targets", "ort_qnn")
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.Call) and compares_backends(node)
    ]
    assert not found, found


# Frameworks are read in frontends. ONNX is also what the built-in backend is told graphs in, and what some of
# our files are; ONNX Runtime, LiteRT and torch run source models. Each of the others says what it is for.
FRAMEWORK = re.compile(
    r"^\s*(?:import|from) (onnx|onnxruntime|torch|tensorflow|keras|ai_edge_litert)\b", re.MULTILINE
)
FRAMEWORK_LAYERS = ("frontends", "runtime", "emit", "ort_qnn")
FRAMEWORK_MODULES = {
    "ops/onnx_writer.py": "what ops are lowered to",
    "viewer/from_onnx.py": "draws a model that need not convert",
    "quant/aimet.py": "AIMET takes an ONNX model",
    "quant/run_aimet.py": "runs in the environment of AIMET, which takes an ONNX model",
    "evaluation/trial.py": "runs a source model",
    "analysis/provider_start.py": "tries ONNX Runtime's provider",
    "analysis/model_bench.py": "measures ONNX Runtime beside us",
    "analysis/accuracy/stored_results.py": "results follow from its version",
    "cli/shared/accuracy_debugger/snooping.py": "writes a part of the model as a file",
}


def test_frameworks_stay_in_their_frontends() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] not in FRAMEWORK_LAYERS
        if FRAMEWORK.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(FRAMEWORK_MODULES)


# What judges metrics, or cannot import them, computes by itself.
JUDGES = ("test_metrics.py", "test_verifiers.py", "test_comparators.py", "test_minimal_mode.py",
          "test_quantization_checker.py", "test_aimet.py", "worker.py")  # fmt: skip


def test_differences_are_measured_in_one_place() -> None:
    """SQNR is `sqnr` of `openqnn.runtime.metrics`, and the ratio of two noises its `decibels`."""
    folders = (PACKAGE, Path(__file__).parent, Path(__file__).parents[1] / "benchmarks")
    found = [
        str(path)
        for folder in folders
        for path in folder.rglob("*.py")
        if path.name not in (*JUDGES, "metrics.py")
        if re.search(r"\b10(\.0)? \* (float\()?((np|math)\.)?log10\(", path.read_text(encoding="utf-8"))
    ]
    assert not found, found
