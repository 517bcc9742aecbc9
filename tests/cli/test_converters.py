"""qnn-onnx-converter: the model, the steps of the conversion and the files; and qnn-model-lib-generator."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import openqnn
from openqnn.cli.command import recorded, tool_parser
from openqnn.cli.registry import tool_named
from openqnn.options.converter import ConverterIo, ConverterOutput, ConverterSource, ConverterSteps
from openqnn.options.field import read_options
from tests.cli.converting import Converter, channel_last, image_model, random, reference
from tests.cli.tool import assert_refused, tool
from tests.cli.tool import openqnn as openqnn_tool
from tests.models.fetch import model_path
from tests.models.reference import reference_outputs
from tests.models.samples import sample_inputs
from tests.onnx_models import chain, model, tensor, weight

NAME = "qnn-onnx-converter"


@pytest.fixture
def convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Converter:
    return Converter(tmp_path, monkeypatch)


def parsed(*argv: str):
    return tool_parser(tool_named(NAME)).parse_args(["-i", "m.onnx", *argv])


# -- argv to dataclasses -------------------------------------------------------------------------------------


def test_defaults() -> None:
    arguments = parsed()
    assert read_options(arguments, ConverterSource) == ConverterSource("m.onnx")
    for group in (ConverterIo, ConverterSteps, ConverterOutput):
        assert read_options(arguments, group) == group()


def test_the_words_of_options() -> None:
    argv = ["-d", "x", "1,3", "--input_dim", "y", "4", "-s", "n", "8", "-b", "2", "-n", "--out_name", "a"]
    source = read_options(parsed(*argv, "--out_node", "b"), ConverterSource)
    assert source == ConverterSource(
        "m.onnx", ("a", "b"), (("x", (1, 3)), ("y", (4,))), 2, (("n", 8),), no_simplification=True
    )
    argv = [
        "--preserve_io",
        "layout",
        "a",
        "b",
        "--preserve_io",
        "datatype",
        "-e",
        "x",
        "RGBA",
        "-l",
        "x",
        "nhwc",
    ]
    io = read_options(parsed(*argv), ConverterIo)
    assert io.preserve_io == (("layout", ("a", "b")), ("datatype", ()))
    assert (io.input_encoding, io.input_layout) == ((("x", "rgba", "bgr"),), (("x", "NHWC"),))
    for argv, level in (([], None), (["--dry_run"], "info"), (["--dry_run", "debug"], "debug")):
        assert read_options(parsed(*argv), ConverterSteps).dry_run == level
    for argv, debug in (([], None), (["--debug"], 1), (["--debug", "3"], 3)):
        assert read_options(parsed(*argv), ConverterSteps).debug == debug


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "the following arguments are required: --input_network"),
        (["-i", "m", "-d", "x", "1,a"], "'1,a': expected dimensions"),
        (["-i", "m", "-d", "x", "0"], "dimensions are at least 1"),
        (["-i", "m", "-s", "n", "-4"], "expected"),
        (["-i", "m", "--float_bw", "8"], "invalid choice: 8"),
        (["-i", "m", "--dry_run", "loud"], "invalid choice: 'loud'"),
        (["-i", "m", "--keep_disc"], "unrecognized arguments: --keep_disc"),
    ],
)
def test_wrong_usage(argv: list[str], words: str) -> None:
    assert_refused(tool(NAME, *argv), words, code=2)


def test_the_recorded_line() -> None:
    line = recorded(tool_named(NAME), parsed("-d", "x", "1,3", "--preserve_io", "-n"))
    name, *entries = line.split("; ")
    assert name == NAME
    keys = [e.partition("=")[0] for e in entries]
    assert keys == sorted(keys) and len(keys) == 54
    for entry in ("input_dim=[['x', '1,3']]", "preserve_io=[[]]", "no_simplification=True", "batch=None"):
        assert entry in entries
    assert {"out_names=[]", "float_bw=32", "input_network=m.onnx"} <= set(entries)


# -- the model -----------------------------------------------------------------------------------------------


def test_dimensions(convert: Converter) -> None:
    source = image_model(dynamic=True)
    assert convert(source, "-d", "x", "2,3,8,6").shapes()[0] == (2, 8, 6, 3)
    assert convert(source, "-b", "4", "-s", "side", "5").shapes()[0] == (4, 5, 6, 3)
    path = convert.save(source)
    for name in (NAME, "qairt-converter"):
        assert_refused(tool(name, "-i", path), "dynamic dimensions", "hint: say it: -d x 1,3,SIDE,6\n")
    assert_refused(tool(NAME, "-i", path, "-d", "z", "1"), "no input 'z'", code=2)
    assert_refused(tool(NAME, "-i", path, "-s", "z", "1"), "no dimension 'z'", code=2)


def test_the_graph_ends_at_named_tensors(convert: Converter) -> None:
    source = image_model()
    made = convert(source, "--out_node", "c")
    assert (made.ops(), [v.name for v in made.graph.outputs]) == (["Conv2d"], ["c"])
    made = convert(source, "--out_node", "c", "--out_name", "y")
    assert [v.name for v in made.graph.outputs] == ["c", "y"]
    path = convert.save(chain(4))
    assert_refused(
        tool(NAME, "-i", path, "--out_node", "v22"), "no tensor 'v22'", "did you mean 'v2'", code=2
    )
    assert_refused(tool(NAME, "-i", path, "--out_node", "n1"), "'n1' is a node", "result is 'v2'", code=2)


def test_a_cut_leaves_out_what_is_not_supported(convert: Converter) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="act"),
        helper.make_node("Unknown", ["r", "z"], ["y"], name="odd", domain="elsewhere"),
    ]
    source = model(nodes, [tensor("x", (2, 3)), tensor("z", (2, 3))], elsewhere=1)
    path = convert.save(source)
    assert_refused(tool(NAME, "-i", path, "-o", convert.folder / "m.cpp"), "Unknown")
    made = convert(source, "--out_node", "r")
    assert [v.name for v in made.graph.inputs] == ["x"]


def test_dry_runs_write_nothing(convert: Converter) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="act"),
        helper.make_node("Unknown", ["r"], ["y"], name="odd", domain="elsewhere"),
    ]
    path = convert.save(model(nodes, elsewhere=1))
    result = tool(NAME, "-i", path, "--dry_run")
    assert result.code == 1 and "not supported" in result.out and "1 nodes supported, 1 not" in result.out
    result = tool(NAME, "-i", path, "--dry_run", "debug")
    assert result.code == 1 and "'odd': " in result.out and "not supported" not in result.out
    assert tool(NAME, "-i", path, "--dry_run", "--out_node", "r").code == 0
    lonely = model(nodes[:1], [tensor("x", (2, 3)), tensor("z", (2, 3))], [tensor("r", (2, 3))])
    result = tool(NAME, "-i", convert.save(lonely), "--dry_run", "info")
    assert result.code == 0 and "inputs that nothing reads: z" in result.out
    assert [p.name for p in convert.folder.iterdir()] == ["m.onnx"]


# -- the conversion ------------------------------------------------------------------------------------------


def test_batch_norm_stays_where_it_is(convert: Converter) -> None:
    source, x = image_model(), random(1, 3, 6, 6)
    want = channel_last(reference(source, x)[0])
    assert convert(source).ops() == ["Conv2d", "Relu"]
    made = convert(source, "--disable_batchnorm_folding")
    assert "Batchnorm" in made.ops()
    np.testing.assert_allclose(made.run(channel_last(x))[0], want, atol=1e-4)


def test_disconnected_nodes_stay(convert: Converter) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="act"),
        helper.make_node("Exp", ["x"], ["lost"], name="lost"),
    ]
    assert convert(model(nodes)).ops() == ["Relu"]
    assert sorted(convert(model(nodes), "--keep_disconnected_nodes").ops()) == ["ElementWiseExp", "Relu"]


def test_no_simplification(convert: Converter) -> None:
    one = weight("one", np.ones(3, np.float32))
    nodes = [
        helper.make_node("Mul", ["x", "one"], ["m"], name="nothing"),
        helper.make_node("Relu", ["m"], ["y"], name="act"),
    ]
    assert convert(model(nodes, weights=[one])).ops() == ["Relu"]
    made = convert(model(nodes, weights=[one]), "-n")
    assert made.ops() == ["ElementWiseMultiply", "Relu"]


@pytest.mark.parametrize("name", ["mnist_conv", "ppocr_cls"])
def test_no_simplification_keeps_the_numbers(convert: Converter, name: str) -> None:
    (key, array), *_ = sample_inputs(name).items()
    made = convert(model_path(name), "-n", "--preserve_io", "-d", key, ",".join(map(str, array.shape)))
    for got, want in zip(made.run(array), reference_outputs(name).values(), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4 * max(1, np.abs(want).max()))


def test_debug_explains(convert: Converter) -> None:
    assert not convert(image_model()).result.err
    assert "fold_affine: applied" in convert(image_model(), "--debug").result.err


@pytest.mark.parametrize(
    ("flags", "weights", "bias"),
    [
        (["--float_bw", "16"], "float16", "float16"),
        (["--float_bw", "16", "--float_bias_bw", "32"], "float16", "float32"),
        (["--float_bias_bw", "16"], "float32", "float16"),
    ],
)
def test_the_width_of_floats(convert: Converter, flags: list[str], weights: str, bias: str) -> None:
    made = convert(image_model(), *flags)
    conv = next(n for n in made.graph.nodes if n.op == "Conv2d")
    assert [conv.x(i).dtype.label for i in (1, 2)] == [weights, bias]
    assert [str(conv.x(i).data.dtype) for i in (1, 2)] == [weights, bias]
    assert made.types() == [weights, weights]


def test_half_floats_compute_the_same(convert: Converter) -> None:
    source, x = image_model(), random(1, 3, 6, 6)
    want = channel_last(reference(source, x)[0])
    got = convert(source, "--float_bw", "16").run(channel_last(x).astype(np.float16))[0]
    np.testing.assert_allclose(got, want, atol=2e-2)
    made = convert(source, "--float_bw", "16", "--preserve_io", "datatype")
    assert made.types() == ["float32", "float32"]
    np.testing.assert_allclose(made.run(channel_last(x))[0], want, atol=2e-2)


def test_numbers_that_half_floats_cannot_hold(convert: Converter) -> None:
    node = helper.make_node("Mul", ["x", "w"], ["y"], name="scale")
    made = convert(model([node], weights=[weight("w", np.full(3, 1e6, np.float32))]), "--float_bw", "16")
    assert "beyond the range of float16" in made.result.err
    assert made.graph.nodes[0].x(1).data.max() == np.finfo(np.float16).max


# -- the files -----------------------------------------------------------------------------------------------


def test_the_three_files(convert: Converter) -> None:
    made = convert(image_model())
    assert sorted(p.name for p in made.cpp.parent.iterdir()) == ["model.bin", "model.cpp", "model_net.json"]
    about = json.loads((made.cpp.parent / "model_net.json").read_text())
    assert about["model.cpp"] == str(made.cpp) and about["converter_command"].startswith(f"{NAME}; act_bw=")
    assert about["graph"]["tensors"]["x"]["dims"] == [1, 6, 6, 3]
    with tarfile.open(made.cpp.with_suffix(".bin")) as archive:
        assert all(name.endswith(".raw") for name in archive.getnames())
    assert "QnnModel_composeGraphs" in made.source and "input x: float32 1x6x6x3" in made.result.out
    assert about["converter_command"] in made.source


def test_the_default_place_is_beside_the_model(convert: Converter) -> None:
    assert tool(NAME, "-i", convert.save(image_model(), "net.onnx")).code == 0
    names = ["net.bin", "net.cpp", "net.onnx", "net_net.json"]
    assert sorted(p.name for p in convert.folder.iterdir()) == names


def test_flags_that_shape_the_source(convert: Converter, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("Whose it is,\nand when.")
    made = convert(
        image_model(), "--copyright_file", tmp_path / "c.txt", "--overwrite_model_prefix",
        "--exclude_named_tensors", "-p", "my.package",
    )  # fmt: skip
    assert "Whose it is," in made.source.split("#include")[0]
    assert "model_composeGraphs" in made.source and "QnnModel_composeGraphs" not in made.source
    assert '"my.package"' in made.source and '"qti.aisw"' not in made.source
    names = set(re.findall(r'addTensor\("(\w+)"', made.source))
    assert names and all(n == "x" or n.startswith("tensor_") for n in names)
    result = tool(NAME, "-i", convert.save(image_model()), "--copyright_file", tmp_path / "none")
    assert_refused(result, "none: cannot be read")


def test_all_files_or_none(convert: Converter) -> None:
    out = convert.folder / "out"
    (out / "model_net.json").mkdir(parents=True)
    result = tool(NAME, "-i", convert.save(image_model()), "-o", out / "model.cpp")
    assert_refused(result, "model_net.json: cannot be written: it is a directory")
    assert [p.name for p in out.iterdir()] == ["model_net.json"]
    assert_refused(tool(NAME, "-i", convert.save(image_model()), "-o", out), "is a directory")
    source = convert.save(image_model(), "same.cpp")
    assert_refused(tool(NAME, "-i", source, "-o", source), "is the source model itself")


@pytest.mark.parametrize(("name", "file"), [(NAME, "m.cpp"), ("qairt-converter", "m.dlc")])
def test_what_no_converter_wrote_stays(convert: Converter, name: str, file: str) -> None:
    target = convert.folder / file
    target.write_text("my own\n")
    argv = (name, "-i", convert.save(image_model()), "-o", target)
    assert_refused(tool(*argv), f"{file} exists, and no converter wrote it")
    assert target.read_text() == "my own\n"
    target.unlink()
    assert tool(*argv).code == 0 and tool(*argv).code == 0  # a result of its own is replaced


def test_json_of_the_users_beside_the_result_stays(convert: Converter) -> None:
    beside = convert.folder / "m_encodings.json"
    beside.write_text('{"mine": 1}')
    argv = (NAME, "-i", convert.save(image_model()), "-o", convert.folder / "m.cpp")
    result = tool(*argv, "--dump_encoding_json", "--float_fallback")
    assert_refused(result, "exists and is no encodings file")
    assert beside.read_text() == '{"mine": 1}' and not (convert.folder / "m.cpp").exists()


def test_convert_picks_the_writer_by_suffix(convert: Converter) -> None:
    path = convert.save(image_model())
    for suffix, beside in ((".cpp", ["m.bin", "m.cpp", "m_net.json"]), (".oqnn", ["m.oqnn"])):
        folder = convert.folder / suffix
        assert openqnn_tool("convert", path, "-o", folder / f"m{suffix}").code == 0
        assert sorted(p.name for p in folder.iterdir()) == beside


# -- qnn-model-lib-generator ---------------------------------------------------------------------------------


def test_a_library_from_the_model(convert: Converter) -> None:
    pytest.importorskip("onnxruntime_qnn")
    made = convert(image_model())
    argv = ["-c", made.cpp, "-b", made.cpp.with_suffix(".bin"), "-t", "x86_64-linux-clang", "-l", "net"]
    result = tool("qnn-model-lib-generator", *argv, "-o", convert.folder / "lib")
    assert result.code == 0, result.err
    library = convert.folder / "lib" / "x86_64-linux-clang" / "libnet.so"
    graph = openqnn.load(library, trust=True)
    x = channel_last(random(1, 3, 6, 6))
    with openqnn.Session(graph) as session:
        np.testing.assert_array_equal(session.run({"x": x})["y"], made.run(x)[0])


def test_libraries_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANDROID_NDK_ROOT", raising=False)
    monkeypatch.delenv("ANDROID_NDK_HOME", raising=False)
    generator, cpp = "qnn-model-lib-generator", tmp_path / "m.cpp"
    assert_refused(tool(generator, "-c", cpp), "no such file")
    cpp.write_text("int x;")
    only = tool(generator, "-c", cpp, "-t", "aarch64-android", "-o", tmp_path)
    assert_refused(only, "the Android NDK is needed", "-t x86_64-linux-clang")
    both = tool(generator, "-c", cpp, "-o", tmp_path)
    assert both.code == 0 and "not built: aarch64-android" in both.err
    assert_refused(tool(generator, "-c", cpp, "-t", "x86_64-linux-clang amiga"), "unknown target", code=2)
    assert_refused(tool(generator, "-c", cpp, "-b", tmp_path / "m.bin"), "m.bin: no such file")
    assert_refused(tool(generator), "required: -c", code=2)
