"""qnn-tflite-converter: a TFLite model as C++ source, weights, and a description for viewers."""

from __future__ import annotations

from argparse import Namespace

from openqnn.cli.command import Tool
from openqnn.cli.shared.convert_source import CONVERTER_GROUPS, SourceRequest, convert_source
from openqnn.cli.shared.converting import convert_settings
from openqnn.options.field import read_options
from openqnn.options.tflite import TfliteSource


def run_tflite_converter(arguments: Namespace, command: str) -> int:
    source = read_options(arguments, TfliteSource)
    settings = convert_settings(source.input_dim, None, (), source.out_names)
    settings |= {"frontend": "tflite", "source_options": {"signature": source.signature_name}}
    if source.show_unconsumed_nodes:
        _show_unconsumed(source)
    return convert_source(arguments, command, SourceRequest(source.input_network, settings))


def _show_unconsumed(source: TfliteSource) -> None:
    from openqnn.frontends.tflite.open_tflite import unconsumed_operators

    found = unconsumed_operators(source.input_network, source.signature_name, source.out_names)
    print(f"{len(found)} unconsumed nodes{':' if found else ''}")
    for operator, result in found:
        print(f"  {operator} '{result}'")


TOOL = Tool(
    "qnn-tflite-converter",
    "Convert a TFLite model to QNN: C++ source, weights, and a description for viewers. Encodings of a "
    "quantized model are used with --float_fallback or --input_list.",
    "-i MODEL [-d NAME DIMS] [-o MODEL.cpp] [options]",
    (TfliteSource, *CONVERTER_GROUPS),
    run_tflite_converter,
    takes_shapes=True,
    examples=("qnn-tflite-converter -i model.tflite -o model.cpp",),
)
