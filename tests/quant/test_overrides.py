"""The user's encodings meet a graph: names, channels, widths, and what is said of entries that do not fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import numpy_helper, parser

import openqnn
from openqnn.errors import InputError, OpenQnnWarning
from openqnn.formats.encodings import OUTPUT_CHANNEL, Blocks, EncodingsFile, TensorEncoding
from openqnn.ir import DType, Encoding, Given, Graph
from openqnn.ops import Builder
from openqnn.quant.overrides import Matched, Status, channel_axis, match, read_overrides
from tests.models.fetch import model_path

CONV = {"stride": (1, 1), "pad_amount": ((1, 1), (1, 1))}
SCALES = (0.01, 0.02, 0.03, 0.04)


def network() -> Graph:
    """conv, relu, a product with a turned matrix and with a plain one, and a gather by integers."""
    rng, graph = np.random.default_rng(0), Graph("g")
    b = Builder(graph)
    constant = lambda name, *shape: b.const(rng.uniform(-1, 1, shape).astype(np.float32), name=name)
    x = graph.add_input("in:0", DType.FLOAT_32, (1, 8, 8, 3))
    y = b("Conv2d", x, constant("conv/w", 3, 3, 3, 4), constant("conv/b", 4), name="conv", **CONV)
    y = b("Relu", y, name="relu")
    y = b("ElementWiseMultiply", y, constant("factor", 4), name="scaled")
    y = b("FullyConnected", y, constant("fc.w", 5, 256), name="fc")
    y = b("MatMul", y, constant("m.w", 5, 6), name="mm")
    y = b("MatMul", y, constant("t.w", 7, 6), transpose_in1=True, name="tm")
    y = b("Gather", y, b.const(np.asarray([0], np.int32), name="which"), axis=0, name="picked")
    graph.add_output(y)
    return graph


def whole(name: str, scale: float = 0.1, offset: int = -3, bits: int = 8, **more: object) -> TensorEncoding:
    return TensorEncoding(name, bits, scales=(scale,), offsets=(offset,), **more)  # pyright: ignore


def by_channel(name: str, scales: tuple[float, ...] = SCALES, **more: object) -> TensorEncoding:
    fields = {
        "symmetric": True,
        "signed": True,
        "offsets": (0,) * len(scales),
        "axis": OUTPUT_CHANNEL,
        **more,
    }
    return TensorEncoding(name, fields.pop("bitwidth", 8), scales=scales, **fields)  # pyright: ignore


def file_of(*entries: TensorEncoding) -> EncodingsFile:
    return EncodingsFile("1.0.0", {e.name: e for e in entries})


def matched(*entries: TensorEncoding) -> Matched:
    return match(network(), file_of(*entries))


def test_activations_are_stored_from_zero_on() -> None:
    symmetric = whole("scaled", 0.1, 0, symmetric=True, signed=True)
    found = matched(whole("in:0"), symmetric, whole("relu", 0.2, 0, 16)).given
    assert found["in:0"] == Given("override", 8, encoding=Encoding.per_tensor(0.1, -3))
    assert found["scaled"].encoding == Encoding.per_tensor(0.1, -128, symmetric=True)
    assert found["relu"].encoding == Encoding.per_tensor(0.2, 0, 16)
    assert not any(g.signed for g in found.values())


@pytest.mark.parametrize(
    ("name", "channels", "axis"), [("conv/w", 4, 3), ("fc.w", 5, 0), ("m.w", 6, 1), ("t.w", 7, 0)]
)
def test_channels_lie_where_the_op_has_them(name: str, channels: int, axis: int) -> None:
    scales = tuple(0.01 * (i + 1) for i in range(channels))
    found = matched(by_channel(name, scales)).given[name]
    assert found.signed
    assert found.encoding == Encoding(scales, (0,) * channels, 8, axis, symmetric=True)


def test_weights_of_the_whole_tensor() -> None:
    found = matched(whole("conv/w", 0.1, 0, symmetric=True, signed=True), whole("fc.w", 0.1, -7)).given
    assert found["conv/w"] == Given(
        "override", 8, encoding=Encoding.per_tensor(0.1, 0, symmetric=True), signed=True
    )
    assert found["fc.w"] == Given("override", 8, encoding=Encoding.per_tensor(0.1, -7))


def test_a_strict_range_is_the_same_numbers_around_zero() -> None:
    found = matched(by_channel("conv/w", offsets=(1,) * 4)).given["conv/w"]
    assert found.encoding is not None and found.encoding.offset == (0, 0, 0, 0)


def test_biases() -> None:
    """Of 32 bits by channel or whole, of 8 bits stored from zero on."""
    found = matched(by_channel("conv/b", bitwidth=32)).given["conv/b"]
    assert found.signed and found.encoding == Encoding(SCALES, (0,) * 4, 32, 0, symmetric=True)
    narrow = matched(whole("conv/b", 0.1, 0, symmetric=True, signed=True)).given["conv/b"]
    assert not narrow.signed and narrow.encoding == Encoding.per_tensor(0.1, -128, symmetric=True)


def test_floats_and_widths_alone() -> None:
    found = matched(TensorEncoding("conv/w", 16, is_float=True), TensorEncoding("relu", 16)).given
    assert found == {"conv/w": Given("override", 16, floating=True), "relu": Given("override", 16)}


def test_a_range_alone_becomes_an_encoding() -> None:
    """The documented example: scale and offset are calculated from width, min and max."""
    low, high = -2.1006477158567995, 1.700559472933134
    found = matched(TensorEncoding("relu", 8, low=(low,), high=(high,))).given["relu"].encoding
    assert found == Encoding.per_tensor(0.01490669485799974, -141)
    rows = by_channel("conv/w", (), offsets=(), low=(-1.0,) * 4, high=(0.5, 0.5, 0.5, 2.0))
    found = matched(rows).given["conv/w"].encoding
    assert found is not None
    assert found.scale == pytest.approx((1 / 127, 1 / 127, 1 / 127, 2 / 127))
    assert (found.offset, found.axis) == ((0,) * 4, 3)


def test_names_as_qnn_writes_them() -> None:
    found = matched(whole("in_0"), by_channel("conv_w"))
    assert set(found.given) == {"in:0", "conv/w"}
    assert not found.of(Status.UNUSED)


def test_a_name_that_two_tensors_could_have_is_neither() -> None:
    graph = Graph("g")
    a, b = (graph.add_input(name, DType.FLOAT_32, (1,)) for name in ("a/b", "a:b"))
    graph.add_output(Builder(graph)("ElementWiseAdd", a, b))
    assert not match(graph, file_of(whole("a_b"))).given


def test_unknown_names_come_with_near_ones() -> None:
    (found,) = matched(by_channel("conv/wx")).of(Status.UNUSED)
    assert found.near[0] == "conv/w"
    assert str(found).startswith("'conv/wx': no such tensor; near: conv/w")


def test_names_that_the_source_model_has_are_merged() -> None:
    found = match(network(), file_of(whole("conv_before_bias")), {"conv_before_bias"})
    assert [f.tensor for f in found.of(Status.MERGED)] == ["conv_before_bias"]
    assert not found.of(Status.UNUSED)


def test_a_converted_graph_knows_what_it_has_merged() -> None:
    graph = openqnn.convert(model_path("mnist_conv"))
    merged, wrong = whole("Convolution28_Output_0"), whole("Convolution29_Output_0")
    found = match(graph, file_of(whole("ReLU32_Output_0"), merged, wrong))
    assert [f.tensor for f in found.of(Status.MERGED)] == [merged.name]
    assert [f.tensor for f in found.of(Status.UNUSED)] == [wrong.name]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (whole("which"), "is int32: integers are not quantized"),
        (whole("relu", bits=4), "an activation of Relu cannot have 4 bits, only 8 or 16"),
        (whole("conv/w", bits=32, offset=0), "a weight of Conv2d cannot have 32 bits, only 4 or 8 or 16"),
        (whole("conv/b", bits=16), "a bias of Conv2d cannot have 16 bits, only 8 or 32"),
        (whole("conv/b", bits=32), "32 bits are signed and have their zero in the middle"),
        (by_channel("relu"), "4 encodings by channel, which only constants have"),
        (by_channel("factor"), "4 encodings by channel, which ElementWiseMultiply does not take"),
        (by_channel("conv/w", (0.1, 0.2, 0.3)), "3 encodings for 4 output channels"),
        (by_channel("conv/w", offsets=(3,) * 4), "encodings by channel must be symmetric"),
        (by_channel("conv/w", axis=1), "encodings along axis 1; its output channels are along axis 0"),
        (by_channel("conv/w", blocks=Blocks(8)), "blocks with scales of their own"),
        (whole("relu", offset=-1.5), "its zero lies between two integers"),  # pyright: ignore
    ],
)
def test_what_a_tensor_cannot_have(entry: TensorEncoding, words: str) -> None:
    found = matched(entry)
    (problem,) = found.of(Status.IMPOSSIBLE)
    assert words in problem.detail
    assert not found.given


def test_doubts() -> None:
    stale = whole("relu", 0.1, -3, low=(-7.0,), high=(7.0,))
    (found,) = matched(stale).of(Status.DOUBTFUL)
    assert found.detail.startswith("[-0.3, 25.2] by scale and offset, [-7, 7] by min and max")
    (empty,) = matched(by_channel("conv/w", (1.0,) * 4)).of(Status.DOUBTFUL)
    assert "the constant only goes up to 0.9" in empty.detail


def test_a_constant_far_beyond_its_encoding_is_another_one() -> None:
    """A factor was folded into it, as the conversion does to scales of batch norms."""
    found = matched(by_channel("conv/w", (0.01, 0.01, 0.001, 0.01)))
    (clipped,) = found.of(Status.DOUBTFUL)
    assert (
        "the constant goes up to 0.9" in clipped.detail
        and "its encoding to 0.128: not used" in clipped.detail
    )
    assert "conv/w" not in found.given
    with pytest.warns(OpenQnnWarning, match=r"f\.json: doubtful: 'conv/w': the constant goes up to"):
        read_overrides(network(), file_of(whole("relu"), by_channel("conv/w", (0.001,) * 4)), "f.json")


def test_what_is_missing() -> None:
    """Relu clips its source and Gather moves values: these share, and are not asked for."""
    names = [f.tensor for f in matched(whole("relu"), by_channel("conv/w")).of(Status.MISSING)]
    assert names == ["in:0", "scaled", "fc", "mm", "tm", "fc.w", "m.w", "t.w"]
    assert all(f.tensor != "conv" for f in matched().of(Status.MISSING))


def test_reading_refuses_what_is_impossible() -> None:
    with pytest.raises(InputError, match=r"f\.json: 'relu': an activation of Relu cannot have 4 bits"):
        read_overrides(network(), file_of(whole("relu", bits=4)), "f.json")


def test_reading_refuses_a_file_of_another_model() -> None:
    with pytest.raises(InputError, match=r"f\.json: no entry is for a tensor of this model: 'a'"):
        read_overrides(network(), file_of(whole("a"), whole("b")), "f.json")


def test_reading_warns_of_unknown_names() -> None:
    entries = [whole("relu"), *(whole(f"other{i}") for i in range(7))]
    with pytest.warns(OpenQnnWarning, match=r"f\.json: unused: 'other0': .*; and 2 more"):
        found = read_overrides(network(), file_of(*entries), "f.json")
    assert list(found.given) == ["relu"]


def test_an_empty_file_says_nothing() -> None:
    assert not read_overrides(network(), file_of(), "f.json").given


def test_only_constants_have_channels() -> None:
    graph = network()
    axes = {v.name: channel_axis(v) for v in graph.values()}
    assert {n: a for n, a in axes.items() if a is not None} == {
        "conv/w": 3, "conv/b": 0, "fc.w": 0, "m.w": 1, "t.w": 0
    }  # fmt: skip


@pytest.mark.parametrize("rows", [5, 6])  # of 6 columns: the wrong axis would not fit, or fit by accident
def test_channels_follow_a_weight_that_a_pass_turns(rows: int) -> None:
    """MatMul with a bias becomes FullyConnected, which has its weights the other way round."""
    rng, graph = np.random.default_rng(0), Graph("g")
    b = Builder(graph)
    scales = tuple(0.01 * (i + 1) for i in range(6))
    weights = (rng.uniform(-100, 100, (rows, 6)) * scales).astype(np.float32)
    x = graph.add_input("x", DType.FLOAT_32, (4, rows))
    bias = b.const(np.ones(6, np.float32), name="b")
    graph.add_output(b("MatMul", x, b.const(weights, name="w"), bias, name="y"))
    given = match(graph, file_of(by_channel("w", scales))).given
    data = [rng.standard_normal((4, rows)).astype(np.float32) for _ in range(2)]
    made = openqnn.quantize(graph, data, given=given, algorithms=())
    (node,) = (n for n in made.nodes if n.op == "FullyConnected")
    stored = node.x(1)
    assert stored.encoding == Encoding(scales, (0,) * 6, 8, 0, symmetric=True)
    assert stored.data is not None and stored.encoding is not None
    assert np.abs(stored.encoding.dequantize(stored.data).T - weights).max() <= 0.5001 * max(scales)


@pytest.mark.parametrize("factor", [1.5, 1.0])
def test_a_weight_that_a_factor_was_folded_into_keeps_its_width_only(factor: float) -> None:
    """Its encoding is for other numbers, though they may not be far beyond it."""
    body = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3,8,8] x) => (float[1,4,8,8] y)
    { c = Conv<kernel_shape = [1, 1]>(x, w)  m = Mul(c, f)  y = Relu(m) }"""
    model = parser.parse_model(body)
    weights = np.random.default_rng(0).uniform(-1, 1, (4, 3, 1, 1)).astype(np.float32)
    for name, data in (("w", weights), ("f", np.full((4, 1, 1), factor, np.float32))):
        model.graph.initializer.append(numpy_helper.from_array(data, name))
    found = match(openqnn.convert(model), file_of(by_channel("w", (0.008,) * 4)))
    kept, doubts = found.given["w"], found.of(Status.DOUBTFUL)
    assert (kept.bitwidth, kept.encoding is None) == (8, factor != 1.0)
    assert [f.tensor for f in doubts] == (["w"] if factor != 1.0 else [])


@pytest.mark.parametrize(("size", "told"), [(255.0, True), (0.001, True), (3.0, False)])
def test_data_of_another_normalisation_than_the_encoding_is_told(size: float, told: bool) -> None:
    given = {"in:0": Given("override", 8, encoding=Encoding.per_tensor(2 / 255, -128, 8))}
    data = [{"in:0": np.linspace(-size, size, 192, dtype=np.float32).reshape(1, 8, 8, 3)}]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        openqnn.quantize(network(), data, given=given, backend="cpu", algorithms=())
    found = [str(w.message) for w in said if "normalisation" in str(w.message)]
    assert len(found) == told and all("'in:0' reaches" in message for message in found)
