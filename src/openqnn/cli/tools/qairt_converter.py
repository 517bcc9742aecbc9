"""qairt-converter: a model as a DLC file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Tool
from openqnn.cli.shared.converting import (
    SIMPLIFICATIONS,
    check_converted,
    check_input_names,
    convert_settings,
    converted_graph,
    dry_run,
    report_files,
    text_of,
)
from openqnn.cli.shared.io_options import qairt_borders
from openqnn.cli.shared.quantizing import overrides_of
from openqnn.cli.shared.tensorflow_report import TensorflowReport
from openqnn.errors import UnsupportedError, UsageError
from openqnn.options.field import read_options
from openqnn.options.later import LaterConverter
from openqnn.options.packages import QairtPackages
from openqnn.options.qairt import QairtOnnx, QairtOthers, QairtOutput, QairtSource
from openqnn.options.quantizer import QairtQuantizer
from openqnn.options.tensorflow import TAG

if TYPE_CHECKING:
    from openqnn.ir import Graph

OTHER_FRAMEWORKS = {".pbtxt": "TensorFlow text"}


def run_qairt_converter(arguments: Namespace, command: str) -> int:
    from openqnn.api.convert import describe_borders
    from openqnn.formats.custom_io import read_io_config, write_io_config

    source, output = read_options(arguments, QairtSource), read_options(arguments, QairtOutput)
    onnx, packages = read_options(arguments, QairtOnnx), read_options(arguments, QairtPackages)
    others = read_options(arguments, QairtOthers)
    read_options(arguments, LaterConverter)
    known = read_options(arguments, QairtQuantizer)
    _check_framework(Path(source.input_network))
    inputs, outputs = read_io_config(source.io_config) if source.io_config else ([], [])
    shapes = {e.name: e.shape for e in inputs if e.shape} | dict(source.input_dim)
    settings = convert_settings(tuple(shapes.items()), onnx.batch, onnx.define_symbol, source.out_names)
    report = TensorflowReport(others.tf_show_unconsumed_nodes, others.tf_validate_models)
    settings |= _source_options(others, report)
    borders = qairt_borders(source, [*inputs, *outputs])
    if source.dump_io_config_template:
        found = describe_borders(source.input_network, **settings)
        write_io_config(source.dump_io_config_template, *found)
        print(f"{source.dump_io_config_template}: {len(found[0])} inputs, {len(found[1])} outputs")
        return 0
    if output.dry_run:
        return dry_run(source.input_network, settings, output.dry_run)
    target = Path(output.output_path or Path(source.input_network).with_suffix(".dlc"))
    check_converted(target, Path(source.input_network))
    metadata = _metadata(output, command)
    widths = {"float_bits": output.float_bitwidth, "bias_bits": output.float_bias_bitwidth}
    without = SIMPLIFICATIONS if onnx.no_simplification else ()
    more = {**settings, **widths, "borders": borders, "without": without}
    graph = converted_graph(source.input_network, {**more, "keep_quant_nodes": False}, output.debug)
    report.tell(graph)
    check_input_names(graph, [name for name, _ in (*source.input_dtype, *source.input_layout)])
    if known.quantization_overrides:
        graph.given |= overrides_of(graph, known.quantization_overrides)
    _write_dlc(graph, target, packages.package_name, metadata)
    return 0


def _check_framework(path: Path) -> None:
    framework = OTHER_FRAMEWORKS.get(path.suffix.lower())
    if framework is not None:
        raise UnsupportedError(
            f"{path}: this is a {framework} model, which cannot be converted in this version",
            hint="export the model to ONNX first",
        )


def _source_options(others: QairtOthers, report: TensorflowReport) -> dict[str, Any]:
    """What the flags of one framework say; without any, the model's content says which it is."""
    asked = (
        others.tf_saved_model_tag,
        others.tf_saved_model_signature_key,
        report.unconsumed,
        report.validate,
    )
    if others.tflite_signature_name:
        return {"frontend": "tflite", "source_options": {"signature": others.tflite_signature_name}}
    if others.caffemodel:
        return {"frontend": "caffe", "source_options": {"caffemodel": others.caffemodel}}
    if not any(asked):
        return {}
    tag = others.tf_saved_model_tag or TAG
    options = report.source_options(tag, others.tf_saved_model_signature_key)
    return {"frontend": "tensorflow", "source_options": options}


def _metadata(output: QairtOutput, command: str) -> dict[str, str]:
    from openqnn import __version__
    from openqnn.formats import dlc_metadata as names

    if not output.model_version.isascii():
        raise UsageError(f"--model_version: {output.model_version!r} is not ASCII")
    return {
        names.MODEL_VERSION: output.model_version[: names.LONGEST_VERSION],
        names.CONVERTER_VERSION: f"openqnn {__version__}",
        names.COMMAND: command,
        names.COPYRIGHT: text_of(output.copyright_file),
    }


def _write_dlc(graph: Graph, target: Path, package: str, metadata: Mapping[str, str]) -> None:
    from openqnn.api.files import save_dlc

    graph.name = target.stem
    save_dlc(graph, target, package=package, metadata=metadata)
    report_files(graph, [target])


TOOL = Tool(
    "qairt-converter",
    "Convert a model to a DLC file. Layouts stay as they are in the source model.",
    "-i MODEL [-o MODEL.dlc] [options]",
    (QairtSource, QairtOutput, QairtOnnx, QairtOthers, QairtQuantizer, QairtPackages, LaterConverter),
    run_qairt_converter,
    takes_shapes=True,
    examples=(
        "qairt-converter -i model.onnx -o model.dlc",
        "qairt-converter -i model.onnx -d images 1,3,640,640 -o model.dlc",
    ),
)
