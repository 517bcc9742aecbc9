"""The text form: printed and parsed back it is the same graph, whatever names and numbers are in it."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openqnn.errors import ModelError
from openqnn.ir import DType, Encoding, Given, Graph, Node, Port, Value
from openqnn.ir.clone import clone_graph
from openqnn.ir.graph_text import parse_graph, print_graph

# Whatever a model can call its tensors: ONNX names are UTF-8, so lone surrogates are left out.
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda w: w not in ("name", "input", "output", "const", "true", "false", "inf", "nan", "data")
)
NUMBERS = st.one_of(st.integers(-(2**63), 2**64), st.floats(), st.booleans())
PARAMS = st.one_of(NUMBERS, WORDS, st.recursive(NUMBERS, lambda p: st.lists(p, max_size=3).map(tuple)))
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)
TYPES = st.sampled_from([d for d in DType if d is not DType.STRING])


@st.composite
def encodings(draw: st.DrawFn) -> Encoding | None:
    axis = draw(st.one_of(st.none(), st.integers(0, 3)))
    count = 1 if axis is None else draw(st.integers(1, 3))
    scale = draw(st.lists(st.floats(1e-30, 1e30), min_size=count, max_size=count))
    offset = draw(st.lists(st.integers(-(2**31), 2**31), min_size=count, max_size=count))
    made = Encoding(
        tuple(scale), tuple(offset), draw(st.sampled_from([4, 8, 16, 32])), axis, draw(st.booleans())
    )
    return draw(st.sampled_from([made, None]))


@st.composite
def givens(draw: st.DrawFn) -> Given:
    first = draw(encodings())
    also = draw(st.lists(encodings().filter(bool), max_size=2)) if first is not None else []
    width, flags = draw(st.sampled_from([4, 8, 16, 32])), (draw(st.booleans()), draw(st.booleans()))
    return Given(draw(NAMES), width, flags[0], first, flags[1], tuple(e for e in also if e is not None))


def _array(draw: st.DrawFn, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    array = seed.normal(0, 50, shape).astype(dtype.numpy)
    if dtype.is_float and array.size:
        array.flat[0] = draw(st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 1e-7]))
    return array


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    graph = Graph(draw(st.text(max_size=5)))
    port = Port(draw(TYPES), draw(SHAPES)) if draw(st.booleans()) else None
    known: list[Value] = [graph.add_input(draw(NAMES), draw(TYPES), draw(SHAPES), port)]
    for _ in range(draw(st.integers(0, 3))):
        dtype, shape = draw(TYPES), draw(SHAPES)
        constant = graph.constant(draw(NAMES), _array(draw, dtype, shape), dtype, draw(encodings()))
        inputs = [*draw(st.lists(st.sampled_from([*known, None]), max_size=3)), constant]
        outputs = [
            Value(graph.unique(draw(NAMES)), draw(TYPES), draw(SHAPES), draw(encodings())) for _ in "ab"
        ]
        params = draw(st.dictionaries(WORDS, PARAMS, max_size=4))
        package = draw(st.sampled_from(["qti.aisw", "my package::v2"]))
        source = draw(st.one_of(st.just(""), NAMES))
        graph.add(Node(draw(WORDS), draw(NAMES), inputs, outputs, params, source, package))
        known += outputs
    graph.add_output(known[-1])
    graph.given = draw(st.dictionaries(NAMES, givens(), max_size=2))
    return graph


def _data(graph: Graph) -> dict[str, np.ndarray]:
    return {v.name: v.data for v in graph.constants() if v.data is not None}


@given(graphs())
def test_it_parses_back_equal(graph: Graph) -> None:
    text = print_graph(graph)
    parsed = parse_graph(text, _data(graph))
    assert print_graph(parsed) == text
    for ours, theirs in zip(graph.values(), parsed.values(), strict=True):
        assert (ours.name, ours.dtype, ours.shape, ours.encoding) == (
            theirs.name,
            theirs.dtype,
            theirs.shape,
            theirs.encoding,
        )
        if ours.data is not None:
            assert theirs.data is not None
            assert ours.data.tobytes() == theirs.data.tobytes() or np.array_equal(
                ours.data.astype(np.float64), theirs.data.astype(np.float64), equal_nan=True
            )
    for ours, theirs in zip(graph.nodes, parsed.nodes, strict=True):
        assert (ours.op, ours.name, ours.source, ours.package) == (
            theirs.op,
            theirs.name,
            theirs.source,
            theirs.package,
        )
        assert repr(ours.params) == repr(theirs.params), "repr tells 1 from 1.0 and True, and nan equals nan"
    assert graph.ports == parsed.ports
    assert graph.given == parsed.given == clone_graph(graph).given


def test_a_small_graph_reads_well() -> None:
    graph = Graph("tiny")
    x = graph.add_input("x", DType.FLOAT_32, (1, 4), Port(DType.FLOAT_64, (4,)))
    w = graph.constant("w", np.zeros((2, 4, 2), np.float32), DType.FLOAT_32)
    b = graph.constant("a b", np.asarray([1.5, -2], np.float32), DType.FLOAT_32)
    y = Value("/fc/y", DType.UFIXED_8, (1, 2), Encoding.per_tensor(0.5, -128))
    graph.add(Node("FullyConnected", "fc", [x, w, b, None], [y], {"keep_dims": False}, "onnx node /fc/Gemm"))
    graph.add_output(y)
    graph.given = {
        "a b": Given("model", 32, encoding=Encoding((0.5, 0.25), (0, 0), 32, 0, symmetric=True), signed=True),
        "x": Given("override", 16, floating=True),
    }
    assert str(graph).splitlines() == [
        'graph "tiny" {',
        "  input %x: float32[1,4] as float64[4]",
        "  const %w: float32[2,4,2] = data",
        '  const %"a b": float32[2] = [1.5, -2.0]',
        '  %"/fc/y": ufixed8[1,2] <scale=[0.5] offset=[-128] bits=8 symmetric=false>'
        ' = FullyConnected(%x, %w, %"a b", _) keep_dims=false name "fc" @ "onnx node /fc/Gemm"',
        '  output %"/fc/y"',
        '  given %"a b" bits=32 signed=true'
        ' <scale=[0.5, 0.25] offset=[0, 0] bits=32 axis=0 symmetric=true> from "model"',
        '  given %x bits=16 floating=true from "override"',
        "}",
    ]


def test_where_encodings_came_from_is_kept() -> None:
    text = GOOD.replace("output %y", 'output %y\n  encoded %x by "calibration"\n  encoded %"a b" by "data"')
    graph = parse_graph(text)
    assert graph.provenance == {"x": "calibration", "a b": "data"}
    assert parse_graph(print_graph(graph)).provenance == graph.provenance


GOOD = """graph "g" {
  input %x: float32[2]
  const %c: float32[2] = [1.0, 2.0]
  %y: float32[2] = Add(%x, %c)
  output %y
}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("graph", "grph", "line 1: expected graph, found 'grph"),
        ("float32[2]\n  const", "float33[2]\n  const", "graph text"),
        ("float32[2]\n  const", "float32[a]\n  const", "expected a shape"),
        ("float32[2]\n  const", "float32[-2]\n  const", "negative"),
        ("(%x, %c)", "(%z, %c)", "'z' is used before it is declared"),
        ("%y: float32", "%x: float32", "'x' is declared twice"),
        ("[1.0, 2.0]", "[1.0]", "constant 'c' has 1 elements, not 2"),
        ("[1.0, 2.0]", "[one, two]", "constant 'c'"),
        ("[1.0, 2.0]", "data", "no data for constant 'c'"),
        ("= [1.0", "<scale=[1.0]> = [1.0", "encoding"),
        ("= [1.0", "<scale=[0.0] offset=[0] bits=8 symmetric=false> = [1.0", "scales must be positive"),
        ("output %y\n}", "output %y\n", "line 5: expected word, found the end"),
        ("output %y", "output %y ???", "line 5"),
        ("output %y", 'output %y\n  given %y from "model"', "the bits of what is given"),
        ("output %y", "output %y\n  given %y bits=8 <scale=[1.0]>", "encoding"),
        ("output %y", 'output %y\n  encoded %y "calibration"', "expected by"),
        ("[1.0, 2.0]", "[" * 5000, "nested too deep"),
    ],
)
def test_text_that_is_wrong_says_where(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(ModelError) as caught:
        parse_graph(GOOD.replace(old, new, 1))
    assert message in str(caught.value)
    assert str(caught.value).startswith("graph text")


@given(st.integers(0, len(GOOD)), st.integers(0, 10), st.text(max_size=4))
def test_damaged_text_is_a_model_error_or_a_graph(at: int, length: int, inserted: str) -> None:
    with suppress(ModelError):
        parse_graph(GOOD[:at] + inserted + GOOD[at + length :])
