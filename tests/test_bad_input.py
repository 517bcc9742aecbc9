"""Bad input gives one clear message (what, where, why), the right exit code, and no half-written file."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import openqnn as api
from tests.cli.tool import Result, assert_refused, openqnn
from tests.models.fetch import model_path
from tests.onnx_models import add_weight, chain, model, relu, save, tensor, weight


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def convert(source: onnx.ModelProto | bytes | Path, *options: str) -> Result:
    """`openqnn convert` on a model, which must leave no file behind unless it succeeds."""
    path = Path("model.onnx")
    if isinstance(source, onnx.ModelProto):
        save(source, path)
    elif isinstance(source, bytes):
        path.write_bytes(source)
    else:
        path = source
    Path("result.oqnn").unlink(missing_ok=True)
    before = {p.name for p in Path().iterdir()}
    result = openqnn("convert", path, "-o", "result.oqnn", *options)
    made = {p.name for p in Path().iterdir()} - before
    assert made == ({"result.oqnn"} if result.code == 0 else set())
    return result


def assert_converts(source: onnx.ModelProto, *options: str) -> Result:
    result = convert(source, *options)
    assert result.code == 0, result.err
    return result


# --- files that are no ONNX models


def _zip() -> bytes:
    with zipfile.ZipFile("z.zip", "w") as z:
        z.writestr("a", "b")
    return Path("z.zip").read_bytes()


FOREIGN_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "the file is empty"),
    "text": (lambda: b"hello, I am a readme\n" * 30, "not a readable ONNX model"),
    "json": (lambda: b'{"model": 1}', "not a readable ONNX model"),
    "zeros": (lambda: bytes(1000), "not a readable ONNX model"),
    "random": (lambda: np.random.default_rng(0).bytes(5000), "not a readable ONNX model"),
    "png": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), "not a readable ONNX model"),
    "zip": (_zip, "it looks like a ZIP archive"),
    "gzip": (lambda: gzip.compress(b"x" * 99), "it looks like a gzip archive"),
    "library": (lambda: b"\x7fELF" + bytes(100), "qnn-net-run --model runs it"),
    "source": (lambda: b"/* COPYRIGHT */\n" + bytes(100), "qnn-model-lib-generator makes a library of it"),
    "weights": (lambda: bytes(257) + b"ustar\x0000" + bytes(300), "weights that belong to a model.cpp"),
    "tflite": (lambda: b"\x1c\0\0\0TFL3" + bytes(100), "not a readable TFLite model"),
    "lfs": (lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    "tensor": (lambda: weight("w", np.ones(99, np.float32)).SerializeToString(), "not a"),
    "no graph": (lambda: onnx.ModelProto(ir_version=8).SerializeToString(), "it holds no graph"),
    "empty graph": (
        lambda: onnx.ModelProto(graph=onnx.GraphProto()).SerializeToString(),
        "it holds no graph",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN_FILES)
def test_a_file_of_another_kind(kind: str) -> None:
    make, words = FOREIGN_FILES[kind]
    assert_refused(convert(make()), "model.onnx: ", words)


def test_a_file_that_is_not_there_or_is_a_folder() -> None:
    assert_refused(convert(Path("nowhere.onnx")), "nowhere.onnx: no such file")
    Path("folder.onnx").mkdir()
    assert_refused(convert(Path("folder.onnx")), "folder.onnx: cannot be read: ")
    assert_refused(convert(Path("n" * 300)), "n" * 300)


def test_the_message_in_full() -> None:
    assert convert(b"hello, world").err == (
        "error: model.onnx: not a readable ONNX model: the file is damaged: unknown field type 4 at byte 2"
        " [OQ110]\n"
        "  hint: the download or copy may be incomplete; check its size or export it again\n"
    )


def test_a_file_that_is_cut_off_anywhere() -> None:
    whole = model_path("mnist_conv").read_bytes()
    lengths = {*range(1, 64), *range(64, len(whole), 211), *range(len(whole) - 64, len(whole))}
    for length in sorted(lengths):
        assert_refused(convert(whole[:length]), "model.onnx: ")


# --- external data


def external(location: str = "weights.bin", **entry: object) -> onnx.ModelProto:
    proto = add_weight(np.ones((2, 3), np.float32))
    stored = proto.graph.initializer[0]
    Path("weights.bin").write_bytes(stored.raw_data)
    stored.ClearField("raw_data")
    stored.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entry}.items():
        stored.external_data.add(key=key, value=str(value))
    return proto


def test_external_data_is_read() -> None:
    assert_converts(external())
    assert_converts(external(offset=0, length=24), "--quiet")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"location": "gone.bin"}, "external data file 'gone.bin' is missing"),
        ({"location": "../weights.bin"}, "location '../weights.bin' leaves the model's folder"),
        ({"location": "/etc/passwd"}, "location '/etc/passwd' leaves the model's folder"),
        ({"location": ""}, "location '' leaves the model's folder"),
        ({"location": "l" * 5000}, "external data file"),
        ({"location": "nul\0nul"}, "external data location"),
        ({"offset": 8, "length": 24}, "bytes 8 to 32 of 'weights.bin', which has 24"),
        ({"offset": 25}, "'weights.bin', which has 24"),
        ({"offset": -1}, "bytes -1 to "),
        ({"length": 12}, "does not fit its data"),
        ({"offset": "many"}, "bad external data entry"),
        ({"offset": 10**30}, "which has 24"),
    ],
)
def test_external_data_that_does_not_fit(entry: dict[str, object], words: str) -> None:
    assert_refused(convert(external(**entry)), "tensor 'w'", words)


def test_external_data_of_a_model_in_memory() -> None:
    with pytest.raises(api.errors.ModelError, match=r"tensor 'w' is in the external file 'weights\.bin'"):
        api.convert(external())


# --- graphs that contradict themselves


def _cycle() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="n1"),
        helper.make_node("Relu", ["a"], ["b"], name="n2"),
    ]
    return model([*nodes, helper.make_node("Relu", ["b"], ["y"])])


def _unknown_op() -> onnx.ModelProto:
    nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="f1"), helper.make_node("Relu", ["a"], ["y"])]
    return model([*nodes, helper.make_node("Frobnicate", ["x"], ["b"], name="f2")])


def _unknown_domain() -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"], name="mine", domain="my.ops")], **{"my.ops": 1})


def _shapes(op: str, *shapes: tuple[int, ...]) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = [tensor(n, s) for n, s in zip(names, shapes, strict=True)]
    return model([helper.make_node(op, names, ["y"], name="bad")], inputs, [tensor("y", None)])


def _twice() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="n1"),
        helper.make_node("Abs", ["x"], ["y"], name="n2"),
    ]
    return model(nodes)


def _dangling() -> onnx.ModelProto:
    return model([helper.make_node("Add", ["x", "ghost"], ["y"], name="n1")])


def _two_inputs_of_a_name() -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", (2, 3)), tensor("x", (2, 4))])


def _two_weights_of_a_name() -> onnx.ModelProto:
    proto = add_weight(np.ones(3, np.float32))
    proto.graph.initializer.append(weight("w", np.zeros(3, np.float32)))
    return proto


def _no_outputs() -> onnx.ModelProto:
    proto = relu()
    proto.graph.ClearField("output")
    return proto


def _no_opset() -> onnx.ModelProto:
    proto = relu()
    proto.ClearField("opset_import")
    return proto


def _unknown_output() -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["z"])])


def _weight_type(code: int) -> onnx.ModelProto:
    proto = add_weight(np.ones(3, np.float32))
    proto.graph.initializer[0].data_type = code
    return proto


def _input_type(code: int) -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", (2, 3), code)])


def _weight_dims(*dims: int) -> onnx.ModelProto:
    proto = add_weight(np.ones(3, np.float32))
    proto.graph.initializer[0].dims[:] = dims
    return proto


def _sequence_input() -> onnx.ModelProto:
    info = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
    return model([helper.make_node("SequenceLength", ["x"], ["y"])], [info])


CONTRADICTIONS: dict[str, tuple[Callable[[], onnx.ModelProto], tuple[str, ...]]] = {
    "cycle": (_cycle, ("cycle through node 'n1' (Add)",)),
    "unknown op": (_unknown_op, ("2 node(s) cannot be converted", "Frobnicate x2", "'f1', 'f2'")),
    "unknown domain": (_unknown_domain, ("my.ops.Relu x1", "domain 'my.ops'", "'mine'")),
    "broadcast": (lambda: _shapes("Add", (2, 3), (4, 5)), ("Add x1", "'bad'", "[2, 3]", "[4, 5]")),
    "matmul": (lambda: _shapes("MatMul", (2, 3), (4, 5)), ("MatMul x1", "'bad'")),
    "concat rank": (lambda: _shapes("Gemm", (2, 3), (4, 5)), ("Gemm x1", "'bad'")),
    "too many inputs": (lambda: _shapes("Relu", (2, 3), (2, 3)), ("Relu x1", "2 inputs, at most 1")),
    "too few inputs": (lambda: _shapes("Add", (2, 3)), ("Add x1", "'in1' is missing")),
    "produced twice": (_twice, ("'y' is produced twice", "'n2'")),
    "dangling": (_dangling, ("'n1' (Add) reads 'ghost'",)),
    "two inputs": (_two_inputs_of_a_name, ("two inputs are named 'x'",)),
    "two weights": (_two_weights_of_a_name, ("two weights are named 'w'",)),
    "no outputs": (_no_outputs, ("the model has no outputs",)),
    "no opset": (_no_opset, ("the model names no opset",)),
    "unknown output": (_unknown_output, ("output 'y' is not produced by any node",)),
    "new opset": (lambda: model(relu().graph.node, opset=999), ("the model uses opset 999", "knows up to")),
    "negative opset": (lambda: model(relu().graph.node, opset=-3), ("opset -3",)),
    "weight of no type": (lambda: _weight_type(0), ("tensor 'w'", "data type 0")),
    "weight of unknown type": (lambda: _weight_type(77), ("tensor 'w'", "data type 77")),
    "weight of other type": (
        lambda: _weight_type(TensorProto.DOUBLE),
        ("tensor 'w' [3] does not fit its data",),
    ),
    "weight of other shape": (lambda: _weight_dims(4), ("tensor 'w' [4] does not fit its data",)),
    "weight of negative shape": (lambda: _weight_dims(-3), ("tensor 'w' [-3] has a negative dimension",)),
    "weight of huge shape": (lambda: _weight_dims(1 << 40, 1 << 40), ("tensor 'w'",)),
    "string input": (lambda: _input_type(TensorProto.STRING), ("input 'x' has element type STRING",)),
    "complex input": (lambda: _input_type(TensorProto.COMPLEX64), ("input 'x' has element type COMPLEX64",)),
    "input of no type": (lambda: _input_type(0), ("input 'x' has element type UNDEFINED",)),
    "input of unknown type": (lambda: _input_type(77), ("input 'x' has element type 77",)),
    "sequence": (_sequence_input, ("input 'x' is a sequence",)),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_graph_that_contradicts_itself(what: str) -> None:
    make, words = CONTRADICTIONS[what]
    assert_refused(convert(make()), *words)


def test_all_problems_are_told_at_once() -> None:
    assert convert(_unknown_op()).err == (
        "error: 2 node(s) cannot be converted:\n"
        "  Frobnicate x2: Frobnicate of opset 17 has no QNN equivalent (at 'f1', 'f2') [OQ113]\n"
        "  hint: `openqnn check` shows the whole model as a table\n"
    )


# --- weights


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_weights_are_named_in_a_warning(bad: float) -> None:
    array = np.ones((2, 3), np.float32)
    array[1, 2] = bad
    result = assert_converts(add_weight(array, "enc/w 1"))
    assert result.err == "warning: weights with NaN or infinite values: 'enc/w 1'\n"


def test_infinities_that_cancel_and_large_sums_are_told_apart() -> None:
    both = assert_converts(add_weight(np.asarray([np.inf, -np.inf, 0], np.float32)))
    assert "'w'" in both.err
    assert not assert_converts(add_weight(np.full((2, 3), 3e38, np.float32))).err


def test_many_bad_weights_are_counted() -> None:
    proto = add_weight(np.ones(3, np.float32))
    proto.graph.initializer.extend(weight(f"w{i}", np.full(3, np.nan, np.float32)) for i in range(9))
    err = assert_converts(proto).err
    assert "'w0', 'w1', 'w2', 'w3', 'w4' and 4 more" in err


# --- shapes


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0,)])
def test_dimensions_of_size_zero(shape: tuple[int, ...]) -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", shape)], [tensor("y", shape)])
    assert_refused(convert(proto), "input 'x'", str(list(shape)), "size 0")


def test_a_dimension_of_size_zero_given_by_the_user() -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ("n", 3))])
    assert_refused(convert(proto, "--input_shape", "x=0,3"), "input 'x'", "size 0")
    assert_refused(convert(proto, "--dim", "n=0"), "input 'x'", "size 0")


def test_a_result_of_size_zero() -> None:
    bounds = [weight("s", np.asarray([1])), weight("e", np.asarray([1])), weight("a", np.asarray([1]))]
    nodes = [helper.make_node("Slice", ["x", "s", "e", "a"], ["y"], name="cut")]
    assert_refused(convert(model(nodes, weights=bounds)), "'y' [2, 0]", "size 0")


@pytest.mark.parametrize("shape", [(1 << 40, 3), (1 << 62, 1 << 62)])
def test_dimensions_beyond_all_bounds(shape: tuple[int, ...]) -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", shape)])
    assert_refused(convert(proto), "input 'x'", str(shape[0]))


def test_a_constant_beyond_all_bounds() -> None:
    """A few bytes of shape can ask for all the memory there is."""
    shape = weight("shape", np.asarray([1 << 20, 1 << 20, 3]))
    for nodes in (
        [helper.make_node("ConstantOfShape", ["shape"], ["z"]), helper.make_node("Add", ["x", "z"], ["y"])],
        [helper.make_node("Expand", ["x", "shape"], ["y"])],
        [helper.make_node("Tile", ["x", "shape"], ["y"])],
    ):
        result = convert(model(nodes, [tensor("x", (1, 2, 3))], [tensor("y", None)], [shape]))
        assert_refused(result, nodes[-1].op_type, "1048576")


def test_negative_and_open_dimensions() -> None:
    for dim in (-1, None, "batch"):
        proto = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", (dim, 3))])
        assert_refused(convert(proto), "input 'x' has dynamic dimensions", "--input_shape x=1,3")
        assert_converts(proto, "--batch", "2")


def test_open_dimensions_of_all_inputs_are_told_at_once() -> None:
    inputs = [tensor("x", ("n", 3)), tensor("z", (1, 3)), tensor("w", ("n", 3))]
    nodes = [helper.make_node("Add", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "z"], ["y"])]
    words = "input 'x' has dynamic dimensions: [n,3]; input 'w' has dynamic dimensions: [n,3]"
    flags = "--input_shape x=1,3 --input_shape w=1,3 (Python: input_shapes={'x': (1, 3,), 'w': (1, 3,)})"
    assert_refused(convert(model(nodes, inputs)), words, flags)


def test_open_sizes_of_an_image_are_left_to_the_user() -> None:
    """A picture of 1x1 would convert, and be of no use to anyone."""
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ("n", 3, "height", None))])
    assert_refused(convert(proto), "dynamic dimensions", "--input_shape x=1,3,HEIGHT,")


def test_an_input_without_a_shape() -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", None)])
    assert_refused(convert(proto), "input 'x' has no shape", "--input_shape")
    assert_converts(proto, "--input_shape", "x=2,3")


def test_shapes_and_symbols_that_the_model_does_not_have() -> None:
    assert_refused(convert(relu(), "--input_shape", "z=1"), "the model has no input 'z'", "'x'", code=2)
    assert_refused(convert(relu(), "--dim", "n=1"), "the model has no dimension 'n'", code=2)


def test_sizes_that_contradict_each_other() -> None:
    shape = ("--input_shape", "x=4,3")
    assert_refused(convert(relu(), *shape, "--batch", "2"), "batch 2 has no effect", "leave it out", code=2)
    node = helper.make_node("Add", ["x", "z"], ["y"])
    scalar = model([node], [tensor("x", (4, 3)), tensor("z", ())])
    assert_refused(convert(scalar, *shape, "--batch", "2"), "batch 2 has no effect", code=2)
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ("n", 3))])
    assert_refused(convert(proto, *shape, "--dim", "n=2"), "shape [4, 3] has 4 where 'n' is said to be 2")
    assert_converts(proto, *shape, "--dim", "n=4", "--batch", "4")
    assert_refused(convert(relu(), "--input_shape", "x=1,2,3"), "input 'x'", "rank 2")


# --- odd but right


STRANGE = [
    "a b",
    "/encoder/layer.0/out",
    "größe/形状/🙂",
    'quote"d',
    "it's",
    "new\nline",
    "tab\t",
    "%x",
    "a=b",
    "_",
    "0",
]


@pytest.mark.parametrize("name", STRANGE)
def test_any_name_is_kept(name: str) -> None:
    inputs, outputs = [tensor(f"{name}", (2, 3))], [tensor(f"{name}.y", (2, 3))]
    nodes = [
        helper.make_node("Add", [name, f"{name}.w"], [f"{name}.v"], name=f"{name}.n"),
        helper.make_node("Relu", [f"{name}.v"], [f"{name}.y"], name=name),
    ]
    data = np.arange(12, dtype=np.float32).reshape(2, 2, 3)[1]
    assert_converts(model(nodes, inputs, outputs, [weight(f"{name}.w", data)]))
    result = openqnn("run", "result.oqnn", "--random", "--output", f"{name}.v", "--output", f"{name}.y")
    assert result.code == 0, result.err
    graph = api.load("result.oqnn")
    assert [v.name for v in (*graph.inputs, *graph.outputs)] == [name, f"{name}.y"]
    x = np.full((2, 3), -7, np.float32)
    with api.Session(graph) as session:
        assert np.array_equal(session.run({name: x})[f"{name}.y"], np.maximum(x + data, 0))


def test_deep_graphs() -> None:
    proto = chain(3000)
    assert_converts(proto)
    graph = api.load("result.oqnn")
    assert len(graph.nodes) == 3000
    x = np.asarray([[-5, 0, 1], [2, 3, 4]], np.float32)
    with api.Session(graph) as session:
        assert np.array_equal(session.run({"x": x})["y"], np.maximum(x, 0) + 1500)


def test_an_unsorted_graph() -> None:
    proto = chain(50)
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    assert_converts(proto)


def test_an_output_that_is_an_input() -> None:
    graph = api.convert(model([], outputs=[tensor("x", (2, 3))]))
    x = np.ones((2, 3), np.float32)
    with api.Session(graph) as session:
        assert [np.array_equal(v, x) for v in session.run({"x": x}).values()] == [True]


def test_the_same_output_twice_and_an_output_that_is_a_weight() -> None:
    proto = add_weight(np.ones(3, np.float32))
    proto.graph.output.append(tensor("w", (3,)))
    graph = api.convert(proto)
    with api.Session(graph) as session:
        assert np.array_equal(session.run({"x": np.ones((2, 3), np.float32)})["w"], [1, 1, 1])
    proto.graph.output.append(proto.graph.output[0])
    assert_refused(convert(proto), "two outputs are named 'y'")


def test_a_graph_without_inputs() -> None:
    node = helper.make_node("Relu", ["w"], ["y"])
    proto = model([node], [tensor("x", (1,))], [tensor("y", (3,))], [weight("w", np.float32([-1, 0, 1]))])
    proto.graph.ClearField("input")
    with api.Session(api.convert(proto)) as session:
        assert np.array_equal(session.run({})["y"], [0, 0, 1])
