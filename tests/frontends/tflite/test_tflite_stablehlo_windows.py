"""StableHLO operators that move, reduce, multiply and sort, against numpy, and LiteRT where it has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

import openqnn
from openqnn.errors import UnsupportedError
from openqnn.frontends.tflite.table import TABLE
from tests.frontends.tflite.build import Array, Body, Op, T, const, model, single
from tests.frontends.tflite.litert import litert_outputs
from tests.frontends.tflite.test_tflite_stablehlo import OPERATORS

CHANCE = np.random.default_rng(4)


def numbers(*shape: int) -> Array:
    return CHANCE.uniform(-2, 2, shape).astype(np.float32)


X = numbers(4, 5, 6)
PLACES = np.asarray([[3, 0], [1, 4]], np.int32)


def run(source: bytes, arrays: Sequence[Array]) -> Array:
    with openqnn.Session(openqnn.convert(source)) as session:
        names = [v.name for v in session.graph.inputs]
        assert len(names) == len(arrays)
        return session.run(dict(zip(names, arrays, strict=True)))["y"]


def options_of(op: str, **more: Any) -> str:
    words = op.removeprefix("STABLEHLO_").lower().split("_")
    return "Stablehlo" + "".join(w.title() for w in words) + "Options"


def one(op: str, inputs: Sequence[T], wanted: Array, **options: Any) -> bytes:
    result = T(wanted.shape, wanted.dtype.name, name="y")
    return single(f"STABLEHLO_{op}", inputs, [result], options_of(op) if options else "", **options)


def check(source: bytes, arrays: Sequence[Array], wanted: Array) -> None:
    found = run(source, arrays)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


MOVED: dict[str, tuple[Array, dict[str, Any]]] = {
    "SLICE": (X[1:4, 0:5:2, 2:6], {
        "startIndices": [1, 0, 2], "limitIndices": [4, 5, 6], "strides": [1, 2, 1]}),
    "BROADCAST_IN_DIM": (np.broadcast_to(X.transpose(1, 0, 2)[:, None], (5, 3, 4, 6)), {
        "broadcastDimensions": [2, 0, 3]}),
}  # fmt: skip


@pytest.mark.parametrize("op", MOVED)
def test_what_moves_elements(op: str) -> None:
    wanted, options = MOVED[op]
    check(one(op, [T(X.shape)], wanted, **options), [X], wanted)


def test_pads_at_the_ends_and_between() -> None:
    wanted = np.full((7, 11), 0.5, np.float32)
    square = numbers(4, 6)
    wanted[0:7:2, 1:11:2] = square[:, :5]  # an end that is cut off, after what is put between
    options = {"edgePaddingLow": [0, 1], "edgePaddingHigh": [0, -1], "interiorPadding": [1, 1]}
    check(one("PAD", [T((4, 6)), const(np.float32(0.5))], wanted, **options), [square], wanted)


def test_counting_along_an_axis() -> None:
    tensors = [T((3, 4)), T((3, 4), name="n"), T((3, 4), name="y")]
    ops = [
        Op("STABLEHLO_IOTA", [], [1], {"iotaDimension": 1}, "StablehloIotaOptions"),
        Op("STABLEHLO_ADD", [0, 1], [2]),
    ]
    x = numbers(3, 4)
    check(model(Body(tensors, ops, [0], [2])), [x], x + np.arange(4, dtype=np.float32))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("start", [(1, 2, 0), (-3, 9, 9)])  # the second is moved inside
def test_parts_at_places_of_run_time(known: bool, start: tuple[int, ...]) -> None:
    sizes = (2, 3, 6)
    begin = [min(max(s, 0), d - n) for s, d, n in zip(start, X.shape, sizes, strict=True)]
    wanted = X[tuple(slice(b, b + n) for b, n in zip(begin, sizes, strict=True))]
    starts = [const(np.int32(s)) if known else T((), "int32") for s in start]
    source = one("DYNAMIC_SLICE", [T(X.shape), *starts], wanted, sliceSizes=list(sizes))
    if known:
        check(source, [X], wanted)
        return
    with pytest.warns(openqnn.OpenQnnWarning, match="no node reads 't3'"):  # the last axis is whole
        graph = openqnn.convert(source)
    feeds = {"t0": X} | {f"t{i + 1}": np.asarray(v, np.int32) for i, v in enumerate(start)}
    with openqnn.Session(graph) as session:
        found = session.run({v.name: feeds[v.name] for v in graph.inputs})["y"]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("op", ["DYNAMIC_UPDATE_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("start", [(1, 2, 0), (3, 9, -2)])
def test_updates_at_places_of_run_time(op: str, known: bool, start: tuple[int, ...]) -> None:
    """As a cache is written: LiteRT moves an update inside, too."""
    update, wanted = numbers(2, 3, 6), X.copy()
    begin = [min(max(s, 0), d - n) for s, d, n in zip(start, X.shape, update.shape, strict=True)]
    wanted[tuple(slice(b, b + n) for b, n in zip(begin, update.shape, strict=True))] = update
    whole = op.startswith("DYNAMIC")
    given = [np.asarray(start, np.int32)] if whole else [np.asarray(s, np.int32) for s in start]
    starts = [const(g) if known else T(g.shape, "int32") for g in given]
    source = single(op, [T(X.shape), T(update.shape), *starts], [T(X.shape, name="y")])
    arrays = [X, update, *([] if known else given)]
    np.testing.assert_array_equal(run(source, arrays), wanted)
    if whole:
        named = {f"t{i}": a for i, a in enumerate(arrays)}
        np.testing.assert_array_equal(litert_outputs(source, named)["y"], wanted)


GATHERS: list[tuple[Array, dict[str, Any]]] = [
    (X[:, PLACES[:, 0]], {"offsetDims": [0, 2], "collapsedSliceDims": [1], "startIndexMap": [1],
                          "sliceSizes": [4, 1, 6], "indexVectorDim": 1}),
    (X[PLACES[:, 0], :, PLACES[:, 1]], {"offsetDims": [1], "collapsedSliceDims": [0, 2],
                                        "startIndexMap": [0, 2], "sliceSizes": [1, 5, 1],
                                        "indexVectorDim": 1}),
]  # fmt: skip


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("which", [0, 1])
def test_slices_at_places(which: int, known: bool) -> None:
    wanted, options = GATHERS[which]
    places = PLACES[:, :1] if which == 0 else PLACES
    indices = const(places) if known else T(places.shape, "int32")
    source = one("GATHER", [T(X.shape), indices], wanted, **options)
    arrays = [X] if known else [X, places]
    check(source, arrays, wanted)
    named = {f"t{i}": a for i, a in enumerate(arrays)}
    np.testing.assert_array_equal(litert_outputs(source, named)["y"], wanted)


def with_body(op: str, inputs: Sequence[T], wanted: Array, body: str, options: Mapping[str, Any]) -> bytes:
    """An operator whose second subgraph says what it does with two numbers."""
    kind = "bool" if body in ("LOGICAL_OR", "LOGICAL_AND") else "float32"
    two = [T((), kind), T((), kind), T((), "bool" if body in ("LESS", "GREATER") else kind)]
    inner = Body(two, [Op(body, [0, 1], [2], {}, BODY_OPTIONS.get(body, ""))], [0, 1], [2])
    if not body:
        inner = Body(two[:2], [], [0, 1], [1])
    tensors = [*inputs, T(wanted.shape, wanted.dtype.name, name="y")]
    feeds = [i for i, t in enumerate(inputs) if t.data is None]
    ops = [Op(f"STABLEHLO_{op}", range(len(inputs)), [len(inputs)], options, options_of(op))]
    return model(Body(tensors, ops, feeds, [len(inputs)]), inner)


BODY_OPTIONS = {
    "ADD": "AddOptions", "MUL": "MulOptions", "MAXIMUM": "MaximumMinimumOptions", "LESS": "LessOptions",
    "MINIMUM": "MaximumMinimumOptions", "LOGICAL_OR": "LogicalOrOptions", "GREATER": "GreaterOptions",
    "LOGICAL_AND": "LogicalAndOptions",
}  # fmt: skip
REDUCED = [("ADD", np.sum, 0.0), ("ADD", np.sum, 1.5), ("MUL", np.prod, 1.0), ("MAXIMUM", np.max, -np.inf),
           ("MAXIMUM", np.max, 0.25), ("MINIMUM", np.min, np.inf)]  # fmt: skip
JOINED = {"ADD": np.add, "MUL": np.multiply, "MAXIMUM": np.maximum, "MINIMUM": np.minimum}


@pytest.mark.parametrize(("body", "function", "start"), REDUCED)
@pytest.mark.filterwarnings("ignore:weights with NaN or infinite")  # where a minimum starts
def test_reductions(body: str, function: Any, start: float) -> None:
    wanted = JOINED[body](function(X, axis=(0, 2)), np.float32(start))
    inputs = [T(X.shape), const(np.float32(start))]
    options = {"dimensions": [0, 2], "bodySubgraphIndex": 1}
    check(with_body("REDUCE", inputs, wanted, body, options), [X], wanted)


@pytest.mark.parametrize(
    ("body", "wanted"), [("LOGICAL_OR", (X > 1).any(1)), ("LOGICAL_AND", (X > -1).all(1))]
)
def test_reductions_of_truths(body: str, wanted: Array) -> None:
    start = const(np.asarray(body == "LOGICAL_AND"))
    options = {"dimensions": [1], "bodySubgraphIndex": 1}
    source = with_body("REDUCE", [T(X.shape, "bool"), start], wanted, body, options)
    np.testing.assert_array_equal(run(source, [X > 1 if body == "LOGICAL_OR" else X > -1]), wanted)


WINDOWS = [("ADD", 0.0), ("MAXIMUM", -np.inf), ("MINIMUM", np.inf)]


@pytest.mark.parametrize(("body", "start"), WINDOWS)
@pytest.mark.parametrize("shape", [(1, 2, 3, 1), (1, 1, 3, 1), (1, 3, 1, 2)])
@pytest.mark.filterwarnings("ignore:weights with NaN or infinite")  # where a minimum starts
def test_windows(body: str, start: float, shape: tuple[int, ...]) -> None:
    x = numbers(2, 6, 7, 4)
    padding = [0, 0, 1, 0, 0, 0, 0, 0] if shape[1] > 1 else [0] * 8
    options = {"windowDimensions": list(shape), "windowStrides": [1, 2, 1, 1], "padding": padding,
               "baseDilations": [1] * 4, "windowDilations": [1] * 4, "bodySubgraphIndex": 1}  # fmt: skip
    options = {k: np.asarray(v) if isinstance(v, list) else v for k, v in options.items()}
    padded = np.pad(x, np.reshape(padding, (4, 2)), constant_values=start)
    views = np.lib.stride_tricks.sliding_window_view(padded, shape, axis=(0, 1, 2, 3))[:, ::2]
    function = {"ADD": np.sum, "MAXIMUM": np.max, "MINIMUM": np.min}[body]
    wanted = np.asarray(function(views, axis=(4, 5, 6, 7)), np.float32)
    source = with_body("REDUCE_WINDOW", [T(x.shape), const(np.float32(start))], wanted, body, options)
    check(source, [x], wanted)
    np.testing.assert_allclose(litert_outputs(source, {"t0": x})["y"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("body", ["", "ADD"])
def test_slices_are_written(body: str) -> None:
    places, updates = np.asarray([[3], [0]], np.int32), numbers(2, 5, 6)
    wanted = X.copy()
    for place, update in zip(places[:, 0], updates, strict=True):
        wanted[place] = wanted[place] + update if body else update
    options = {"updateWindowDims": [1, 2], "insertedWindowDims": [0], "scatterDimsToOperandDims": [0],
               "indexVectorDim": 1, "updateComputationSubgraphIndex": 1}  # fmt: skip
    inputs = [T(X.shape), const(places), T(updates.shape)]
    source = with_body("SCATTER", inputs, wanted, body, options)
    check(source, [X, updates], wanted)


@pytest.mark.parametrize(("body", "axis"), [("LESS", 2), ("GREATER", 1)])
def test_sorting(body: str, axis: int) -> None:
    wanted = np.sort(X, axis=axis) if body == "LESS" else -np.sort(-X, axis=axis)
    options = {"dimension": axis, "isStable": True, "comparatorSubgraphIndex": 1}
    check(with_body("SORT", [T(X.shape)], wanted, body, options), [X], wanted)


@pytest.mark.parametrize(("batch", "inner"), [(((0,), (0,)), ((2,), (1,))), (((), ()), ((1, 2), (2, 1)))])
def test_products(batch: Any, inner: Any) -> None:
    b = numbers(4, 6, 3) if batch[0] else numbers(3, 6, 5)
    wanted = np.einsum("bik,bkj->bij", X, b) if batch[0] else np.einsum("bik,jki->bj", X, b)
    names = ("lhsBatching", "rhsBatching", "lhsContracting", "rhsContracting")
    options = {f"{n}Dimensions": list(v) for n, v in zip(names, (*batch, *inner), strict=True)}
    check(one("DOT_GENERAL", [T(X.shape), T(b.shape)], wanted, **options), [X, b], wanted)


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides, steps and pads": {"stride": [2, 1], "steps": [1, 2], "pads": [1, 0, 2, 2]},
    "groups": {"groups": 2},
    "channels apart": {"groups": 4},
    "zeros between the data": {"between": [2, 3], "pads": [1, 1, 2, 2]},
    "an end that is cut off": {"pads": [-1, 1, 0, -2]},
    "a signal": {"axes": 1, "pads": [1, 1]},
    "a volume": {"axes": 3},
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    """Data [batch, channels, ...] with filters [out, in, ...], as JAX has them, beside torch's definition."""
    case = CONVOLUTIONS[name]
    axes, groups = case.get("axes", 2), case.get("groups", 1)
    x, w = numbers(2, 4, *(7, 8, 6)[:axes]), numbers(8, 4 // groups, *(3, 2, 2)[:axes])
    ones = [1] * axes
    stride, steps, between = (case.get(k, ones) for k in ("stride", "steps", "between"))
    pads = case.get("pads", [0] * (2 * axes))
    wanted = convolved(x, w, stride, steps, between, pads, groups)
    space = list(range(2, 2 + axes))
    options = {
        "windowStrides": stride, "padding": pads, "lhsDilation": between, "rhsDilation": steps,
        "windowReversal": [False] * axes, "inputBatchDimension": 0, "inputFeatureDimension": 1,
        "inputSpatialDimensions": space, "kernelInputFeatureDimension": 1, "kernelOutputFeatureDimension": 0,
        "kernelSpatialDimensions": space, "outputBatchDimension": 0, "outputFeatureDimension": 1,
        "outputSpatialDimensions": space, "featureGroupCount": groups, "batchGroupCount": 1,
    }  # fmt: skip
    check(one("CONVOLUTION", [T(x.shape), const(w)], wanted, **options), [x], wanted)


def convolved(
    x: Array, w: Array, stride: list[int], steps: list[int], between: list[int], pads: list[int], groups: int
) -> Array:
    """By the definition: a sum over the filter's elements."""
    axes = x.ndim - 2
    every = slice(None), slice(None)
    apart = [(d - 1) * b + 1 for d, b in zip(x.shape[2:], between, strict=True)]
    wide = np.zeros((*x.shape[:2], *apart), np.float32)
    wide[(*every, *(slice(None, None, b) for b in between))] = x
    rows = np.reshape(pads, (axes, 2))
    wide = np.pad(wide, [(0, 0), (0, 0), *np.maximum(rows, 0)])
    ends = [slice(max(0, -a), d - max(0, -b)) for (a, b), d in zip(rows, wide.shape[2:], strict=True)]
    wide = wide[(*every, *ends)]
    sizes = [
        (d - s * (k - 1) - 1) // m + 1
        for d, s, k, m in zip(wide.shape[2:], steps, w.shape[2:], stride, strict=True)
    ]
    found = np.zeros((x.shape[0], w.shape[0], *sizes), np.float32)
    inner, outer = w.shape[1], w.shape[0] // groups
    for place in np.ndindex(*w.shape[2:]):
        starts = [p * s for p, s in zip(place, steps, strict=True)]
        window = [slice(b, b + (n - 1) * m + 1, m) for b, n, m in zip(starts, sizes, stride, strict=True)]
        part = wide[(*every, *window)]
        for g in range(groups):
            filters = w[(slice(g * outer, (g + 1) * outer), slice(None), *place)]
            data = part[:, g * inner : (g + 1) * inner]
            found[:, g * outer : (g + 1) * outer] += np.einsum("bi...,oi->bo...", data, filters)
    return found


@pytest.mark.parametrize(("op", "function"), [("CBRT", np.cbrt), ("FLOOR", np.floor)])
def test_of_each_element(op: str, function: Any) -> None:
    check(one(op, [T(X.shape)], function(X)), [X], function(X))


def test_remainders_have_the_sign_of_the_dividend() -> None:
    b = numbers(4, 5, 6)
    check(one("REMAINDER", [T(X.shape), T(X.shape)], X), [X, b], np.fmod(X, b))


@pytest.mark.parametrize(("op", "function"), [("AND", np.logical_and), ("OR", np.logical_or)])
def test_truths(op: str, function: Any) -> None:
    a, b = X > 0, X < 1
    source = one(op, [T(X.shape, "bool")] * 2, function(a, b))
    np.testing.assert_array_equal(run(source, [a, b]), function(a, b))
    with pytest.raises(UnsupportedError, match="bits of integers"):
        openqnn.convert(single(f"STABLEHLO_{op}", [T((2,), "int32")] * 2, [T((2,), "int32")]))


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 7])
def test_a_case_of_run_time(number: int) -> None:
    bodies = [Body([const(np.full((2, 3), k, np.float32), name="k")], [], [], [0]) for k in (1, 2, 3)]
    options = {"branchSubgraphIndices": [1, 2, 3]}
    ops = [
        Op("STABLEHLO_CASE", [0], [1], options, "StablehloCaseOptions"),
        Op("ADD", [1, 2], [3], {}, "AddOptions"),
    ]
    tensors = [T((), "int32"), T((2, 3)), T((2, 3)), T((2, 3), name="y")]
    x = numbers(2, 3)
    found = run(model(Body(tensors, ops, [0, 2], [3]), *bodies), [np.asarray(number, np.int32), x])
    np.testing.assert_allclose(found, x + (number + 1 if 0 <= number < 3 else 3), rtol=1e-6)


def test_a_call_of_something_else_is_refused_by_its_name() -> None:
    source = single("STABLEHLO_CUSTOM_CALL", [T((2,))], [T((2,))], "StablehloCustomCallOptions",
                    callTargetName=b"my.kernel")  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"my\.kernel"):
        openqnn.convert(source)


def test_every_operator_has_a_case() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    claimed = {n.removeprefix("STABLEHLO_") for _, n in TABLE.known() if n.startswith("STABLEHLO_")}
    elsewhere = {op for op, *_ in OPERATORS} | {
        "CONVERT", "SELECT",  # in test_tflite_stablehlo.py
        "COMPOSITE", "WHILE",  # in test_tflite_control.py
        "RNG_BIT_GENERATOR", "SHIFT_LEFT",  # refused
    }  # fmt: skip
    assert [n for n in claimed - elsewhere if f'"{n}"' not in text and f"STABLEHLO_{n}" not in text] == []
