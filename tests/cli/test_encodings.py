"""openqnn encodings: lists, lints and converts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from openqnn.formats.encodings import OUTPUT_CHANNEL, Kind, read_encodings
from openqnn.ir import DType, Encoding, Graph
from openqnn.ops import Builder
from tests.cli.tool import assert_refused, openqnn

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,2,4,4] x) => (float[1,3] out)
  <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, int64[2] s = {3, 16}> {
    before = Conv<kernel_shape = [1, 1]>(x, w)
    biases = Constant<value = float[1,3,1,1] {1.0, 2.0, 3.0}>()
    y = Add(before, biases)
    z = Relu(y)
    rows = Reshape(z, s)
    u = MatMul(rows, m)
    out = ReduceMean<axes = [0]>(u)
}"""
CHANNEL = {"bitwidth": 8, "is_symmetric": "True", "offset": -128}
FILE = {
    "activation_encodings": {
        "x": [{"bitwidth": 8, "scale": 0.1, "offset": -3}],
        "before": [{"bitwidth": 8, "scale": 0.1, "offset": -3}],
        "r": [{"bitwidth": 16, "min": -1, "max": 2}],
    },
    "param_encodings": {"w": [{**CHANNEL, "scale": 0.1 * i} for i in (1, 2, 3)]},
    "version": "0.6.1",
}


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model() -> Path:
    proto = parser.parse_model(MODEL)
    matrix = np.linspace(-1, 1, 48, dtype=np.float32).reshape(16, 3)
    proto.graph.initializer.append(numpy_helper.from_array(matrix, "m"))
    Path("m.onnx").write_bytes(proto.SerializeToString())
    return Path("m.onnx")


def stored(content: Any = FILE, name: str = "f.encodings") -> Path:
    Path(name).write_text(json.dumps(content), encoding="utf-8")
    return Path(name)


@pytest.fixture
def fixed() -> Path:
    """A graph in fixed point: a convolution by channel and a matrix that the file keeps turned."""
    graph = Graph("g")
    b = Builder(graph)
    x = graph.add_input("x", DType.UFIXED_8, (1, 4, 4, 2))
    x.encoding = Encoding.per_tensor(0.1, -3)
    by_channel = lambda count, axis: Encoding((0.5,) * count, (0,) * count, 8, axis, symmetric=True)
    w = graph.constant("w", np.ones((1, 1, 2, 3), np.int8), DType.SFIXED_8, by_channel(3, 3))
    y = b("Conv2d", x, w, stride=(1, 1), pad_amount=((0, 0), (0, 0)), name="before")
    y.encoding = Encoding.per_tensor(0.2, 0, 8)
    m = graph.constant("m", np.ones((3, 48), np.int8), DType.SFIXED_8, by_channel(3, 0))
    z = b("FullyConnected", y, m, name="other")
    z.encoding = Encoding.per_tensor(0.3, -128, 8, symmetric=True)
    half = b("Dequantize", z, dtype=DType.FLOAT_16, name="u")
    graph.add_output(half)
    graph.provenance |= {"x": "calibration", "before": "shared: override", "other": "override"}
    graph.save("g.oqnn")
    return Path("g.oqnn")


# --- listing


def test_a_model_in_floating_point_has_no_encodings(model: Path) -> None:
    result = openqnn("encodings", model)
    assert (result.code, result.err) == (0, "")
    assert "\n0 of " in result.out


def test_a_graph_is_listed_with_the_sources(fixed: Path) -> None:
    rows = {row["name"]: row for row in json.loads(openqnn("encodings", fixed, "--json").out)}
    assert rows["x"] | {"shape": None} == {
        "name": "x", "type": "ufixed8", "shape": None, "bits": 8, "scale": [0.1], "offset": [-3],
        "low": pytest.approx(-0.3), "high": pytest.approx(25.2), "axis": None, "source": "calibration",
    }  # fmt: skip
    assert (rows["w"]["axis"], rows["w"]["low"], rows["w"]["high"]) == (3, -64.0, 63.5)
    assert rows["u"]["bits"] is None
    assert "5 of 6 tensors have an encoding." in openqnn("encodings", fixed).out


def test_a_file_is_listed() -> None:
    result = openqnn("encodings", stored())
    assert result.code == 0
    lines = {line.split()[0]: line.split() for line in result.out.splitlines() if line}
    assert lines["w"][:7] == ["w", "int8", "8", "0.1,", "0.2,", "0.3", "0"]
    assert lines["w"][7:] == ["-38.4", "38.1", "output", "channel", "param"]
    assert lines["r"] == ["r", "uint16", "16", "-1", "2", "activation"]


# --- lint


def test_lint_tells_what_is_merged_unused_and_missing(model: Path) -> None:
    result = openqnn("encodings", model, "--lint", stored())
    assert result.code == 1
    found = [line.split(maxsplit=2) for line in result.out.splitlines()[1:] if line and " used" not in line]
    assert [row[:2] for row in found] == [
        ["unused", "r"], ["merged", "before"], ["missing", "z"], ["missing", "u"], ["missing", "out"],
        ["missing", "m"],
    ]  # fmt: skip
    assert result.out.endswith("2 used, 0 impossible, 1 unused, 1 merged, 0 doubtful, 4 missing.\n")


def test_lint_ends_well_when_every_entry_has_its_tensor(model: Path) -> None:
    content = {**FILE, "activation_encodings": {"z": [{"bitwidth": 8, "scale": 0.1, "offset": 0}]}}
    result = openqnn("encodings", model, "--lint", stored(content), "--json")
    found = json.loads(result.out)
    assert (result.code, found["ok"], found["used"]) == (0, True, 2)
    assert {f["status"] for f in found["findings"]} == {"missing"}


def test_lint_refuses_what_is_impossible(model: Path) -> None:
    content = {**FILE, "param_encodings": {"w": [{**CHANNEL, "scale": 0.1}] * 4}}
    result = openqnn("encodings", model, "--lint", stored(content))
    assert result.code == 1
    assert "impossible  w" in result.out and "4 encodings for 3 output channels" in result.out


def test_lint_calls_tensors_what_the_model_calls_them(model: Path) -> None:
    """The graph has the image in another order, under a name that nobody knows."""
    proto = onnx.load(model)
    nodes = [n for n in proto.graph.node if n.output[0] in ("before", "biases", "y", "z")]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", 1, (1, 3, 4, 4)))
    onnx.save(proto, model)
    result = openqnn("encodings", model, "--lint", stored(), "--json")
    missing = [f["tensor"] for f in json.loads(result.out)["findings"] if f["status"] == "missing"]
    assert missing == ["z"]


# --- between versions


@pytest.mark.parametrize("version", ["0.4", "0.6.1", "1.0.0"])
def test_a_file_is_converted_without_a_model(version: str) -> None:
    result = openqnn("encodings", stored(), "--to", version, "-o", "out.json")
    assert (result.code, result.out, result.err) == (0, f"out.json: 4 tensors, version {version}\n", "")
    found = read_encodings("out.json").tensors
    assert found["r"].scales == (3 / 65535,)
    assert (found["w"].axis, found["w"].scales) == (OUTPUT_CHANNEL, (0.1, 0.2, 0.1 * 3))


def test_the_source_tells_the_axis(model: Path) -> None:
    refused = openqnn("encodings", stored(), "--to", "2.0.0", "-o", "out.json")
    assert_refused(refused, "out.json: tensor 'w': the axis of the channels is not known", "--source")
    assert not Path("out.json").exists()
    assert openqnn("encodings", stored(), "--to", "2.0.0", "-o", "out.json", "--source", model).code == 0
    assert read_encodings("out.json").tensors["w"].axis == 0


def test_the_source_tells_parameters(model: Path) -> None:
    entries = [{"name": n, "output_dtype": "uint8", "y_scale": 0.1} for n in ("x", "biases", "m")]
    file = stored({"version": "2.0.0", "encodings": entries})
    assert_refused(openqnn("encodings", file, "--to", "1.0.0", "-o", "o.json"), "nothing says which one")
    assert openqnn("encodings", file, "--to", "1.0.0", "-o", "o.json", "--source", model).code == 0
    kinds = {e.name: e.kind for e in read_encodings("o.json").tensors.values()}
    assert kinds == {"x": Kind.ACTIVATION, "biases": Kind.PARAM, "m": Kind.PARAM}


def test_floats_are_left_out_from_version_2_on() -> None:
    content = {**FILE, "param_encodings": {"w": [{"bitwidth": 16, "dtype": "float"}]}}
    result = openqnn("encodings", stored(content), "--to", "2.1.0", "-o", "out.json")
    assert (
        result.err == "note: 1 tensors in floating point are left out, which is how version 2.1.0 says it\n"
    )
    assert set(read_encodings("out.json").tensors) == {"x", "before", "r"}


def test_a_graph_is_written(fixed: Path) -> None:
    """Not what shares another's encoding: whoever reads the file gives it to it again."""
    assert openqnn("encodings", fixed, "--to", "1.0.0", "-o", "out.json").code == 0
    found = read_encodings("out.json").tensors
    assert set(found) == {"x", "w", "m", "other", "u"}
    assert (found["w"].scales, found["w"].kind, found["w"].signed) == ((0.5,) * 3, Kind.PARAM, True)
    assert found["other"].symmetric and found["other"].unsigned_offsets == (-128,)
    assert found["u"].is_float


def test_an_output_is_written_though_its_layout_changed() -> None:
    """A convolution gives NHWC, and the output of the model is that turned: the two share an encoding."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,2,4,4] x) => (float[1,3,4,4] y) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}>
        { y = Conv(x, w) }"""
    Path("c.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    np.save("data.npy", np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 2, 4, 4))
    assert openqnn("quantize", "c.onnx", "--data", "data.npy", "-o", "q.oqnn", "--no_report").code == 0
    done = openqnn("encodings", "q.oqnn", "--to", "0.6.1", "-o", "e.json", "--source", "c.onnx")
    assert done.code == 0 and set(read_encodings("e.json").tensors) == {"x", "w", "y"}
    again = openqnn("encodings", "c.onnx", "--lint", "e.json")
    assert again.code == 0 and "0 missing" in again.out
    argv = ("--float_fallback", "--quantization_overrides", "e.json", "-o", "again.oqnn")
    assert openqnn("quantize", "c.onnx", *argv).code == 0
    listed = [openqnn("encodings", name, "--json").out for name in ("q.oqnn", "again.oqnn")]
    first, second = ([(r["name"], r["scale"], r["offset"]) for r in json.loads(out)] for out in listed)
    assert first == second


def test_a_graph_is_written_for_its_source(fixed: Path, model: Path) -> None:
    """The matrix lies [in, out] there, and only names of the source model are written."""
    argv = ("encodings", fixed, "--to", "2.0.0", "-o", "out.json")
    assert_refused(openqnn(*argv), "tensor 'm': the axis of the channels is not known")
    assert openqnn(*argv, "--source", model).code == 0
    found = read_encodings("out.json").tensors
    assert "other" not in found
    assert (found["w"].axis, found["m"].axis) == (0, 1)


_STORED = {"w": (2, 2, 6), "o": (5, 2, 3), "l": (4,)}  # products with 6, 5 and 1 channels
_TURNED = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3,4] x) => (float[1,3,5] z, float[1,3] n) <int64[2] s = {-1, 6}> {
        v = Reshape(w, s)
        y = MatMul(x, v)
        p = Flatten(o)
        q = Transpose <perm = [1, 0]> (p)
        z = MatMul(y, q)
        n = MatMul(x, l)
    }"""


def test_the_source_tells_the_axis_of_reshaped_weights() -> None:
    """A weight that the model turns and reshapes before a product: the file speaks of the constant."""
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in _STORED.items()}
    made = parser.parse_model(_TURNED)
    made.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in weights.items())
    Path("t.onnx").write_bytes(made.SerializeToString())
    np.save("data.npy", np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4))
    assert openqnn("quantize", "t.onnx", "--data", "data.npy", "-o", "q.oqnn", "--no_report").code == 0
    argv = ("encodings", "q.oqnn", "--to", "2.0.0", "-o", "e.json", "--source", "t.onnx")
    assert openqnn(*argv).code == 0
    found = read_encodings("e.json").tensors
    assert {name: found[name].axis for name in weights} == {"w": 2, "o": 0, "l": None}


def test_nothing_but_encodings_is_replaced(model: Path) -> None:
    file = stored()
    assert_refused(openqnn("encodings", file, "--to", "0.4", "-o", file), "f.encodings is the source itself")
    other = stored({"name": "mine"}, "package.json")
    assert_refused(openqnn("encodings", file, "--to", "0.4", "-o", other), "is no encodings file")
    assert json.loads(other.read_text()) == {"name": "mine"}


# --- wrong usage


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--to", "9", "-o", "x"], "--to 9: no such version"),
        (["--to", "1.0.0"], "--to and -o belong together"),
        (["-o", "x.json"], "--to and -o belong together"),
        (["--to", "1.0.0", "-o", "x", "--lint", "f"], "--lint and --to cannot be given together"),
        (["--source", "m.onnx"], "--source: only --to needs it"),
        (["--lint", "g"], "is an encodings file"),
        (["--batch", "2"], "is an encodings file: shapes are for models"),
    ],
)
def test_wrong_usage(argv: list[str], words: str) -> None:
    assert_refused(openqnn("encodings", stored(), *argv), words, code=2)


def test_nothing_else_is_overwritten(model: Path) -> None:
    before = model.read_bytes()
    argv = ("encodings", stored(), "--to", "1.0.0", "-o")
    assert_refused(openqnn(*argv, model), "m.onnx exists and is no encodings file")
    assert_refused(openqnn(*argv, "."), ". is a directory")
    assert model.read_bytes() == before


def test_bad_files(model: Path) -> None:
    assert_refused(openqnn("encodings", "no.onnx"), "no.onnx: no such file")
    assert_refused(openqnn("encodings", model, "--lint", "no.json"), "no.json: cannot be read")
    assert_refused(openqnn("encodings", stored({})), "field 'activation_encodings': missing")
    assert_refused(openqnn("encodings", model, "--to", "1.0.0", "-o", "x"), "no tensor has an encoding")
