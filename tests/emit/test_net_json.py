"""<model>_net.json: keys in their order, types of values, and names that viewers expect."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from openqnn.emit.model_source import SourceOptions, write_model_source
from openqnn.emit.net_json import NetJsonOptions, ir_name, print_net_json
from openqnn.qnn.net import Net
from tests.emit import graphs

TENSOR_KEYS = [
    "id", "type", "dataFormat", "data_type", "unquantized_data_type", "axis_format", "src_axis_format",
    "quant_params", "dims", "is_dynamic_dims", "is_quantizable", "is_updateable",
]  # fmt: skip
NODE_KEYS = [
    "package", "type", "tensor_params", "scalar_params", "param_map", "input_names", "output_names",
    "macs_per_inference",
]  # fmt: skip
SCALE_KEYS = ["bitwidth", "minimum", "maximum", "scale", "offset", "is_symmetric", "is_fixed_point"]


def parsed(net: Net, options: NetJsonOptions | None = None) -> dict[str, Any]:
    return json.loads("".join(print_net_json(net, options)), parse_constant=_refuse)


def _refuse(token: str) -> None:
    raise AssertionError(f"{token} is not JSON")


def test_top_level(tmp_path: Path) -> None:
    net, _ = graphs.conv_relu()
    options = SourceOptions(copyright="Mine", command="tool; a=1")
    source = write_model_source([net], tmp_path / "m", options)
    assert source.net_json is not None
    text = source.net_json.read_text()
    assert text.startswith('{\n\t"model.cpp": ')
    content = json.loads(text)
    keys = ["model.cpp", "model.bin", "converter_command", "copyright_str", "op_types", "graph"]
    assert list(content) == keys
    assert [content[key] for key in keys[:5]] == [
        str(tmp_path / "m.cpp"), str(tmp_path / "m.bin"), "tool; a=1", "Mine", ["Conv2d", "Relu"],
    ]  # fmt: skip
    assert list(content["graph"]) == ["tensors", "nodes"]


def test_tensors() -> None:
    net, _ = graphs.conv_relu()
    tensors = parsed(net)["graph"]["tensors"]
    assert list(tensors) == [
        "image_1", "_conv_weight", "bias", "_Conv", "_0relu", "_1x1_weight", "shrink", "again",
    ]  # fmt: skip
    for name, record in tensors.items():
        static = net.tensors[name].data is not None
        assert list(record) == TENSOR_KEYS + ["params_count"] * static
        assert record["dims"] == list(net.tensors[name].dims)
    assert [tensors[name]["type"] for name in ("image_1", "_conv_weight", "_Conv", "again")] == [0, 4, 3, 1]
    assert (tensors["image_1"]["data_type"], tensors["image_1"]["axis_format"]) == (562, "NHWC")
    assert (tensors["_conv_weight"]["axis_format"], tensors["bias"]["axis_format"]) == ("HWIO", "ANY")


def test_identities_count_parameters_too() -> None:
    graph = parsed(graphs.conv_relu()[0])["graph"]
    own = [record["id"] for record in graph["tensors"].values()]
    params = [
        record["id"]
        for node in graph["nodes"].values()
        for param in node["tensor_params"].values()
        for record in param.values()
    ]
    assert own == sorted(own) and own[0] == 1
    assert sorted(own + params) == list(range(1, len(own) + len(params) + 1))


def test_share_of_weights() -> None:
    tensors = parsed(graphs.conv_relu()[0])["graph"]["tensors"]
    shares = [tensors[name]["params_count"] for name in ("_conv_weight", "bias", "_1x1_weight")]
    assert shares == ["108 (87.0%)", "4 (3.22%)", "12 (9.67%)"]


def test_quantisation() -> None:
    tensors = parsed(graphs.quantized()[0])["graph"]["tensors"]
    quant = tensors["x"]["quant_params"]
    assert list(quant) == ["definition", "encoding", "is_overridden", "scale_offset"]
    assert list(quant["scale_offset"]) == SCALE_KEYS
    assert (quant["definition"], quant["encoding"], tensors["x"]["unquantized_data_type"]) == (1, 0, 562)
    record = quant["scale_offset"]
    assert (record["bitwidth"], record["offset"], record["is_symmetric"]) == (8, -128, False)
    assert record["minimum"] == pytest.approx(-128 * 8 / 255)
    assert record["maximum"] == pytest.approx(127 * 8 / 255)
    undefined = parsed(graphs.concat()[0])["graph"]["tensors"]["left"]["quant_params"]
    assert (undefined["definition"], undefined["encoding"]) == (0x7FFFFFFF, 0x7FFFFFFF)
    assert not any(undefined["scale_offset"].values())


def test_per_channel_quantisation() -> None:
    quant = parsed(graphs.per_channel()[0])["graph"]["tensors"]["w"]["quant_params"]
    assert (quant["encoding"], quant["axis_scale_offset"]["axis"]) == (1, 3)
    records = quant["axis_scale_offset"]["scale_offsets"]
    assert len(records) == quant["axis_scale_offset"]["num_scale_offsets"] == 32
    assert list(records[0]) == SCALE_KEYS
    assert records[0]["is_symmetric"]


def test_nodes() -> None:
    nodes = parsed(graphs.concat()[0], NetJsonOptions(macs={"joined": 7}))["graph"]["nodes"]
    assert list(nodes) == ["joined", "turned", "total"]
    for record in nodes.values():
        assert list(record) == NODE_KEYS
    joined, turned, total = nodes.values()
    assert joined["scalar_params"]["axis"] == {"306": 1}
    assert (joined["macs_per_inference"], turned["macs_per_inference"]) == ("7", "0")
    assert turned["tensor_params"]["perm"]["turned_perm"]["data"] == [1, 0]
    assert total["type"] == "Reduce"
    assert total["scalar_params"] == {
        "keep_dims": {"1288": True},
        "packageName": {"1544": "qti.aisw"},
        "reduce_type": {"1544": "ReduceSum"},
    }
    assert total["param_map"] == {"axes": 1, "keep_dims": 1, "packageName": 2, "reduce_type": 2}
    assert (joined["input_names"], joined["output_names"]) == (["left", "right"], ["joined"])


@pytest.mark.parametrize(("op", "name"), [
    ("ElementWiseBinary", "Eltwise_Binary"), ("ElementWiseUnary", "Eltwise_Unary"), ("PoolMax2d", "Pool"),
    ("PoolAvg3d", "Pool"), ("ReduceMean", "Reduce"), ("Conv2d", "Conv2d"),
    ("ElementWiseNeuron", "ElementWiseNeuron"),
])  # fmt: skip
def test_names_of_ops(op: str, name: str) -> None:
    assert ir_name(op) == name


def test_infinities_stay_valid_json() -> None:
    scalars = parsed(graphs.clip(-math.inf, math.inf)[0])["graph"]["nodes"]["only"]["scalar_params"]
    assert (scalars["min_value"]["562"], scalars["max_value"]["562"]) == (-math.inf, math.inf)
    everything = parsed(graphs.every_scalar())["graph"]["nodes"]["only"]
    assert everything["scalar_params"]["nan"] == {"562": None}
    assert everything["input_names"] == ["x", "only_absent_1", "x"]
