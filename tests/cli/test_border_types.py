"""Data types of inputs and outputs where they are not those that the graph computes with, on libQnnHtp.

--preserve_io, --input_dtype and --custom_io ask for floats and integers around a graph in fixed point, or for
stored integers around one in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import yaml
from onnx import TensorProto, helper

import openqnn as package
from openqnn.runtime.metrics import sqnr
from tests.cli.tool import assert_refused, tool
from tests.libraries import need
from tests.onnx_models import model, tensor, weight

IMAGE, PLAIN = (1, 8, 8, 3), (1, 8, 8, 4)
COUNT = 3
STORED = {"Scale": 0.05, "Offset": 100}  # from -5 to 7.75
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """m.onnx takes the bytes of an image and floats, and gives floats and 64-bit integers."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Cast", ["image"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["real", "w"], ["layer"]),
        helper.make_node("Add", ["layer", "z"], ["y"]),
        helper.make_node("ArgMax", ["layer"], ["best"], axis=3, keepdims=0),
    ]
    inputs = [tensor("image", IMAGE, TensorProto.UINT8), tensor("z", PLAIN)]
    outputs = [tensor("y", PLAIN), tensor("best", PLAIN[:3], TensorProto.INT64)]
    made = model(nodes, inputs, outputs, [weight("w", (rng.normal(size=(3, 4)) / 255).astype(np.float32))])
    onnx.save(made, "m.onnx")
    for i in range(COUNT):
        np.savez(f"{i}.npz", image=rng.integers(0, 256, IMAGE).astype(np.uint8), z=rng.normal(size=PLAIN) / 2)


def sample(i: int) -> dict[str, Array]:
    with np.load(f"{i}.npz") as loaded:
        return {"image": loaded["image"], "z": loaded["z"].astype(np.float32)}


def wanted(i: int) -> list[Array]:
    return onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"]).run(None, sample(i))


def listed(image: str = "float32", z: str = "float32") -> str:
    """An input list whose files hold these types."""
    lines: list[str] = []
    for i in range(COUNT):
        for name, dtype in (("image", image), ("z", z)):
            sample(i)[name].astype(dtype).tofile(f"{i}_{name}_{dtype}.raw")
        lines.append(f"image:={i}_image_{image}.raw z:={i}_z_{z}.raw")
    Path("inputs.txt").write_text("\n".join(lines))
    return "inputs.txt"


def custom(**entries: Any) -> list[str]:
    Path("io.yaml").write_text(yaml.safe_dump([{"IOName": n, **e} for n, e in entries.items()]))
    return ["--custom_io", "io.yaml"]


def converted(*flags: str) -> tuple[package.Graph, str]:
    done = tool("qnn-onnx-converter", "-i", "m.onnx", "-o", "out.cpp", *flags)
    assert done.code == 0, done.err
    built = tool(
        "qnn-model-lib-generator", "-c", "out.cpp", "-b", "out.bin", "-t", "x86_64-linux-clang", "-o", "lib"
    )
    assert built.code == 0, built.err
    return package.load("lib/x86_64-linux-clang/libout.so", trust=True), done.err


def types(graph: package.Graph) -> dict[str, str]:
    return {v.name: v.dtype.label for v in (*graph.inputs, *graph.outputs)}


def run(model: Sequence[str], *flags: str, backend: str = "htp") -> None:
    need(backend)
    done = tool(
        "qnn-net-run", *model, "--backend", "htp", "--input_list", "inputs.txt", "--output_dir", "o", *flags
    )
    assert done.code == 0, done.err


LIBRARY = ("--model", "lib/x86_64-linux-clang/libout.so")


def test_types_of_the_model_around_fixed_point() -> None:
    """Files for calibration have them, too, without a further word."""
    graph, said = converted("--input_list", listed("uint8"), "--preserve_io", "datatype")
    assert types(graph) == {"image": "uint8", "z": "float32", "y": "float32", "best": "int64"}
    assert {"Quantize", "Dequantize", "Cast"} <= {n.op for n in graph.nodes} and not said
    run(LIBRARY, "--use_native_input_files", "--use_native_output_files")
    for i in range(COUNT):
        y, best = wanted(i)
        assert sqnr(y, np.fromfile(f"o/Result_{i}/y.raw", np.float32)) > 30
        found = np.fromfile(f"o/Result_{i}/best_native.raw", np.int64)
        assert np.mean(found.reshape(best.shape) == best) > 0.9


@pytest.mark.parametrize(
    ("flags", "made"),
    [
        ((), {"image": "uint8", "z": "ufixed8", "y": "ufixed8", "best": "int32"}),
        (("--preserve_io", "datatype", "y"), {"z": "ufixed8", "y": "float32", "best": "int32"}),
        (("--input_dtype", "z", "float16"), {"image": "uint8", "z": "float16", "y": "ufixed8"}),
    ],
)
def test_some_types_around_fixed_point(flags: tuple[str, ...], made: dict[str, str]) -> None:
    image = "uint8" if "datatype" in flags else "float32"
    graph, said = converted("--input_list", listed(image), *flags)
    assert types(graph).items() >= made.items() and not said
    listed()
    run(LIBRARY)
    for i in range(COUNT):
        assert sqnr(wanted(i)[0], np.fromfile(f"o/Result_{i}/y.raw", np.float32)) > 30


def test_files_that_are_not_native_are_told_why_they_should_be() -> None:
    done = tool("qnn-onnx-converter", "-i", "m.onnx", "--input_list", listed(), "--preserve_io")
    assert_refused(done, "that fits float32, and --use_native_input_files or --preserve_io is given")


def test_types_that_htp_does_not_have_are_told() -> None:
    for i in range(COUNT):  # bytes with a sign have less room
        small = {**sample(i), "image": sample(i)["image"] // 2}
        np.savez(f"{i}.npz", **small)
    graph, said = converted("--input_list", listed(), "--input_dtype", "image", "int8")
    assert types(graph)["image"] == "int32"
    assert "HTP has no way to types that were asked for: 'image' is int32, not int8" in said


@pytest.mark.parametrize("width", ["8", "16"])
@pytest.mark.parametrize(
    ("entries", "made"),
    [
        ({"z": {"Datatype": "uint8"}, "y": {"Datatype": "int8"}}, {"z": "ufixed8", "y": "sfixed8"}),
        (
            {
                "z": {"Datatype": "int8", "QuantParam": {"Scale": 0.02}},
                "y": {"Datatype": "uint8", "QuantParam": STORED},
            },
            {"z": "sfixed8", "y": "ufixed8"},
        ),
    ],
)
def test_stored_integers_around_fixed_point(entries: Any, made: dict[str, str], width: str) -> None:
    graph, said = converted("--input_list", listed(), "--act_bw", width, *custom(**entries))
    assert types(graph).items() >= made.items() and not said
    for v in (*graph.inputs, *graph.outputs):
        scale = entries.get(v.name, {}).get("QuantParam", {}).get("Scale")
        if v.dtype.is_fixed and scale is not None:
            assert v.encoding is not None and v.encoding.scale == pytest.approx((scale,))
    run(LIBRARY)
    for i in range(COUNT):
        assert sqnr(wanted(i)[0], np.fromfile(f"o/Result_{i}/y.raw", np.float32)) > 25


@pytest.mark.parametrize(("width", "scale"), [(8, 0.02), (16, 0.0001)])
def test_floats_around_an_encoding_of_the_users(width: int, scale: float) -> None:
    entry = {"Datatype": "float32", "QuantParam": {"Scale": scale, "Offset": 1 << (width - 1)}}
    graph, said = converted("--input_list", listed(), "--act_bw", str(width), *custom(z=entry))
    assert types(graph)["z"] == "float32" and not said
    (inside,) = (u.out.encoding for v in graph.inputs if v.name == "z" for u in v.users)
    assert inside is not None and (inside.bitwidth, *inside.scale) == (width, pytest.approx(scale))


ENTRIES = {
    "z": {"Datatype": "int8", "QuantParam": {"Type": "QNN_DEFINITION_DEFINED", "Scale": 0.02, "Offset": 0}},
    "y": {"Datatype": "uint8", "QuantParam": STORED},
}


@pytest.mark.parametrize("backend", ["htp", "cpu"])
def test_stored_integers_around_floats(backend: str) -> None:
    graph, said = converted(*custom(**ENTRIES))
    assert types(graph) == {"image": "uint8", "z": "sfixed8", "y": "ufixed8", "best": "int32"} and not said
    listed()
    run(LIBRARY, backend=backend)
    for i in range(COUNT):
        y, best = wanted(i)
        assert sqnr(y, np.fromfile(f"o/Result_{i}/y.raw", np.float32)) > 30
        found = np.fromfile(f"o/Result_{i}/best.raw", np.float32)
        assert np.mean(found.reshape(best.shape) == best) > 0.97


def test_stored_integers_in_a_dlc_that_is_quantized_later() -> None:
    """Inside, the tensor has the same steps, so that nothing is rounded twice."""
    parts = [
        {"Name": name, "Desired Model Parameters": {"DataType": e["Datatype"], "QuantParams": params}}
        for name, e in ENTRIES.items()
        for params in [{k: v for k, v in e["QuantParam"].items() if k != "Type"}]
    ]
    content = {"Input Tensor Configuration": parts[:1], "Output Tensor Configuration": parts[1:]}
    Path("io.yaml").write_text(yaml.safe_dump(content))
    done = tool("qairt-converter", "-i", "m.onnx", "-o", "m.dlc", "--io_config", "io.yaml")
    assert done.code == 0, done.err
    done = tool("qairt-quantizer", "--input_dlc", "m.dlc", "--output_dlc", "q.dlc", "--input_list", listed())
    assert done.code == 0, done.err
    graph = package.load("q.dlc")
    assert types(graph) == {"image": "uint8", "z": "sfixed8", "y": "ufixed8", "best": "int32"}
    steps = {n.op: [v.encoding.scale[0] for v in (n.x(0), n.out) if v.encoding] for n in graph.nodes}
    assert steps["Convert"] in (pytest.approx([0.02, 0.02]), pytest.approx([0.05, 0.05]))
    run(["--dlc_path", "q.dlc"])
    for i in range(COUNT):
        assert sqnr(wanted(i)[0], np.fromfile(f"o/Result_{i}/y.raw", np.float32)) > 25


def test_native_files_of_stored_inputs_calibrate_the_same() -> None:
    converted(*custom(**ENTRIES))
    source = package.load("lib/x86_64-linux-clang/libout.so", trust=True)
    source.save("m.dlc")
    for i in range(COUNT):  # the steps' own numbers, so that both kinds of files say the same
        np.savez(f"{i}.npz", image=sample(i)["image"], z=np.round(sample(i)["z"] / 0.02) * 0.02)
    found: list[list[Any]] = []
    for flags in ([], ["--use_native_input_files"]):
        listed()
        if flags:
            for i in range(COUNT):
                np.round(sample(i)["z"] / 0.02).astype(np.int8).tofile(f"{i}_z_float32.raw")
                sample(i)["image"].tofile(f"{i}_image_float32.raw")
        done = tool(
            "qairt-quantizer",
            "--input_dlc",
            "m.dlc",
            "--output_dlc",
            "q.dlc",
            "--input_list",
            "inputs.txt",
            *flags,
        )
        assert done.code == 0, done.err
        found.append([v.encoding for v in package.load("q.dlc").values()])
    assert found[0] == found[1]


@pytest.mark.parametrize("flags", [[], ["--input_list", "inputs.txt"]])
@pytest.mark.parametrize(
    ("name", "entry", "words"),
    [
        ("image", {"Datatype": "uint8", "QuantParam": STORED}, "'image' is uint8: only real numbers have"),
        ("best", {"Datatype": "int8", "QuantParam": STORED}, "only real numbers have a scale"),
        (
            "z",
            {"Datatype": "uint8", "QuantParam": {"Scale": 1, "Offset": 256}},
            "-256 is beyond 255",
        ),
        (
            "z",
            {"Datatype": "int8", "QuantParam": {"Scale": 1, "Offset": 128}},
            "-128 is beyond 127",
        ),
    ],
)
def test_stored_integers_that_cannot_be(name: str, entry: Any, words: str, flags: list[str]) -> None:
    listed()
    done = tool("qnn-onnx-converter", "-i", "m.onnx", "-o", "out.cpp", *custom(**{name: entry}), *flags)
    assert_refused(done, words, code=2)
    assert not list(Path().glob("out*"))


def test_integers_of_the_model_need_no_scale() -> None:
    graph, said = converted(*custom(image={"Datatype": "uint8"}))
    assert types(graph)["image"] == "uint8" and not said
