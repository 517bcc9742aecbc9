"""qnn-onnx-converter: layouts, data types and colours of inputs and outputs, by numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from onnx import TensorProto, helper

from tests.cli.converting import (
    Converter,
    channel_last,
    image_model,
    integer_model,
    random,
    reference,
)
from tests.cli.tool import Result, assert_refused, tool
from tests.models.fetch import model_path, static_shapes
from tests.models.reference import reference_outputs
from tests.models.samples import sample_inputs
from tests.onnx_models import model, tensor

FIRST, LAST = (1, 3, 6, 6), (1, 6, 6, 3)


@pytest.fixture
def convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Converter:
    return Converter(tmp_path, monkeypatch)


def refuse(convert: Converter, *flags: object, source: object = None) -> Result:
    path = convert.save(source or image_model())
    result = tool("qnn-onnx-converter", "-i", path, "-o", convert.folder / "m.cpp", *flags)
    assert sorted(p.suffix for p in convert.folder.iterdir()) <= [".onnx", ".yaml"]
    return result


def written(convert: Converter, content: object) -> Path:
    path = convert.folder / "io.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


# -- layouts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_images_become_channel_last(convert: Converter, rank: int) -> None:
    source, x = image_model(rank), random(1, 3, *[6] * (rank - 2))
    made = convert(source)
    assert made.shapes() == [channel_last(x).shape, (1, *[6] * (rank - 2), 4)]
    assert "Transpose" not in made.ops()
    np.testing.assert_allclose(made.run(channel_last(x))[0], channel_last(reference(source, x)[0]), atol=1e-4)


@pytest.mark.parametrize("flags", [["--preserve_io"], ["--preserve_io", "layout"]])
def test_layouts_are_preserved(convert: Converter, flags: list[str]) -> None:
    source, x = image_model(), random(*FIRST)
    made = convert(source, *flags)
    assert made.shapes() == [FIRST, (1, 4, 6, 6)]
    np.testing.assert_allclose(made.run(x)[0], reference(source, x)[0], atol=1e-4)


def test_layouts_of_some_are_preserved(convert: Converter) -> None:
    assert convert(image_model(), "--preserve_io", "layout", "y").shapes() == [LAST, (1, 4, 6, 6)]
    assert convert(image_model(), "--preserve_io", "datatype", "y").shapes() == [LAST, (1, 6, 6, 4)]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--preserve_io", "--preserve_io", "layout", "x"], "both for all inputs and outputs and for some"),
        (["--preserve_io", "colour"], "'colour' is none of layout, datatype"),
        (["--preserve_io", "layout", "z"], "no input or output 'z'"),
        (["--input_layout", "y", "NCHW"], "the model has no input 'y'"),
        (["--input_dtype", "y", "float16"], "the model has no input 'y'"),
        (["--input_layout", "z", "NHWC"], "no input or output 'z'"),
        (["--input_layout", "x", "NFC"], "layout NFC has 3 axes"),
        (["-l", "x", "HWC"], "'HWC' is none of"),
    ],
)
def test_layouts_that_cannot_be(convert: Converter, flags: list[str], words: str) -> None:
    assert_refused(refuse(convert, *flags), words, code=2)


def test_the_input_says_what_its_axes_mean(convert: Converter) -> None:
    assert convert(image_model(), "--input_layout", "x", "NHWC").shapes()[0] == FIRST
    assert convert(image_model(), "-l", "x", "NONTRIVIAL").shapes()[0] == FIRST
    assert convert(image_model(), "-l", "x", "NCHW").shapes()[0] == LAST


def test_custom_layouts(convert: Converter) -> None:
    source, x = image_model(), random(*FIRST)
    io = written(convert, [
        {"IOName": "x", "Layout": {"Model": "NCHW", "Custom": "NCHW"}},
        {"IOName": "y", "Layout": {"Custom": "NHWC"}, "Datatype": "float16"},
    ])  # fmt: skip
    made = convert(source, "--custom_io", io, "--preserve_io", "datatype")
    assert made.shapes() == [FIRST, (1, 6, 6, 4)]
    assert made.types() == ["float32", "float16"]
    np.testing.assert_allclose(made.run(x)[0], channel_last(reference(source, x)[0]), atol=2e-3)


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        ([{"IOName": "x", "Layot": {}}], "did you mean 'Layout'?", 1),
        ([{"IOName": "x"}, {"IOName": "x"}], "'x' has two entries", 1),
        ([{"Layout": {"Custom": "NHWC"}}], "entry 1: IOName is missing", 1),
        ([{"IOName": "x", "Layout": {"Custom": "HWC"}}], "layout 'HWC' is none of", 1),
        ([{"IOName": "x", "Datatype": "int32"}], "data type 'int32' is none of", 1),
        ({"IOName": "x"}, "expected a list of entries", 1),
        ("a: [", "is no YAML", 1),
        ([{"IOName": "z", "Layout": {"Custom": "NHWC"}}], "no input or output 'z'", 2),
        ([{"IOName": "z"}], "no input or output 'z'", 2),
        ([{"IOName": ["x"]}], "entry 1: IOName is one name, not ['x']", 1),
        ([{"IOName": "x", "Layout": {"Model": "NCHW", "Custom": "NTF"}}], "layout NTF has 3 axes", 2),
        ([{"IOName": "x", "Datatype": "uint8"}], "give its scale and offset, QuantParam", 2),
        (
            [{"IOName": "x", "QuantParam": {"Scale": 0.1, "Offset": 2}}],
            "'x' has a scale, and stays a float",
            2,
        ),
        ([{"IOName": "x", "QuantParam": {"Type": "QNN_DEFINED"}}], "Type 'QNN_DEFINED' is none of", 1),
        ([{"IOName": "x", "QuantParam": {"Type": "QNN_DEFINITION_DEFINED"}}], "Scale None: expected", 1),
        (
            [{"IOName": "x", "QuantParam": {"Type": "QNN_DEFINITION_UNDEFINED", "Scale": 0.1}}],
            "Type is QNN_DEFINITION_UNDEFINED, and a Scale",
            1,
        ),
    ],
)
def test_custom_files_that_cannot_be(convert: Converter, content: object, words: str, code: int) -> None:
    assert_refused(refuse(convert, "--custom_io", written(convert, content)), words, code=code)


def test_custom_files_and_flags_that_contradict(convert: Converter) -> None:
    io = written(convert, [{"IOName": "x", "Layout": {"Model": "NCHW"}, "Datatype": "float16"}])
    assert_refused(refuse(convert, "--custom_io", io, "-l", "x", "NCHW"), "both given for 'x'", code=2)
    for kind in ("float16", "uint8"):
        params = {"Scale": 0.1, "Offset": 2} if kind == "uint8" else {}
        io = written(convert, [{"IOName": "x", "Datatype": kind, "QuantParam": params}])
        result = refuse(convert, "--custom_io", io, "--input_dtype", "x", "float32")
        assert_refused(result, "contradict each other about 'x'", code=2)
    assert_refused(refuse(convert, "--custom_io", convert.folder / "none.yaml"), "cannot be read")


def test_a_template_describes_the_model_and_changes_nothing(convert: Converter, tmp_path: Path) -> None:
    path = tmp_path / "t" / "io.yaml"
    result = tool(
        "qnn-onnx-converter", "-i", convert.save(image_model()), "--dump_custom_io_config_template", path
    )
    assert result.code == 0 and "1 inputs, 1 outputs" in result.out
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx", "t"] or len(list(tmp_path.iterdir())) == 2
    entries = yaml.safe_load(path.read_text())
    assert entries[0] == {"IOName": "x", "Layout": {"Model": "NCHW", "Custom": "NCHW"}, "Datatype": "float32"}
    assert convert(image_model(), "--custom_io", path).shapes() == [FIRST, (1, 4, 6, 6)]


def test_an_output_behind_the_last_axis(convert: Converter) -> None:
    """Of three axes, and made from four."""
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=3, keepdims=0)
    source = model([node], [tensor("x", FIRST)], [tensor("y", FIRST[:3], TensorProto.INT64)])
    assert convert(source).shapes() == [FIRST, FIRST[:3]]


# -- data types ----------------------------------------------------------------------------------------------


def test_wide_integers(convert: Converter) -> None:
    source, rows = integer_model(), np.array([3, 1])
    for flags, label in (
        ([], "int32"), (["--preserve_io"], "int64"), (["--preserve_io", "datatype", "i"], "int64"),
        (["--keep_int64_inputs"], "int64"), (["--preserve_io", "layout"], "int32"),
    ):  # fmt: skip
        made = convert(source, *flags)
        assert made.types() == [label, "float32"]
        np.testing.assert_array_equal(made.run(rows.astype(label))[0], reference(source, rows)[0])


def test_the_type_of_an_input(convert: Converter) -> None:
    source, x = image_model(), np.random.default_rng(0).integers(0, 9, FIRST)
    made = convert(source, "--input_dtype", "x", "uint8")
    assert made.types() == ["uint8", "float32"]
    got, want = made.run(channel_last(x).astype(np.uint8))[0], reference(source, x.astype(np.float32))[0]
    np.testing.assert_allclose(got, channel_last(want), atol=1e-3)
    result = refuse(convert, "--input_dtype", "x", "uint8", "--preserve_io", "datatype")
    assert_refused(result, "float32 in the model: that cannot be kept and become uint8", code=2)


def test_input_types(convert: Converter) -> None:
    assert convert(image_model(), "-t", "x", "opaque", "--input_type", "x", "default").types()[0] == "float32"
    assert convert(image_model(), "-t", "x", "image").types()[0] == "float32"
    assert_refused(refuse(convert, "-t", "x", "sound"), "'sound' is none of", code=2)
    assert_refused(refuse(convert, "-t", "z", "opaque"), "no input 'z'", code=2)


# -- colours -------------------------------------------------------------------------------------------------


def picture() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, LAST).astype(np.float32)


def expected(image: np.ndarray) -> np.ndarray:
    return channel_last(reference(image_model(), np.moveaxis(image, -1, 1))[0])


@pytest.mark.parametrize(
    ("colours", "channels", "op"),
    [
        (["rgb"], [2, 1, 0], "Gather"),
        (["rgb", "rgb"], [0, 1, 2], ""),
        (["rgba", "rgb"], [0, 1, 2, 0], "ArgbToRgb"),
        (["rgba"], [2, 1, 0, 0], "ArgbToRgb"),
        (["argb32", "rgb"], [0, 0, 1, 2], "ArgbToRgb"),
        (["argb32"], [0, 2, 1, 0], "ArgbToRgb"),
    ],
)
def test_colours(convert: Converter, colours: list[str], channels: list[int], op: str) -> None:
    made = convert(image_model(), "--input_encoding", "x", *colours)
    assert made.shapes()[0] == (*LAST[:3], len(channels))
    assert {"Gather", "ArgbToRgb"} & set(made.ops()) == ({op} if op else set())
    image = picture()
    np.testing.assert_allclose(made.run(image[..., channels])[0], expected(image), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("given", ["nv12", "nv21"])
def test_video_colours(convert: Converter, given: str) -> None:
    made = convert(image_model(), "-e", "x", given)
    assert made.shapes()[0] == (1, 54)
    assert made.ops()[0] == {"nv12": "Nv12ToRgb", "nv21": "Nv21ToRgb"}[given]
    grey = np.full((1, 54), 128, np.float32)  # no colour: all channels are the brightness
    grey[:, :36] = np.arange(36)
    image = np.repeat(np.arange(36, dtype=np.float32).reshape(1, 6, 6, 1), 3, axis=3)
    np.testing.assert_allclose(made.run(grey)[0], expected(image), atol=3)


def test_what_is_no_image(convert: Converter) -> None:
    assert convert(image_model(3), "-e", "x", "time_series").shapes()[0] == (1, 3, 6)
    assert convert(image_model(), "-e", "x", "other").shapes()[0] == FIRST
    assert_refused(refuse(convert, "-e", "x", "sepia"), "'sepia' is none of", code=2)
    assert_refused(refuse(convert, "-e", "x", "rgb", "nv12"), "expects rgb or bgr", code=2)
    assert_refused(refuse(convert, "-e", "z", "rgb"), "no input or output 'z'", code=2)
    assert_refused(refuse(convert, "-e", "z", "other"), "no input or output 'z'", code=2)
    assert_refused(refuse(convert, "-e", "x"), "expected NAME IN [OUT]", code=2)
    assert_refused(refuse(convert, "-e", "i", "rgb", source=integer_model()), "no image of three", code=2)


# -- real models ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mnist_conv", "ppocr_cls", "mtcnn_onet", "magika", "centerface"])
def test_real_models(convert: Converter, name: str) -> None:
    dims = [w for n, s in static_shapes(name).items() for w in ("-d", n, ",".join(map(str, s)))]
    made = convert(model_path(name), *dims)
    inputs = sample_inputs(name)
    given = []
    for value in made.graph.inputs:
        array = inputs[value.name]
        given.append(array if array.shape == value.shape else channel_last(array))
    for value, got in zip(made.graph.outputs, made.run(*given), strict=True):
        want = reference_outputs(name)[value.name]
        want = want if want.shape == got.shape else channel_last(want)
        np.testing.assert_allclose(got, want, atol=1e-3 * max(1, np.abs(want).max()))
