"""The commands behind qnn-onnx-converter, qairt-converter and qnn-model-lib-generator."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.borders import custom_encodings, legacy_borders, qairt_borders
from openqnn.cli.quantizing import (
    LIKE_QNN,
    check_encodings,
    input_types,
    overrides_of,
    quantized,
    read_asked,
    write_encodings,
)
from openqnn.cli.tool import Tool
from openqnn.errors import InputError, LibraryError, OpenQnnWarning, OutputError, UnsupportedError, UsageError
from openqnn.formats.sniff import is_converted
from openqnn.options.converter import ConverterIo, ConverterOutput, ConverterSource, ConverterSteps
from openqnn.options.field import read_options
from openqnn.options.model_lib import ModelLib
from openqnn.options.packages import Checker, Packages, QairtPackages
from openqnn.options.qairt import QairtOnnx, QairtOthers, QairtOutput, QairtSource
from openqnn.options.quantizer import (
    KeptNodes,
    QairtQuantizer,
    QuantizerChoices,
    QuantizerData,
    QuantizerEncodings,
)

if TYPE_CHECKING:
    from openqnn.ir import Graph
    from openqnn.passes.boundary.layouts import Borders

# What ONNX's own simplifier would do to the source model.
SIMPLIFICATIONS = frozenset(
    ("clean", "remove_identities", "merge_reshapes", "merge_views", "merge_constants", "merge_repeated")
)
BATCHNORM_FOLDING, DEAD_CODE = "fold_affine", "remove_dead_code"
OTHER_FRAMEWORKS = {
    ".pb": "TensorFlow", ".pbtxt": "TensorFlow", ".meta": "TensorFlow", ".tflite": "TFLite", ".pt": "PyTorch",
    ".pt2": "PyTorch", ".pth": "PyTorch", ".h5": "Keras", ".keras": "Keras", ".caffemodel": "Caffe",
}  # fmt: skip


# -- qnn-onnx-converter --------------------------------------------------------------------------------------


def run_onnx_converter(arguments: Namespace, command: str) -> int:
    from openqnn.api.convert import describe_borders
    from openqnn.formats.custom_io import read_custom_io, write_custom_io

    source, io = read_options(arguments, ConverterSource), read_options(arguments, ConverterIo)
    steps, output = read_options(arguments, ConverterSteps), read_options(arguments, ConverterOutput)
    packages = read_options(arguments, Packages)
    read_options(arguments, Checker)
    kept, asked = read_options(arguments, KeptNodes), read_asked(arguments)
    if any(kind != "layout" for kind, _ in io.preserve_io):  # files for calibration have these types, too
        asked = asked.with_native_files()
    settings = _settings(source.input_dim, source.batch, source.define_symbol, source.out_names)
    entries = read_custom_io(io.custom_io) if io.custom_io else []
    borders = legacy_borders(io, entries, fixed=asked.wanted)
    if io.dump_custom_io_config_template:
        inputs, outputs = describe_borders(source.input_network, **settings)
        write_custom_io(io.dump_custom_io_config_template, [*inputs, *outputs])
        print(f"{io.dump_custom_io_config_template}: {len(inputs)} inputs, {len(outputs)} outputs")
        return 0
    if steps.dry_run:
        return _dry_run(source.input_network, settings, steps.dry_run)
    target = Path(output.output_path or Path(source.input_network).with_suffix(".cpp"))
    _check_target(target, Path(source.input_network))
    if asked.encodings.dump_encoding_json:
        check_encodings(target)
    copyright_text = _text_of(output.copyright_file)
    without = {
        *(SIMPLIFICATIONS if source.no_simplification else ()),
        *((BATCHNORM_FOLDING,) if steps.disable_batchnorm_folding else ()),
        *((DEAD_CODE,) if steps.keep_disconnected_nodes else ()),
    }
    more = {**settings, "borders": borders, "without": without, "keep_quant_nodes": kept.keep_quant_nodes}
    if not asked.wanted:
        more |= {"float_bits": output.float_bw, "bias_bits": output.float_bias_bw}
    graph = _converted(source.input_network, more, steps.debug)
    _check_inputs(graph, [name for name, _ in (*io.input_type, *io.input_dtype, *io.input_layout)])
    if kept.keep_quant_nodes and not any(v.dtype.is_fixed for v in graph.values()):
        warnings.warn("--keep_quant_nodes: no effect, the model has none", OpenQnnWarning, stacklevel=2)
    told = graph
    if asked.wanted:
        told = quantized(
            graph, asked, LIKE_QNN, float_bw=output.float_bw, float_bias_bw=output.float_bias_bw,
            extra=input_types(dict(io.input_type))
            | custom_encodings(entries, graph, asked.choices.act_bw or LIKE_QNN.act_bw),
        )  # fmt: skip
        graph = _with_asked_types(told, graph, borders)
    elif not asked.encodings.ignore_encodings:
        _say_unused_encodings(graph)
    _write_source(graph, target, output, packages.package_name, copyright_text, command)
    if asked.encodings.dump_encoding_json:
        print(write_encodings(told, target))
    return 0


def _say_unused_encodings(graph: Graph) -> None:
    from openqnn.ir import MODEL

    count = sum(said.source == MODEL for said in graph.given.values())
    if count:
        warnings.warn(
            f"the model's own encodings, of {count} tensors, have no effect without --float_fallback or"
            " --input_list: the graph is in floating point",
            OpenQnnWarning,
            stacklevel=3,
        )


def _with_asked_types(fixed: Graph, real: Graph, borders: Borders) -> Graph:
    """Inputs and outputs in the types that were asked for: the quantizer stores them as it stores tensors."""
    from openqnn.ir.clone import clone_graph
    from openqnn.passes.htp.border import keep_types

    types = {v.name: v.dtype for v in (*real.inputs, *real.outputs)}
    asked = {n: t for n, t in types.items() if n in borders.dtypes or n in borders.keep_dtype}
    asked |= {n: stored for n, (stored, _) in borders.stored.items() if types[n].is_float}
    made = clone_graph(fixed)  # encodings are told of the one before
    keep_types(made, asked)
    found = {v.name: v.dtype for v in (*made.inputs, *made.outputs)}
    missed = {n: t for n, t in asked.items() if found.get(n, t) is not t}
    if missed:
        told = ", ".join(f"'{n}' is {found[n].label}, not {t.label}" for n, t in missed.items())
        warnings.warn(f"HTP has no way to types that were asked for: {told}", OpenQnnWarning, stacklevel=3)
    return made


def _write_source(
    graph: Graph, target: Path, output: ConverterOutput, package: str, copyright_text: str, command: str
) -> None:
    from openqnn.emit import lower
    from openqnn.emit.model_source import SourceOptions, write_model_source
    from openqnn.formats.atomic import together

    options = SourceOptions(
        output.overwrite_model_prefix, output.exclude_named_tensors, package, copyright_text, command
    )
    with together():
        written = write_model_source([lower(graph)], target, options)
    _report(graph, [f for f in (written.cpp, written.bin, written.net_json) if f is not None])


# -- qairt-converter -----------------------------------------------------------------------------------------


def run_qairt_converter(arguments: Namespace, command: str) -> int:
    from openqnn.api.convert import describe_borders
    from openqnn.formats.custom_io import read_io_config, write_io_config

    source, output = read_options(arguments, QairtSource), read_options(arguments, QairtOutput)
    onnx, packages = read_options(arguments, QairtOnnx), read_options(arguments, QairtPackages)
    read_options(arguments, QairtOthers)
    known = read_options(arguments, QairtQuantizer)
    _check_framework(Path(source.input_network))
    inputs, outputs = read_io_config(source.io_config) if source.io_config else ([], [])
    shapes = {e.name: e.shape for e in inputs if e.shape} | dict(source.input_dim)
    settings = _settings(tuple(shapes.items()), onnx.batch, onnx.define_symbol, source.out_names)
    borders = qairt_borders(source, [*inputs, *outputs])
    if source.dump_io_config_template:
        found = describe_borders(source.input_network, **settings)
        write_io_config(source.dump_io_config_template, *found)
        print(f"{source.dump_io_config_template}: {len(found[0])} inputs, {len(found[1])} outputs")
        return 0
    if output.dry_run:
        return _dry_run(source.input_network, settings, output.dry_run)
    target = Path(output.output_path or Path(source.input_network).with_suffix(".dlc"))
    _check_target(target, Path(source.input_network))
    metadata = _metadata(output, command)
    widths = {"float_bits": output.float_bitwidth, "bias_bits": output.float_bias_bitwidth}
    without = SIMPLIFICATIONS if onnx.no_simplification else ()
    more = {**settings, **widths, "borders": borders, "without": without}
    graph = _converted(source.input_network, {**more, "keep_quant_nodes": False}, output.debug)
    _check_inputs(graph, [name for name, _ in (*source.input_dtype, *source.input_layout)])
    if known.quantization_overrides:
        graph.given |= overrides_of(graph, known.quantization_overrides)
    _write_dlc(graph, target, packages.package_name, metadata)
    return 0


def _check_framework(path: Path) -> None:
    framework = "TensorFlow" if path.is_dir() else OTHER_FRAMEWORKS.get(path.suffix.lower())
    if framework is not None:
        raise UnsupportedError(
            f"{path}: this is a {framework} model, and only ONNX models can be converted in this version",
            hint="export the model to ONNX first",
        )


def _metadata(output: QairtOutput, command: str) -> dict[str, str]:
    from openqnn import __version__
    from openqnn.formats import dlc_metadata as names

    if not output.model_version.isascii():
        raise UsageError(f"--model_version: {output.model_version!r} is not ASCII")
    return {
        names.MODEL_VERSION: output.model_version[: names.LONGEST_VERSION],
        names.CONVERTER_VERSION: f"openqnn {__version__}",
        names.COMMAND: command,
        names.COPYRIGHT: _text_of(output.copyright_file),
    }


def _write_dlc(graph: Graph, target: Path, package: str, metadata: Mapping[str, str]) -> None:
    from openqnn.api.files import save_dlc

    graph.name = target.stem
    save_dlc(graph, target, package=package, metadata=metadata)
    _report(graph, [target])


# -- qnn-model-lib-generator ---------------------------------------------------------------------------------


def run_model_lib_generator(arguments: Namespace, command: str) -> int:
    from openqnn.emit.model_lib import DEFAULT_TARGETS, LibraryJob, build_model_library

    options = read_options(arguments, ModelLib)
    if options.bin and not Path(options.bin).is_file():
        raise InputError(f"{options.bin}: no such file")
    targets = [t for words in options.lib_targets or () for t in words.replace(",", " ").split()]
    name = options.lib_name.removeprefix("lib").removesuffix(".so")
    job = LibraryJob(Path(options.cpp), Path(options.bin) if options.bin else None, name)
    try:
        build_model_library(job, options.output_dir, targets or DEFAULT_TARGETS, print)
    except LibraryError as error:
        if targets:
            raise
        hint = f"{error.hint}; or say what to build for: -t x86_64-linux-clang"
        raise LibraryError(error.message, hint=hint) from error
    return 0


# -- what they share -----------------------------------------------------------------------------------------


def _settings(
    shapes: Sequence[tuple[str, tuple[int, ...]]],
    batch: int | None,
    symbols: Sequence[tuple[str, int]],
    outputs: Sequence[str],
) -> dict[str, Any]:
    return {"input_shapes": dict(shapes), "batch": batch, "dims": dict(symbols), "outputs": outputs}


def _dry_run(model: str, settings: Mapping[str, Any], level: str) -> int:
    from openqnn.api.convert import check
    from openqnn.cli.report import print_check, print_problems, print_unused

    report = check(model, **settings)
    if level == "debug":
        print_problems(report)
    else:
        print_check(report)
    print_unused(report)
    return 0 if report.ok else 1


def _converted(model: str, settings: Mapping[str, Any], debug: int | None) -> Graph:
    from openqnn.api.convert import convert
    from openqnn.cli.progress import Stages
    from openqnn.cli.report import print_explanation
    from openqnn.passes import Explain

    explain = Explain()
    with Stages() as stages:
        graph = convert(model, **settings, explain=explain, progress=stages.update)
    if debug is not None:
        print_explanation(explain, sys.stderr)
    return graph


def _check_target(target: Path, source: Path) -> None:
    if target.is_dir():
        raise OutputError(f"{target} is a directory", hint=f"-o {target / source.stem}{target.suffix}")
    if target.exists() and source.exists() and target.samefile(source):
        raise OutputError(f"{target} is the source model itself", hint="give another file with -o")
    if target.exists() and not is_converted(target):
        raise OutputError(f"{target} exists, and no converter wrote it", hint="give another file with -o")


def _check_inputs(graph: Graph, names: Sequence[str]) -> None:
    known = [v.name for v in graph.inputs]
    for name in names:
        if name not in known:
            raise UsageError(f"the model has no input '{name}'", hint=f"its inputs: {', '.join(known)}")


def _text_of(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read: {getattr(e, 'strerror', None) or e}") from e


def _report(graph: Graph, files: Sequence[Path]) -> None:
    for file in files:
        print(f"{file}: {file.stat().st_size:,} bytes")
    read = [v for v in graph.inputs if v.users or graph.is_output(v)]
    for kind, values in (("input", read), ("output", graph.outputs)):
        for v in values:
            print(f"  {kind} {v.name}: {v.dtype.label} {'x'.join(map(str, v.shape)) or 'scalar'}")


TOOLS = (
    Tool(
        "qnn-onnx-converter",
        "Convert an ONNX model to QNN: C++ source, weights, and a description for viewers. Images become "
        "channel-last unless --preserve_io or --custom_io say otherwise.",
        "-i MODEL [-o MODEL.cpp] [options]",
        (
            ConverterSource, ConverterIo, ConverterSteps, ConverterOutput,
            QuantizerData, QuantizerChoices, QuantizerEncodings, KeptNodes, Packages, Checker,
        ),
        run_onnx_converter,
        takes_shapes=True,
    ),
    Tool(
        "qairt-converter",
        "Convert a model to a DLC file. Layouts stay as they are in the source model.",
        "-i MODEL [-o MODEL.dlc] [options]",
        (QairtSource, QairtOutput, QairtOnnx, QairtOthers, QairtQuantizer, QairtPackages),
        run_qairt_converter,
        takes_shapes=True,
    ),
    Tool(
        "qnn-model-lib-generator",
        "Compile what qnn-onnx-converter wrote into libraries that applications load.",
        "-c MODEL.cpp [-b MODEL.bin] [options]",
        (ModelLib,),
        run_model_lib_generator,
    ),
)  # fmt: skip
