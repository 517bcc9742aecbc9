"""qairt-converter: DLC files, read back and run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml

import openqnn
from openqnn.cli.tools import qairt_converter as converters
from openqnn.formats.dlc_metadata import read_metadata
from tests.cli.converting import channel_last, image_model, random, reference
from tests.cli.tool import assert_refused, environment, tool
from tests.models.fetch import model_path
from tests.models.reference import reference_outputs
from tests.models.samples import sample_inputs

NAME = "qairt-converter"
pytest.importorskip("onnxruntime_qnn")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(image_model(dynamic=True), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def converted(path: Path, *flags: object) -> openqnn.Graph:
    target = path.with_name("out.dlc")
    shape = ["-d", "x", "1,3,6,6"] if "-d" not in flags and "--io_config" not in flags else []
    result = tool(NAME, "-i", path, "-o", target, *shape, *flags)
    assert result.code == 0, result.err
    return openqnn.load(target)


def run(graph: openqnn.Graph, x: np.ndarray) -> np.ndarray:
    with openqnn.Session(graph) as session:
        return next(iter(session.run({session.input_names[0]: x}).values()))


def shapes(graph: openqnn.Graph) -> list[tuple[int, ...]]:
    return [v.shape for v in (*graph.inputs, *graph.outputs)]


def test_layouts_stay(path: Path) -> None:
    graph, x = converted(path), random(1, 3, 6, 6)
    assert graph.name == "out" and shapes(graph) == [(1, 3, 6, 6), (1, 4, 6, 6)]
    np.testing.assert_allclose(run(graph, x), reference(image_model(), x)[0], atol=1e-4)


@pytest.mark.parametrize("name", ["mnist_conv", "ppocr_cls", "mtcnn_onet"])
def test_real_models(tmp_path: Path, name: str) -> None:
    (key, array), *_ = sample_inputs(name).items()
    target = tmp_path / "m.dlc"
    dims = ["-d", key, ",".join(map(str, array.shape))]
    result = tool(NAME, "-i", model_path(name), "-o", target, *dims)
    assert result.code == 0, result.err
    with openqnn.Session(target) as session:
        results = session.run({session.input_names[0]: array})
    for got, want in zip(results.values(), reference_outputs(name).values(), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4 * max(1, np.abs(want).max()))


def test_options_of_the_model(path: Path) -> None:
    assert shapes(converted(path, "-d", "x", "2,3,8,6"))[0] == (2, 3, 8, 6)
    flags = ["--onnx_batch", "2", "--onnx_define_symbol", "side", "5"]
    assert tool(NAME, "-i", path, "-o", path.with_name("b.dlc"), *flags).code == 0
    assert shapes(openqnn.load(path.with_name("b.dlc")))[0] == (2, 3, 5, 6)
    assert [v.name for v in converted(path, "--out_tensor_node", "c").outputs] == ["c"]
    assert [v.name for v in converted(path, "--out_tensor_name", "n").outputs] == ["n"]
    graph = converted(path, "--source_model_input_datatype", "x", "int32")
    assert graph.inputs[0].dtype.label == "int32"
    graph = converted(path, "--desired_input_color_encoding", "x", "rgba", "-l", "x", "NCHW")
    assert "ArgbToRgb" in [n.op for n in graph.nodes] and graph.inputs[0].shape == (1, 4, 6, 6)
    assert_refused(tool(NAME, "-i", path, "-d", "x", "1,3,6,6", "-l", "x", "NFC"), "has 3 axes", code=2)


def test_widths_packages_and_metadata(path: Path, tmp_path: Path) -> None:
    graph = converted(path, "--float_bitwidth", "16", "--float_bias_bitwidth", "32")
    conv = next(n for n in graph.nodes if n.op == "Conv2d")
    assert [conv.x(i).dtype.label for i in (0, 1, 2)] == ["float16", "float16", "float32"]
    (tmp_path / "c.txt").write_text("Whose\nit is")
    version = "v" * 80
    converted(path, "--model_version", version, "--copyright_file", tmp_path / "c.txt")
    found = read_metadata(path.with_name("out.dlc"))
    assert found["model-version"] == "v" * 64 and found["model-copyright"] == "Whose it is"
    assert found["converter-command"].startswith("qairt-converter; batch=None; ")
    assert_refused(tool(NAME, "-i", path, "--model_version", "\N{SNOWMAN}"), "is not ASCII", code=2)


def test_the_name_of_the_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    monkeypatch.setattr(
        converters, "_write_dlc", lambda graph, target, package, metadata: given.append(package)
    )
    assert tool(NAME, "-i", path, "-d", "x", "1,3,6,6", "-p", "mine").code == 0
    assert given == ["mine"]


def test_no_simplification_dry_run_and_debug(path: Path) -> None:
    assert len(converted(path, "--onnx_no_simplification").nodes) >= len(converted(path).nodes)
    result = tool(NAME, "-i", path, "-d", "x", "1,3,6,6", "--dry_run")
    assert result.code == 0 and "3 nodes supported, 0 not" in result.out
    result = tool(NAME, "-i", path, "-d", "x", "1,3,6,6", "--debug")
    assert result.code == 0 and "applied" in result.err
    assert path.with_suffix(".dlc").is_file()  # the default place


def test_io_config(path: Path, tmp_path: Path) -> None:
    template = tmp_path / "io.yaml"
    result = tool(NAME, "-i", path, "-d", "x", "1,3,6,6", "--dump_io_config_template", template)
    assert result.code == 0 and not list(tmp_path.glob("*.dlc"))
    content = yaml.safe_load(template.read_text())
    source = {"DataType": "float32", "Layout": "NCHW"}
    inputs, outputs = content["Input Tensor Configuration"], content["Output Tensor Configuration"]
    assert inputs[0]["Src Model Parameters"] == outputs[0]["Src Model Parameters"] == source
    assert shapes(converted(path, "--io_config", template)) == [(1, 3, 6, 6), (1, 4, 6, 6)]
    inputs[0]["Desired Model Parameters"] |= {"Layout": "NHWC", "Color Conversion": "RGB"}
    outputs[0]["Desired Model Parameters"] |= {"Layout": "NHWC", "DataType": "float16"}
    template.write_text(yaml.safe_dump(content))
    graph, x = converted(path, "--io_config", template), random(1, 3, 6, 6)
    assert shapes(graph) == [(1, 6, 6, 3), (1, 6, 6, 4)]
    got = run(graph, channel_last(x)[..., ::-1])
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, channel_last(reference(image_model(), x)[0]), atol=2e-2)
    graph = converted(path, "--io_config", template, "-d", "x", "2,3,8,8", "-e", "x", "bgr")
    assert shapes(graph)[0] == (2, 8, 8, 3) and "Gather" not in [n.op for n in graph.nodes]


def test_io_config_that_cannot_be(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "io.yaml"
    for section, entry, words in (
        ("Output", {"Name": "z"}, "no input or output 'z'"),
        ("Input", {"Name": "x", "Desired Model Parameters": {"DataType": "uint8"}}, "give its scale and"),
    ):
        file.write_text(yaml.safe_dump({f"{section} Tensor Configuration": [entry]}))
        flags = ("-d", "x", "1,3,6,6", "--io_config", file, "-o", tmp_path / "m.dlc")
        assert_refused(tool(NAME, "-i", path, *flags), words, code=2)


@pytest.mark.parametrize("suffix", [".pbtxt"])
def test_other_frameworks(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(b"x")
    assert_refused(tool(NAME, "-i", path), "cannot be converted in this version")


def test_graphs_save_and_load(path: Path) -> None:
    graph = openqnn.convert(image_model())
    graph.save(path.with_name("saved.dlc"))
    again, x = openqnn.load(path.with_name("saved.dlc")), random(1, 3, 6, 6)
    assert [n.op for n in again.nodes] == [n.op for n in graph.nodes]
    np.testing.assert_array_equal(run(again, x), run(graph, x))
    with pytest.raises(openqnn.errors.UsageError, match="has no graph 'other'"):
        openqnn.load(path.with_name("saved.dlc"), "other")


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
room = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
from openqnn.cli.registry import run_tool
sys.exit(run_tool("qairt-converter", sys.argv[1:]))
"""


@pytest.mark.parametrize("room", [20_000, 30_000])
def test_a_full_disk_is_told_and_leaves_nothing(room: int, tmp_path: Path) -> None:
    """The library says that it failed, and not why; once with room for the weights, and not for the rest."""
    flags = (room, "-i", model_path("mnist_conv"), "-o", tmp_path / "m.dlc")
    done = subprocess.run(
        [sys.executable, "-c", FULL, *map(str, flags)],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "/m.dlc: File too large [OQ130]\n  hint: is the disk full?" in done.stderr
    assert not list(tmp_path.iterdir())
