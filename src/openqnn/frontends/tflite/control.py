"""Subgraphs that are called, and variables: QNN has neither, so they are resolved while the model is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openqnn.frontends.tflite.states import handle_of, variable_name
from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.frontends.tflite.translation import Variable
from openqnn.ir import Value

MOST_TURNS = 256


@translates("CALL")
def call_(t: Translation, *inputs: Any, subgraph: int = 0) -> list[Any]:
    return t.run_body(subgraph, inputs)


@translates("STABLEHLO_COMPOSITE")
def composite(t: Translation, *inputs: Any, decomposition_subgraph_index: int = 0) -> list[Any]:
    """A composite says how it is made of other operators."""
    return t.run_body(decomposition_subgraph_index, inputs)


@translates("IF")
def if_(
    t: Translation, condition: Value, *inputs: Any, then_subgraph_index: int = 0, else_subgraph_index: int = 0
) -> list[Any]:
    """The branch that a known condition names; of an unknown one both are computed, and one is chosen."""
    if condition.data is not None:
        return t.run_body(then_subgraph_index if condition.data.any() else else_subgraph_index, inputs)
    branches = [t.run_body(index, inputs) for index in (then_subgraph_index, else_subgraph_index)]
    _check_alike(t, *branches)
    return [t.select(condition, a, b) for a, b in zip(*branches, strict=True)]


def _check_alike(t: Translation, one: list[Any], other: list[Any]) -> None:
    if any(not isinstance(v, Value) for v in (*one, *other)):
        t.refuse("its branches give more than tensors")
    if len(one) != len(other) or any(a.shape != b.shape for a, b in zip(one, other, strict=True)):
        t.refuse("its branches give different shapes, and which one runs is only known at run time")


@translates("STABLEHLO_CASE")
def case(t: Translation, index: Value, *, branch_subgraph_indices: Sequence[int] = ()) -> list[Any]:
    """The branch of a known number; of an unknown one all are computed. Numbers beyond mean the last one."""
    bodies = list(branch_subgraph_indices)
    if not bodies:
        t.refuse("it has no branches")
    if index.data is not None:
        number = int(index.data.reshape(-1)[0])
        return t.run_body(bodies[number if 0 <= number < len(bodies) else -1], [])
    branches = [t.run_body(body, []) for body in bodies]
    values = branches[-1]
    for number, branch in enumerate(branches[:-1]):
        _check_alike(t, branch, values)
        chosen = t.equal(index, t.constant(np.full(index.shape, number, np.int32)))
        values = [t.select(chosen, a, b) for a, b in zip(branch, values, strict=True)]
    return values


@translates("WHILE", "STABLEHLO_WHILE")
def while_(
    t: Translation, *inputs: Any, cond_subgraph_index: int = 0, body_subgraph_index: int = 0
) -> list[Any]:
    """A loop whose turns can be counted is unrolled."""
    values: list[Any] = list(inputs)
    turns = 0
    while _goes_on(t, t.run_body(cond_subgraph_index, values)):
        turns += 1
        if turns > MOST_TURNS:
            t.refuse(f"the loop runs more than {MOST_TURNS} times; QNN has no loops")
        values = t.run_body(body_subgraph_index, values)
    return values


def _goes_on(t: Translation, condition: list[Any]) -> bool:
    if len(condition) != 1 or not isinstance(condition[0], Value) or condition[0].data is None:
        t.refuse("how often the loop runs is only known at run time; QNN has no loops")
    return bool(condition[0].data.any())


@translates("CALL_ONCE")
def call_once(t: Translation, *, init_subgraph_index: int = 0) -> list[Any]:
    t.run_once(init_subgraph_index)
    return []


@translates("VAR_HANDLE")
def var_handle(t: Translation) -> Any:
    return [Variable(variable_name(t.operator))]


@translates("READ_VARIABLE")
def read_variable(t: Translation, handle: Any) -> Value:
    return t.read_state(handle_of(handle).name, t.result())


@translates("ASSIGN_VARIABLE")
def assign_variable(t: Translation, handle: Any, value: Value) -> list[Any]:
    t.write_state(handle_of(handle).name, value, t.source(1))
    return []
