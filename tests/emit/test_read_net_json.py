"""model_net.json, written and read back: the records are equal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import openqnn
from openqnn.analysis.diff import diff_nets
from openqnn.emit import lower
from openqnn.emit.model_source import write_model_source
from openqnn.emit.read_net_json import read_net_json
from openqnn.errors import ModelError
from openqnn.ir import Graph
from openqnn.runtime.boundary import random_inputs
from tests.models.fetch import model_path, static_shapes


def converted(model: str) -> Graph:
    return openqnn.convert(model_path(model), input_shapes=static_shapes(model))


def quantized(model: str) -> Graph:
    graph = converted(model)
    return openqnn.quantize(graph, [random_inputs(graph, seed) for seed in range(2)], backend="cpu")


@pytest.mark.parametrize(
    ("graph", "model"), [(converted, "ppocr_cls"), (converted, "mtcnn_onet"), (quantized, "mnist_conv")]
)
def test_what_is_written_is_read_back(tmp_path: Path, graph: object, model: str) -> None:
    assert callable(graph)
    net = lower(graph(model))
    files = write_model_source([net], tmp_path / "m.cpp")
    assert files.net_json is not None
    found = diff_nets(net, read_net_json(files.net_json, files.bin))
    assert found.equal, found.differences[:3]
    bare = read_net_json(files.net_json)
    assert [node.name for node in bare.nodes] == [node.name for node in net.nodes]
    assert all(tensor.data is None for tensor in bare.tensors.values())


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"graph": {"tensors": {}}}',
        '{"graph": {"tensors": {"x": {"type": 77}}, "nodes": {}}}',
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "m_net.json").write_text(content)
    with pytest.raises(ModelError, match=r"m_net\.json"):
        read_net_json(tmp_path / "m_net.json")


def test_a_node_that_names_no_tensor(tmp_path: Path) -> None:
    files = write_model_source([lower(converted("mnist_conv"))], tmp_path / "m.cpp")
    assert files.net_json is not None
    content = json.loads(files.net_json.read_text())
    next(iter(content["graph"]["nodes"].values()))["input_names"][0] = "ghost"
    files.net_json.write_text(json.dumps(content))
    with pytest.raises(ModelError, match="'ghost', which does not exist"):
        read_net_json(files.net_json)
