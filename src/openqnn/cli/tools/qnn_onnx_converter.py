"""qnn-onnx-converter: an ONNX model as C++ source, weights, and a description for viewers."""

from __future__ import annotations

from argparse import Namespace

from openqnn.cli.command import Tool
from openqnn.cli.shared.convert_source import CONVERTER_GROUPS, SourceRequest, convert_source
from openqnn.cli.shared.converting import SIMPLIFICATIONS, convert_settings
from openqnn.options.converter import ConverterSource
from openqnn.options.field import read_options


def run_onnx_converter(arguments: Namespace, command: str) -> int:
    source = read_options(arguments, ConverterSource)
    settings = convert_settings(source.input_dim, source.batch, source.define_symbol, source.out_names)
    without = SIMPLIFICATIONS if source.no_simplification else frozenset[str]()
    return convert_source(arguments, command, SourceRequest(source.input_network, settings, without))


TOOL = Tool(
    "qnn-onnx-converter",
    "Convert an ONNX model to QNN: C++ source, weights, and a description for viewers. Images become "
    "channel-last unless --preserve_io or --custom_io say otherwise.",
    "-i MODEL [-o MODEL.cpp] [options]",
    (ConverterSource, *CONVERTER_GROUPS),
    run_onnx_converter,
    takes_shapes=True,
    examples=(
        "qnn-onnx-converter -i model.onnx -o model.cpp",
        "qnn-onnx-converter -i model.onnx --input_list inputs.txt --act_bw 16 -o model.cpp",
    ),
)
