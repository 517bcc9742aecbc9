"""model.cpp: the order of the file, names, and numbers that the compiler reads back as the same bits."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openqnn.emit import cpp_values
from openqnn.emit.cpp import CppOptions, print_cpp, write_cpp
from openqnn.emit.emission_order import anonymous, unique_params, with_package
from openqnn.emit.model_lib import INCLUDE
from openqnn.errors import ModelError
from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetScalar, NetTensor
from tests.emit import graphs


def printed(net: Net, options: CppOptions | None = None) -> str:
    return "".join(print_cpp([net], options))


def functions(text: str) -> list[str]:
    return re.findall(r"^static ModelError_t (\w+)\(QnnModel& model\)", text, re.M)


def test_order_of_the_file() -> None:
    net, _ = graphs.conv_relu()
    text = printed(net, CppOptions(copyright="Mine, 2026", command="qnn-onnx-converter; a=1; b=None"))
    landmarks = (
        "/*\n * Mine, 2026\n */", "/*\n * Command Line used:\n * qnn-onnx-converter; a=1; b=None\n */",
        '#include "QnnOpDef.h"\n#include "QnnModel.hpp"\n', "#define DO_GRAPH_NODE_VALIDATIONS 1\n",
        "using namespace qnn_wrapper_api;\n", 'const char* QNN_SDK_VERSION = "qaisw-v2.', 'extern "C" {',
        "addTensor_", "QnnModel_composeGraphs(", "QnnModel_freeGraphsInfo(", '} // extern "C"\n',
    )  # fmt: skip
    places = [text.index(mark) for mark in landmarks]
    assert places == sorted(places)


def test_each_static_tensor_comes_before_its_first_reader() -> None:
    net, _ = graphs.conv_relu()
    text = printed(net)
    expected = [
        "addTensor_image_1", "addTensor__conv_weight", "addTensor_bias", "addNode__Conv", "addNode__0relu",
        "addTensor__1x1_weight", "addNode_shrink", "addNode_again",
    ]  # fmt: skip
    assert functions(text) == expected
    assert re.findall(r"VALIDATE\((add\w+)\(conv_relu\), err\)", text) == expected


def test_parameters() -> None:
    net, _ = graphs.conv_relu()
    body = printed(net).split("addNode_shrink(QnnModel& model)")[1].split("return err;")[0]
    names = re.findall(r'QNN_PARAMTYPE_(\w+), \.name= "(\w+)"', body)
    kinds = [kind for kind, _ in names]
    assert kinds == sorted(kinds, reverse=True), "tensors first"
    for kind in ("TENSOR", "SCALAR"):
        same = [name for found, name in names if found == kind]
        assert same == sorted(same)
    assert ".scalarParam= (Qnn_Scalar_t){.dataType= QNN_DATATYPE_UINT_32, .uint32Value= 1}" in body
    assert "uint32_t dimensions_shrink_pad_amount[] = {2, 2};" in body


def test_scales_three_to_a_line_with_forty_decimals() -> None:
    net, _ = graphs.per_channel()
    text = printed(net)
    lines = text.split("Qnn_ScaleOffset_t scaleOffset_w[] = {\n")[1].split("};")[0].splitlines()
    assert [line.count(".scale=") for line in lines] == [3] * 10 + [2]
    scales = re.findall(r"\.scale= (\d\.\d{40})f", "\n".join(lines))
    quant = net.tensors["w"].quant
    assert quant is not None
    np.testing.assert_array_equal(np.array(scales, np.float32), np.array(quant.scales, np.float32))
    assert ".axisScaleOffsetEncoding= {.axis= 3, .numScaleOffsets= 32, .scaleOffset= scaleOffset_w}" in text


def test_validation_off_and_prefix() -> None:
    net, _ = graphs.concat()
    text = printed(net, CppOptions(prefix="my-net", validate=False))
    assert "#define DO_GRAPH_NODE_VALIDATIONS 0\n" in text
    assert "ModelError_t my_net_composeGraphs(" in text
    assert "ModelError_t my_net_freeGraphsInfo(" in text


def test_comments_cannot_be_ended_from_within() -> None:
    net, _ = graphs.concat()
    text = printed(net, CppOptions(copyright="*/ int evil; /*", command="-i '*/'"))
    assert text.index("*/") < text.index("#include")
    assert "*/ int evil" not in text
    assert "'*/'" not in text


def param_tensors(net: Net) -> list[NetTensor]:
    """The tensors that are parameters of nodes; they are not in `tensors`."""
    return [value for node in net.nodes for _, value in node.params if isinstance(value, NetTensor)]


def test_counted_names_keep_inputs_and_outputs() -> None:
    net, _ = graphs.conv_relu()
    counted = anonymous(net)
    assert (counted.inputs, counted.outputs) == (net.inputs, net.outputs)
    inner = set(counted.tensors) - {*net.inputs, *net.outputs}
    params = [t.name for t in param_tensors(counted)]
    assert all(re.fullmatch(r"tensor_\d+", name) for name in (*inner, *params))
    assert len({*inner, *params}) == len(inner) + len(params)
    assert [n.op for n in counted.nodes] == [n.op for n in net.nodes]


def test_package_name() -> None:
    net, _ = graphs.concat()
    assert printed(with_package(net, "my.pkg")).count('"my.pkg", // Package Name') == len(net.nodes)


def test_repeated_parameter_names_become_unique() -> None:
    net, _ = graphs.conv_relu()
    repeated = [replace(n, name=f"_{n.name}", params=_renamed(n.params)) for n in net.nodes]
    names = [t.name for t in param_tensors(unique_params(replace(net, nodes=tuple(repeated))))]
    assert len(set(names)) == len(names)
    assert {"same", "___Conv_pad_amount", "__shrink_stride"} <= set(names)


def _renamed(
    params: tuple[tuple[str, NetScalar | NetTensor], ...],
) -> tuple[tuple[str, NetScalar | NetTensor], ...]:
    return tuple((k, replace(v, name="same") if isinstance(v, NetTensor) else v) for k, v in params)


def test_scalar_of_a_type_without_a_field() -> None:
    with pytest.raises(ModelError, match="cannot be of type float16"):
        cpp_values.scalar_field(abi.FLOAT_16)


@given(st.floats(width=32))
def test_floats_keep_their_bits(value: float) -> None:
    text = cpp_values.scalar(NetScalar(abi.FLOAT_32, value))
    if np.isfinite(value):
        assert np.float32(text.removesuffix("f")).tobytes() == np.float32(value).tobytes()
    else:
        assert text.startswith(("__builtin_", "-__builtin_"))


@pytest.mark.parametrize(("value", "text"), [
    (3.4028234663852886e38, "340282346638528859811704183484516925440.000000000000f"),
    (0.1, "0.100000001490f"), (-6.0, "-6.000000000000f"), (float("-inf"), "-__builtin_inff()"),
    (1.2345e-12, "1.234500024e-12f"),  # twelve decimals would make another number of it
])  # fmt: skip
def test_float_text(value: float, text: str) -> None:
    assert cpp_values.scalar(NetScalar(abi.FLOAT_32, value)) == text


@given(st.text())
def test_strings_read_back(text: str) -> None:
    literal = cpp_values.string(text)[1:-1]
    assert literal.isascii() and '"' not in literal
    parts = re.split(r"\\(\d{3})", literal)
    data = b"".join(bytes([int(p, 8)]) if i % 2 else p.encode() for i, p in enumerate(parts))
    assert data == text.encode()


EVERYTHING = {
    "every_scalar": graphs.every_scalar,
    "four_bits": graphs.four_bits,
    "odd": lambda: graphs.odd_names()[0],
}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
def test_compiles_without_a_warning(compiler: str, standard: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    sources = [tmp_path / f"{name}.cpp" for name in EVERYTHING]
    for source, make in zip(sources, EVERYTHING.values(), strict=True):
        write_cpp([make()], source)
    flags = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-std={standard}", "-I", str(INCLUDE)]
    done = subprocess.run([compiler, *flags, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
