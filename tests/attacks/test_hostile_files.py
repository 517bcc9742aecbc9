"""Files that ask for memory, contradict themselves or lead elsewhere: one message each, and soon."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

import openqnn
from openqnn.emit.epcontext import read_epcontext
from openqnn.errors import InputError, ModelError, OpenQnnError, UsageError
from openqnn.evaluation.config_file import read_config
from openqnn.formats.bench_config import read_bench_config
from openqnn.formats.custom_io import read_custom_io, read_io_config
from openqnn.formats.json_text import parse_json
from openqnn.formats.oqnn import read_oqnn
from openqnn.formats.shapes_file import read_shapes
from openqnn.formats.throughput_config import read_throughput_config
from openqnn.formats.yaml_text import parse_yaml
from openqnn.ir.graph_text import parse_graph
from openqnn.quant.samples import samples_of
from openqnn.vendor.partition.choices import read_choices
from tests.cli.tool import openqnn as openqnn_command
from tests.onnx_models import add_weight, model, relu, save, tensor


def integers(name: str, *numbers: int) -> TensorProto:
    return numpy_helper.from_array(np.asarray(numbers, np.int64), name)


def test_few_bytes_that_ask_for_gigabytes(tmp_path: Path) -> None:
    fill = [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
    big = model(fill, [tensor("x", (1,))], [tensor("y", (10**9,))], [integers("s", 10**9)])
    with pytest.raises(OpenQnnError, match="too large"):
        openqnn.convert(save(big, tmp_path / "c.onnx"))
    ends = [
        numpy_helper.from_array(np.asarray(n, np.int64), s) for s, n in (("a", 0), ("b", 10**11), ("d", 1))
    ]
    steps = [helper.make_node("Range", ["a", "b", "d"], ["r"]), helper.make_node("Cast", ["r"], ["y"], to=1)]
    with pytest.raises(OpenQnnError, match="too long"):
        openqnn.convert(
            save(model(steps, [tensor("x", (1,))], [tensor("y", None)], ends), tmp_path / "r.onnx")
        )


def test_a_dimension_beyond_32_bits(tmp_path: Path) -> None:
    rows = [helper.make_node("Concat", ["x"] * 3, ["y"], axis=0)]
    huge = model(
        rows, [tensor("x", (2_000_000_000, 1), TensorProto.UINT8)], [tensor("y", None, TensorProto.UINT8)]
    )
    with pytest.raises(OpenQnnError, match="beyond 32 bits"):
        openqnn.convert(save(huge, tmp_path / "h.onnx"))


@pytest.mark.parametrize("through", ["file", "folder"])
def test_links_out_of_the_folder(through: str, tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    source = save(add_weight(np.ones((2, 3), np.float32)), home / "m.onnx")
    onnx.save_model(
        onnx.load(source), source, save_as_external_data=True, location="w.data", size_threshold=0
    )
    (home / "w.data").rename(elsewhere / "w.data")
    if through == "file":
        (home / "w.data").symlink_to(elsewhere / "w.data")
    else:
        (home / "d").symlink_to(elsewhere)
        made = onnx.load(source, load_external_data=False)
        made.graph.initializer[0].external_data[0].value = "d/w.data"
        source.write_bytes(made.SerializeToString())
    with pytest.raises(ModelError, match="leaves the model's folder"):
        openqnn.convert(source)


def test_a_cache_that_keeps_files_by_their_hash(tmp_path: Path) -> None:
    """Model and data are links into one folder, as caches of model hubs have them."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "1"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    source = save(add_weight(np.ones((2, 3), np.float32)), blobs / "m.onnx")
    onnx.save_model(
        onnx.load(source), source, save_as_external_data=True, location="w.data", size_threshold=0
    )
    for name in ("m.onnx", "w.data"):
        (blobs / name).rename(blobs / f"hash-{name}")
        (snapshot / name).symlink_to(blobs / f"hash-{name}")
    assert openqnn.convert(snapshot / "m.onnx").nodes


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="no regular file"):
        openqnn.convert(tmp_path / "m.onnx")


def test_no_command_waits_for_a_pipe(tmp_path: Path) -> None:
    openqnn.convert(save(relu(), tmp_path / "m.onnx")).save(tmp_path / "m.oqnn")
    numbers, text = tmp_path / "p.npy", tmp_path / "p.json"
    for path in (numbers, text):
        os.mkfifo(path)
    said = [
        openqnn_command("run", tmp_path / "m.oqnn", "--input", f"x={numbers}"),
        openqnn_command("quantize", tmp_path / "m.oqnn", "--data", numbers, "-o", tmp_path / "q.oqnn"),
        openqnn_command("encodings", text),
    ]
    assert [(result.code, "is a pipe" in result.err) for result in said] == [(1, True)] * len(said), said


ODD = (
    {"ep_cache_context": 3_000_000_000},
    {"ep_cache_context": b"context.bin"},
    {"ep_cache_context": b"x", "embed_mode": 7},
    {"ep_cache_context": b"a\0b", "embed_mode": 0},
    {"ep_cache_context": [1, 2]},
)


@pytest.mark.parametrize("attribute", ODD)
def test_odd_context_nodes(attribute: dict[str, object], tmp_path: Path) -> None:
    node = helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", source="QNN", **attribute)
    save(model([node]), tmp_path / "ep.onnx")
    with pytest.raises(ModelError):
        read_epcontext(tmp_path / "ep.onnx")


@pytest.mark.parametrize("read", [read_bench_config, read_throughput_config])
def test_configurations_that_are_nested_too_deep(read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="is not JSON"):
        read(tmp_path / "a.json")


def _evaluation(path: Path) -> object:
    return read_config(str(path), {})


@pytest.mark.parametrize("text", ["{" * 999, "a: " + "9" * 5000, "a: !!bool what", "a: !!timestamp x"])
def test_yaml_that_cannot_be_read(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(text)


@pytest.mark.parametrize("read", [read_custom_io, read_io_config, read_shapes, read_choices, _evaluation])
def test_files_of_yaml_that_cannot_be_read(read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: !!bool what")
    with pytest.raises((InputError, UsageError), match="YAML"):
        read(tmp_path / "a.yaml")


@pytest.mark.parametrize("text", ['graph "a\x01" {', 'graph "\\q" {', 'graph "\\ud800" {',
                                  'graph "g" { const %c: int32[1] = [' + "9" * 5000 + "] }"])  # fmt: skip
def test_text_that_is_no_graph(text: str) -> None:
    with pytest.raises(ModelError, match="graph text"):
        parse_graph(text)


@pytest.mark.parametrize("kind", [">f4", "V8", "M8", "S4", "float128", "datetime64[s]"])
def test_constants_of_types_that_no_tensor_has(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.oqnn"
    openqnn.convert(save(add_weight(np.ones((64, 2, 3), np.float32)), tmp_path / "m.onnx")).save(path)
    data = path.read_bytes()
    size = int.from_bytes(data[8:16], "little")
    header = data[16 : 16 + size].replace(b'"float32", [', b'"' + kind.encode() + b'", [')
    header = header.replace(b'"checksum"', b'"nothing"')
    path.write_bytes(data[:8] + len(header).to_bytes(8, "little") + header + data[16 + size :])
    with pytest.raises(ModelError, match="damaged"):
        read_oqnn(path)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"no array"])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_that_are_none(suffix: str, data: bytes, tmp_path: Path) -> None:
    graph = openqnn.convert(save(relu(), tmp_path / "m.onnx"))
    (tmp_path / f"x{suffix}").write_bytes(data)
    with pytest.raises(InputError):
        list(samples_of(graph, tmp_path / f"x{suffix}"))


def test_damage_inside_an_archive_of_arrays(tmp_path: Path) -> None:
    graph = openqnn.convert(save(relu(), tmp_path / "m.onnx"))
    np.savez(tmp_path / "x.npz", x=np.ones((2, 3), np.float32))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[150] ^= 255
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        list(samples_of(graph, tmp_path / "x.npz"))


def test_json_with_comments_and_json_without_end() -> None:
    assert parse_json('// a\n{"b": "//c", /* d */ "e": 1}') == {"b": "//c", "e": 1}
    for text in ("{", "[" * 100_000, '{"a": // b\n}'):
        with pytest.raises(ValueError, match=r"."):
            parse_json(text)


def test_weights_stay_as_they_are(tmp_path: Path) -> None:
    """The bounds are far from what models have."""
    fill = [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
    plain = model(
        fill,
        [tensor("x", (1024, 1024))],
        [tensor("y", None)],
        [integers("s", 1024, 1024)],
    )
    assert openqnn.convert(save(plain, tmp_path / "p.onnx")).outputs[0].shape == (1024, 1024)


def test_functions_that_call_each_other_twice(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = []
    for level in range(26):
        inner = [("Relu", "") if not level else (f"f{level - 1}", "f")] * 2
        names = ["a", "b", "c"]
        nodes = [
            helper.make_node(op, [names[i]], [names[i + 1]], domain=domain)
            for i, (op, domain) in enumerate(inner)
        ]
        functions.append(helper.make_function("f", f"f{level}", ["a"], ["c"], nodes, opsets))
    made = model([helper.make_node("f25", ["x"], ["y"], domain="f")], f=1)
    made.functions.extend(functions)
    with pytest.raises(ModelError, match="more than 1,048,576 nodes"):
        openqnn.convert(save(made, tmp_path / "f.onnx"))
    made.graph.node[0].op_type = "f3"
    assert openqnn.convert(save(made, tmp_path / "g.onnx")).nodes
