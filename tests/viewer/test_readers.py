"""Every kind of file has a view, with what the file itself says of its nodes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import InputError, ModelError, UsageError
from openqnn.frontends.tensorflow.graph_messages import _messages
from openqnn.vendor.trust import trusting
from openqnn.viewer.group_tree import group_tree
from openqnn.viewer.match_views import match_views
from openqnn.viewer.open_views import open_views
from openqnn.viewer.page import html_page, page_data
from openqnn.viewer.view import View
from tests.frontends.caffe.build import caffemodel, inputs_text
from tests.models.fetch import model_path
from tests.viewer.every_kind import PROGRAMS

LISTS = ("profiling log", "encodings file", "debugger result")
CODE = ("model library", "Saver bundle")


def opened(path: Path) -> list[View]:
    with trusting():
        return open_views(path)


def test_every_kind_of_file_opens(kinds: dict[str, Path]) -> None:
    for kind, path in kinds.items():
        views = opened(path)
        assert views[-1].kind == ("context binary" if kind == "EPContext" else kind)
        assert views[0].nodes and views[0].facts, kind
        assert bool(views[0].edges()) != (kind in LISTS), kind
        assert len(html_page(views)) < 1.5e6, kind


@pytest.mark.parametrize("kind", CODE)
def test_programs_are_run_only_when_that_is_said(kinds: dict[str, Path], kind: str) -> None:
    with pytest.raises(UsageError, match="--run_code"):
        open_views(kinds[kind])


def test_nodes_of_a_program_have_the_users_line() -> None:
    (view,) = open_views(PROGRAMS / "cnn.pt2")
    calls = [node for node in view.nodes if node.op.startswith("aten.")]
    assert calls and all(node.source.startswith("make_programs.py:") for node in calls)
    conv = next(node for node in calls if node.op == "aten.conv2d")
    weight = next(t for t in conv.inputs if t.name.endswith("weight"))
    figures = weight.figures()
    assert figures is not None and figures["elements"] > 8
    assert conv.params["module"] == "first.conv"


def test_a_caffe_network_has_layers_and_weights(tmp_path: Path) -> None:
    weights = np.arange(12, dtype=np.float32).reshape(3, 4)
    inner = "inner_product_param { num_output: 3 }"
    layers = (
        f'layer {{ name: "fc" type: "InnerProduct" bottom: "x0" top: "y" {inner} }}'
        ' layer { name: "act" type: "ReLU" bottom: "y" top: "y" }'
    )
    (tmp_path / "net.prototxt").write_text(inputs_text([(1, 4)]) + layers)
    (tmp_path / "net.caffemodel").write_bytes(caffemodel({"fc": [weights]}))
    for name in ("net.prototxt", "net.caffemodel"):
        (view,) = open_views(tmp_path / name)
        assert [node.op for node in view.nodes] == ["Input", "InnerProduct", "ReLU", "Output"]
        assert len(view.edges()) == 3
        statistics = view.nodes[1].inputs[1].figures()
        assert statistics is not None and statistics["max"] == 11
        assert view.nodes[1].params["num_output"] == "3"


def test_a_tflite_model_has_its_own_operators_and_encodings() -> None:
    main, _ = open_views(model_path("microwakeword_okay_nabu"))
    conv = next(node for node in main.nodes if node.op == "DEPTHWISE_CONV_2D")
    assert conv.params["padding"] in ("SAME", "VALID")
    assert all("scale" in tensor.encoding for tensor in conv.outputs)
    assert "axis" in conv.inputs[1].encoding


def test_calls_in_a_saved_model_are_its_functions(kinds: dict[str, Path]) -> None:
    (view,) = open_views(kinds["SavedModel"])
    ops = {node.op for node in view.nodes}
    assert {"Conv2D", "Input", "Output"} <= ops
    assert not ops & {"VarHandleOp", "ReadVariableOp", "Const"}  # what the model holds stands at its readers
    variables = [t for n in view.nodes for t in n.inputs if t.shape and t.name.endswith("kernel")]
    assert variables and all(t.dtype == "float32" for t in variables)
    assert not any("PartitionedCall" in op for op in ops)
    loose = {t.name for n in view.nodes for t in n.inputs} - {t.name for n in view.nodes for t in n.outputs}
    assert all(tensor.shape != () or tensor.dtype for node in view.nodes for tensor in node.inputs), loose


def test_signatures_that_call_one_function_do_not_differ(tmp_path: Path) -> None:
    saved = _messages()["SavedModel"]()
    meta = saved.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    function = meta.graph_def.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="x")
    function.signature.output_arg.add(name="y")
    function.node_def.add(name="model/relu", op="Relu", input=["x"])
    function.ret["y"] = "model/relu:activations:0"
    for number, name in enumerate(("serve", "serving_default")):
        call = f"StatefulPartitionedCall{'_1' if number else ''}"
        meta.graph_def.node.add(name=f"{name}_x", op="Placeholder")
        node = meta.graph_def.node.add(name=call, op="StatefulPartitionedCall", input=[f"{name}_x"])
        node.attr["f"].func.name = "f"
        meta.signature_def[name].inputs["x"].name = f"{name}_x:0"
        meta.signature_def[name].outputs["y"].name = f"{call}:0"
    (tmp_path / "saved_model.pb").write_bytes(saved.SerializeToString())
    first, second = open_views(tmp_path)
    found = match_views(first, second)
    assert len(found["pairs"]) == len(first.nodes) == 3 and not found["left"] and not found["right"]


def test_shapes_of_an_onnx_file_are_inferred_or_said_to_be_unknown(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        make.make_node("Relu", ["x"], ["r"]),
        make.make_node("Mystery", ["r"], ["m"], domain="of.mine"),
        make.make_node("ReduceSum", ["r"], ["s"], keepdims=0),
        make.make_node("Add", ["m", "s"], ["y"]),
    ]
    ends = [make.make_tensor_value_info(n, kind, s) for n, s in (("x", [None, "n", 4]), ("y", [2]))]
    versions = [make.make_opsetid("", 17), make.make_opsetid("of.mine", 1)]
    model = make.make_model(make.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=versions)
    onnx.save(model, tmp_path / "m.onnx")
    (view,) = open_views(tmp_path / "m.onnx")
    told = {t.name: (t.dtype, t.shape) for node in view.nodes for t in (*node.inputs, *node.outputs)}
    assert told == {
        "x": ("float32", ("?", "n", 4)), "r": ("float32", ("unk__0", "n", 4)), "m": ("", None),
        "s": ("float32", ()), "y": ("float32", (2,)),
    }  # fmt: skip
    record = view.nodes[2].record()["outputs"][0]
    assert "shape" not in record


def test_what_constant_nodes_hold_is_a_weight(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    held = onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "k")
    words = onnx.helper.make_tensor("s", onnx.TensorProto.STRING, [1], [b"word"])
    nodes = [
        onnx.helper.make_node("Constant", [], ["k"], value=held),
        onnx.helper.make_node("Constant", [], ["s"], value=words),
        onnx.helper.make_node("Add", ["x", "k"], ["y"]),
        onnx.helper.make_node("Identity", ["s"], ["z"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3]) for n in "xy"]
    onnx.save(
        onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])), tmp_path / "m.onnx"
    )
    (view,) = open_views(tmp_path / "m.onnx")
    figures = [node.inputs[-1].figures() for node in view.nodes if node.op in ("Add", "Identity")]
    assert figures[0] is not None and figures[0]["max"] == 5 and figures[0]["elements"] == 6
    assert figures[1] is not None and "not readable" in figures[1]
    assert "not readable" in html_page([view])


@pytest.mark.parametrize("name", ["empty.onnx", "saver_output.c"])
def test_an_empty_file_is_no_model(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    (tmp_path / "params.bin").write_bytes(b"")
    with trusting(True), pytest.raises(ModelError, match="holds no"):
        open_views(tmp_path / name)


def test_a_frozen_graph_is_shown_up_to_its_ends(tmp_path: Path) -> None:
    saved = _messages()["SavedModel"]()
    saved.ParseFromString(Path(model_path("basic_pitch_saved_model")).read_bytes())
    (tmp_path / "frozen.pb").write_bytes(saved.meta_graphs[0].graph_def.SerializeToString())
    (view,) = open_views(tmp_path / "frozen.pb")
    assert view.kind == "TensorFlow graph" and any(node.op == "Conv2D" for node in view.nodes)


def test_functions_that_call_themselves_are_refused(tmp_path: Path) -> None:
    graph = _messages()["Graph"]()
    for name in ("f", "g"):
        function = graph.library.function.add()
        function.signature.name = name
        for number in range(2):
            function.node_def.add(name=f"call{number}", op="g" if name == "f" else "f")
    graph.node.add(name="start", op="f")
    (tmp_path / "loop.pb").write_bytes(graph.SerializeToString())
    with pytest.raises(ModelError, match="call themselves"):
        open_views(tmp_path / "loop.pb")


def test_a_context_tells_its_settings_and_types(kinds: dict[str, Path]) -> None:
    (view,) = open_views(kinds["context binary"])
    assert view.facts["backend"] == "HTP" and int(view.facts["bytes"].replace(",", "")) > 1000
    assert "vtcm size" in view.facts and "optimization level" in view.facts
    compiled = next(node for node in view.nodes if node.op == "Compiled")
    assert all("scale" in tensor.encoding and tensor.shape for tensor in compiled.inputs)
    assert all(tensor.encoding.startswith("8 bits, ") for tensor in compiled.inputs)


def test_a_log_has_every_node_with_its_time(kinds: dict[str, Path]) -> None:
    (view,) = open_views(kinds["profiling log"])
    (time,) = view.overlays
    assert time.unit == "us" and set(time.values) == {node.name for node in view.nodes}
    assert view.facts["executions"] == "2"


def test_a_debuggers_layers_are_in_its_order(kinds: dict[str, Path]) -> None:
    (view,) = open_views(kinds["debugger result"])
    layers = json.loads((kinds["debugger result"] / "debug.json").read_text())["layers"]
    assert [node.name for node in view.nodes] == [layer["tensor"] for layer in layers]
    assert group_tree(view).items == list(range(len(view.nodes)))  # groups would change the order
    assert all(overlay.least_is_worst == (overlay.unit == "dB") for overlay in view.overlays)
    assert page_data([view])["shown"] == view.overlays[0].title
    added = next(overlay for overlay in view.overlays if overlay.title == "added")
    assert added.unit == "dB" and added.values
    assert not {f"{overlay.title}_db" for overlay in view.overlays} & set(view.nodes[0].params)  # told once


def test_shares_of_what_is_right_are_best_when_large(tmp_path: Path) -> None:
    rows = [{"Name": "a", "LayerType": "Conv2d", "CosineSimilarity": 0.9, "mse": 0.1, "sqnr": 30.0}]
    (tmp_path / "summary.json").write_text(json.dumps(rows))
    (view,) = open_views(tmp_path / "summary.json")
    worst = {overlay.title: overlay.least_is_worst for overlay in view.overlays}
    assert worst == {"CosineSimilarity": True, "mse": False, "sqnr": True}


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", "["), ("b.json", "[1]"), ("c.json", "{}"), ("d.json", '{"encodings": 3}'), ("e.log", "x"),
     ("f.pb", "\n\x05"), ("saved_model.pb", "junk"), ("g.encodings", "{}"), ("summary.csv", "a,b\n1,2\n")],
)  # fmt: skip
def test_what_cannot_be_read_is_said_with_its_name(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((InputError, ModelError), match=name):
        open_views(tmp_path / name)


def test_an_empty_folder_is_told_from_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nothing in this folder"):
        open_views(tmp_path)


def test_sizes_that_are_long_formulas_are_unknown(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    long = "floor(floor(floor(height/2 - 1/2)/2)/2) + 1"
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [long, "h", 3]) for n in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    assert open_views(tmp_path / "m.onnx")[0].nodes[0].outputs[0].shape == ("?", "h", 3)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"dtype": 1, "tensor_content": np.arange(6, dtype="<f4").tobytes()}, {"max": 5.0, "elements": 6}),
        ({"dtype": 1, "float_val": [2.0]}, {"min": 2.0, "max": 2.0, "elements": 6}),
        ({"dtype": 3, "int_val": [1, 7]}, {"min": 1.0, "max": 7.0, "mean": 6.0}),
        ({"dtype": 19, "half_val": [0x3C00]}, {"max": 1.0}),
        ({"dtype": 9}, {"max": 0.0, "elements": 6}),
        ({"dtype": 1, "tensor_content": b"abc"}, {"not readable": "buffer size must be a multiple"}),
        ({"dtype": 7}, {"not readable": "numbers of type string"}),
    ],
)
def test_constants_of_tensorflow_have_statistics(
    tmp_path: Path, fields: dict[str, object], wanted: dict[str, object]
) -> None:
    graph = _messages()["Graph"]()
    held = graph.node.add(name="k", op="Const")
    tensor = held.attr["value"].tensor
    tensor.MergeFrom(type(tensor)(**fields))
    for size in (2, 3):
        tensor.tensor_shape.dim.add(size=size)
    graph.node.add(name="x", op="Placeholder")
    graph.node.add(name="y", op="AddV2", input=["x", "k"])
    (tmp_path / "g.pb").write_bytes(graph.SerializeToString())
    (view,) = open_views(tmp_path / "g.pb")
    figures = next(node for node in view.nodes if node.op == "AddV2").inputs[1].figures()
    assert figures is not None
    for name, value in wanted.items():
        assert str(value) in figures[name] if isinstance(value, str) else figures[name] == value


def test_encodings_of_files_say_that_they_are_the_files(kinds: dict[str, Path], tmp_path: Path) -> None:
    openqnn.load(kinds["OpenQNN graph"].with_name("fixed.oqnn")).save(tmp_path / "fixed.dlc")
    for path, origin in ((tmp_path / "fixed.dlc", "the DLC"), (kinds["context binary"], "the binary")):
        (view,) = open_views(path)
        told = {t.origin for node in view.nodes for t in (*node.inputs, *node.outputs) if t.encoding}
        assert told == {origin}
