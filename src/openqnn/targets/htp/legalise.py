"""Applies the rules until nothing changes, and reports all that HTP cannot run at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from openqnn.errors import Problem, UnsupportedError
from openqnn.ir import Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ir.verify import verify
from openqnn.ops import infer_outputs, schema_of
from openqnn.passes.edit import alive, builder_at, supplant
from openqnn.passes.explain import Explain
from openqnn.passes.fold_constants import fold_constants
from openqnn.passes.merge_repeated import remove_dead_code
from openqnn.passes.step import Step, repeat, run_steps
from openqnn.targets.htp.boundary import fit_border, keep_types
from openqnn.targets.htp.matmul import ON_BLOCKS
from openqnn.targets.htp.ranks import fit_rank, merge_views, refuse_rank
from openqnn.targets.htp.rules import HALF_ONLY, RULES, Refusal, RuleFunction
from openqnn.targets.htp.types import finite_constants, fit_types, widen_types

ROUNDS = 12  # what a rule puts in may need another rule; the longest chain seen is 4
GENERIC: tuple[RuleFunction, ...] = (fit_types, fit_rank)


def legalise_htp(
    graph: Graph, explain: Explain | None = None, *, to_fix: bool = False, keeps_border: bool = False
) -> Graph:
    """A graph that computes the same and that HTP takes; UnsupportedError names every node that it cannot.

    Inputs and outputs keep their names and ports, but may have another type or shape: types that HTP has no
    arithmetic for become int32 or float32 (with `keeps_border` only those that it cannot cast), and of more
    than five axes some are merged. A graph that computes in fixed point stays as it is, but for weights in
    blocks: it was brought into these forms before its ranges were measured. One that is going `to_fix` its
    ranges does without what only half precision needs.
    """
    log, made = explain if explain is not None else Explain(), clone_graph(graph)
    if computes_fixed(graph):
        convolve_blocks(made, log)
        return made
    problems: dict[str, Problem] = {}
    run_steps(_steps(problems, HALF_ONLY if to_fix else frozenset()), made, log)
    if keeps_border:
        keep_types(made, {v.name: v.dtype for v in (*graph.inputs, *graph.outputs)})
    if not problems:
        _look_again(made, problems)
    if problems:
        raise _refused(list(problems.values()))
    verify(made, infer_outputs, after="legalise_htp")
    return made


def _steps(problems: dict[str, Problem], without: Collection[RuleFunction]) -> tuple[Step, ...]:
    """What is done with a graph, in this order; nodes that HTP cannot run go into `problems`."""
    rules = lambda graph, log: _round(graph, log, problems, without)
    return (
        Step("widen_types", lambda graph, _: _widen(graph, problems), "rules see types that HTP has only"),
        Step("rules", repeat((Step("rules", rules, "by op"),), ROUNDS), "what one puts in needs another"),
        Step("merge_views", lambda graph, _: merge_views(graph), "of reshapes that rules put around nodes"),
        Step("finite_constants", lambda graph, _: finite_constants(graph), "also of those that rules made"),
        Step("fold_constants", fold_constants, "rules compute on constants, too"),
        Step("remove_dead_code", remove_dead_code, "what rules took the place of"),
        Step("fit_border", lambda graph, _: fit_border(graph), "last: inputs that nothing reads are known"),
    )


def _widen(graph: Graph, problems: dict[str, Problem]) -> None:
    problems.update((node.where, _problem(node, e)) for node, e in widen_types(graph).items())


def computes_fixed(graph: Graph) -> bool:
    """Whether nodes compute with stored integers, rather than only hold or move them."""
    computing = (n for n in graph.nodes if not (schema_of(n).on_stored or schema_of(n).keeps_values))
    return any(v.dtype.is_fixed for n in computing for v in n.outputs)


def convolve_blocks(graph: Graph, log: Explain | None = None) -> None:
    """Products with weights in blocks as convolutions, for files that go to the library as they are, too."""
    log = log if log is not None else Explain()
    for node in list(graph.nodes):
        rule = ON_BLOCKS.get(node.op)
        if rule is not None and alive(node):
            _apply(graph, log, node, rule, {})


def _problem(node: Node, e: Refusal) -> Problem:
    return Problem(node.op, node.name, e.reason, e.hint, node.source)


def _round(
    graph: Graph, log: Explain, problems: dict[str, Problem], without: Collection[RuleFunction]
) -> int:
    changes = 0
    for node in list(graph.nodes):
        for rule in (*RULES.get(node.op, ()), *GENERIC):
            if not alive(node) or node.where in problems:
                break
            if rule in without:
                continue
            changes += _apply(graph, log, node, rule, problems)
    return changes


def _apply(graph: Graph, log: Explain, node: Node, rule: RuleFunction, problems: dict[str, Problem]) -> bool:
    try:
        new = rule(node, builder_at(graph, node))
    except Refusal as e:
        problems[node.where] = _problem(node, e)
        return False
    if new is None:
        return False
    log.apply("legalise_htp", node, rule.__name__)
    outputs: Sequence[Value] = (new,) if isinstance(new, Value) else new
    for old, value in zip(list(node.outputs), outputs, strict=True):
        supplant(graph, old, value)
    return True


def _look_again(graph: Graph, problems: dict[str, Problem]) -> None:
    """What no rule could bring into HTP's bounds."""
    for node in graph.nodes:
        try:
            refuse_rank(node)
        except Refusal as e:
            problems[node.where] = _problem(node, e)


def _refused(problems: Sequence[Problem]) -> UnsupportedError:
    lines = "".join(f"\n  {p}" for p in problems)
    return UnsupportedError(f"HTP cannot run {len(problems)} node(s):{lines}", problems=problems)
