"""Control flow, sequences and optionals: QNN has none of them, so they are resolved while the model is read.

A sequence is a Python list of Values, an empty optional is NOTHING. What depends on data is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx

from openqnn.errors import ShapeError
from openqnn.frontends.onnx.shape import concatenated, parts_of, sliced, squeezed
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Value

MAX_ROUNDS, MAX_NODES = 128, 20_000


class Nothing:
    """An optional without a value."""


NOTHING: Final = Nothing()


# -- branches and loops --------------------------------------------------


def _number(value: Any, what: str, t: Translation) -> Any:
    """The single number of a known value."""
    data = t.static(value, what)
    if data.size != 1:
        raise ShapeError(f"{what} has shape {list(data.shape)}, one number is expected")
    return data.ravel()[0]


@translates("If")
def if_(
    t: Translation, condition: Value, *, then_branch: onnx.GraphProto, else_branch: onnx.GraphProto
) -> list[Any]:
    if condition.data is None:
        t.refuse("its condition is computed at run time; a QNN graph has no branches")
    return t.run_subgraph(then_branch if _number(condition, "the condition", t) else else_branch)


def _check_loop(
    t: Translation, trips: Value | None, condition: Value | None, carried: int, body: onnx.GraphProto
) -> None:
    if len(body.input) != carried + 2 or len(body.output) < carried + 1:
        t.refuse(f"{carried} carried values do not fit a body of {len(body.input)} to {len(body.output)}")
    if any(value is not None and value.data is None for value in (trips, condition)):
        t.refuse("how often it runs is computed at run time; a QNN graph has no loops")


@translates("Loop")
def loop(
    t: Translation, trips: Value | None, condition: Value | None, *carried: Any, body: onnx.GraphProto
) -> list[Any]:
    _check_loop(t, trips, condition, len(carried), body)
    limit = MAX_ROUNDS + 1 if trips is None else int(_number(trips, "the trip count", t))
    going = condition is None or bool(_number(condition, "the condition", t))
    scans: list[list[Value]] = [[] for _ in body.output[len(carried) + 1 :]]
    state, done = list(carried), 0
    while going and done < limit:
        _check_size(t, done)
        names = [i.name for i in body.input]
        round_ = [t.constant(np.asarray(done, np.int64)), t.constant(np.asarray(True))]
        results = t.run_subgraph(body, dict(zip(names, [*round_, *state], strict=True)))
        state = results[1 : len(carried) + 1]
        for rows, row in zip(scans, results[len(carried) + 1 :], strict=True):
            rows.append(row)
        done += 1
        if not isinstance(results[0], Value) or results[0].data is None:
            t.refuse("whether it goes on is computed at run time; a QNN graph has no loops")
        going = bool(_number(results[0], "the condition", t))
    return [*state, *(_stacked(t, rows) for rows in scans)]


def _check_size(t: Translation, done: int) -> None:
    if done >= MAX_ROUNDS:
        t.refuse(f"it runs more than {MAX_ROUNDS} times, too often to be unrolled")
    if len(t.graph.nodes) > MAX_NODES:
        t.refuse(f"unrolled it makes a graph of more than {MAX_NODES} nodes")


def _stacked(t: Translation, rows: Sequence[Any], axis: int = 0) -> Value:
    """Results of all rounds along a new axis."""
    if not rows:
        t.refuse("it never runs, so what it collects has no shape")
    if any(not isinstance(r, Value) for r in rows) or len({r.shape for r in rows}) > 1:
        t.refuse("what it collects changes its shape from round to round")
    if all(r.data is not None for r in rows):
        return t.constant(np.stack([r.data for r in rows], axis))
    return t.pack(rows, axis)


@translates("Scan")
def scan_8(t: Translation, *_: Any, **attributes: Any) -> Value:
    t.refuse("the batched Scan of opset 8 is not supported", hint="export with opset 9 or later")


@translates("Scan", since=9)
def scan(
    t: Translation, *inputs: Any, body: onnx.GraphProto, num_scan_inputs: int,
    scan_input_axes: list[int] | None = None, scan_input_directions: list[int] | None = None,
    scan_output_axes: list[int] | None = None, scan_output_directions: list[int] | None = None,
) -> list[Any]:  # fmt: skip
    states = len(inputs) - num_scan_inputs
    outputs = len(body.output) - states
    if states < 0 or num_scan_inputs < 1 or outputs < 0 or len(body.input) != len(inputs):
        t.refuse(f"{len(inputs)} inputs, {num_scan_inputs} of them scanned, do not fit its body")
    state, data = list(inputs[:states]), list(inputs[states:])
    axes = _each(t, scan_input_axes, num_scan_inputs)
    axes = [t.axis(a, x.rank) for a, x in zip(axes, data, strict=True)]
    backward = _each(t, scan_input_directions, num_scan_inputs)
    count = _rounds(data, axes)
    rows: list[list[Value]] = [[] for _ in range(outputs)]
    for done in range(count):
        _check_size(t, done)
        places = [count - 1 - done if b else done for b in backward]
        parts = [_row(t, x, a, p) for x, a, p in zip(data, axes, places, strict=True)]
        results = t.run_subgraph(body, dict(zip((i.name for i in body.input), [*state, *parts], strict=True)))
        state = results[:states]
        for found, row in zip(rows, results[states:], strict=True):
            found.append(row)
    turned = _each(t, scan_output_directions, outputs)
    along = _each(t, scan_output_axes, outputs)
    stacks = [_stack_of(t, *each) for each in zip(rows, turned, along, strict=True)]
    return [*state, *stacks]


def _rounds(data: Sequence[Value], axes: Sequence[int]) -> int:
    """How many steps the scanned inputs have, which all have the same number of them."""
    rounds = {x.shape[a] for x, a in zip(data, axes, strict=True) if x.rank}
    if len(rounds) != 1:
        raise ShapeError("the scanned inputs differ in length")
    return rounds.pop()


def _stack_of(t: Translation, rows: list[Value], backward: int, axis: int) -> Value:
    rank = rows[0].rank + 1 if rows else 1
    return _stacked(t, rows[::-1] if backward else rows, t.axis(axis, rank))


def _each(t: Translation, given: list[int] | None, count: int) -> list[int]:
    if given is not None and len(given) != count:
        t.refuse(f"{len(given)} axes or directions are given for {count} values")
    return [0] * count if given is None else given


def _row(t: Translation, x: Value, axis: int, place: int) -> Value:
    return squeezed(t, sliced(t, x, {axis: slice(place, place + 1)}), [axis])


# -- sequences --------------------------------------------------


def _sequence(t: Translation, value: Any) -> list[Any]:
    if not isinstance(value, list):
        t.refuse("its input is not a sequence that is known when the graph is built")
    return value


def _place(t: Translation, sequence: list[Any], position: Value | None, room: int) -> int:
    """A position from 0 up; `room` is 1 where the end counts too."""
    last = len(sequence) - 1 + room
    place = last if position is None else int(_number(position, "the position", t))
    place = place + len(sequence) if place < 0 else place
    if not 0 <= place <= last:
        raise ShapeError(f"position {place} is outside a sequence of {len(sequence)}")
    return place


@translates("SequenceEmpty")
def sequence_empty(t: Translation, *, dtype: int = 1) -> list[Any]:
    return [[]]


@translates("SequenceConstruct")
def sequence_construct(t: Translation, *values: Value) -> list[Any]:
    return [list(values)]


@translates("SequenceInsert")
def sequence_insert(t: Translation, sequence: Any, value: Value, position: Value | None = None) -> list[Any]:
    items = _sequence(t, sequence)
    place = _place(t, items, position, 1)
    return [[*items[:place], value, *items[place:]]]


@translates("SequenceErase")
def sequence_erase(t: Translation, sequence: Any, position: Value | None = None) -> list[Any]:
    items = _sequence(t, sequence)
    place = _place(t, items, position, 0)
    return [[*items[:place], *items[place + 1 :]]]


@translates("SequenceAt")
def sequence_at(t: Translation, sequence: Any, position: Value) -> list[Any]:
    items = _sequence(t, sequence)
    return [items[_place(t, items, position, 0)]]


@translates("SequenceLength")
def sequence_length(t: Translation, sequence: Any) -> Value:
    return t.constant(np.asarray(len(_sequence(t, sequence)), np.int64))


@translates("ConcatFromSequence")
def concat_from_sequence(t: Translation, sequence: Any, *, axis: int, new_axis: int = 0) -> Value:
    items = _sequence(t, sequence)
    if not items:
        t.refuse("the sequence is empty")
    return _stacked(t, items, t.axis(axis, items[0].rank + 1)) if new_axis else concatenated(t, items, axis)


@translates("SplitToSequence")
def split_to_sequence(
    t: Translation, x: Value, sizes: Value | None = None, *, axis: int = 0, keepdims: int = 1
) -> list[Any]:
    axis = t.axis(axis, x.rank)
    if not x.rank:
        t.refuse("a single number has no axis to split")
    size = x.shape[axis]
    if sizes is None:
        parts = parts_of(t, x, axis, [1] * size)
        return [parts if keepdims else [squeezed(t, p, [axis]) for p in parts]]
    lengths = t.ints(sizes, "the sizes of the parts")
    if sizes.rank == 0:
        if lengths[0] < 1:
            t.refuse(f"parts of {lengths[0]} do not cut an axis")
        lengths = tuple(min(lengths[0], size - i) for i in range(0, size, lengths[0]))
    return [parts_of(t, x, axis, lengths)]


@translates("SequenceMap")
def sequence_map(t: Translation, sequence: Any, *more: Any, body: onnx.GraphProto) -> list[Any]:
    """A second input is a sequence that goes along, or a tensor that is the same for all."""
    items = _sequence(t, sequence)
    names = [i.name for i in body.input]
    results: list[list[Any]] = [[] for _ in body.output]
    if len(names) != len(more) + 1 or any(isinstance(m, list) and len(m) != len(items) for m in more):
        raise ShapeError("the sequences differ in length, or do not fit the body")
    for i, item in enumerate(items):
        _check_size(t, i)
        others = [m[i] if isinstance(m, list) else m for m in more]
        for found, value in zip(
            results, t.run_subgraph(body, dict(zip(names, [item, *others], strict=True))), strict=True
        ):
            found.append(value)
    return results


# -- optionals --------------------------------------------------


@translates("Optional")
def optional(t: Translation, value: Any = None, *, type: Any = None) -> list[Any]:
    return [NOTHING if value is None else value]


@translates("OptionalHasElement")
def optional_has_element(t: Translation, value: Any = None) -> Value:
    return t.constant(np.asarray(value is not None and value is not NOTHING))


@translates("OptionalGetElement")
def optional_get_element(t: Translation, value: Any) -> list[Any]:
    if value is NOTHING:
        t.refuse("the optional is empty")
    return [value]
