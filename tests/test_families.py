"""Several static graphs of one dynamic model: one DLC, one context, each weight once, chosen by shape."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import openqnn
from openqnn.errors import InputError, UsageError
from tests.cli.tool import openqnn as command
from tests.cli.tool import tool
from tests.libraries import need
from tests.models.fetch import model_path
from tests.models.reference import onnxruntime

Array = NDArray[np.float32]
MODEL = "ppocrv4_rec_en"  # reads lines of text of any number and width
WIDTHS = {"small": (1, 3, 48, 96), "wide": (1, 3, 48, 160), "pair": (2, 3, 48, 96)}
SHAPES = "graphs:\n" + "".join(f"  {n}: {{shapes: {{x: {list(s)}}}}}\n" for n, s in WIDTHS.items())
SIZE = 8  # of the decoder's vectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """shapes.yaml, and the DLC that the command makes of it."""
    made = tmp_path_factory.mktemp("family")
    (made / "shapes.yaml").write_text(SHAPES)
    done = command(
        "convert", model_path(MODEL), "--shapes", made / "shapes.yaml", "-o", made / "family.dlc", "--quiet"
    )
    assert done.code == 0, done.err
    return made


def images() -> list[Array]:
    random = np.random.default_rng(0)
    return [random.random(shape, np.float32) for shape in WIDTHS.values()]


def test_a_session_takes_the_graph_that_fits(folder: Path) -> None:
    reference = onnxruntime.InferenceSession(model_path(MODEL), providers=["CPUExecutionProvider"])
    with openqnn.Session(folder / "family.dlc") as session:
        assert [graph.name for graph in session.graphs] == list(WIDTHS)
        for x in images():
            (found,) = session.run({"x": x}).values()
            np.testing.assert_allclose(found, reference.run(None, {"x": x})[0], atol=1e-5)
        with pytest.raises(InputError, match=r"no graph has inputs of these shapes: x\[1, 3, 48, 97\]") as e:
            session.run({"x": np.zeros((1, 3, 48, 97), np.float32)})
        assert "pair: x[2, 3, 48, 96]" in e.value.hint


def test_weights_are_stored_once(folder: Path) -> None:
    openqnn.convert(model_path(MODEL), input_shapes={"x": WIDTHS["small"]}).save(folder / "one.dlc")
    one, all_of_them = ((folder / name).stat().st_size for name in ("one.dlc", "family.dlc"))
    assert one < all_of_them < 1.1 * one


def test_a_context_has_them_once_too(folder: Path) -> None:
    need("libQnnHtp.so")
    sizes = {}
    for name, flags in {"shared": (), "apart": ("--separate_weights",)}.items():
        done = command("compile", folder / "family.dlc", *flags, "-o", folder / f"{name}.bin")
        assert done.code == 0, done.err
        sizes[name] = (folder / f"{name}.bin").stat().st_size
    assert sizes["shared"] < 0.5 * sizes["apart"]
    with openqnn.Session(folder / "apart.bin", backend="htp") as session:
        assert [graph.name for graph in session.graphs] == list(WIDTHS)


def test_net_run_gives_each_line_to_the_graph_that_fits(folder: Path) -> None:
    need("libQnnCpu.so")
    small, wide, _ = images()
    for name, array in {"s": small, "w": wide}.items():
        array.tofile(folder / f"{name}.raw")
    (folder / "list.txt").write_text("x:=w.raw\nx:=s.raw\n")
    run = ("--dlc_path", folder / "family.dlc", "--backend", "libQnnCpu.so")
    done = tool("qnn-net-run", *run, "--input_list", folder / "list.txt", "--output_dir", folder / "out")
    assert done.code == 0, done.err
    assert "graph 'wide' takes line 1" in done.err and "graph 'pair' takes no line" in done.err
    with openqnn.Session(folder / "family.dlc") as session:
        for name, array in {"small": small, "wide": wide}.items():
            ((output, wanted),) = session.run({"x": array}).items()
            raw = np.fromfile(folder / "out" / name / "Result_0" / f"{output}.raw", np.float32)
            np.testing.assert_allclose(raw, wanted.ravel(), atol=1e-4)
    (folder / "s.raw").write_bytes(bytes(12))
    done = tool("qnn-net-run", *run, "--input_list", folder / "list.txt", "--output_dir", folder / "out2")
    assert done.code == 1 and "line 2: no graph takes files of these sizes: s.raw 12" in done.err


# -- prefill and decode --------------------------------------------------------------------------------------


def decoder(path: Path) -> Path:
    """One step of attention over a cache: `tokens` new vectors behind `past` old ones."""
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array(random.random((SIZE, SIZE), np.float32), f"w{i}") for i in range(2)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["keys"]),
        helper.make_node("Concat", ["past_key", "keys"], ["present_key"], axis=1),
        helper.make_node("MatMul", ["x", "w1"], ["queries"]),
        helper.make_node("Transpose", ["present_key"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["queries", "turned"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["attention"], axis=-1),
        helper.make_node("MatMul", ["attention", "present_key"], ["y"]),
    ]
    info = lambda name, axis: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, axis, SIZE])
    graph = helper.make_graph(
        nodes, "decoder", [info("x", "tokens"), info("past_key", "past")],
        [info("y", "tokens"), info("present_key", "total")], weights,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


STEPS = {
    "graphs": {"prefill": {"dims": {"tokens": 4, "past": 2}}, "decode": {"dims": {"tokens": 1, "past": 6}}}
}


def test_prefill_and_decode_of_a_decoder(tmp_path: Path) -> None:
    path = decoder(tmp_path / "decoder.onnx")
    reference = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(2)
    past: Array = np.zeros((1, 2, SIZE), np.float32)
    with openqnn.Session(openqnn.convert_family(path, STEPS)) as session:
        for tokens in (4, 1):
            inputs = {"x": random.random((1, tokens, SIZE), np.float32), "past_key": past}
            found = session.run(inputs)
            for name, wanted in zip(("y", "present_key"), reference.run(None, inputs), strict=True):
                np.testing.assert_allclose(found[name], wanted, rtol=1e-5)
            past = found["present_key"]


def test_graphs_that_share_a_state_store_it_alike(tmp_path: Path) -> None:
    family = openqnn.convert_family(decoder(tmp_path / "decoder.onnx"), STEPS)
    random = np.random.default_rng(3)
    fixed = [
        openqnn.quantize(graph, [{v.name: height * random.random(v.shape, np.float32) for v in graph.inputs}])
        for graph, height in zip(family.graphs, (1, 3), strict=True)
    ]
    with pytest.raises(UsageError, match="share the state 'past_key', and store it differently") as e:
        openqnn.Family(tuple(fixed))
    assert "decode: 'present_key'" in e.value.message and "--quantization_overrides" in e.value.hint
    assert "decode: 'past_key' ufixed8 (scale 0.0" in e.value.message
    assert openqnn.Family((fixed[0],)).graphs == (fixed[0],)  # alone it may do as it likes
    need("libQnnHtp.so")
    for graph in fixed:
        graph.save(tmp_path / f"{graph.name}.dlc")
    files = ",".join(str(tmp_path / f"{graph.name}.dlc") for graph in fixed)
    given = ("--dlc_path", files, "--backend", "libQnnHtp.so", "--binary_file", "m", "--output_dir", tmp_path)
    done = tool("qnn-context-binary-generator", *given)
    assert done.code == 2 and "share the state 'past_key', and store it differently" in done.err
    assert not (tmp_path / "m.bin").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1", "'a' is not known"),
        ("graphs: {}", "it names no graph"),
        ("graphs: {a b: {batch: 1}}", "letters, digits and _"),
        ("graphs: {a: {batch: x}}", "'x' is no size"),
        ("graphs: {a: {shapes: {x: 3}}}", "a shape is a list of sizes"),
        ("graphs: [a]", "is not a mapping"),
        ("graphs: {a: {dims: {w: -1}}}", "-1 is no size"),
        ("{", "is not YAML"),
    ],
)
def test_a_file_of_shapes_that_cannot_be(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(InputError, match=reason):
        openqnn.convert_family(tmp_path / "none.onnx", tmp_path / "s.yaml")


def test_what_a_family_cannot_be(folder: Path, tmp_path: Path) -> None:
    flags = ("--shapes", folder / "shapes.yaml")
    done = command("convert", model_path(MODEL), *flags, "-o", tmp_path / "a.oqnn")
    assert done.code == 2 and "only a DLC holds several graphs" in done.err
    done = command("convert", folder / "family.dlc", *flags, "-o", tmp_path / "b.dlc")
    assert done.code == 2 and "has static shapes" in done.err
    with pytest.raises(UsageError, match="graph 'prefill' has no output 'z'"):
        openqnn.convert_family(decoder(tmp_path / "d.onnx"), {**STEPS, "state": {"past_key": "z"}})
