"""qnn-tensorflow-converter: a TensorFlow model as C++ source, weights, and a description for viewers."""

from __future__ import annotations

from argparse import Namespace

from openqnn.cli.command import Tool
from openqnn.cli.shared.convert_source import CONVERTER_GROUPS, SourceRequest, convert_source
from openqnn.cli.shared.converting import convert_settings
from openqnn.cli.shared.tensorflow_report import TensorflowReport
from openqnn.options.field import read_options
from openqnn.options.tensorflow import TensorflowSource


def run_tensorflow_converter(arguments: Namespace, command: str) -> int:
    source = read_options(arguments, TensorflowSource)
    report = TensorflowReport(source.show_unconsumed_nodes, source.validate_models)
    options = report.source_options(source.saved_model_tag, source.saved_model_signature_key)
    settings = convert_settings(source.input_dim, None, (), source.out_names)
    settings |= {"frontend": "tensorflow", "source_options": options}
    request = SourceRequest(source.input_network, settings, after=report.tell)
    return convert_source(arguments, command, request)


TOOL = Tool(
    "qnn-tensorflow-converter",
    "Convert a TensorFlow model to QNN: C++ source, weights, and a description for viewers. TensorFlow "
    "writes it as TFLite in a process of its own: pip install 'openqnn[tensorflow]'.",
    "-i MODEL [-d NAME DIMS] [--out_node NAME] [-o MODEL.cpp] [options]",
    (TensorflowSource, *CONVERTER_GROUPS),
    run_tensorflow_converter,
    takes_shapes=True,
    examples=("qnn-tensorflow-converter -i frozen.pb -d x 1,224,224,3 --out_node y -o model.cpp",),
)
